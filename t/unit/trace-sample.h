/*
 * trace-sample.h - a small made-up session, the same every time: a server of
 * two processes with four allocation sites. Used by the summary's golden test,
 * the JSON test and as seed of the damage tests and the fuzzer.
 */
#ifndef TRACE_SAMPLE_H
#define TRACE_SAMPLE_H

#include <string.h>

#include "reports/trace.h"

#define SAMPLE_MS(n) ((uint64_t)(n)*NSEC_PER_MSEC)

static inline void sample_stack(struct trace_writer *w, uint32_t id,
				const char *const *function,
				const uint32_t *line, size_t nr)
{
	struct trace_frame f[8];
	for (size_t i = 0; i < nr; i++)
		f[i] = (struct trace_frame){
			.function = function[i],
			.file = line[i] ? "/build/server-1.2/src/cache.c" : "",
			.line = line[i],
			.module = line[i] ? "/usr/bin/server"
					  : "/lib/x86_64-linux-gnu/libc.so.6",
			.build_id = "c0ffee",
			.offset = 0x1000 + id * 16 + i,
			.inlined = i == 0 && id == 2,
		};
	trace_put_stack(w, id, f, nr);
}
#define SAMPLE_STACK(w, id, functions, lines)                                  \
	sample_stack(w, id, (const char *const[])functions,                    \
		     (const uint32_t[])lines,                                  \
		     ARRAY_SIZE(((const char *const[])functions)))
#define L(...)                                                                 \
	{                                                                      \
		__VA_ARGS__                                                    \
	}

static inline void sample_put(struct trace_writer *w, uint32_t event,
			      uint64_t ms, uint32_t param, const void *payload,
			      uint32_t len)
{
	trace_put(w, &(struct record){.event = event,
				      .time_ns = SAMPLE_MS(ms),
				      .cpu = UINT32_MAX,
				      .param = param,
				      .payload_len = len,
				      .payload = payload});
}
#define SAMPLE_PUT(w, event, ms, param, ...)                                   \
	sample_put(w, event, ms, param, &(__VA_ARGS__), sizeof(__VA_ARGS__))

static inline void sample_tables(struct trace_writer *w)
{
	trace_put_meta(w, "command", "./server --port 7000");
	trace_put_meta(w, "pid.4711.command", "./server --port\n7000");
	trace_put_meta(w, "pid.4712.command", "./server: worker");
	trace_put_meta(w, "target_ppb", "50000000");
	trace_put_meta(w, "nap_ns", "2000000000");
	trace_put_meta(w, "min_size", "8192");
	trace_put_meta(w, "mechanism", "pagescan");
	trace_put_meta(w, "mechanism_why",
		       "bits: BPF is not permitted here (needs CAP_BPF and "
		       "CAP_PERFMON)");
	trace_put_meta(w, "sensors", "glibc malloc, 11 functions");
	SAMPLE_STACK(w, 1, L("cache_fill", "handle_request", "main", "_start"),
		     L(212, 88, 41, 0));
	SAMPLE_STACK(w, 2, L("buffer_grow", "handle_request", "main"),
		     L(17, 90, 41));
	/* The same place called from two return addresses of one line. */
	SAMPLE_STACK(w, 3, L("buffer_grow", "handle_request", "main"),
		     L(17, 90, 41));
	SAMPLE_STACK(w, 4, L("", "main"), L(0, 41));
	SAMPLE_STACK(w, 5, L("cache_scan", "handle_request", "main"),
		     L(301, 95, 41));
	SAMPLE_STACK(w, 6, L("cache_put", "handle_request", "main"),
		     L(230, 89, 41));
}

