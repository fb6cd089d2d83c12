/*
 * How long calls of a function lasted, by where their return addresses lie:
 * calls within calls, and those that were left by longjmp or an exception, of
 * which nothing is said but that they were made.
 */
#include <string.h>

#include "supervisor/monitor/phases-private.h"
#include "t/unit/phase-shm.h"

#define MANY 8

static struct ev_phase seen[MANY];
static unsigned nr_seen;
static uint32_t seen_tid;

static void keep(void *ctx, const struct record *r)
{
	(void)ctx;
	seen_tid = r->tid;
	if (r->event == EV_PHASE && nr_seen < MANY)
		seen[nr_seen++] = *(const struct ev_phase *)r->payload;
}

static uint32_t pid_of(void *ctx, uint32_t tid)
{
	(void)ctx;
	return tid;
}

/* In a PID namespace: thread 9 has ended. */
static uint32_t tid_of(void *ctx, uint32_t pid, uint32_t own)
{
	(void)ctx;
	return own == 9 ? 0 : pid * 1000 + own;
}

static struct phase phase;
static struct phases ph = {
	.p = {.nr = 1, .pid_of = pid_of, .tid_of = tid_of, .emit = keep},
	.phase = &phase,
};

static uint64_t took_ns; /* each record */

static void pass(enum mark_kind kind, uint64_t time_ns, taddr_t sp,
		 uint32_t run)
{
	static struct shared sh = {.pid = 1};
	if (!sh.shm)
		sh.shm = phase_shm();
	const struct mark_record r = {.time_ns = time_ns,
				      .left_ns = time_ns + took_ns,
				      .tid = 1,
				      .what = kind,
				      .run = run,
				      .sp = sp};
	phase_times_take(&ph, &sh, &r);
}

static void begin(uint64_t time_ns, taddr_t sp)
{
	pass(MARK_BEGIN, time_ns, sp, 1);
}

static void end(uint64_t time_ns, taddr_t sp)
{
	pass(MARK_END, time_ns, sp, 1);
}

static void start(void)
{
	phase = (struct phase){.name = {.function = "f"}};
	nr_seen = 0;
}

/* Threads of two containers that have the same number there. */
static void test_own_numbers(void)
{
	static struct shared sh[2] = {{.pid = 1, .has_own_numbers = true},
				      {.pid = 2, .has_own_numbers = true}};
	const struct mark_record r[] = {
		{.time_ns = 500,
		 .left_ns = 500,
		 .tid = 7,
		 .what = MARK_BEGIN,
		 .sp = 0x900},
		{.time_ns = 510,
		 .left_ns = 510,
		 .tid = 7,
		 .what = MARK_BEGIN,
		 .sp = 0x900},
		{.time_ns = 530,
		 .left_ns = 530,
		 .tid = 7,
		 .what = MARK_END,
		 .sp = 0x900},
		{.time_ns = 560,
		 .left_ns = 560,
		 .tid = 7,
		 .what = MARK_END,
		 .sp = 0x900},
	};
	start();
	sh[0].shm = phase_shm();
	sh[1].shm = phase_shm();
	phase_times_take(&ph, &sh[0], &r[0]);
	phase_times_take(&ph, &sh[1], &r[1]);
	phase_times_take(&ph, &sh[0], &r[2]);
	check_int(nr_seen, 1);
	check_int(seen[0].length_ns, 30);
	check_int(seen_tid, 1007);
	phase_times_take(&ph, &sh[1], &r[3]);
	check_int(nr_seen, 2);
	check_int(seen[1].length_ns, 50);
	check_int(seen_tid, 2007);
	/* One that has ended is none that is known. */
	struct mark_record gone = r[0];
	gone.tid = 9;
	phase_times_take(&ph, &sh[0], &gone);
	gone.what = MARK_END;
	phase_times_take(&ph, &sh[0], &gone);
	check_int(nr_seen, 2);
}

/* Each record takes 3 ns, half of which lies before its time and half behind,
 * or however else: the next one's time is that much later. */
static void test_timing(void)
{
	start();
	ph.timing_ns = 3;
	begin(1000, 0x900);
	end(1008, 0x900);
	check_int(seen[0].length_ns, 5);
	begin(1011, 0x900);
	end(1013, 0x900); /* never less than nothing */
	check_int(seen[1].length_ns, 0);
	check_int(phase.seen_ns, 5);
	/* 4 ns, twice 2 within, and 1 between them: with four records more. */
	begin(1100, 0x900);
	begin(1105, 0x800);
	end(1110, 0x800);
	begin(1114, 0x800);
	end(1119, 0x800);
	end(1123, 0x900);
	check_int(seen[2].length_ns, 2);
	check_int(seen[3].length_ns, 2);
	check_int(seen[4].depth, 0);
	check_int(phase.seen_ns, 5 + 8);
	check_int(phase.longest_ns, 20);
	/* Points: one's end is the next one's beginning. */
	start();
	phase.name.function = NULL;
	pass(MARK_POINT, 1200, 0x900, 1);
	pass(MARK_POINT, 1210, 0x900, 1);
	pass(MARK_POINT, 1213, 0x900, 1);
	check_int(nr_seen, 2);
	check_int(phase.seen_ns, 7);
	/* Of what was 3 ns, 2 are told by the records: 4 and 2, and 1 between
	 * them. */
	start();
	phase.name.function = "f";
	ph.timing_ns = 1;
	took_ns = 2;
	begin(1300, 0x900);
	begin(1305, 0x800);
	end(1310, 0x800);
	end(1314, 0x900);
	check_int(seen[0].length_ns, 2);
	check_int(seen[1].length_ns, 11);
	check_int(phase.seen_ns, 2 + 2 + 1);
	ph.timing_ns = took_ns = 0;
}

int main(void)
{
	/* One after the other, one within the other. */
	start();
	begin(100, 0x900);
	end(105, 0x900);
	begin(110, 0x900);
	begin(112, 0x800);
	end(114, 0x800);
	end(120, 0x900);
	check_int(nr_seen, 3);
	check_int(seen[0].length_ns, 5);
	check_int(seen[1].length_ns, 2);
	check_int(seen[1].depth, 1);
	check_int(seen[2].length_ns, 10);
	check_int(phase.seen_ns, 15);
	check_int(phase.longest_ns, 10);

	/* Left; the next one's stack is smaller, or as large. */
	start();
	begin(200, 0x700);
	begin(210, 0x800);
	end(213, 0x800);
	begin(220, 0x800);
	begin(230, 0x800);
	end(234, 0x800);
	check_int(nr_seen, 2);
	check_int(seen[0].length_ns, 3);
	check_int(seen[0].depth, 0);
	check_int(seen[1].length_ns, 4);
	check_int(seen[1].depth, 0);
	check_int(phase.seen_ns, 7);

	/* Left within another call, whose end comes next. */
	start();
	begin(300, 0x900);
	begin(310, 0x800);
	end(330, 0x900);
	check_int(nr_seen, 1);
	check_int(seen[0].length_ns, 30);
	check_int(phase.seen_ns, 30);

	/* Records are missing between them: no pair. An end alone is none. */
	start();
	begin(400, 0x900);
	pass(MARK_END, 410, 0x900, 2);
	end(420, 0x900);
	end(430, 0x800);
	check_int(nr_seen, 0);
	test_own_numbers();
	test_timing();
	phase_times_free(&ph);
	return tap_done();
}
