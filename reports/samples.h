/*
 * samples.h - where threads were seen, summed by stack and by function. Part
 * of the model (model.h); memory grows with stacks, not with samples.
 */
#ifndef SMCO_SAMPLES_REPORT_H
#define SMCO_SAMPLES_REPORT_H

#include "reports/hindex.h"
#include "reports/trace.h"

struct summary; /* model.h */

#define SAMPLE_RECENT 16384

/* Samples of one process with one stack. */
struct sample_stack {
	uint32_t file, pid;
	uint32_t id;			 /* the summary's; 0 = unknown */
	const struct trace_frame *frame; /* innermost first; never empty */
	size_t nr_frames;
	uint64_t nr;
	double weight;
};

struct sample_function {
	const struct trace_frame *frame; /* one of it */
	/* Samples: it ran itself; it or what it called ran. Recursion counts
	 * once. */
	uint64_t nr_self, nr_total;
	double self, total; /* the same by weight */
	/* private: */
	size_t last_stack; /* that counted it, 1-based */
};

struct model_samples {
	struct sample_stack *stack; /* most weight first */
	size_t nr_stacks, cap_stacks;
	struct sample_function *function; /* most self first */
	size_t nr_functions, cap_functions;
	uint64_t nr, nr_kernel, nr_cut; /* samples */
	double weight;
	/* private: */
	double least, most; /* weight of a sample; 0 without any */
	double light_sum;   /* of those below twice the least */
	uint64_t nr_light;
	struct hindex stack_index, function_index;
	uint32_t recent[SAMPLE_RECENT]; /* by id: a stack's number + 1 */
};

/*
 * Take in an EV_SAMPLE record of @file, whose stack is @id in the summary.
 * SMCO_NOMEM. model_samples_finish after the last one: sums by function.
 */
int model_samples_take(struct model_samples *m, struct trace_reader *reader,
		       uint32_t file, uint32_t id, const struct record *r);
int model_samples_finish(struct model_samples *m);
void model_samples_free(struct model_samples *m);
/*
 * How many samples there would be in @stack, had as many been taken all the
 * time as where most were: its share is that by weight. stack->nr where all
 * stand for about the same: the time between two varies at random by a quarter.
 */
uint64_t model_samples_of(const struct model_samples *m,
			  const struct sample_stack *stack);
/* After model_samples_finish: the number in @m->function of the one that ran
 * itself, by its stack's innermost frame, NULL if that is unknown. UINT32_MAX:
 * there was no such sample. */
uint32_t model_samples_function(const struct model_samples *m,
				const struct trace_frame *frame);

/* Share of all samples by weight, ppb. */
int64_t sample_share_ppb(const struct model_samples *m, double weight);
/* "next_random", or "[libfoo.so]" for all of it that has no names. Returns
 * @buf, of at least NAMES_MAX bytes, or the frame's own text. */
const char *sample_function_name(const struct trace_frame *f, char *buf);
/* Is it the kernel's? */
bool sample_is_kernel(const struct trace_frame *f);

/* Was any of the traces made to take samples? */
bool samples_were_taken(const struct summary *s);
/* The error of whoever asks for samples where there are none: SMCO_NOTFOUND;
 * none were taken, or none are selected. */
int samples_none(const struct summary *s, struct smco_err *err);

#endif
