/*
 * How far apart ticks are: by what they cost, and by whether the program waits
 * for the CPU that they use.
 */
#include "supervisor/pace.h"
#include "t/unit/tap.h"

#define MS	 NSEC_PER_MSEC
#define SHORTEST (20 * MS)
#define LONGEST	 (500 * MS)
#define ONE_PPB	 10000000  /* 1 % */
#define TEN_PPB	 100000000 /* 10 % */
#define MANY	 100
#define LOOK_NS	 (60 * NSEC_PER_USEC)

/* The pace after @MANY ticks of @tick_ns, of which @charged in 4 quarters are
 * in the ledger, which has @room_ns left. */
static uint64_t settled(int64_t m_t_ppb, uint64_t tick_ns, unsigned charged,
			int64_t room_ns)
{
	struct pace p;
	uint64_t used = 0, next = 0;
	pace_init(&p, SHORTEST, m_t_ppb);
	for (int i = 0; i < MANY; i++) {
		used += tick_ns;
		next = pace_next_ns(&p, tick_ns, used, used / 4 * charged,
				    room_ns);
	}
	return next;
}

/* No more than @ppb of a CPU is used so, nor less than half of it. */
static bool is_near(uint64_t next_ns, uint64_t tick_ns, uint64_t ppb)
{
	uint64_t most = next_ns / 1000 * ppb / 1000000;
	return tick_ns <= most && tick_ns >= most / 2;
}

/* What is learnt of @nr looks of 60 us, of which @charged in 4 quarters are
 * charged, each @leap-th time for all before. */
static uint32_t learnt(unsigned nr, unsigned charged, unsigned leap)
{
	struct taken t;
	uint64_t used = 300 * MS, all = 0;
	taken_init(&t, TAKEN_ALL / 8);
	for (unsigned i = 1; i <= nr; i++) {
		used += LOOK_NS;
		if (i % leap == 0)
			all += leap * LOOK_NS / 4 * charged;
		taken_learn(&t, used, all);
	}
	return t.ppk;
}

/* As a share of all: within a sixth. */
static bool is_share(uint32_t ppk, unsigned quarters)
{
	uint32_t want = TAKEN_ALL / 4 * quarters;
	printf("# learnt %u of %u\n", ppk, want);
	return ppk + TAKEN_ALL / 6 >= want && ppk <= want + TAKEN_ALL / 6;
}

/* It is told late and in leaps: the program waits for its next turn. */
static void test_leaps(void)
{
	struct taken t;
	for (unsigned quarters = 0; quarters <= 4; quarters++) {
		check(is_share(learnt(MANY, quarters, 1), quarters));
		check(is_share(learnt(MANY, quarters, 10), quarters));
	}
	/* What a start took says nothing of looks; nor does one step say all.
	 */
	check_int((long)learnt(1, 4, 1), TAKEN_ALL / 8);
	check(learnt(MANY / 10, 4, 1) < TAKEN_ALL / 2);
	taken_init(&t, 0);
	taken_learn(&t, MS, MS);
	taken_learn(&t, 2000 * MS, 2000 * MS);
	check(t.ppk < TAKEN_ALL / 2);
}

/* The pause behind the last of @nr ticks that take @long_ns at the end of many
 * of @short_ns, all of which the program waits for, and there is no room. */
static uint64_t behind(int64_t m_t_ppb, uint64_t short_ns, uint64_t long_ns,
		       unsigned nr)
{
	struct pace p;
	uint64_t used = 0, next = 0;
	pace_init(&p, SHORTEST, m_t_ppb);
	for (unsigned i = 0; i < MANY + nr; i++) {
		uint64_t tick_ns = i < MANY ? short_ns : long_ns;
		used += tick_ns;
		next = pace_next_ns(&p, tick_ns, used, used, 0);
	}
	return next;
}

/* One tick that armed much: no longer than what a few milliseconds of the
 * budget take to earn, but where all of them take that long. */
static void test_long(void)
{
	uint64_t one = behind(TEN_PPB, MS / 2, 8 * MS, 1);
	check_range((double)one, 35 * MS, 50 * MS);
	check_range((double)behind(ONE_PPB, MS / 2, 8 * MS, 1), 300 * MS,
		    LONGEST);
	uint64_t some = behind(TEN_PPB, MS / 2, 8 * MS, 10);
	check(some > one);
	check(is_near(behind(TEN_PPB, MS / 2, 8 * MS, MANY), 8 * MS,
		      TEN_PPB / 10 * 7));
	check_int((long)behind(TEN_PPB, 8 * MS, 100 * MS, MANY), (long)LONGEST);
	/* Nor does one that was short say that they are. */
	check(behind(TEN_PPB, 8 * MS, 4 * MS, 1) > one);
}

