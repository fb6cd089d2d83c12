/*
 * What puts items in order beyond the memory allowed: all come out, in order,
 * and no more than allowed is held; also where the disk takes nothing or only
 * some of it.
 */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "reports/spill.h"

struct item {
	uint64_t key;
	uint64_t number;
	uint8_t rest[8];
};

#define ALLOWED 64 /* items in memory */

static int compare(const void *va, const void *vb, void *ctx)
{
	(void)ctx;
	const struct item *a = va, *b = vb;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Items with many equal keys in, and out again; files that are written take
 * @max_bytes at most. */
static void check_order_within(size_t nr, size_t nr_runs_at_least,
			       rlim_t max_bytes)
{
	struct rlimit before, limit;
	struct spill s;
	struct item item = {0}, last = {0};
	uint64_t sum = 0, nr_out = 0;
	bool in_order = true;
	int rc = SMCO_OK, sorted;
	spill_init(&s, sizeof(item), ALLOWED * sizeof(item), compare, NULL);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	if (max_bytes < limit.rlim_cur)
		limit.rlim_cur = max_bytes;
	/* Nothing is printed until it is gone: that may go to a file, too. */
	setrlimit(RLIMIT_FSIZE, &limit);
	for (size_t i = 0; i < nr && !rc; i++) {
		item.key = i * 7919 % 101;
		item.number = i;
		rc = spill_add(&s, &item);
	}
	sorted = spill_sort(&s);
	setrlimit(RLIMIT_FSIZE, &before);
	check_int(rc, SMCO_OK);
	check_int(sorted, SMCO_OK);
	check(s.nr_runs >= nr_runs_at_least);
	while ((rc = spill_next(&s, &item)) == 1) {
		if (nr_out++ && compare(&last, &item, NULL) >= 0)
			in_order = false;
		sum += item.number;
		last = item;
	}
	check_int(rc, 0);
	check_int(spill_next(&s, &item), 0);
	check(in_order);
	check_int(nr_out, nr);
	check_int(sum, nr * (nr - 1) / 2);
	spill_deinit(&s);
}

static void check_order(size_t nr, size_t nr_runs_at_least)
{
	check_order_within(nr, nr_runs_at_least, RLIM_INFINITY);
}

static void test_order(void)
{
	check_order(1, 0);
	check_order(ALLOWED, 0);
	check_order(ALLOWED + 1, 2);
	check_order(2 * ALLOWED, 2);
	check_order(100 * ALLOWED + 3, 101);
}

static void test_none(void)
{
	struct spill s;
	struct item item;
	spill_init(&s, sizeof(item), 1, compare, NULL);
	check_int(spill_sort(&s), SMCO_OK);
	check_int(spill_next(&s, &item), 0);
	spill_deinit(&s);
	spill_deinit(&s);
}

/* What is held is counted in items, not in bytes of the process. */
static void test_memory(void)
{
	struct spill s;
	struct item item = {0};
	size_t most = 0;
	spill_init(&s, sizeof(item), ALLOWED * sizeof(item), compare, NULL);
	for (uint64_t i = 0; i < 50 * ALLOWED; i++) {
		item.key = ~i;
		spill_add(&s, &item);
		most = s.cap > most ? s.cap : most;
	}
	check_int(most, ALLOWED);
	check_int(spill_sort(&s), SMCO_OK);
	check_int(s.cap, 0);
	check(s.nr_runs * s.window_items <= ALLOWED);
	spill_deinit(&s);
}

/* A limit of the size of files stands for a full disk. */
static void test_full_disk(void)
{
	check_order_within(20 * ALLOWED, 0, 0);
	/* Five, and the one in memory. */
	check_order_within(20 * ALLOWED, 6, 5 * ALLOWED * sizeof(struct item));
}

int main(void)
{
	test_order();
	test_none();
	test_memory();
	test_full_disk();
	return tap_done();
}
