/*
 * phases.h - the phases of a trace: how often each was entered, how long those
 * were that were timed, and when that was; of several files, those of one name
 * together. Part of the model (model.h).
 */
#ifndef SMCO_PHASES_REPORT_H
#define SMCO_PHASES_REPORT_H

#include "reports/phase-sums.h"
#include "reports/phase-when.h"
#include "reports/trace.h"

struct select;

struct model_phase {
	const char *name; /* as it was asked for; not cleaned; never NULL */
	struct ev_phase_total sum;
	/* How long threads were in it, and how often they entered it, by
	 * when. */
	double in_ns;
	uint64_t nr_in;
	/* How long all of them were together, as far as the run could tell; not
	 * if it did not. */
	bool is_estimated;
	uint64_t about_ns;
};

struct model_phases {
	struct model_phase *phase; /* in the order of the command line */
	size_t nr, cap;
	struct model_when when;	 /* phases are indices in @phase */
	struct phase_sums *sums; /* of each, file by file: phase_sums() */
	size_t nr_sums;
	/* private: */
	struct phase_part {		  /* the last record of a file */
		uint32_t file, id, phase; /* index in @phase */
		struct trace_reader *reader;
		struct ev_phase_total last;
		double nr_timed, timed_ns; /* until this record */
	} * part;
	size_t nr_parts, cap_parts;
};

/* Take in an EV_PHASE_TOTAL record of @file. SMCO_NOMEM. */
int model_phases_take(struct model_phases *m, struct trace_reader *reader,
		      uint32_t file, const struct record *r);
/* The same of a timed phase, EV_PHASE, and those of an interval, EV_PHASE_SPAN.
 * What @select does not let pass is left out. */
int model_phases_take_timed(struct model_phases *m, struct trace_reader *reader,
			    uint32_t file, const struct select *select,
			    const struct record *r);
int model_phases_take_span(struct model_phases *m, struct trace_reader *reader,
			   uint32_t file, const struct select *select,
			   const struct record *r);
/* Index in @m->phase of what @file calls phase @id. SMCO_NOMEM; SMCO_NOTFOUND:
 * there are too many. */
int model_phases_index(struct model_phases *m, struct trace_reader *reader,
		       uint32_t file, uint32_t id, uint32_t *ret);
/* After the last record. SMCO_NOMEM. */
int model_phases_finish(struct model_phases *m);
void model_phases_free(struct model_phases *m);

/* The run's own estimate of how long all of phase @phase in @file were, where
 * not all were timed; 0: it made none. */
uint64_t phase_about_ns(const struct model_phases *m, size_t phase,
			size_t file);
/* By the runs' own estimates, or else of those that were timed; 0 if none was.
 */
double phase_mean_ns(const struct model_phase *p);
/*
 * How long all of them were together, by the run's own estimate; without one if
 * those that were timed were like the others, but no longer than the threads
 * were there; saturated.
 */
uint64_t phase_total_ns(const struct model_phase *p);

/* The error of whoever asks for phases where there are none; SMCO_NOTFOUND. */
int phases_none(struct smco_err *err);

#endif
