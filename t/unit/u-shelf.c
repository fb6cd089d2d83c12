/*
 * A row of items beyond the memory allowed: each is read again from any place,
 * also where the disk takes nothing or only some of it; and ids that are told
 * apart without room for those that come again.
 */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "reports/id-set.h"
#include "reports/shelf.h"

struct item {
	uint64_t number;
	uint8_t rest[24];
};

#define ALLOWED 64 /* items in memory */

static bool is_item(const struct item *item, uint64_t i)
{
	return item && item->number == i * 3 && item->rest[23] == (uint8_t)i;
}

static bool all_there(const struct shelf *s, uint64_t step)
{
	struct shelf_window w = {.shelf = s};
	uint64_t i = 0;
	bool ok = true;
	for (uint64_t n = 0; n < s->nr; n++, i = (i + step) % s->nr)
		ok &= is_item(shelf_at(&w, i), i);
	ok &= !w.failed;
	shelf_window_close(&w);
	return ok;
}

/* @nr items with files of at most @max_bytes; how many are in the file. */
static void check_items(uint64_t nr, uint64_t in_file, rlim_t max_bytes)
{
	struct rlimit before, limit;
	struct shelf s;
	int rc = SMCO_OK;
	shelf_init(&s, sizeof(struct item), ALLOWED * sizeof(struct item));
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	if (max_bytes < limit.rlim_cur)
		limit.rlim_cur = max_bytes;
	/* Nothing is printed until it is gone: that may go to a file, too. */
	setrlimit(RLIMIT_FSIZE, &limit);
	for (uint64_t i = 0; i < nr && !rc; i++) {
		struct item item = {i * 3, {[23] = (uint8_t)i}};
		rc = shelf_add(&s, &item);
	}
	setrlimit(RLIMIT_FSIZE, &before);
	check_int(rc, SMCO_OK);
	check_int(s.nr, nr);
	check_int(s.nr_in_file, in_file);
	check(all_there(&s, 1));
	check(all_there(&s, nr - 1)); /* backwards */
	check(all_there(&s, 37));
	if (max_bytes == RLIM_INFINITY)
		check_int(s.cap, ALLOWED);
	shelf_deinit(&s);
	shelf_deinit(&s);
}

static void test_items(void)
{
	check_items(1, 0, RLIM_INFINITY);
	check_items(ALLOWED, 0, RLIM_INFINITY);
	check_items(ALLOWED + 1, ALLOWED, RLIM_INFINITY);
	check_items(100 * ALLOWED + 3, 100 * ALLOWED, RLIM_INFINITY);
	/* A limit of the size of files stands for a full disk. */
	check_items(20 * ALLOWED + 1, 0, 0);
	check_items(20 * ALLOWED + 1, 5 * ALLOWED,
		    5 * ALLOWED * sizeof(struct item) + 7);
}

/* Nobody is told that an item is there which cannot be had. */
static void test_lost_file(void)
{
	struct shelf s;
	struct item item = {0};
	shelf_init(&s, sizeof(item), ALLOWED * sizeof(item));
	for (size_t i = 0; i < 10 * ALLOWED; i++)
		check(!shelf_add(&s, &item));
	struct shelf_window w = {.shelf = &s};
	check(ftruncate(s.file.fd, ALLOWED * sizeof(item)) == 0);
	check(shelf_at(&w, 5) && !w.failed);
	check(!shelf_at(&w, 3 * ALLOWED));
	check(w.failed);
	check(!shelf_at(&w, 3 * ALLOWED)); /* nor later */
	shelf_window_close(&w);
	shelf_deinit(&s);
}

static void test_ids(void)
{
	struct id_set set = {0};
	size_t nr_wrong = 0;
	for (uint32_t i = 0; i < 1000000; i++)
		nr_wrong += id_set_add(&set, i * 7919 % 1000 * 5) != SMCO_OK;
	check_int(nr_wrong, 0);
	check(set.cap <= 4096);
	id_set_sort(&set);
	check_int(set.nr, 1000);
	for (uint32_t i = 0; i < set.nr; i++)
		nr_wrong += set.id[i] != i * 5;
	check_int(nr_wrong, 0);
	id_set_free(&set);
	id_set_sort(&set);
	check_int(set.nr, 0);
}

int main(void)
{
	test_items();
	test_lost_file();
	test_ids();
	return tap_done();
}
