/*
 * What is recorded of phases over time: few have records of their own, of many
 * one tells for each interval and thread, and nothing is told twice or lost.
 */
#include <string.h>

#include "supervisor/monitor/phases-private.h"
#include "t/unit/phase-shm.h"

#define MS NSEC_PER_MSEC

static struct ev_phase_span span[64];
static uint32_t span_tid[64];
static unsigned nr_spans, nr_alone, nr_ongoing;
static uint64_t last_ns;

static void keep(void *ctx, const struct record *r)
{
	(void)ctx;
	last_ns = r->time_ns;
	if (r->event == EV_PHASE) {
		const struct ev_phase *ev = r->payload;
		nr_alone += !ev->flags;
		nr_ongoing += ev->flags == PHASE_ONGOING;
	} else if (nr_spans < 64) {
		span_tid[nr_spans] = r->tid;
		span[nr_spans++] = *(const struct ev_phase_span *)r->payload;
	}
}

static uint32_t pid_of(void *ctx, uint32_t tid)
{
	(void)ctx;
	return tid < 10 ? 7 : 8;
}

static struct phase phase[2];
static struct phases ph = {
	.p = {.nr = 2, .pid_of = pid_of, .emit = keep, .span_ns = 100 * MS},
	.phase = phase,
};

static struct shared sh = {.pid = 7};

static void pass(uint32_t tid, enum mark_kind kind, uint64_t time_ns)
{
	if (!sh.shm)
		sh.shm = phase_shm();
	const struct mark_record r = {.time_ns = time_ns,
				      .left_ns = time_ns,
				      .tid = tid,
				      .what = kind,
				      .run = 1};
	phase_times_take(&ph, &sh, &r);
	phase[0].count += kind == MARK_BEGIN;
}

static void turns(uint32_t tid, unsigned nr, uint64_t each_ns)
{
	for (unsigned i = 0; i < nr; i++) {
		pass(tid, MARK_BEGIN, 1000 * i);
		pass(tid, MARK_END, 1000 * i + each_ns);
	}
}

static uint64_t start_ns;

static void tick(uint64_t now_ns)
{
	nr_spans = 0;
	phase_spans_look(&ph, start_ns + now_ns);
	phase_spans_tick(&ph, start_ns + now_ns);
}

static const struct ev_phase_span *span_of(uint32_t tid)
{
	for (unsigned i = 0; i < nr_spans; i++)
		if (span_tid[i] == tid)
			return &span[i];
	check_msg(false, "no span of thread %u", tid);
	return &span[63];
}

/* Of what was timed in part: how long threads were inside, by what is known of
 * each; what is more than an interval was before. */
static void test_inside(uint64_t now_ns)
{
	turns(1, 1, 10);
	turns(2, 1, 10);
	tick(now_ns);
	struct thread_phase *one = phase_times_find(&ph, &sh, 1, 0),
			    *two = phase_times_find(&ph, &sh, 2, 0);
	check(one && two);
	if (!one || !two)
		return;
	phase[0] = (struct phase){.count = 1000,
				  .ended = 1000,
				  .weight = 500,
				  .weighted_ns = 15 * MS,
				  .told_ns = 30 * MS,
				  .alone_ns = 6 * MS,
				  .is_missed = true};
	phase_spans_inside(&ph, one, 100);
	phase_spans_inside(&ph, two, 200);
	tick(now_ns + 100 * MS);
	check_int(nr_spans, 3);
	check_int(span_of(1)->in_ns, 8 * MS + 1);
	check_int(span_of(2)->in_ns, 16 * MS + 1);
	check_int(span_of(1)->count, 0);
	check_int(span_of(0)->count, 1000);
	phase[0].is_missed = true;
	phase[0].told = 1000;
	phase[0].weighted_ns += 60 * MS;
	phase_spans_inside(&ph, one, 1);
	tick(now_ns + 200 * MS);
	check_int(nr_spans, 2);
	check_int(span[0].length_ns, 100 * MS);
	check_int(span[0].in_ns, 100 * MS + 1);
	check_int(span[1].length_ns, now_ns + 200 * MS + start_ns);
	check_int(span[1].in_ns, 140 * MS);
	check_int(span[1].nr_seen, 0);
	/* All of what there was is told. */
	phase[0].is_missed = true;
	phase_spans_inside(&ph, one, 1);
	tick(now_ns + 300 * MS);
	check_int(nr_spans, 0);
	phase_times_free(&ph);
}

