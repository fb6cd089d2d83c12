/* --overhead: what watching cost, over time. */
#include "reports/model.h"
#include "reports/section.h"

enum overhead_column {
	OVER_FILE,
	OVER_TIME,
	OVER_OVERHEAD,
	OVER_RECENT,
	OVER_WORST,
	OVER_RUN,
	OVER_SPENT,
	OVER_STOPS_COST,
	OVER_AGENT,
	OVER_TOUCHES,
	OVER_ARMING,
	OVER_CPU,
	OVER_OTHER,
	OVER_KNOWN,
	OVER_ARMED,
	OVER_NAPS,
	OVER_STOPS,
	OVER_LONGEST,
	OVER_LOCAL,
	OVER_COLUMNS
};

static const struct column overhead_columns[OVER_COLUMNS] = {
	[OVER_FILE] = {"file", KIND_COUNT, 0, "which FILE, from 0"},
	[OVER_TIME] = {"time", KIND_TIME, 9, "since the session's start"},
	[OVER_OVERHEAD] = {"overhead", KIND_SHARE, 8, "since the start"},
	[OVER_RECENT] = {"recent", KIND_SHARE, 8, "of late"},
	[OVER_WORST] = {"worst_window", KIND_SHARE, 12,
			"the worst 10 s so far"},
	[OVER_RUN] = {"run", KIND_TIME, 0, "CPU time of the program"},
	[OVER_SPENT] = {"spent", KIND_TIME, 9, "of that, lost to watching"},
	[OVER_STOPS_COST] = {"stops_cost", KIND_TIME, 0, "of that, in stops"},
	[OVER_AGENT] = {"agent", KIND_TIME, 0, "of that, in the agent"},
	[OVER_TOUCHES] = {"touches", KIND_TIME, 0, "of that, by touches"},
	[OVER_ARMING] = {"arming", KIND_TIME, 0, "of that, for arming"},
	[OVER_CPU] = {"cpu", KIND_TIME, 0, "of that, supervisor CPU"},
	[OVER_OTHER] = {"other", KIND_TIME, 0, "of that, other"},
	[OVER_KNOWN] = {"known", KIND_COUNT, 0, "blocks alive"},
	[OVER_ARMED] = {"armed", KIND_COUNT, 0, "blocks watched now"},
	[OVER_NAPS] = {"naps", KIND_COUNT, 0, "so far"},
	[OVER_STOPS] = {"stops", KIND_COUNT, 7, "so far"},
	[OVER_LONGEST] = {"longest_stop", KIND_TIME, 12, "so far"},
	[OVER_LOCAL] = {"local_target", KIND_SHARE, 0,
			"what each watched block may cost"},
};

/* Of a program that has hardly run there is none. */
static void share(struct value *ret, const struct ev_ledger *l, int64_t ppb)
{
	if (model_overhead_ppb(l, l->spent_ns) >= 0)
		value_number(ret, ppb);
}

static void overhead_get(const void *ctx, const void *item, size_t column,
			 struct value *ret)
{
	const struct model_ledger *m = item;
	const struct ev_ledger *l = &m->ledger;
	(void)ctx;
	switch ((enum overhead_column)column) {
	case OVER_FILE:
		return value_number(ret, m->file);
	case OVER_TIME:
		return value_number(ret, m->time_ns);
	case OVER_OVERHEAD:
		return share(ret, l, model_overhead_ppb(l, l->spent_ns));
	case OVER_RECENT:
		return share(ret, l, l->recent_ppb);
	case OVER_WORST:
		return share(ret, l, l->worst_window_ppb);
	case OVER_RUN:
		return value_number(ret, l->run_ns);
	case OVER_SPENT:
		return value_number(ret, l->spent_ns);
	case OVER_STOPS_COST:
	case OVER_AGENT:
	case OVER_TOUCHES:
	case OVER_ARMING:
	case OVER_CPU:
	case OVER_OTHER:
		return value_number(ret, l->mech_ns[column - OVER_STOPS_COST]);
	case OVER_KNOWN:
		return value_number(ret, l->nr_known);
	case OVER_ARMED:
		return value_number(ret, l->nr_armed);
	case OVER_NAPS:
		return value_number(ret, l->nr_naps);
	case OVER_STOPS:
		return value_number(ret, l->nr_stops);
	case OVER_LONGEST:
		return value_number(ret, l->longest_stop_ns);
	case OVER_LOCAL:
		if (m->local_target_ppb >= 0)
			value_number(ret, m->local_target_ppb);
		return;
	case OVER_COLUMNS:
		return;
	}
}

static int overhead_each(const struct section_source *src, section_visit *visit,
			 void *ctx, struct smco_err *err)
{
	(void)err;
	for (size_t i = 0; i < src->s->nr_ledger; i++) {
		const struct model_ledger *l = &src->s->ledger[i];
		int rc = 0;
		if (select_time(&src->s->select, l->time_ns))
			rc = visit(ctx, l);
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

const struct section overhead_section = {
	.name = "overhead",
	.about = "what watching cost, over time",
	.column = overhead_columns,
	.nr_columns = OVER_COLUMNS,
	.get = overhead_get,
	.each = overhead_each,
};
