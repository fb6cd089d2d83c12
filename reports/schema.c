#include "reports/schema.h"

#include <assert.h>
#include <string.h>

#define MEMBER(type, member) (((struct type *)0)->member)
#define F(type, member, how) FU(type, member, how, 1)
/* Of multiples of @unit. */
#define FU(type, member, how, unit)                                            \
	{                                                                      \
#member, offsetof(struct type, member),                        \
			sizeof(MEMBER(type, member)),                          \
			_Generic(MEMBER(type, member), int32_t                 \
				 : true, int64_t                               \
				 : true, default                               \
				 : false),                                     \
			CODE_##how, 0, 0, unit,                                \
	}
/* With a coding that looks at fields @a and @b of the same event. */
#define F2(type, member, how, a, b, unit)                                      \
	{                                                                      \
#member, offsetof(struct type, member),                        \
			sizeof(MEMBER(type, member)), false, CODE_##how, a, b, \
			unit,                                                  \
	}

/*
 * The fields of each event in the order of their presence bits. Append only:
 * readers skip bits they do not know and take missing ones as "coded 0".
 */
static const struct schema_field nap_fields[] = {
	FU(ev_nap, addr, NEIGHBOUR, 16),
	F(ev_nap, size, DELTA),
	FU(ev_nap, start_ns, DELTA, NAP_UNIT_NS),
	/* As long as it goes on it lasts until now. */
	F2(ev_nap, length_ns, UNTIL_TIME, 2, 0, NAP_UNIT_NS),
	FU(ev_nap, error_ns, DELTA, NAP_UNIT_NS),
	/* One that began before the first look began at the allocation. */
	F2(ev_nap, alloc_ns, BETWEEN, 2, 4, NAP_UNIT_NS),
	F(ev_nap, pid, DELTA),
	F(ev_nap, alloc_stack, DELTA),
	F(ev_nap, ended_stack, DELTA),
	F(ev_nap, last_stack, DELTA),
	F(ev_nap, ended_syscall, OR_NONE),
	F(ev_nap, flags, DELTA),
};
static_assert(sizeof(struct ev_nap) == 72, "ev_nap: fields above, FORMAT.md");

static const struct schema_field site_fields[] = {
	/* Allocations of a site are mostly of one size. */
	F(ev_site, nr_allocs, PLAIN),  F2(ev_site, bytes, RATE, 0, 0, 1),
	F(ev_site, live_bytes, PLAIN), F(ev_site, nr_live, PLAIN),
	F(ev_site, nr_watched, PLAIN), F(ev_site, nr_naps, PLAIN),
	F(ev_site, stack, FROM_PARAM), F(ev_site, pad, PLAIN),
};
static_assert(sizeof(struct ev_site) == 56, "ev_site: fields above, FORMAT.md");

#define MECH(i, name)                                                          \
	{                                                                      \
		name, offsetof(struct ev_ledger, mech_ns[i]), 8, false,        \
			CODE_DELTA, 0, 0, LEDGER_UNIT_NS,                      \
	}
static const struct schema_field ledger_fields[] = {
	FU(ev_ledger, run_ns, DELTA, LEDGER_UNIT_NS),
	FU(ev_ledger, spent_ns, DELTA, LEDGER_UNIT_NS),
	MECH(0, "stops_ns"),
	MECH(1, "agent_ns"),
	MECH(2, "touches_ns"),
	MECH(3, "arming_ns"),
	MECH(4, "cpu_ns"),
	MECH(5, "other_ns"),
	F(ev_ledger, nr_known, DELTA),
	F(ev_ledger, nr_armed, DELTA),
	F(ev_ledger, nr_naps, DELTA),
	FU(ev_ledger, recent_ppb, DELTA, LEDGER_UNIT_PPB),
	FU(ev_ledger, worst_window_ppb, DELTA, LEDGER_UNIT_PPB),
	F(ev_ledger, nr_stops, DELTA),
	FU(ev_ledger, longest_stop_ns, DELTA, LEDGER_UNIT_NS),
};
static_assert(sizeof(struct ev_ledger) == 120,
	      "ev_ledger: fields above, FORMAT.md");