int main(void)
{
	/* The first ones; then those of two threads, of three times as many. */
	turns(1, 32, 10);
	check_int(nr_alone, 32);
	turns(1, 10, 10);
	turns(2, 20, 30);
	phase[0].count += 61; /* that were not timed */
	phase[0].is_missed = true;
	tick(99 * MS);
	check_int(nr_spans, 0);
	tick(100 * MS);
	check_int(nr_alone, 32);
	check_int(nr_spans, 2);
	check_int(last_ns, 100 * MS);
	uint64_t sum = 0;
	for (unsigned i = 0; i < nr_spans; i++) {
		unsigned k = span_tid[i];
		check(k == 1 || k == 2);
		check_int(span[i].length_ns, 100 * MS);
		check_int(span[i].nr_seen, 10 * k);
		check_int(span[i].seen_ns, k == 1 ? 100 : 600);
		/* 61 in the proportion of 42 to 20. */
		check(span[i].count == (k == 1 ? 51 : 39) ||
		      span[i].count == (k == 1 ? 52 : 40));
		check_int(span[i].pid, 7);
		sum += span[i].count;
	}
	check_int(sum, 91);

	/* Nothing twice. */
	tick(200 * MS);
	check_int(nr_spans, 0);
	/* As long as none is missed, what is counted is still to be read. */
	phase[0].count += 1;
	tick(300 * MS);
	check_int(nr_spans, 0);
	phase[0].count -= 1;
	start_ns = 100 * MS;
	/* The next interval has records of its own again. */
	turns(1, 1, 10);
	check_int(nr_alone, 33);

	/* Where those that were timed have records of their own, too. */
	phase[0].count += 3;
	phase[0].is_missed = true;
	tick(300 * MS);
	check_int(nr_spans, 1);
	check_int(span_tid[0], 1);
	check_int(span[0].count, 3);
	check_int(span[0].nr_seen, 0);

	/* None timed. */
	phase[1].count = 5;
	phase[1].is_missed = true;
	tick(450 * MS);
	check_int(nr_spans, 1);
	check_int(span_tid[0], 0);
	check_int(span[0].count, 5);
	check_int(span[0].nr_seen, 0);
	check_int(span[0].length_ns, 150 * MS);

	/* Long ones are never many. */
	turns(1, 40, 10);
	unsigned before = nr_alone;
	turns(1, 3, 20 * MS);
	check_int(nr_alone, before + 3);
	check_int(before, 33 + 32);

	/* What is not over yet is told when it is. */
	pass(1, MARK_BEGIN, 500 * MS);
	tick(600 * MS);
	check_int(nr_spans, 1);
	check_int(span[0].count, 8);
	tick(700 * MS);
	check_int(nr_spans, 0);
	pass(1, MARK_END, 750 * MS);
	tick(800 * MS);
	check_int(nr_spans, 0);
	check_int(nr_alone, before + 4);

	/* Or when its process is gone; another's goes on. */
	phase[0].nr_seen += 64;
	pass(1, MARK_BEGIN, 900 * MS);
	pass(12, MARK_BEGIN, 900 * MS);
	phase_times_leave(&ph, 7, 950 * MS);
	check_int(nr_ongoing, 1);
	check_int(last_ns, 950 * MS);
	phase_times_leave(&ph, 7, 960 * MS);
	check_int(nr_ongoing, 1);
	/* Unless it is not known whether it was over. */
	phase[0].count++;
	phase[0].is_missed = true;
	phase_times_leave(&ph, 8, 970 * MS);
	check_int(nr_ongoing, 1);
	check_int(phase[0].open, 0);
	tick(1000 * MS);
	check_int(nr_spans, 1);
	check_int(span[0].count, 2);
	phase_times_free(&ph);

	/* In a program of one thread it is known who passed. */
	ph.sole_tid = 9;
	ph.sole_pid = 7;
	for (unsigned i = 0; i < 2; i++) {
		phase[1].count += 4;
		phase[1].is_missed = true;
		tick((2000 + 200 * i) * MS);
		check_int(nr_spans, 1);
		check_int(span[0].count, 4);
		check_int(span_tid[0], i ? 0 : 9);
		check_int(span[0].pid, i ? 0 : 7);
		phases_new_thread(&ph, NULL, NULL);
	}
	test_inside(3000 * MS);
	return tap_done();
}
