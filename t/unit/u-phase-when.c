/*
 * When threads were in a phase: against a line of moments, in small; that
 * nothing is lost or counted twice however many pieces there are; and what a
 * trace's records make of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/model.h"
#include "reports/phases-json.h"
#include "reports/summary.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"
#include "t/unit/trace-sample.h"

#define LENGTH 2000

static uint32_t seed = 1;
static uint32_t roll(uint32_t below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % below;
}

static void put(struct when_track *t, uint64_t from, uint64_t to, uint64_t in,
		size_t max)
{
	struct when_piece p = {
		.from_ns = from, .to_ns = to, .in_ns = in, .nr = 1};
	if (when_add(t, &p, max))
		check(false);
}

/* None over another; returns how much is in the phase. */
static double sum(const struct when_track *t, uint64_t *nr_ret)
{
	double in = 0;
	bool ordered = true;
	*nr_ret = 0;
	for (size_t i = 0; i < t->nr; i++) {
		const struct when_piece *p = &t->piece[i];
		ordered &= p->from_ns < p->to_ns &&
			   p->in_ns <= p->to_ns - p->from_ns;
		ordered &= !i || p[-1].to_ns <= p->from_ns;
		in += (double)p->in_ns;
		*nr_ret += p->nr;
	}
	check(ordered);
	return in;
}

/* Whole pieces, over each other as recursion has them. */
static void whole(void)
{
	static bool is_in[LENGTH];
	struct when_track t = {0};
	uint64_t nr;
	size_t hint = 0;
	double in = 0;
	for (int i = 0; i < 60; i++) {
		uint64_t from = roll(LENGTH - 100), to = from + 1 + roll(90);
		put(&t, from, to, to - from, 1000);
		for (uint64_t k = from; k < to; k++)
			is_in[k] = true;
	}
	when_sort(&t, 0);
	for (int i = 0; i < LENGTH; i++)
		in += is_in[i];
	check_int((long)sum(&t, &nr), (long)in);
	check_int(nr, 60);
	bool same = true;
	for (uint64_t i = 0; i < LENGTH; i++)
		same &= when_share(&t, i, &hint) == (is_in[i] ? 1 : 0);
	check(same);
	same = true;
	for (int i = 0; i < 200; i++) {
		uint64_t from = roll(LENGTH), to = from + roll(LENGTH);
		double want = 0;
		for (uint64_t k = from; k < to && k < LENGTH; k++)
			want += is_in[k];
		same &= fabs(when_in_ns(&t, from, to, &hint) - want) < 1e-6;
	}
	check(same);
	free(t.piece);
}

/* Intervals with a share, and pieces over their borders: borders stay. */
static void shares(void)
{
	struct when_track t = {0};
	uint64_t nr;
	size_t hint = 0;
	for (uint64_t i = 0; i < 50; i++) {
		put(&t, 100 * i, 100 * (i + 1), 30, 1000);
		put(&t, 100 * i + 95, 100 * i + 105, 10, 1000);
	}
	when_sort(&t, 0);
	check_int((long)sum(&t, &nr), 50 * 40);
	check_int(nr, 100);
	check_int(t.nr, 100);
	check(fabs(when_share(&t, 50, &hint) - 0.35) < 1e-9);
	check(fabs(when_in_ns(&t, 1000, 2000, &hint) - 400) < 1e-6);
	/* It is never more than there. */
	put(&t, 0, 100, 90, 1000);
	when_sort(&t, 0);
	check(fabs(when_share(&t, 50, &hint) - 1) < 1e-9);
	free(t.piece);
}

/* As many pieces as one likes in little memory. */
static void many(void)
{
	struct when_track t = {0};
	uint64_t nr;
	size_t hint = 0;
	for (uint64_t i = 0; i < 100000; i++)
		put(&t, 10 * i, 10 * i + 4, 4, 256);
	check(t.nr <= 256 && t.cap <= 256);
	when_sort(&t, 100);
	check(t.nr <= 100 && t.nr > 45);
	check_int((long)sum(&t, &nr), 400000);
	check_int(nr, 100000);
	check(fabs(when_in_ns(&t, 250000, 750000, &hint) - 200000) < 1000);
	free(t.piece);
}

static void clipped(void)
{
	struct when_piece p = {.in_ns = 50, .nr = 3};
	check(when_clip(&p, 200, 100, 0, 0));
	check_int(p.from_ns, 100);
	check_int(p.to_ns, 200);
	check_int(p.nr, 3);
	check(when_clip(&p, 200, 100, 150, 175));
	check_int(p.from_ns, 150);
	check_int(p.to_ns, 175);
	check_int(p.in_ns, 12);
	check_int(p.nr, 0);
	check(!when_clip(&p, 200, 100, 200, 0));
	check(!when_clip(&p, 200, 100, 0, 100));
	p = (struct when_piece){.in_ns = UINT64_MAX, .nr = 1}; /* hostile */
	check(when_clip(&p, UINT64_MAX, UINT64_MAX, 0, 0));
	check(p.from_ns < p.to_ns && p.in_ns <= p.to_ns);
	p = (struct when_piece){.in_ns = 1, .nr = 1};
	check(when_clip(&p, 0, 0, 0, 0));
	check(p.from_ns < p.to_ns);
}