static const struct schema_field control_fields[] = {
	FU(ev_control, local_target_ppb, DELTA, LOCAL_UNIT_PPB),
};
static_assert(sizeof(struct ev_control) == 8,
	      "ev_control: fields above, FORMAT.md");

static const struct schema_field coverage_fields[] = {
	F(ev_coverage, nr_objects, PLAIN),
	F(ev_coverage, bytes, PLAIN),
};
static_assert(sizeof(struct ev_coverage) == 16,
	      "ev_coverage: fields above, FORMAT.md");

static const struct schema_field process_fields[] = {
	F(ev_process, pid, FROM_PARAM),
	F(ev_process, ppid, DELTA),
	F(ev_process, exit_status, OR_NONE),
	F(ev_process, why, PLAIN),
};
static_assert(sizeof(struct ev_process) == 16,
	      "ev_process: fields above, FORMAT.md");

/* Most events happen the more often the longer the thread runs: enabled_ns. */
#define VALUE(i)                                                               \
	{                                                                      \
		"value" #i, offsetof(struct ev_counts, value[i]), 8, false,    \
			CODE_RATE, 3, 0, COUNTS_UNIT_NS,                       \
	}
static const struct schema_field counts_fields[] = {
	F(ev_counts, pid, DELTA),
	F(ev_counts, nr, DELTA),
	FU(ev_counts, length_ns, PLAIN, COUNTS_TIME_UNIT_NS),
	FU(ev_counts, enabled_ns, PLAIN, COUNTS_UNIT_NS),
	FU(ev_counts, missed_ns, PLAIN, COUNTS_UNIT_NS),
	VALUE(0),
	VALUE(1),
	VALUE(2),
	VALUE(3),
	VALUE(4),
	VALUE(5),
	VALUE(6),
	VALUE(7),
	VALUE(8),
	VALUE(9),
	VALUE(10),
	VALUE(11),
	VALUE(12),
	VALUE(13),
	VALUE(14),
	VALUE(15),
};
static_assert(sizeof(struct ev_counts) == 160,
	      "ev_counts: fields above, FORMAT.md");
static const struct schema_field variable_fields[] = {
	F(ev_variable, elements, PLAIN), F(ev_variable, decl, DELTA),
	F(ev_variable, bits, DELTA),	 F(ev_variable, class_, PLAIN),
	F(ev_variable, flags, DELTA),	 F(ev_variable, unwatched, DELTA),
	F(ev_variable, offset, PLAIN),
};
static_assert(sizeof(struct ev_variable) == 32,
	      "ev_variable: fields above, FORMAT.md");

static const struct schema_field range_fields[] = {
	F(ev_range, smallest, DELTA),
	F(ev_range, largest, DELTA),
	F(ev_range, hits, PLAIN),
	FU(ev_range, watched_ns, DELTA, RANGE_UNIT_NS),
	FU(ev_range, alive_ns, DELTA, RANGE_UNIT_NS),
	F(ev_range, pid, DELTA),
	F(ev_range, flags, PLAIN),
	F(ev_range, odd, DELTA),
};
static_assert(sizeof(struct ev_range) == 56,
	      "ev_range: fields above, FORMAT.md");

static const struct schema_field sample_fields[] = {
	F(ev_sample, weight, DELTA),
	F(ev_sample, addr, DELTA),
	F(ev_sample, pid, DELTA),
	F(ev_sample, flags, DELTA),
};
static_assert(sizeof(struct ev_sample) == 24,
	      "ev_sample: fields above, FORMAT.md");

static const struct schema_field phase_fields[] = {
	F(ev_phase, length_ns, DELTA), F(ev_phase, pid, DELTA),
	F(ev_phase, depth, DELTA),     F(ev_phase, flags, DELTA),
	F(ev_phase, pad, PLAIN),
};
static_assert(sizeof(struct ev_phase) == 24,
	      "ev_phase: fields above, FORMAT.md");

