#include "supervisor/monitor/samples.h"

#include <stdio.h>
#include <stdlib.h>

#include "pmu/open.h"
#include "supervisor/control/fixed.h"
#include "supervisor/control/window.h"
#include "supervisor/kept.h"
#include "supervisor/monitor/samples-late.h"

/* Each time somebody wakes up for it, which a slow virtual machine charges with
 * as much as a sample or two. */
#define DRAIN_SOONEST_NS (20 * NSEC_PER_MSEC)
#define DRAIN_LATEST_NS	 (100 * NSEC_PER_MSEC)
#define DRAIN_PART	 4 /* of the ring may be full by then */
#define SLOT_NS		 (20 * NSEC_PER_MSEC)
/* More is hardly dearer, for nearly all is the interrupt; with half of it
 * nearly all stacks of programs with buffers on them (clang) were cut. */
#define STACK_BYTES  32768
#define SAMPLE_BYTES (STACK_BYTES + 512)
#define RING_LEAST   (2u << 20)
#define RING_MOST    (8u << 20)
/* What sampling may take of the target: the rest is for reading it, and for
 * what else is watched. */
#define SHARE_ALONE  4 / 5
#define SHARE_BESIDE 2 / 5
/* So long a sample waits for its stack. */
#define LATE_MOST_NS (500 * NSEC_PER_MSEC)
/* A change of the pace is a call for each thread and CPU. */
#define ADDED_A_SLOT 64
/* Where that is not known: a slow virtual machine's. */
#define USUAL_COST_NS 20000

struct samples {
	struct samples_params p;
	struct sampler_params how;
	struct sampler *sampler;
	struct ledger *ledger;
	uint64_t hz, cost_ns;
	uint64_t unit_ns; /* of times, a tenth between two or less */
	uint64_t due_ns;
	uint64_t nr, nr_lost, nr_charged, nr_failed;
	uint64_t now_ns; /* of the drain */
	struct late_samples late;
	bool is_off;
	uint64_t off_since_ns, on_since_ns;
	uint64_t on_ns; /* how long it was on so far, before that */
	enum samples_pace pace;
	uint64_t paced_ns;		    /* since when */
	uint64_t pace_ns[SAMPLES_NONE + 1]; /* how long so far, before that */
	/* One of so many slots in a row, SAMPLES_SPARSE: which, and whether
	 * this is it; what it is lasts until then. */
	unsigned chosen_slot;
	bool is_chosen;
	uint64_t slot_until_ns, random, nr_added;
	bool is_finished;
	struct smco_err why_failed;
};

uint64_t samples_rate_hz(uint64_t wanted_hz, int64_t share_ppb,
			 uint64_t cost_ns)
{
	uint64_t most;
	if (share_ppb == INT64_MAX || !cost_ns)
		return wanted_hz;
	if (share_ppb < 0)
		share_ppb = 0;
	most = (uint64_t)share_ppb / cost_ns; /* ppb of a second are ns */
	if (most < 1)
		most = 1;
	return min_u64(wanted_hz, most);
}

enum samples_pace samples_pace_of(int64_t room_ns, int64_t credit_ns)
{
	if (room_ns > -credit_ns / 3)
		return SAMPLES_ALL;
	return room_ns > -credit_ns ? SAMPLES_SPARSE : SAMPLES_NONE;
}

/* A third of what a window may be above the target: the bound holds. */
static int64_t credit_ns(const struct samples *s)
{
	int64_t m_t = control_m_from_overhead(s->p.target_overhead_ppb);
	return (ledger_window_most_ns(s->ledger) -
		(int64_t)mul_ppb(WINDOW_NS, m_t)) /
	       3;
}

/* As much as comes on a CPU in the least time until we are there again, twice.
 */
