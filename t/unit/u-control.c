/* The controllers step by step: equations, clamps, states, ends of numbers. */
#include <stdlib.h>

#include "supervisor/control/control.h"
#include "t/unit/tap.h"

#define US	NSEC_PER_USEC
#define MS	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC
#define PERCENT (PPB / 100)

static struct control *create(enum controller_kind kind, int64_t target)
{
	struct control_params p = {.kind = kind, .target_overhead_ppb = target};
	return control_create(&p, 0);
}

static int nr_due(struct control *c, uint64_t now)
{
	plant_t id;
	int nr = 0;
	while (control_next_due(c, now, &id))
		nr++;
	return nr;
}

static void test_secondary(void)
{
	/* m_t = 1/2, one plant: d = 2 p - (tau + p). */
	struct control *c = create(CONTROL_CASCADE, PPB);
	plant_t id = control_add(c, 0, NULL);
	check_int(control_local_target_ppb(c), PPB / 2);
	check_int(control_event(c, id, 0, 100, 1000), 900);
	check_int(control_event(c, id, 0, 999, 1000), 1);
	check_int(control_event(c, id, 0, 1000, 1000), 0);
	check_int(control_event(c, id, 0, 5000, 1000), 0);
	/* Of half a share twice as long a cycle. */
	check_int(control_event_part(c, id, 0, 100, 1000, CONTROL_WHOLE / 2),
		  2900);
	check_int(control_event_part(c, id, 0, 100, 1000, 2 * CONTROL_WHOLE),
		  0);
	check_int(control_event(c, id, 0, 0, 0), 0);
	/* More plants, smaller shares: m_lt = m_gt / n. */
	plant_t other = control_add(c, 0, NULL);
	check_int(control_local_target_ppb(c), PPB / 4);
	check_int(control_event(c, id, 0, 100, 1000), 2900);
	control_add(c, 0, NULL);
	/* 1/6 is rounded down, so d up. */
	check_int(control_event(c, id, 0, 0, 1000), 5001);
	control_remove(c, other);
	check_int(control_local_target_ppb(c), PPB / 4);
	/* A p beyond 18 us takes the wide path: same law. */
	check_int(control_event(c, id, 0, 0, 1000000), 3000000);
	check_int(control_event(c, id, 0, 0, 20000), 60000);
	control_destroy(c);

	/* The least integer above: 10 / (1/11) - 10 = 100, 1/3 rounds up. */
	c = create(CONTROL_CASCADE, PPB / 10);
	id = control_add(c, 0, NULL);
	uint64_t d = control_event(c, id, 0, 0, 10);
	check_int(d, 101); /* m_t was rounded down: 110.0000001 rounds up */
	control_destroy(c);
}

static void test_zero(void)
{
	enum controller_kind kinds[] = {CONTROL_CASCADE, CONTROL_ADHOC,
					CONTROL_GLOBAL};
	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++)
		for (int64_t target = -1; target <= 0; target++) {
			struct control *c = create(kinds[k], target);
			plant_t id = control_add(c, 0, NULL);
			int nr = nr_due(c, 0);
			bool is_never = true;
			for (uint64_t t = 0; t < 60 * SEC; t += SEC) {
				control_tick(c, t, SEC);
				control_add(c, t, NULL);
				nr += nr_due(c, t);
				is_never &=
					control_next_due_ns(c) == UINT64_MAX;
			}
			/* Nor by way of the other calls. */
			control_event(c, id, SEC, 10, 10);
			control_disarm(c, id, SEC, SEC);
			control_defer(c, id, SEC);
			nr += nr_due(c, UINT64_MAX);
			check_msg(!nr && is_never,
				  "target %d, kind %u: none due", (int)target,
				  k);
			check(!control_is_on(c));
			check_int(control_local_target_ppb(c), 0);
			control_destroy(c);
		}
}

static void test_unlimited(void)
{
	enum controller_kind kinds[] = {CONTROL_CASCADE, CONTROL_ADHOC,
					CONTROL_GLOBAL};
	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct control *c = create(kinds[k], INT64_MAX);
		int nr = 0;
		for (int i = 0; i < 1000; i++)
			control_add(c, 0, NULL);
		for (uint64_t t = 0; t < 1000; t++) {
			plant_t id;
			if (!control_next_due(c, t * MS, &id))
				continue;
			control_armed(c, id, t * MS);
			nr += control_event(c, id, t * MS, 0, 5 * SEC) == 0;
			control_tick(c, t * MS, MS);
		}
		check_int(nr, 1000);
		check_int(control_local_target_ppb(c), PPB);
		control_destroy(c);
	}
}

