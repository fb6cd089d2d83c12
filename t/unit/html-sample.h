/*
 * html-sample.h - a made-up session for the page and the exports: naps,
 * counters of two threads, a ledger; every name in it tries to be markup, a
 * script or no text at all.
 */
#ifndef HTML_SAMPLE_H
#define HTML_SAMPLE_H

#include "t/unit/trace-sample.h"

#define HOSTILE_SCRIPT "</script><script>document.title='pwned'</script>"
#define HOSTILE_MARKUP "<img src=x onerror=\"document.title='pwned'\">'\\&amp;"
#define HOSTILE_UTF8   "a\xff\xfe\xc0\xaf\xed\xa0\x80z"
#define HOSTILE_NEST   "<!--<script>\u2028${document.title='pwned'}`]]>"

static inline void html_sample_tables(struct trace_writer *w)
{
	static const char *const pairs[][2] = {
		{"command", "./run " HOSTILE_SCRIPT},
		{"monitors", "counters,nap,phases"},
		{"target_ppb", "100000000"},
		{"elapsed_ns", "30000000000"},
		{"hostname", HOSTILE_MARKUP},
		{HOSTILE_NEST, HOSTILE_UTF8},
		{"__proto__", "polluted"},
		{"counters.interval_ns", "100000000"},
		{"counters.missing", "L1: " HOSTILE_MARKUP},
		{"counters.stops",
		 "up to 180 stops of ours are in " HOSTILE_NEST},
		{"counters.lost", "3"},
		{"counter.0.0", "task-clock"},
		{"counter.0.0.role", "task-clock"},
		{"counter.0.0.unit", "ns"},
		{"counter.0.1", HOSTILE_MARKUP},
		{"counter.0.1.role", "faults"},
		{"counter.1.0", "cycles"},
		{"counter.1.0.role", "cycles"},
		{"counter.1.1", "instructions"},
		{"counter.1.1.role", "instructions"},
		{"counter.1.2", "L1D.REPLACEMENT"},
		{"counter.1.2.role", "misses"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		trace_put_meta(w, pairs[i][0], pairs[i][1]);
	SAMPLE_STACK(w, 1, L(HOSTILE_SCRIPT, "main"), L(10, 41));
	SAMPLE_STACK(w, 2, L(HOSTILE_UTF8, HOSTILE_NEST, "main"),
		     L(11, 12, 41));
	SAMPLE_STACK(w, 3, L("parse_" HOSTILE_MARKUP, "main"), L(13, 41));
	SAMPLE_STACK(w, 4, L("__proto__", "constructor"), L(14, 41));
}

static inline void html_sample_naps(struct trace_writer *w, unsigned nr)
{
	static const uint32_t how[] = {NAP_ENDED_READ, NAP_FREED,
				       NAP_ONGOING | NAP_AT_EXIT,
				       NAP_ENDED_WRITE, NAP_UNWATCHED};
	for (unsigned i = 0; i < nr; i++) {
		struct ev_nap nap = {
			.addr = 0x7f0000000000 + ((uint64_t)i << 21),
			.size = (uint64_t)8192 << (i % 8),
			.start_ns = SAMPLE_MS(100 + 397 * i % 20000),
			.length_ns = SAMPLE_MS(1000 + 131 * i % 9000),
			.error_ns = SAMPLE_MS(i % 50),
			.alloc_ns = SAMPLE_MS(50),
			.pid = 4711,
			.alloc_stack = i % 5, /* 0: none */
			.ended_stack = 3,
			.ended_syscall = -1,
			.flags = how[i % ARRAY_SIZE(how)] |
				 (i % 25 == 3 ? NAP_HEAD_UNSEEN : 0),
		};
		SAMPLE_PUT(w, EV_NAP, 30000, i + 1, nap);
	}
	for (uint32_t i = 1; i < 5; i++)
		SAMPLE_PUT(w, EV_SITE, 30000, i,
			   (struct ev_site){.nr_allocs = 10 * i,
					    .bytes = 8192 * i,
					    .stack = i});
}

static inline void html_sample_counts(struct trace_writer *w, unsigned ms,
				      uint32_t tid, uint64_t by)
{
	struct ev_counts ev = {
		.pid = 4711,
		.nr = 2,
		.length_ns = SAMPLE_MS(100),
		.enabled_ns = SAMPLE_MS(80),
		.value = {SAMPLE_MS(80), 5 + by},
	};
	struct record r = {.event = EV_COUNTS,
			   .time_ns = SAMPLE_MS(ms),
			   .cpu = tid % 2,
			   .tid = tid,
			   .payload_len = sizeof(ev),
			   .payload = &ev};
	trace_put(w, &r);
	ev.nr = 3;
	ev.missed_ns = SAMPLE_MS(40); /* half of it */
	ev.value[0] = 100000 * (1 + by);
	ev.value[1] = 150000 * (1 + by);
	ev.value[2] = 300 + by;
	r.param = 1;
	trace_put(w, &r);
}

static inline void html_sample_ledger(struct trace_writer *w)
{
	for (uint64_t i = 1; i <= 60; i++) {
		if (i % 3 == 0)
			SAMPLE_PUT(w, EV_CONTROL, i * 500, 0,
				   (struct ev_control){1000000 / (int64_t)i});
		SAMPLE_PUT(w, EV_LEDGER, i * 500, 7,
			   (struct ev_ledger){.run_ns = SAMPLE_MS(400 * i),
					      .spent_ns = SAMPLE_MS(20 * i),
					      .mech_ns = {SAMPLE_MS(15 * i), 0,
							  0, SAMPLE_MS(i),
							  SAMPLE_MS(4 * i)},
					      .nr_known = i,
					      .nr_armed = i / 2,
					      .worst_window_ppb = 60000000,
					      .nr_stops = 3 * i});
	}
}

/* Three phases: one by one in one thread; often in two; never. */
static inline void html_sample_phases(struct trace_writer *w)
{
	trace_put_meta(w, "phase.0", HOSTILE_MARKUP);
	trace_put_meta(w, "phase.1", "sdt:app:turn");
	trace_put_meta(w, "phase.2", HOSTILE_SCRIPT);
	for (uint64_t i = 1; i <= 20; i++) {
		struct ev_phase ev = {.length_ns = SAMPLE_MS(250 + 20 * i),
				      .pid = 4711,
				      .flags = i == 20 ? PHASE_ONGOING : 0};
		trace_put(w, &(struct record){.event = EV_PHASE,
					      .time_ns = SAMPLE_MS(1500 * i),
					      .tid = 4711,
					      .payload_len = sizeof(ev),
					      .payload = &ev});
	}
	for (uint64_t i = 1; i <= 300; i++) {
		struct ev_phase_span ev = {.length_ns = SAMPLE_MS(100),
					   .count = 100 + i,
					   .nr_seen = 10,
					   .seen_ns = 1000 * (1 + i),
					   .pid = 4711};
		if (i > 100 && i < 120)
			continue;
		trace_put(w, &(struct record){.event = EV_PHASE_SPAN,
					      .time_ns = SAMPLE_MS(100 * i),
					      .tid = 4711 + i % 3 / 2,
					      .param = 1,
					      .payload_len = sizeof(ev),
					      .payload = &ev});
	}
	SAMPLE_PUT(w, EV_PHASE_TOTAL, 30000, 0,
		   (struct ev_phase_total){20, 19, SAMPLE_MS(8550),
					   SAMPLE_MS(650)});
	SAMPLE_PUT(w, EV_PHASE_TOTAL, 30000, 1,
		   (struct ev_phase_total){71160, 2810, 100000000, 300000});
	SAMPLE_PUT(w, EV_PHASE_TOTAL, 30000, 2,
		   (struct ev_phase_total){.count = 0});
}

/* Two variables, one of them in two phases, once not surely. */
static inline void html_sample_ranges(struct trace_writer *w)
{
	trace_put_meta(w, "monitors", "counters,nap,phases,range");
	SAMPLE_STACK(w, 20, L("turn::" HOSTILE_MARKUP, "int"), L(7, 0));
	SAMPLE_STACK(w, 21, L("fill::size", HOSTILE_SCRIPT), L(9, 0));
	for (uint32_t i = 0; i < 2; i++) {
		SAMPLE_PUT(w, EV_VARIABLE, 0, 1 + i,
			   (struct ev_variable){.decl = 20 + i,
						.bits = 32,
						.flags = VARIABLE_SIGNED});
		SAMPLE_PUT(w, EV_RANGE, 30000, 1 + i,
			   (struct ev_range){.smallest = -5,
					     .largest = 99,
					     .hits = 40,
					     .pid = 4711,
					     .flags = RANGE_SENSED});
	}
	SAMPLE_PUT(w, EV_PHASE_RANGE, 30000, 1,
		   (struct ev_phase_range){.smallest = -5,
					   .largest = 99,
					   .sure_smallest = -1,
					   .sure_largest = 40,
					   .phase = 1,
					   .pid = 4711,
					   .flags = PHASE_RANGE_SURE});
	SAMPLE_PUT(w, EV_PHASE_RANGE, 30000, 1,
		   (struct ev_phase_range){
			   .smallest = 3, .largest = 7, .pid = 4711});
	SAMPLE_PUT(w, EV_PHASE_RANGE, 30000, 2,
		   (struct ev_phase_range){.smallest = 2,
					   .largest = 2,
					   .sure_smallest = 2,
					   .sure_largest = 2,
					   .phase = 1,
					   .pid = 4711,
					   .flags = PHASE_RANGE_SURE});
}

static inline void html_sample_odd(struct trace_writer *w)
{
	for (uint32_t i = 0; i < 300; i++) {
		struct ev_sample ev = {.weight = 1000 + i, .pid = 4711};
		trace_put(w, &(struct record){
				     .event = i % 7 ? EV_SAMPLE : 77,
				     .time_ns = SAMPLE_MS(40 * (i ^ 3)) + i,
				     .cpu = i % 4,
				     .tid = 4711 + i % 3,
				     .param = i % 6,
				     .payload_len = i % 11 ? sizeof(ev) : i % 5,
				     .payload = &ev});
	}
}

enum html_sample_parts {
	HTML_NAPS = 1,
	HTML_COUNTS = 2,
	HTML_LEDGER = 4,
	HTML_END = 8,  /* without it the trace is cut short */
	HTML_ODD = 16, /* samples, events not known here, out of order */
	HTML_PHASES = 32,
	HTML_RANGES = 64, /* by phase, too */
};

/* Write it to @path; 0 or negative. */
static inline int html_sample_write(const char *path, unsigned parts,
				    unsigned nr_naps)
{
	struct trace_writer *w;
	int rc = trace_writer_create(path, 1, &w, NULL);
	if (rc)
		return rc;
	html_sample_tables(w);
	SAMPLE_PUT(w, EV_PROCESS, 0, 4711,
		   (struct ev_process){.pid = 4711, .exit_status = -1});
	for (unsigned ms = 100; ms <= 30000 && parts & HTML_COUNTS; ms += 100)
		for (uint32_t tid = 4711; tid < 4713; tid++)
			html_sample_counts(w, ms, tid, ms / 5000);
	if (parts & HTML_LEDGER)
		html_sample_ledger(w);
	if (parts & HTML_NAPS)
		html_sample_naps(w, nr_naps);
	if (parts & HTML_PHASES)
		html_sample_phases(w);
	if (parts & HTML_RANGES)
		html_sample_ranges(w);
	if (parts & HTML_ODD)
		html_sample_odd(w);
	if (parts & HTML_END)
		return trace_writer_close(w, NULL);
	rc = trace_sync(w, NULL);
	trace_writer_destroy(w);
	return rc;
}

#endif