static size_t ring_bytes_for(uint64_t hz)
{
	uint64_t need = 2 * hz * DRAIN_SOONEST_NS / NSEC_PER_SEC * SAMPLE_BYTES;
	size_t bytes = RING_LEAST;
	while (bytes < need && bytes < RING_MOST)
		bytes *= 2;
	return bytes;
}

uint64_t samples_drain_ns(uint64_t hz, size_t ring_bytes)
{
	uint64_t room = ring_bytes / DRAIN_PART / SAMPLE_BYTES;
	uint64_t ns = room * NSEC_PER_SEC / (hz ? hz : 1);
	return ns < DRAIN_SOONEST_NS ? DRAIN_SOONEST_NS
				     : min_u64(ns, DRAIN_LATEST_NS);
}

/* Cycles where the machine can count them, else the time itself. */
static int choose_event(struct pmu_event *ret, struct smco_err *err)
{
	int rc = pmu_event_parse("cycles", ret, err);
	if (!rc && !pmu_try(ret, NULL))
		return 0;
	rc = pmu_event_parse("cpu-clock", ret, err);
	return rc ? rc : pmu_try(ret, err);
}

/* Measuring takes what sampling may at -t 2 in more than a second. */
static uint64_t know_cost_ns(const struct sampler_params *how)
{
	enum kept_what what =
		how->event.attr.exclude_kernel ? KEPT_SAMPLE_USER : KEPT_SAMPLE;
	uint64_t v[KEPT_FIGURES] = {0};
	if (kept_get(what, v))
		return v[0];
	v[0] = sampler_cost_ns(how);
	if (v[0])
		kept_add(what, v);
	return v[0] ? v[0] : USUAL_COST_NS;
}

int samples_create(const struct samples_params *p, struct ledger *ledger,
		   struct samples **ret, struct smco_err *err)
{
	struct samples *s = calloc(1, sizeof(*s));
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	s->p = *p;
	s->ledger = ledger;
	s->how = (struct sampler_params){
		.frequency_hz = p->frequency_hz,
		.stack_bytes = STACK_BYTES,
		.ring_bytes = RING_LEAST,
		.threads_only = p->threads_only,
		.with_mappings = true,
	};
	int rc = choose_event(&s->how.event, err);
	if (!rc) {
		int64_t share = INT64_MAX;
		s->how.with_address = !s->how.event.is_software;
		s->cost_ns = know_cost_ns(&s->how);
		if (p->target_overhead_ppb != INT64_MAX) {
			share = control_m_from_overhead(p->target_overhead_ppb);
			share = p->is_alone ? share * SHARE_ALONE
					    : share * SHARE_BESIDE;
		}
		s->hz = samples_rate_hz(p->frequency_hz, share, s->cost_ns);
		s->how.frequency_hz = s->hz;
		s->how.ring_bytes = ring_bytes_for(s->hz);
		s->unit_ns = p->exact_times ? 1
			     : s->hz <= 1000
				     ? SAMPLE_UNIT_NS
				     : unit_for(100 * NSEC_PER_SEC / s->hz,
						NSEC_PER_MSEC);
		rc = sampler_create(&s->how, &s->sampler, err);
	}
	if (rc) {
		free(s);
		return rc;
	}
	s->due_ns = p->start_ns + DRAIN_SOONEST_NS;
	s->paced_ns = p->start_ns;
	s->on_since_ns = p->start_ns;
	s->random = p->start_ns | 1;
	*ret = s;
	return 0;
}

void samples_destroy(struct samples *s)
{
	if (!s)
		return;
	sampler_destroy(s->sampler);
	late_samples_deinit(&s->late);
	free(s);
}

static void put_u64(struct samples *s, const char *key, uint64_t v)
{
	char text[32];
	snprintf(text, sizeof(text), "%ju", (uintmax_t)v);
	s->p.put_meta(s->p.ctx, key, text);
}