static void test_primary(void)
{
	/* n = 2 of m_gt = 1/2; nothing happens: m_lt += 0.5 * e, up to m_gt. */
	struct control *c = create(CONTROL_CASCADE, PPB);
	plant_t a = control_add(c, 0, NULL);
	control_add(c, 0, NULL);
	control_tick(c, 100 * MS, 100 * MS);
	check_int(control_local_target_ppb(c), PPB / 4);
	control_tick(c, 400 * MS, 300 * MS);
	check_int(control_local_target_ppb(c), PPB / 2); /* K_I = 0.5 here */
	for (int i = 2; i < 1000; i++)
		control_tick(c, i * 400 * MS, 400 * MS);
	check_int(control_local_target_ppb(c), PPB / 2);
	/* No wind-up: one interval far above brings it down at once. */
	control_event(c, a, 400 * SEC, 0, 400 * MS);
	control_tick(c, 401 * SEC, 400 * MS);
	check(control_local_target_ppb(c) < PPB / 2 - PPB / 50);
	control_destroy(c);

	c = create(CONTROL_CASCADE, PPB / 10);
	int64_t m_t = control_m_from_overhead(PPB / 10);
	for (int i = 0; i < 100; i++)
		control_add(c, 0, NULL);
	check_int(control_local_target_ppb(c), m_t / 100);
	control_tick(c, 400 * MS, 400 * MS);
	check_range((double)control_local_target_ppb(c) / (double)m_t, 0.1099,
		    0.1101); /* 1/100 + K_I */
	/* An idle interval says little, one that is idle altogether nothing. */
	int64_t before = control_local_target_ppb(c);
	control_tick(c, 800 * MS, 0);
	check_int(control_local_target_ppb(c), before);
	control_tick(c, 1200 * MS, 40 * MS);
	check_range((double)(control_local_target_ppb(c) - before) /
			    (double)m_t,
		    0.0099, 0.0101);
	/* Far too much, over and over: stays above 0, at a share's quarter. */
	for (int i = 4; i < 1000; i++) {
		for (int j = 0; j < 400; j++)
			control_event(c, j % 100, i * 400 * MS, 0, 10 * MS);
		control_tick(c, i * 400 * MS, 400 * MS);
	}
	check_int(control_local_target_ppb(c), m_t / 400);
	control_destroy(c);
}

static void test_gone(void)
{
	/* What is removed, armed or taken out leaves nothing in the sums. */
	for (int how = 0; how < 3; how++) {
		struct control *c = create(CONTROL_CASCADE, PPB / 10);
		plant_t id = 0;
		for (int i = 0; i < 10000; i++) {
			id = control_add(c, 0, NULL);
			control_event(c, id, 0, 0, MS);
			if (how == 0)
				control_remove(c, id);
			else if (how == 1)
				control_armed(c, id, SEC);
			else
				control_disarm(c, id, SEC, 2 * SEC);
		}
		control_tick(c, 400 * MS, 400 * MS);
		for (int i = 2; i < 100; i++)
			control_tick(c, i * 400 * MS, 400 * MS);
		check_int(control_local_target_ppb(c),
			  control_m_from_overhead(PPB / 10));
		control_destroy(c);
	}
}

static void test_adhoc(void)
{
	struct control *c = create(CONTROL_ADHOC, PPB);
	plant_t id = 0;
	for (int i = 0; i < 10; i++)
		id = control_add(c, 0, NULL);
	check_int(control_local_target_ppb(c), PPB / 20);
	/* A quarter of the run: half of the target, so m_lt doubles. */
	control_event(c, id, 0, 0, 2500 * MS);
	control_tick(c, 9999 * MS, 9999 * MS);
	check_int(control_local_target_ppb(c), PPB / 20);
	control_tick(c, 10 * SEC, MS);
	check_int(control_local_target_ppb(c), PPB / 10);
	/* The whole run counts: 12.5 s of 20 s, m_lt *= 0.8. */
	control_event(c, id, 0, 0, 10 * SEC);
	control_tick(c, 20 * SEC, 10 * SEC);
	check_int(control_local_target_ppb(c), PPB / 10 * 8 / 10);
	/* Never above m_gt, however little was used. */
	for (int i = 3; i < 1000; i++)
		control_tick(c, i * 10 * SEC, 10 * SEC);
	check_int(control_local_target_ppb(c), PPB / 2);
	control_destroy(c);
}