static const struct schema_field phase_total_fields[] = {
	F(ev_phase_total, count, DELTA),
	F(ev_phase_total, nr_seen, DELTA),
	F(ev_phase_total, seen_ns, DELTA),
	F(ev_phase_total, longest_ns, DELTA),
};
static_assert(sizeof(struct ev_phase_total) == 32,
	      "ev_phase_total: fields above, FORMAT.md");

static const struct schema_field phase_span_fields[] = {
	F(ev_phase_span, length_ns, DELTA), F(ev_phase_span, count, DELTA),
	F(ev_phase_span, nr_seen, DELTA),   F(ev_phase_span, seen_ns, DELTA),
	F(ev_phase_span, pid, DELTA),	    F(ev_phase_span, pad, PLAIN),
	F(ev_phase_span, in_ns, DELTA),
};
static_assert(sizeof(struct ev_phase_span) == 48,
	      "ev_phase_span: fields above, FORMAT.md");

static const struct schema_field phase_range_fields[] = {
	F(ev_phase_range, smallest, DELTA),
	F(ev_phase_range, largest, DELTA),
	F(ev_phase_range, sure_smallest, DELTA),
	F(ev_phase_range, sure_largest, DELTA),
	F(ev_phase_range, phase, DELTA),
	F(ev_phase_range, pid, DELTA),
	F(ev_phase_range, flags, PLAIN),
	F(ev_phase_range, pad, PLAIN),
};
static_assert(sizeof(struct ev_phase_range) == 48,
	      "ev_phase_range: fields above, FORMAT.md");

#define EVENT(name, param, fields, type, unit)                                 \
	{                                                                      \
		name, param, sizeof(struct type), fields, ARRAY_SIZE(fields),  \
			unit                                                   \
	}
static const struct schema_event events[EV_NR] = {
	[EV_NAP] = EVENT("nap", "object", nap_fields, ev_nap, NAP_UNIT_NS),
	[EV_SITE] = EVENT("site", "stack", site_fields, ev_site, FLUSH_UNIT_NS),
	[EV_LEDGER] = EVENT("ledger", "armed", ledger_fields, ev_ledger,
			    FLUSH_UNIT_NS),
	[EV_COVERAGE] = EVENT("coverage", "why", coverage_fields, ev_coverage,
			      FLUSH_UNIT_NS),
	[EV_PROCESS] =
		EVENT("process", "pid", process_fields, ev_process, 1000),
	[EV_COUNTS] = EVENT("counts", "group", counts_fields, ev_counts,
			    COUNTS_TIME_UNIT_NS),
	[EV_VARIABLE] = EVENT("variable", "variable", variable_fields,
			      ev_variable, FLUSH_UNIT_NS),
	[EV_RANGE] = EVENT("range", "variable", range_fields, ev_range,
			   FLUSH_UNIT_NS),
	[EV_SAMPLE] = EVENT("sample", "stack", sample_fields, ev_sample,
			    SAMPLE_UNIT_NS),
	[EV_PHASE] = EVENT("phase", "phase", phase_fields, ev_phase, 1),
	[EV_PHASE_TOTAL] = EVENT("phase-total", "phase", phase_total_fields,
				 ev_phase_total, 1),
	[EV_PHASE_SPAN] = EVENT("phase-span", "phase", phase_span_fields,
				ev_phase_span, 1),
	[EV_PHASE_RANGE] = EVENT("phase-range", "variable", phase_range_fields,
				 ev_phase_range, FLUSH_UNIT_NS),
	[EV_CONTROL] = EVENT("control", "monitor", control_fields, ev_control,
			     FLUSH_UNIT_NS),
};
static_assert(ARRAY_SIZE(counts_fields) <= SCHEMA_MAX_FIELDS,
	      "more fields than the codec remembers");
static_assert(ARRAY_SIZE(ledger_fields) <= SCHEMA_MAX_FIELDS,
	      "more fields than the codec remembers");

const struct schema_event *schema_event(uint32_t event)
{
	if (event >= EV_NR || !events[event].name)
		return NULL;
	return &events[event];
}