static inline void sample_naps(struct trace_writer *w)
{
	struct ev_nap nap = {
		.addr = 0x7f0000000000,
		.size = 64 << 20,
		.start_ns = SAMPLE_MS(1000),
		.length_ns = SAMPLE_MS(3000),
		.error_ns = SAMPLE_MS(10),
		.alloc_ns = SAMPLE_MS(900),
		.pid = 4711,
		.alloc_stack = 1,
		.last_stack = 6,
		.ended_syscall = -1,
		.flags = NAP_ONGOING,
	};
	SAMPLE_PUT(w, EV_NAP, 4000, 1, nap);
	nap.length_ns = SAMPLE_MS(20000);
	nap.flags = NAP_ENDED_READ;
	nap.ended_stack = 5;
	SAMPLE_PUT(w, EV_NAP, 21000, 1, nap); /* the same nap, now over */
	nap.start_ns = SAMPLE_MS(22000);
	nap.length_ns = SAMPLE_MS(39200);
	nap.ended_stack = 0;
	nap.flags = NAP_ONGOING | NAP_AT_EXIT;
	SAMPLE_PUT(w, EV_NAP, 61200, 1, nap);

	struct ev_nap small = {
		.addr = 0x7f1000000000,
		.size = 1 << 20,
		.start_ns = SAMPLE_MS(5000),
		.length_ns = SAMPLE_MS(2500),
		.alloc_ns = SAMPLE_MS(5000),
		.pid = 4712,
		.alloc_stack = 2,
		.ended_stack = 5,
		.ended_syscall = 1,
		.flags =
			NAP_NEVER_ACCESSED | NAP_ENDED_SYSCALL | NAP_END_NEARBY,
	};
	for (unsigned i = 0; i < 12; i++) {
		small.addr += 4 << 20;
		small.alloc_stack = 2 + i % 2;
		SAMPLE_PUT(w, EV_NAP, 7500 + i, 2 + i, small);
	}
	small.alloc_stack = 4;
	small.alloc_ns = 0;
	small.ended_syscall = -1;
	small.ended_stack = 0;
	small.flags = NAP_FREED;
	SAMPLE_PUT(w, EV_NAP, 8000, 20, small);
	small.addr += 4 << 20;
	small.alloc_stack = 0;
	SAMPLE_PUT(w, EV_NAP, 8000, 21, small);
}

static inline void sample_totals(struct trace_writer *w)
{
	SAMPLE_PUT(w, EV_SITE, 61200, 1,
		   (struct ev_site){17, 272 << 20, 64 << 20, 1, 17, 2, 1, 0});
	SAMPLE_PUT(w, EV_SITE, 61200, 2,
		   (struct ev_site){6, 6 << 20, 0, 0, 6, 6, 2, 0});
	SAMPLE_PUT(w, EV_SITE, 61200, 3,
		   (struct ev_site){14000, 14000ull << 20, 0, 0, 6, 6, 3, 0});
	struct ev_ledger l = {.run_ns = SAMPLE_MS(30000),
			      .spent_ns = SAMPLE_MS(1300),
			      .mech_ns = {SAMPLE_MS(700), SAMPLE_MS(300),
					  SAMPLE_MS(200), SAMPLE_MS(100)},
			      .nr_known = 40,
			      .nr_armed = 30,
			      .nr_naps = 10,
			      .recent_ppb = 45000000,
			      .worst_window_ppb = 50100000,
			      .nr_stops = 7000,
			      .longest_stop_ns = 1200000};
	SAMPLE_PUT(w, EV_LEDGER, 30000, 30, l);
	l.run_ns = SAMPLE_MS(61000);
	l.spent_ns = SAMPLE_MS(2800);
	l.mech_ns[0] = SAMPLE_MS(1400);
	l.mech_ns[4] = SAMPLE_MS(800);
	l.nr_stops = 14231;
	l.nr_naps = 16;
	SAMPLE_PUT(w, EV_LEDGER, 61200, 25, l);
	SAMPLE_PUT(w, EV_COVERAGE, 61200, COVER_WATCHED,
		   (struct ev_coverage){812, 3ull << 30});
	SAMPLE_PUT(w, EV_COVERAGE, 61200, COVER_NEVER_ARMED,
		   (struct ev_coverage){300, 200 << 20});
	SAMPLE_PUT(w, EV_COVERAGE, 61200, COVER_LOST,
		   (struct ev_coverage){120, 0});
}

/* The whole session into @path; flushed in the middle. */
static inline int sample_write(const char *path, struct smco_err *err)
{
	struct trace_writer *w;
	int rc = trace_writer_create(path, smco_now_ns(), &w, err);
	if (rc)
		return rc;
	SAMPLE_PUT(w, EV_PROCESS, 0, 4711, (struct ev_process){4711, 1, -1, 0});
	SAMPLE_PUT(w, EV_PROCESS, 100, 4712,
		   (struct ev_process){4712, 4711, -1, 2});
	for (uint32_t i = 0; i < 2; i++)
		SAMPLE_PUT(w, EV_PROCESS, 200, 4713 + i,
			   (struct ev_process){4713 + i, 4711, -1, 2});
	sample_tables(w);
	rc = trace_flush(w, err);
	sample_naps(w);
	if (!rc)
		rc = trace_flush(w, err);
	sample_totals(w);
	SAMPLE_PUT(w, EV_PROCESS, 60000, 4712,
		   (struct ev_process){4712, 4711, 9, 4});
	SAMPLE_PUT(w, EV_PROCESS, 61200, 4711,
		   (struct ev_process){4711, 1, 0, 4});
	int end = trace_writer_close(w, err);
	return rc ? rc : end;
}

#endif
