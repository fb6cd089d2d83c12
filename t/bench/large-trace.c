/*
 * large-trace N FILE [naps] - a trace of about N made-up records, as a long
 * session of 32 threads with everything on has: samples a thousand times a
 * second, counters and phases every 10 ms, naps; or of naps, and nothing else.
 * For figures of what reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/trace.h"

#define THREADS 32
#define STACKS	5000
#define EVENTS	8
#define STEP_NS (10 * NSEC_PER_MSEC)

static struct trace_writer *w;
static uint64_t nr;
static bool only_naps;

static void die(const char *what)
{
	fprintf(stderr, "large-trace: %s\n", what);
	exit(1);
}

static uint32_t roll(uint32_t below)
{
	static uint64_t seed = 1;
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)((seed >> 33) % below);
}

/* Small numbers are frequent. */
static uint32_t skewed(uint32_t below)
{
	return roll(roll(below) + 1);
}

static void put(uint32_t event, uint64_t time_ns, uint32_t tid, uint32_t param,
		const void *payload, uint32_t size)
{
	const struct record r = {
		.event = event,
		.time_ns = time_ns,
		.cpu = tid % 8,
		.tid = tid,
		.param = param,
		.payload_len = size,
		.payload = payload,
	};
	int rc;
	while ((rc = trace_put(w, &r)) == SMCO_BUSY)
		trace_sync(w, NULL);
	if (rc)
		die("cannot write");
	nr++;
}

static void tables(void)
{
	static const char *const pairs[][2] = {
		{"command", "./server"},
		{"monitors", "nap,counters,samples,phases"},
		{"target_ppb", "100000000"},
		{"counters.interval_ns", "10000000"},
		{"counter.0.0", "task-clock"},
		{"counter.0.0.role", "task-clock"},
		{"counter.0.0.unit", "ns"},
		{"counter.0.1", "minor-faults"},
		{"counter.0.2", "cycles"},
		{"counter.0.2.role", "cycles"},
		{"counter.0.3", "instructions"},
		{"counter.0.3.role", "instructions"},
		{"counter.0.4", "branches"},
		{"counter.0.5", "L1-dcache-load-misses"},
		{"counter.0.6", "dTLB-load-misses"},
		{"counter.0.7", "LLC-load-misses"},
		{"phase.0", "request"},
		{"phase.1", "sdt:server:parse"},
		{"phase.2", "sdt:server:reply"},
	};
	char name[16][32];
	struct trace_frame f[16];
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		trace_put_meta(w, pairs[i][0], pairs[i][1]);
	for (uint32_t id = 1; id <= STACKS; id++) {
		size_t depth = 4 + roll(12);
		for (size_t i = 0; i < depth; i++) {
			snprintf(name[i], sizeof(name[i]), "function_%u",
				 roll(3000));
			f[i] = (struct trace_frame){
				.function = name[i],
				.file = "server.c",
				.line = roll(5000),
				.module = "/usr/bin/server",
				.build_id = "",
			};
		}
		trace_put_stack(w, id, f, depth);
	}
}

static void thread_step(uint64_t now_ns, uint32_t tid)
{
	struct ev_counts counts = {.pid = 100,
				   .nr = EVENTS,
				   .length_ns = STEP_NS + roll(10000),
				   .enabled_ns = STEP_NS - roll(1000000)};
	for (unsigned i = 0; i < EVENTS; i++)
		counts.value[i] = roll(30000000u >> (2 * i));
	for (unsigned i = 0; i < 10; i++)
		put(EV_SAMPLE,
		    now_ns - STEP_NS + i * NSEC_PER_MSEC + roll(9999), tid,
		    1 + skewed(STACKS),
		    &(struct ev_sample){.weight = 1000000 + roll(2000),
					.pid = 100},
		    sizeof(struct ev_sample));
	put(EV_COUNTS, now_ns + roll(10000), tid, 0, &counts, sizeof(counts));
	put(EV_PHASE_SPAN, now_ns, tid, 1 + tid % 2,
	    &(struct ev_phase_span){.length_ns = STEP_NS,
				    .count = 500 + roll(500),
				    .nr_seen = 1 + roll(40),
				    .seen_ns = 4000 + roll(90000),
				    .pid = 100},
	    sizeof(struct ev_phase_span));
}

static void step(uint64_t now_ns, uint32_t number)
{
	struct ev_nap nap = {.addr = 0x7f0000000000 + number * 65536ull,
			     .size = 8192ull << roll(8),
			     .start_ns = now_ns,
			     .length_ns = NSEC_PER_SEC,
			     .error_ns = roll(1 << 24),
			     .alloc_ns = now_ns / 2,
			     .pid = 100,
			     .alloc_stack = 1 + skewed(STACKS),
			     .ended_syscall = -1,
			     .flags = NAP_ONGOING};
	for (uint32_t tid = 100; tid < 100 + THREADS && !only_naps; tid++)
		thread_step(now_ns, tid);
	for (unsigned i = 0; i < 3 && !only_naps; i++)
		put(EV_PHASE, now_ns - roll(1000000), 100 + roll(THREADS), 0,
		    &(struct ev_phase){.length_ns = roll(20000000), .pid = 100},
		    sizeof(struct ev_phase));
	put(EV_NAP, now_ns + NSEC_PER_SEC, 0, number + 1, &nap, sizeof(nap));
	nap.length_ns = NSEC_PER_SEC + roll(1000000000);
	nap.flags = roll(3) ? NAP_ENDED_READ : NAP_FREED;
	put(EV_NAP, nap.start_ns + nap.length_ns, 0, number + 1, &nap,
	    sizeof(nap));
	if (number % 100 == 0)
		put(EV_LEDGER, now_ns, 0, 5,
		    &(struct ev_ledger){.run_ns = 8 * now_ns,
					.spent_ns = now_ns / 2,
					.nr_known = roll(1000)},
		    sizeof(struct ev_ledger));
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc >= 3 ? strtoull(argv[1], NULL, 10) : 0;
	only_naps = argc == 4 && !strcmp(argv[3], "naps");
	if (!wanted || argc > (only_naps ? 4 : 3))
		die("usage: large-trace N FILE [naps]");
	if (trace_writer_create(argv[2], 1, &w, NULL))
		die("cannot create the file");
	tables();
	for (uint32_t i = 0; nr < wanted; i++)
		step((i + 1) * STEP_NS, i);
	for (uint32_t i = 0; i < 3; i++)
		put(EV_PHASE_TOTAL, 0, 0, i,
		    &(struct ev_phase_total){.count = nr / 10,
					     .nr_seen = 1000,
					     .seen_ns = 1000000,
					     .longest_ns = 20000000},
		    sizeof(struct ev_phase_total));
	if (trace_writer_close(w, NULL))
		die("cannot write");
	printf("%llu records\n", (unsigned long long)nr);
	return 0;
}