static void test_global(void)
{
	struct control *c = create(CONTROL_GLOBAL, PPB / 4); /* m_t = 0.2 */
	plant_t id[3], got;
	for (int i = 0; i < 3; i++)
		id[i] = control_add(c, 0, NULL);
	check(control_is_on(c));
	check_int(nr_due(c, 0), 3);
	for (int i = 0; i < 3; i++)
		control_armed(c, id[i], 0);
	control_tick(c, SEC, SEC);
	check_int(control_event(c, id[0], SEC, 10, 190 * MS), 0);
	check(control_is_on(c));
	check(control_next_due(c, SEC, &got));
	check_int(got, id[0]);
	control_armed(c, id[0], SEC);
	/* The sign of p / (tau + p) - m_t turns: none is due. */
	control_event(c, id[1], SEC, 10, 11 * MS);
	check(!control_is_on(c));
	check_int(nr_due(c, SEC), 0);
	check(control_next_due_ns(c) == UINT64_MAX);
	control_event(c, id[0], SEC, 10, 9 * MS);
	control_event(c, id[2], SEC, 10, 0);
	check_int(nr_due(c, SEC), 0);
	control_tick(c, 2 * SEC, 49 * MS); /* 210 of 1049 */
	check_int(nr_due(c, 2 * SEC), 0);
	control_tick(c, 2 * SEC, MS);
	check_int(nr_due(c, 2 * SEC), 3);
	control_destroy(c);
}

static void test_table(void)
{
	struct control *c = create(CONTROL_CASCADE, PPB / 10);
	int x, y;
	plant_t a = control_add(c, 0, &x), b = control_add(c, 0, &y), got, id;
	check_int(a, 0);
	check_int(b, 1);
	check(control_user(c, a) == &x && control_user(c, b) == &y);
	check(control_user(c, 2) == NULL);
	check_int(control_nr_plants(c), 2);
	/* In the order added; handed out once. */
	check(control_next_due(c, 0, &got));
	check_int(got, a);
	control_armed(c, a, 0);
	control_armed(c, a, 0);
	check_int(control_nr_armed(c), 1);
	check(control_next_due(c, 0, &got));
	check_int(got, b);
	check(!control_next_due(c, 0, &got));
	/* Removed while armed, while handed out, twice; reused. */
	control_remove(c, a);
	check_int(control_nr_armed(c), 0);
	control_remove(c, b);
	control_remove(c, b);
	check_int(control_nr_plants(c), 0);
	check_int(control_event(c, a, 0, 1, 1), 0);
	control_armed(c, a, 0);
	control_defer(c, b, 0);
	control_disarm(c, b, 0, 0);
	check_int(nr_due(c, SEC), 0);
	check(control_next_due_ns(c) == UINT64_MAX);
	check_int(control_add(c, 0, &y), b);
	check_int(control_add(c, 0, &x), a);
	check_int(control_add(c, 0, NULL), 2);
	check_int(nr_due(c, 0), 3);

	/* Put off: not before its time, then before those that became due. */
	control_disarm(c, 2, 0, SEC / 2);
	check_int(control_next_due_ns(c) <= SEC / 2, 1);
	control_defer(c, a, SEC);
	check(control_next_due(c, SEC - MS, &got));
	check_int(got, 2);
	control_disarm(c, 2, 0, SEC / 2);
	check(control_next_due(c, SEC + MS, &got));
	check_int(got, a);
	/* What still waits just becomes due later, what is armed stays so. */
	control_defer(c, 2, 100 * SEC);
	check_int(nr_due(c, SEC + MS), 0);
	control_armed(c, a, SEC);
	control_defer(c, a, SEC);
	check_int(nr_due(c, 99 * SEC), 0);
	check_int(nr_due(c, 101 * SEC), 1);
	id = control_add(c, 101 * SEC, NULL);
	control_defer(c, id, 102 * SEC);
	check_int(nr_due(c, 101 * SEC), 0);
	check_int(nr_due(c, 103 * SEC), 1);
	control_destroy(c);
	control_destroy(NULL);
}

