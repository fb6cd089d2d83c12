/* The timer wheel against a plain array of due times. */
#include <stdlib.h>

#include "supervisor/control/schedule.h"
#include "t/unit/rnd.h"
#include "t/unit/tap.h"

#define GRAIN (1ULL << SCHEDULE_GRAIN_SHIFT)

static uint64_t seed = 42;

static uint64_t rnd(void)
{
	return rnd_next(&seed);
}

/* Any order of magnitude up to 2^@bits. */
static uint64_t rnd_wide(unsigned bits)
{
	return rnd() >> (64 - 1 - rnd() % bits);
}

static uint64_t tick_of(uint64_t due)
{
	return (due + GRAIN - 1) / GRAIN;
}

enum { NR = 2000 };

struct model {
	uint64_t due[NR];
	bool is_in[NR];
	unsigned nr_in;
};

/* What can be wrong with one pop; 0 if it was right. */
static const char *wrong_pop(const struct model *m, uint64_t now, bool got,
			     uint32_t id)
{
	uint64_t earliest = UINT64_MAX;
	for (unsigned i = 0; i < NR; i++)
		if (m->is_in[i] && m->due[i] < earliest)
			earliest = m->due[i];
	if (!got)
		return earliest <= now - GRAIN ? "one due was kept" : NULL;
	if (id >= NR || !m->is_in[id])
		return "not scheduled";
	if (m->due[id] > now)
		return "too early";
	if (tick_of(m->due[id]) > tick_of(earliest) + 1)
		return "not the longest waiting";
	return NULL;
}

static void test_random(unsigned bits)
{
	struct schedule s;
	static struct model m;
	uint64_t now = rnd_wide(50) + GRAIN;
	const char *wrong = NULL;
	unsigned nr_popped = 0, nr_late_hints = 0;

	memset(&m, 0, sizeof(m));
	schedule_init(&s, now);
	check_int(schedule_grow(&s, NR), SMCO_OK);
	for (int step = 0; step < 40000 && !wrong; step++) {
		uint32_t id = rnd() % NR;
		unsigned what = rnd() % 8;
		if (what < 4 && !m.is_in[id]) {
			m.due[id] = now + rnd_wide(bits);
			m.is_in[id] = true;
			m.nr_in++;
			schedule_add(&s, id, now, m.due[id]);
		} else if (what == 4) {
			schedule_remove(&s, id);
			m.nr_in -= m.is_in[id];
			m.is_in[id] = false;
		} else if (what == 5 && m.nr_in) {
			/* Sleep until told: then somebody is due, soon. */
			uint64_t next = schedule_next_ns(&s);
			for (unsigned i = 0; i < NR; i++)
				if (m.is_in[i] && next > m.due[i] &&
				    next > tick_of(m.due[i]) * GRAIN)
					nr_late_hints++;
			if (next > now && next < UINT64_MAX / 2)
				now = next;
		} else if (what == 6) {
			now += rnd_wide(bits);
		} else if (what == 7) {
			bool got = schedule_pop(&s, now, &id);
			wrong = wrong_pop(&m, now, got, id);
			if (got && !wrong) {
				m.is_in[id] = false;
				m.nr_in--;
				nr_popped++;
			}
		}
	}
	check_msg(!wrong, "2^%u ns apart: %s", bits,
		  wrong ? wrong : "as model");
	check_int(nr_late_hints, 0);
	check(nr_popped > 1000);

	/* All that are left come out, each once, in order. */
	uint64_t last = 0;
	uint32_t id;
	bool in_order = true;
	for (uint64_t next; (next = schedule_next_ns(&s)) != UINT64_MAX;) {
		if (next > now)
			now = next;
		while (schedule_pop(&s, now, &id)) {
			uint64_t tick = tick_of(m.due[id]);
			in_order &= m.is_in[id] && tick + 1 >= last;
			m.is_in[id] = false;
			m.nr_in--;
			last = tick;
		}
	}
	check(in_order);
	check_int(m.nr_in, 0);
	schedule_deinit(&s);
}