#define MS NSEC_PER_MSEC

static void put_record(struct trace_writer *w, uint32_t event, uint64_t ms,
		       uint32_t tid, uint32_t param, uint32_t size,
		       const void *payload)
{
	trace_put(w, &(struct record){.event = event,
				      .time_ns = ms * MS,
				      .tid = tid,
				      .param = param,
				      .payload_len = size,
				      .payload = payload});
}
#define PUT(w, event, ms, tid, param, ...)                                     \
	put_record(w, event, ms, tid, param, sizeof(__VA_ARGS__), &__VA_ARGS__)

static void put_stack(struct trace_writer *w, uint32_t id, const char *function,
		      uint32_t line)
{
	struct trace_frame f = {
		.function = function,
		.file = "",
		.line = line,
		.module = "m",
		.build_id = "",
	};
	trace_put_stack(w, id, &f, 1);
}

/* Two threads; phase 0 one by one in thread 1, phase 1 often in both. */
static void write_trace(const char *path)
{
	struct trace_writer *w = NULL;
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	trace_put_meta(w, "monitors", "counters,nap,samples,phases");
	trace_put_meta(w, "phase.0", "slow");
	trace_put_meta(w, "phase.1", "often");
	trace_put_meta(w, "counter.0.0", "faults");
	trace_put_meta(w, "counter.0.1", "cycles");
	put_stack(w, 5, "f", 1);
	put_stack(w, 6, "f", 2);
	put_stack(w, 7, "g", 3);
	PUT(w, EV_PHASE, 300, 1, 0,
	    (struct ev_phase){.length_ns = 150 * MS, .pid = 7});
	PUT(w, EV_PHASE, 900, 1, 0,
	    (struct ev_phase){.length_ns = 100 * MS, .pid = 7});
	for (uint32_t tid = 1; tid < 3; tid++)
		PUT(w, EV_PHASE_SPAN, 500, tid, 1,
		    (struct ev_phase_span){.length_ns = 100 * MS,
					   .count = 1000,
					   .nr_seen = 10,
					   .seen_ns = tid * MS / 5,
					   .pid = 7});
	/* That were not timed. */
	PUT(w, EV_PHASE_SPAN, 600, 2, 1,
	    (struct ev_phase_span){
		    .length_ns = 100 * MS, .count = 1000, .pid = 7});
	PUT(w, EV_PHASE_TOTAL, 1000, 0, 1,
	    (struct ev_phase_total){
		    .count = 3000, .nr_seen = 20, .seen_ns = 2 * MS});
	for (uint64_t ms = 100; ms <= 1000; ms += 100) {
		for (uint32_t tid = 1; tid < 3; tid++) {
			struct ev_counts ev = {.pid = 7,
					       .nr = 2,
					       .length_ns = 100 * MS,
					       .enabled_ns = 80 * MS,
					       .missed_ns = (tid - 1) * 40 * MS,
					       .value = {1000 * tid, ms}};
			PUT(w, EV_COUNTS, ms, tid, 0, ev);
		}
		/* Of two stacks of f each is less than that of g. */
		PUT(w, EV_SAMPLE, ms - 25, 1,
		    ms == 100	? 7
		    : ms == 300 ? 5
		    : ms == 900 ? 6
				: 0,
		    (struct ev_sample){.weight = ms == 100 ? 15 : 10,
				       .pid = 7});
		PUT(w, EV_SAMPLE, ms - 25, 2, 0,
		    (struct ev_sample){.weight = 10, .pid = 7});
		PUT(w, EV_NAP, 1000, 1, (uint32_t)ms,
		    (struct ev_nap){.addr = ms,
				    .size = 1000,
				    .start_ns = ms * MS - 60 * MS,
				    .length_ns = NSEC_PER_SEC,
				    .pid = ms == 300 ? 8 : 7,
				    .ended_syscall = -1});
	}
	check_int(trace_writer_close(w, NULL), 0);
}

static bool near(double have, double want)
{
	if (fabs(have - want) < 1e-6 * (1 + fabs(want)))
		return true;
	printf("# %g, wanted %g\n", have, want);
	return false;
}