void samples_put_meta(struct samples *s)
{
	s->p.put_meta(s->p.ctx, "samples.event", s->how.event.name);
	if (s->how.event.attr.exclude_kernel)
		s->p.put_meta(s->p.ctx, "samples.level", "user");
	put_u64(s, "samples.wanted_hz", s->p.frequency_hz);
	put_u64(s, "samples.hz", s->hz);
	put_u64(s, "samples.cost_ns", s->cost_ns);
}

void samples_add(struct samples *s, pid_t tid, bool on_exec)
{
	struct smco_err err = {0};
	s->nr_added++;
	if (!sampler_add(s->sampler, tid, on_exec, &err) ||
	    err.code == SMCO_GONE)
		return;
	if (!s->nr_failed++)
		s->why_failed = err;
}

/* False: its stack is to be asked for again. */
static bool put(struct samples *s, const struct ring_record *r, uint64_t weight,
		bool may_wait)
{
	enum samples_stack how = SAMPLES_CUT;
	uint32_t stack = s->p.stack(s->p.ctx, r, may_wait, &how);
	bool kernel = (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
		      PERF_RECORD_MISC_KERNEL;
	if (may_wait && how == SAMPLES_LATE)
		return false;
	struct ev_sample ev = {
		.weight = weight,
		.addr = s->how.with_address ? r->sample.addr : 0,
		.pid = r->pid,
		.flags = (kernel ? SAMPLE_KERNEL : 0) |
			 (how == SAMPLES_WHOLE ? 0 : SAMPLE_CUT),
	};
	s->p.emit(s->p.ctx, &(struct record){
				    .event = EV_SAMPLE,
				    .time_ns = in_units(
					    sat_sub_u64(r->time, s->p.start_ns),
					    s->unit_ns),
				    .cpu = r->cpu,
				    .tid = r->tid,
				    .param = stack,
				    .payload_len = sizeof(ev),
				    .payload = &ev,
			    });
	return true;
}

static bool put_late(void *ctx, const struct late_sample *late)
{
	struct samples *s = ctx;
	return put(s, &late->record, late->weight,
		   s->now_ns - late->since_ns < LATE_MOST_NS);
}

static bool put_all_late(void *ctx, const struct late_sample *late)
{
	return put(ctx, &late->record, late->weight, false);
}

static void take(struct samples *s, const struct ring_record *r, bool may_wait)
{
	uint64_t weight = s->pace == SAMPLES_SPARSE
				  ? r->sample.period * SAMPLES_SPARSELY
				  : r->sample.period;
	s->nr++;
	if (!put(s, r, weight, may_wait) &&
	    !late_samples_add(&s->late, r, weight, s->now_ns))
		put(s, r, weight, false);
}

static void drain(struct samples *s, bool may_wait, uint64_t now_ns)
{
	struct ring_record r;
	if (s->is_finished)
		return;
	s->now_ns = now_ns;
	late_samples_each(&s->late, may_wait ? put_late : put_all_late, s);
	while (sampler_next(s->sampler, &r))
		if (r.type == PERF_RECORD_SAMPLE)
			take(s, &r, may_wait);
		else
			s->p.mapped(s->p.ctx, &r);
	/* One that found no room had been taken nevertheless. */
	uint64_t nr = s->nr + sampler_lost(s->sampler, false);
	ledger_charge(s->ledger, LEDGER_OTHER, SAMPLES_MONITOR,
		      (nr - s->nr_charged) * s->cost_ns);
	s->nr_charged = nr;
}

void samples_drain(struct samples *s)
{
	drain(s, false, 0);
}

static void set(struct samples *s, bool on, uint64_t now_ns)
{
	if (on == !s->is_off)
		return;
	s->is_off = !on;
	if (on) {
		s->on_since_ns = now_ns;
	} else {
		s->off_since_ns = now_ns;
		s->on_ns += sat_sub_u64(now_ns, s->on_since_ns);
	}
	sampler_set(s->sampler, on);
	if (on)
		s->p.resumed(s->p.ctx, s->off_since_ns);
}

/* So many slots from when the last one was to end, so that it does not matter
 * how late we come, but by how much that differs. */
static void stay(struct samples *s, unsigned nr, uint64_t now_ns)
{
	uint64_t slot_ns = SLOT_NS * (1 + s->nr_added / ADDED_A_SLOT);
	s->slot_until_ns += nr * slot_ns;
	if (s->slot_until_ns <= now_ns)
		s->slot_until_ns = now_ns + nr * slot_ns;
}

/* Of each row of slots the chosen one is sampled. Nobody need wake up for each
 * of the others: those behind it and those before the next row's are one. */
static void step_slot(struct samples *s, uint64_t now_ns)
{
	if (now_ns < s->slot_until_ns)
		return;
	unsigned others = 0;
	if (s->is_chosen) {
		others = SAMPLES_SPARSELY - 1 - s->chosen_slot;
		s->random = s->random * 6364136223846793005 + 1; /* Knuth's */
		s->chosen_slot = (s->random >> 33) % SAMPLES_SPARSELY;
		others += s->chosen_slot;
	}
	s->is_chosen = !others;
	stay(s, others ? others : 1, now_ns);
	set(s, s->is_chosen, now_ns);
}

/* All samples until now have been taken. */
static void set_pace(struct samples *s, enum samples_pace pace, uint64_t now_ns)
{
	if (pace != s->pace) {
		s->pace_ns[s->pace] += sat_sub_u64(now_ns, s->paced_ns);
		s->paced_ns = now_ns;
		s->pace = pace;
		s->chosen_slot = SAMPLES_SPARSELY - 1; /* a row begins */
		s->is_chosen = true;
		s->slot_until_ns = now_ns;
	}
	if (pace == SAMPLES_SPARSE)
		step_slot(s, now_ns);
	else
		set(s, pace == SAMPLES_ALL, now_ns);
}

uint64_t samples_due_ns(const struct samples *s)
{
	return s->is_finished ? UINT64_MAX : s->due_ns;
}

void samples_tick(struct samples *s, uint64_t now_ns)
{
	if (now_ns < samples_due_ns(s))
		return;
	drain(s, true, now_ns);
	set_pace(s, samples_pace_of(ledger_room_ns(s->ledger), credit_ns(s)),
		 now_ns);
	s->due_ns = now_ns +
		    samples_drain_ns(s->hz, sampler_ring_bytes(s->sampler));
	if (s->pace == SAMPLES_SPARSE)
		s->due_ns = min_u64(s->due_ns, s->slot_until_ns);
	if (!s->is_off)
		sampler_dither(s->sampler,
			       s->on_ns + sat_sub_u64(now_ns, s->on_since_ns));
}

void samples_finish(struct samples *s)
{
	char text[400];
	if (s->is_finished)
		return;
	set(s, false, smco_now_ns());
	samples_drain(s);
	s->pace_ns[s->pace] += sat_sub_u64(smco_now_ns(), s->paced_ns);
	s->is_finished = true;
	put_u64(s, "samples.lost", sampler_lost(s->sampler, true));
	put_u64(s, "samples.paused_ns", s->pace_ns[SAMPLES_NONE]);
	put_u64(s, "samples.sparse_ns", s->pace_ns[SAMPLES_SPARSE]);
	put_u64(s, "samples.spent_ns",
		ledger_spent_ns(s->ledger, LEDGER_OTHER, SAMPLES_MONITOR));
	if (sampler_damaged(s->sampler))
		put_u64(s, "samples.damaged", sampler_damaged(s->sampler));
	if (s->nr_failed) {
		snprintf(text, sizeof(text), "%ju thread%s: %s",
			 (uintmax_t)s->nr_failed, s->nr_failed == 1 ? "" : "s",
			 s->why_failed.msg);
		s->p.put_meta(s->p.ctx, "samples.failed", text);
	}
}