/* The program waits for all of it. What there is room for comes soon, but not
 * sooner than need be; what is owed has to be earned first. */
static void test_room(void)
{
	uint64_t soon = settled(ONE_PPB, 4 * MS, 4, 20 * MS);
	check_range((double)soon, 80 * MS, 90 * MS);
	check_int((long)settled(ONE_PPB, MS / 2, 4, 20 * MS),
		  3 * (long)SHORTEST);
	check_int((long)settled(ONE_PPB, 4 * MS, 4, 1), (long)LONGEST);
	/* 8.2 ms for this tick and the next, of which 5.6 are there. */
	check_range((double)settled(ONE_PPB, 4 * MS, 4, 8 * MS), 360 * MS,
		    380 * MS);
	check_range((double)settled(ONE_PPB, 0, 4, -2 * (int64_t)MS), 199 * MS,
		    201 * MS);
	check_range((double)settled(ONE_PPB, 0, 4, -9 * (int64_t)MS), 399 * MS,
		    401 * MS);
}

/* One in 50 ms, then one in 25, then none. */
static void test_quiet(void)
{
	struct quiet q = {0};
	uint64_t nr = 7, ms = 1000000;
	bool was = true;
	for (uint64_t t = 1000; t < 2000; t += 50)
		was &= !quiet_now(&q, nr++, t * ms);
	check(was);
	check(quiet_now(&q, nr++, 2000 * ms));
	for (uint64_t t = 2050; t < 5000; t += 50)
		was &= quiet_now(&q, nr++, t * ms);
	check(was);
	unsigned nr_busy = 0;
	for (uint64_t t = 5000; t < 8000; t += 25)
		nr_busy += !quiet_now(&q, nr++, t * ms);
	check(nr_busy > 90 && nr_busy < 120);
	check(!quiet_now(&q, nr, 8000 * ms));
	check(quiet_now(&q, nr, 9001 * ms));
}

int main(void)
{
	test_leaps();
	/* Nobody waits: nearly free, the shortest will do for short ticks. */
	check_int((long)settled(ONE_PPB, MS / 2, 0, 0), (long)SHORTEST);
	check(is_near(settled(ONE_PPB, 3 * MS, 0, 0), 3 * MS, 50000000));
	check(is_near(settled(TEN_PPB, 5 * MS, 0, 1), 5 * MS, 140000000));
	/* It waits for all of it: a quarter of the budget, or seven tenths. */
	check(is_near(settled(ONE_PPB, MS / 2, 4, 0), MS / 2, ONE_PPB / 4));
	check(is_near(settled(ONE_PPB, MS, 4, 1), MS, ONE_PPB / 10 * 7));
	check(is_near(settled(TEN_PPB, MS / 2, 4, 0), MS / 2, TEN_PPB / 4));
	/* More was charged than was used: no worse than all. */
	check_int((long)settled(ONE_PPB, MS, 9, 0),
		  (long)settled(ONE_PPB, MS, 4, 0));
	/* For half of it: in between. */
	uint64_t half = settled(ONE_PPB, MS, 2, 0);
	check(half < settled(ONE_PPB, MS, 4, 0));
	check(half > settled(ONE_PPB, MS, 1, 0));
	/* Never for ever, and never too often. */
	check_int((long)settled(ONE_PPB, NSEC_PER_SEC, 4, 0), (long)LONGEST);
	check_int((long)settled(TEN_PPB, 0, 4, 1), (long)SHORTEST);
	/* No bound. */
	check_int((long)settled(0, NSEC_PER_SEC, 4, false), (long)SHORTEST);

	/* A beginner is careful: nothing is known of what it uses. */
	struct pace p;
	pace_init(&p, SHORTEST, ONE_PPB);
	uint64_t first = pace_next_ns(&p, MS, MS, 0, 0);
	check(first > settled(ONE_PPB, MS, 0, 0));
	check(first > settled(ONE_PPB, MS, 2, 0));
	test_long();
	test_room();
	test_quiet();
	return tap_done();
}
