/*
 * The table of what watching cost: no overhead is told of a program that has
 * not run for longer than that took, no local target where none is known.
 */
#include "t/unit/tap.h"

#include "reports/model.h"
#include "reports/section.h"

static struct value cell(const struct model_ledger *m, const char *name)
{
	const struct section *s = &overhead_section;
	struct value v = {0};
	size_t i = column_find(s->column, s->nr_columns, name, strlen(name));
	if (check(i < s->nr_columns))
		s->get(NULL, m, i, &v);
	return v;
}

int main(void)
{
	static const char *const shares[] = {"overhead", "recent",
					     "worst_window"};
	struct model_ledger m = {
		.ledger = {.run_ns = 700000,
			   .spent_ns = 700000,
			   .recent_ppb = INT64_C(10000000000000),
			   .worst_window_ppb = INT64_C(10000000000000)},
		.local_target_ppb = -1,
	};
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		check(!cell(&m, shares[i]).known);
	check_int((int)cell(&m, "spent").number, 700000);
	check(!cell(&m, "local_target").known);

	m.ledger.run_ns = 7700000;
	m.local_target_ppb = 12345;
	check_int((int)cell(&m, "local_target").number, 12345);
	m.ledger.recent_ppb = m.ledger.worst_window_ppb = 100000000;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		struct value v = cell(&m, shares[i]);
		check(v.known && (int)v.number == 100000000);
	}
	return tap_done();
}