static void test_come_and_go(void)
{
	/* Any order of calls: the books agree with a plain model. */
	enum { NR = 3000 };
	enum { NONE, WAIT, HANDED, ARMED };
	static uint8_t state[2 * NR];
	static uint32_t slot_of[2 * NR];
	struct control *c = create(CONTROL_CASCADE, PPB / 10);
	uint64_t now = 0, seed = 99;
	uint32_t nr = 0, nr_armed = 0, top = 0;
	bool is_right = true;
	srand48(5);
	for (int i = 0; i < 400000; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		uint64_t r = seed >> 33;
		plant_t id = top ? (plant_t)(r / 16 % top) : 0;
		switch (r % 16) {
		case 0:
		case 1:
			if (nr == NR)
				break;
			id = control_add(c, now, &slot_of[0]);
			is_right &= id < 2 * NR && state[id] == NONE;
			is_right &= id <= top;
			if (id == top)
				top++;
			state[id] = WAIT;
			nr++;
			break;
		case 2:
			if (!top || state[id] == NONE)
				break;
			nr_armed -= state[id] == ARMED;
			control_remove(c, id);
			state[id] = NONE;
			nr--;
			break;
		case 3:
			now += r % (20 * MS);
			control_tick(c, now, r % (20 * MS));
			break;
		case 4 ... 8:
			if (!control_next_due(c, now, &id))
				break;
			is_right &= id < top && state[id] == WAIT;
			state[id] = HANDED;
			break;
		case 9:
			control_defer(c, id, now + r % MS);
			if (top && state[id] == HANDED)
				state[id] = WAIT;
			break;
		case 10 ... 12:
			if (!top || state[id] != HANDED)
				break;
			control_armed(c, id, now);
			state[id] = ARMED;
			nr_armed++;
			break;
		default:
			if (!top || state[id] != ARMED)
				break;
			control_event(c, id, now, r % MS, r % (3 * US));
			state[id] = WAIT;
			nr_armed--;
			break;
		}
		is_right &= control_nr_plants(c) == nr &&
			    control_nr_armed(c) == nr_armed;
		if (!is_right)
			break;
	}
	check(is_right);
	check(nr > 100 && nr_armed > 10 && top <= NR);
	/* In the end every waiting plant comes out, once. */
	uint32_t nr_waiting = 0, nr_out = 0;
	plant_t id;
	for (uint32_t i = 0; i < top; i++)
		nr_waiting += state[i] == WAIT;
	while (control_next_due(c, UINT64_MAX, &id)) {
		nr_out++;
		is_right &= state[id] == WAIT;
		state[id] = HANDED;
	}
	check(is_right);
	check_int(nr_out, nr_waiting);
	control_destroy(c);
}

static void test_ends(void)
{
	enum controller_kind kinds[] = {CONTROL_CASCADE, CONTROL_ADHOC,
					CONTROL_GLOBAL};
	int64_t targets[] = {1, PPB / 100, PPB, INT64_MAX - 1, INT64_MAX};
	uint64_t values[] = {0, 1, SEC, UINT64_MAX / 2, UINT64_MAX};
	bool is_sane = true;
	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++)
		for (unsigned t = 0; t < ARRAY_SIZE(targets); t++) {
			struct control_params p = {
				.kind = kinds[k],
				.target_overhead_ppb = targets[t],
				.interval_ns = 1,
				.gain_ppb = t % 2 ? INT64_MAX : 1,
			};
			struct control *c = control_create(&p, UINT64_MAX);
			int64_t m_t = control_m_from_overhead(targets[t]);
			for (int i = 0; i < 100; i++)
				control_add(c, values[i % 5], NULL);
			for (int i = 0; i < 5 * 5 * 5 * 5; i++) {
				uint64_t now = values[i % 5];
				plant_t id;
				if (control_next_due(c, now, &id)) {
					control_armed(c, id, now);
					control_event(c, id, now,
						      values[i / 5 % 5],
						      values[i / 25 % 5]);
				}
				control_tick(c, now, values[i / 125 % 5]);
				control_defer(c, i % 100, now);
				int64_t m = control_local_target_ppb(c);
				is_sane &= m >= 0 && m <= m_t;
			}
			control_destroy(c);
		}
	check(is_sane);
}

int main(void)
{
	test_secondary();
	test_zero();
	test_unlimited();
	test_primary();
	test_gone();
	test_adhoc();
	test_global();
	test_table();
	test_come_and_go();
	test_ends();
	return tap_done();
}
