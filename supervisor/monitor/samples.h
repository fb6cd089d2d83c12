/*
 * samples.h - the monitor that tells where the program spends its time: the
 * kernel writes a sample at every so many of an event, of every thread and
 * child; here each becomes a record. One plant: armed it costs so much for each
 * sample, which is measured at the start. The rate is chosen so that this stays
 * below the target. Where other things have used the budget up, as starting
 * does, there are samples in a quarter of the time, which count four times, for
 * what is not looked at would be missing in the shares; and none where much
 * more is spent. How long that was, and how many samples were lost, is said.
 *
 * Calls no ptrace.
 */
#ifndef SMCO_SAMPLES_H
#define SMCO_SAMPLES_H

#include "pmu/sampler.h"
#include "reports/record.h"
#include "supervisor/control/control.h"

#define SAMPLES_MONITOR 3 /* its number in the ledger */

struct samples;

enum samples_stack {
	SAMPLES_WHOLE, /* its outermost frame is there */
	SAMPLES_CUT,
	SAMPLES_LATE, /* what it takes to know more is being made */
};

struct samples_params {
	uint64_t frequency_hz; /* as asked for */
	int64_t target_overhead_ppb;
	bool is_alone; /* nothing else uses the budget */
	bool threads_only;
	bool exact_times;  /* to the ns: there is more that is timed to that */
	uint64_t start_ns; /* CLOCK_MONOTONIC of session time 0 */
	/* The sample's stack, by id; 0 = unknown. SAMPLES_LATE only if
	 * @may_wait: the sample is asked for again. */
	uint32_t (*stack)(void *ctx, const struct ring_record *r, bool may_wait,
			  enum samples_stack *how_ret);
	/* A process mapped code: PERF_RECORD_MMAP2. Between the samples before
	 * and after it. */
	void (*mapped)(void *ctx, const struct ring_record *r);
	/* Sampling goes on that paused since @since_ns: what was mapped
	 * meanwhile was not told. */
	void (*resumed)(void *ctx, uint64_t since_ns);
	void (*emit)(void *ctx, const struct record *r);
	void (*put_meta)(void *ctx, const char *key, const char *value);
	void *ctx;
};

/* Of the time on a CPU; at most @wanted_hz, at least 1, so that the given
 * @share_ppb of it pays for samples of @cost_ns. INT64_MAX: no bound. */
uint64_t samples_rate_hz(uint64_t wanted_hz, int64_t share_ppb,
			 uint64_t cost_ns);

/* How long nobody need look at rings of so many bytes into which @hz samples a
 * second come: 20 to 100 ms. */
uint64_t samples_drain_ns(uint64_t hz, size_t ring_bytes);

/* How much of the time there are samples. */
enum samples_pace {
	SAMPLES_ALL,
	SAMPLES_SPARSE, /* SAMPLES_SPARSELY'th of it, at random */
	SAMPLES_NONE,
};
#define SAMPLES_SPARSELY 4
/*
 * The ledger has @room_ns; a debt of @credit_ns may wait. A third of it, which
 * is what starting a program makes, is paid back by what the rate leaves of the
 * budget: few slots that count four times each would be most of what is not
 * certain about a run of some seconds.
 */
enum samples_pace samples_pace_of(int64_t room_ns, int64_t credit_ns);

/* Errors for the user: sampling is not permitted, or not possible here. */
int samples_create(const struct samples_params *p, struct ledger *ledger,
		   struct samples **ret, struct smco_err *err);
void samples_destroy(struct samples *s);
/* What is sampled and how often; once the trace is open. */
void samples_put_meta(struct samples *s);

/* Sample @tid and all that it creates from now, or from its next exec on. What
 * cannot be is not an error: it is counted, and said in the end. */
void samples_add(struct samples *s, pid_t tid, bool on_exec);

/* When samples_tick wants to be called. */
uint64_t samples_due_ns(const struct samples *s);
/* Write out what there is, if it is time; pause or go on as there is room. */
void samples_tick(struct samples *s, uint64_t now_ns);
/* Write out what there is, for a process is about to be forgotten. No stack is
 * waited for. */
void samples_drain(struct samples *s);
/* The last records, and what was not seen. Nothing is sampled any more. */
void samples_finish(struct samples *s);

#endif
