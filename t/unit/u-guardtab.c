/* The table of guarded ranges against a plain array of pages. */
#include "t/unit/tap.h"
#include "supervisor/probe/guardtab.h"

#include <stdlib.h>

#define NR_PAGES 200

static void edges(void)
{
	struct guardtab t;
	uint32_t slot, other;
	guardtab_init(&t, 2);
	check_int(guardtab_add(&t, 0x2000, 0x2000, 3, NULL, &slot),
		  SMCO_FORMAT);
	check_int(guardtab_add(&t, 0x2000, 0x4000, 3, &t, &slot), 0);
	check_int(guardtab_add(&t, 0x3000, 0x5000, 3, NULL, &other), SMCO_BUSY);
	check_int(guardtab_add(&t, 0x1000, 0x2001, 3, NULL, &other), SMCO_BUSY);
	check_int(guardtab_add(&t, 0x1000, 0x9000, 3, NULL, &other), SMCO_BUSY);
	check_int(guardtab_add(&t, 0x4000, 0x5000, 1, NULL, &other), 0);
	check(slot != other);
	check_int(guardtab_add(&t, 0x9000, 0xa000, 3, NULL, &other), SMCO_BUSY);
	check(!guardtab_overlap(&t, 0x1000, 0x2000));
	check(!guardtab_overlap(&t, 0x5000, 0x9000));
	const struct guard_entry *e = guardtab_overlap(&t, 0x1000, 0x2001);
	check(e && e->start == 0x2000 && e->user == &t && e->prot == 3);
	e = guardtab_overlap(&t, 0x4fff, 0x5000);
	check(e && e->prot == 1);
	guardtab_remove(&t, guardtab_first(&t, 0x2000));
	check(!guardtab_overlap(&t, 0x2000, 0x4000));
	check_int(guardtab_add(&t, 0x9000, 0xa000, 3, NULL, &other), 0);
	check_int(other, slot);
	guardtab_deinit(&t);
}

static void against_model(void)
{
	struct guardtab t;
	int owner[NR_PAGES] = {0}; /* 0 = free, else id of the entry */
	uint8_t slot_used[64] = {0};
	bool good = true;
	int id = 0;
	guardtab_init(&t, 64);
	srandom(7);
	for (int step = 0; step < 20000; step++) {
		int from = (int)(random() % NR_PAGES);
		int to = from + 1 + (int)(random() % 6);
		if (to > NR_PAGES)
			to = NR_PAGES;
		int clash = 0;
		for (int i = from; i < to; i++)
			clash |= owner[i];
		taddr_t s = (taddr_t)from << 12, e = (taddr_t)to << 12;
		const struct guard_entry *o = guardtab_overlap(&t, s, e);
		good &= !o == !clash;
		if (clash) {
			int victim = (int)(intptr_t)o->user;
			good &= owner[(o->start >> 12)] == victim;
			good &= slot_used[o->slot] == 1;
			slot_used[o->slot] = 0;
			for (int i = 0; i < NR_PAGES; i++)
				if (owner[i] == victim)
					owner[i] = 0;
			guardtab_remove(&t, (size_t)(o - t.v));
			continue;
		}
		uint32_t slot;
		id++;
		size_t nr = t.nr;
		int rc = guardtab_add(&t, s, e, 3, (void *)(intptr_t)id, &slot);
		good &= rc == (nr == 64 ? SMCO_BUSY : 0);
		if (rc)
			continue;
		good &= slot < 64 && !slot_used[slot];
		slot_used[slot] = 1;
		for (int i = from; i < to; i++)
			owner[i] = id;
	}
	for (size_t i = 1; i < t.nr; i++)
		good &= t.v[i - 1].end <= t.v[i].start;
	check(good);
	guardtab_deinit(&t);
}

int main(void)
{
	edges();
	against_model();
	return tap_done();
}
