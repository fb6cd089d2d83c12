/*
 * sampler.h - where threads are: at every so many of an event the kernel writes
 * down the program counter, the user registers and the top of the user stack,
 * in a ring for each CPU. A thread's sampling goes over to all that it creates,
 * by the kernel's inheritance, so that nobody has to be told of births.
 *
 * What the rings had no room for is counted. Nothing is unwound or named here.
 */
#ifndef SMCO_PMU_SAMPLER_H
#define SMCO_PMU_SAMPLER_H

#include <sys/types.h>

#include "pmu/event.h"
#include "pmu/ring.h"

/* Bits of perf's x86 register numbers: what a sample's user.value has, in this
 * order, for SAMPLER_REGS. */
enum sampler_reg {
	SAMPLER_AX,
	SAMPLER_BX,
	SAMPLER_CX,
	SAMPLER_DX,
	SAMPLER_SI,
	SAMPLER_DI,
	SAMPLER_BP,
	SAMPLER_SP,
	SAMPLER_IP,
	SAMPLER_R8, /* to r15 */
	SAMPLER_NR_REGS = SAMPLER_R8 + 8,
};

struct sampler_params {
	struct pmu_event event; /* of pmu_try: what it excludes is excluded */
	uint64_t period;	/* a sample at every so many; 0: by frequency */
	uint64_t frequency_hz;	/* of the time on a CPU */
	uint32_t stack_bytes;	/* multiple of 8, at most 32 KiB; 0 = none */
	size_t ring_bytes;	/* a power of two, at least a page */
	bool threads_only;	/* child processes are not sampled */
	bool with_address;	/* of the data, where the PMU tells it */
	bool with_mappings;	/* code that a sampled process maps is told */
};

struct sampler;

/* Nothing is opened yet but what it takes to know how. SMCO_NOMEM,
 * SMCO_UNSUPPORTED. */
int sampler_create(const struct sampler_params *p, struct sampler **ret,
		   struct smco_err *err);
void sampler_destroy(struct sampler *s);

/*
 * Sample thread @tid and all that it creates from now on, or from its next exec
 * on. All or nothing; errors as pmu_explain. Where the kernel lets us have no
 * rings of the size asked for they are smaller.
 */
int sampler_add(struct sampler *s, pid_t tid, bool on_exec,
		struct smco_err *err);
/* Of each CPU's ring. */
size_t sampler_ring_bytes(const struct sampler *s);
/* All threads stop to be sampled, or go on. At first they are. */
void sampler_set(struct sampler *s, bool on);

/*
 * Samples at a fixed period fall in step with a program that repeats itself in
 * the same time, and see always the same part of it. So each thread's period is
 * changed now and then, at random, by up to a quarter; the mean stays. To be
 * called often (each 20 to 100 ms) while sampling is on; @now_ns stands still
 * while it is off, for each change costs half a period. What is inherited keeps
 * the period that its parent had at its birth. Nothing is done for events by
 * frequency, whose period the kernel changes by itself, nor for every
 * @period-th event.
 */
void sampler_dither(struct sampler *s, uint64_t now_ns);

/*
 * The next of what all CPUs wrote, in order of time: true, or false if there is
 * none now. A sample or, if asked for, a mapping (PERF_RECORD_MMAP2; none
 * is told while sampling is off). *ret is valid until the next call.
 */
bool sampler_next(struct sampler *s, struct ring_record *ret);
/* Samples that the rings had no room for, as far as the rings tell: exact after
 * sampler_set(false) if @exact, which asks for each thread that was added. A
 * mapping that was lost counts, too. */
uint64_t sampler_lost(struct sampler *s, bool exact);
/* Bytes that were no records. */
uint64_t sampler_damaged(const struct sampler *s);

/*
 * What one sample costs the thread, ns: the median of some, taken of the
 * calling thread for a few milliseconds. 0 if that is not permitted, or cannot
 * be told on a busy machine.
 */
uint64_t sampler_cost_ns(const struct sampler_params *p);

#endif