static struct summary *load(const char *path, struct select select)
{
	struct summary_input in = {.name = "x"};
	struct summary *s = NULL;
	select.phase_sums = true;
	check_int(trace_reader_open(path, &in.reader, NULL), 0);
	check_int(summary_load_files(&in, 1, &select, &s, NULL), 0);
	trace_reader_close(in.reader);
	check_int(s->phases.nr, 2);
	return s;
}

/* Most first, which is not their order in the run. */
static void check_functions(const struct summary *s)
{
	json_t *doc = phase_json(s, 0, 0);
	json_t *file = json_array_get(json_object_get(doc, "files"), 0);
	json_t *functions = json_object_get(file, "functions");
	json_t *first = json_array_get(functions, 0);
	json_t *share = json_object_get(first, "self_ppb");
	check_int(json_array_size(functions), 2);
	check_str(json_string_value(json_object_get(first, "function")), "f");
	check_int(json_integer_value(share), 666666666);
	json_decref(doc);
}

/* What is said of each is what all of them make. */
static void check_text(const struct summary *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	summary_print(s, f, NULL, &(struct summary_style){0});
	fclose(f);
	check(strstr(text, ": 3000 times, about 90 ms, each 30 us, "));
	free(text);
}

static void attributed(void)
{
	const char *path = scratch_path("when.trace");
	write_trace(path);
	struct summary *s = load(path, (struct select){0});
	const struct phase_sums *slow = phase_sums(s, 0, 0);
	const struct phase_sums *often = phase_sums(s, 1, 0);
	check_str(s->phases.phase[0].name, "slow");
	check_int(slow->nr_threads, 1);
	check(near(slow->in_ns, 250 * MS));
	/* Of 100 to 200 half, 200 to 300 all, 800 to 900 all. */
	check(near(slow->counts[0], 500 + 1000 + 1000));
	check(near(slow->counts[1], 100 + 300 + 900));
	check(near(slow->counted_ns[0], 250 * MS));
	/* At 175, 275, 875. */
	check(near(slow->samples, 3));
	check(near(slow->weight, 30));
	/* Those at 275 and 875 were in f. */
	check_int(s->samples.nr_functions, 3);
	check_str(s->samples.function[1].frame->function, "f");
	check(near(slow->self[0], 10));
	check(near(slow->self[1], 20));
	check(near(slow->self[2], 0));
	check(near(often->self[1], 0));
	/* At 240, of another process; 840. */
	check(near(slow->naps, 1));
	check(near(slow->byte_seconds, 1000));
	check_functions(s);
	/* 20 % of thread 1's, 40 % of thread 2's, then 30 %, the mean. */
	check_int(often->nr_threads, 2);
	check(near(often->in_ns, (20 + 40 + 30) * MS));
	/* Thread 2's were on the hardware half of the time. */
	check(near(often->counts[0], 200 + 2 * 800 + 2 * 600));
	check(near(often->counts[1], 100 + 2 * 200 + 2 * 180));
	check(near(often->samples, 0.2 + 0.4 + 0.3));
	check(near(often->naps, 0.6 + 0.3));
	/* Not 3000 times 100 us: so long nobody was in it. */
	check_int(phase_total_ns(&s->phases.phase[1]), 90 * MS);
	check_text(s);
	summary_free(s);

	s = load(path, (struct select){.from_ns = 250 * MS,
				       .to_ns = 850 * MS,
				       .has_thread = true,
				       .thread = 1});
	check(near(phase_sums(s, 0, 0)->in_ns, 100 * MS));
	check(near(phase_sums(s, 0, 0)->counts[0], 500));
	check(near(phase_sums(s, 1, 0)->in_ns, 20 * MS));
	summary_free(s);
}

/* What became known late: by the room that pieces have, and what is between
 * them; never more than there is. */
static void late(void)
{
	struct when_track t = {0};
	struct when_piece more = {100, 1100, 300, 0};
	size_t hint = 0;
	uint64_t nr;
	put(&t, 200, 300, 100, 0);
	put(&t, 500, 700, 100, 0);
	when_sort(&t, 0);
	check_int(when_fill(&t, &more), 0);
	/* 300 of 800. */
	check_int(when_in_ns(&t, 100, 200, &hint), 37);
	check_int(when_in_ns(&t, 200, 300, &hint), 100);
	check_int(when_in_ns(&t, 300, 500, &hint), 75);
	check_int(when_in_ns(&t, 500, 700, &hint), 137);
	check_int(when_in_ns(&t, 700, 1100, &hint), 150);
	check_int(sum(&t, &nr), 499);
	check_int(nr, 2);
	more.in_ns = 5000;
	check_int(when_fill(&t, &more), 0);
	check_int(sum(&t, &nr), 1000);
	free(t.piece);
}

int main(void)
{
	late();
	whole();
	shares();
	many();
	clipped();
	attributed();
	return tap_done();
}