static void test_ends(void)
{
	struct schedule s;
	uint32_t id;
	schedule_init(&s, 0);
	schedule_grow(&s, 4);
	check(!schedule_pop(&s, UINT64_MAX / 2, &id));
	check(schedule_next_ns(&s) == UINT64_MAX);
	schedule_deinit(&s);

	schedule_init(&s, 0);
	schedule_grow(&s, 4);
	schedule_add(&s, 0, 0, UINT64_MAX);
	schedule_add(&s, 1, 0, 1);
	check(!schedule_pop(&s, 0, &id));
	check(schedule_pop(&s, GRAIN, &id));
	check_int(id, 1);
	check(!schedule_pop(&s, UINT64_MAX / 2, &id));
	check(schedule_pop(&s, UINT64_MAX, &id));
	check_int(id, 0);
	/* Time that runs backwards does no harm. */
	schedule_add(&s, 2, 5, 3);
	check(schedule_pop(&s, 7, &id));
	check_int(id, 2);
	schedule_remove(&s, 3);
	schedule_deinit(&s);
}

static void test_order(void)
{
	struct schedule s;
	uint32_t id;
	schedule_init(&s, 0);
	schedule_grow(&s, 8);
	/* Due at once: first come, first served, behind who was due before. */
	schedule_add(&s, 5, 0, 3 * GRAIN);
	for (uint32_t i = 0; i < 4; i++)
		schedule_add(&s, i, 4 * GRAIN, 4 * GRAIN);
	check(schedule_pop(&s, 4 * GRAIN, &id));
	check_int(id, 5);
	check(schedule_pop(&s, 4 * GRAIN, &id));
	check_int(id, 0);
	/* Put off: not at once again, then before the others. */
	schedule_put_off(&s, 0, 0);
	check(schedule_pop(&s, 4 * GRAIN, &id));
	check_int(id, 1);
	schedule_put_off(&s, 1, 5 * GRAIN);
	check(schedule_pop(&s, 5 * GRAIN, &id));
	check_int(id, 0);
	check(schedule_pop(&s, 5 * GRAIN, &id));
	check_int(id, 1);
	check(schedule_pop(&s, 5 * GRAIN, &id));
	check_int(id, 2);
	schedule_remove(&s, 3);
	check(!schedule_pop(&s, 9 * GRAIN, &id));
	schedule_deinit(&s);
}

static void test_full_queue(void)
{
	/*
	 * One that waits at the head of the queue for long, while others come
	 * and go behind it: their gaps are closed, the order stays.
	 */
	struct schedule s;
	uint32_t id;
	bool is_in[8] = {true};
	schedule_init(&s, 0);
	schedule_grow(&s, 8);
	for (int i = 0; i < 37; i++) {
		schedule_add(&s, 1, 0, 0);
		schedule_pop(&s, 0, &id);
	}
	schedule_add(&s, 0, 0, 0);
	for (int i = 0; i < 10000; i++) {
		id = 1 + rnd() % 7;
		schedule_remove(&s, id);
		is_in[id] = rnd() % 2;
		if (is_in[id])
			schedule_add(&s, id, 0, 0);
	}
	/* And a larger table in between. */
	check_int(schedule_grow(&s, 5000), SMCO_OK);
	for (uint32_t i = 1; i < 8; i++) {
		schedule_remove(&s, i);
		schedule_add(&s, i, 0, 0);
	}
	bool is_right = true;
	for (uint32_t i = 0; i < 8; i++)
		is_right &= schedule_pop(&s, 0, &id) && id == i;
	check(is_right);
	check(!schedule_pop(&s, 0, &id));
	for (uint32_t i = 0; i < 5000; i++)
		schedule_add(&s, i, 0, i % 3 * GRAIN);
	int nr = 0;
	while (schedule_pop(&s, 2 * GRAIN, &id))
		is_right &= nr++ / 1667 == (int)(id % 3);
	check(is_right);
	check_int(nr, 5000);
	schedule_deinit(&s);
}

int main(void)
{
	test_full_queue();
	test_order();
	test_ends();
	test_random(12);
	test_random(24);
	test_random(34);
	test_random(47);
	return tap_done();
}
