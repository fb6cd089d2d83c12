/* What was measured of this machine is kept for the next start. */
#include "supervisor/kept.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "t/unit/scratch.h"
#include "t/unit/tap.h"

#define BUILD 17
#define NOW   1700000000

static const char *costs;

static void measure(uint64_t build, time_t now_s, uint64_t bits)
{
	kept_open(build, now_s);
	kept_add(KEPT_BITS, (const uint64_t[KEPT_FIGURES]){bits, 7, 1000});
	kept_close();
}

/* The first figure that a start has; 0: it has to measure. */
static long start(uint64_t build, time_t now_s)
{
	uint64_t v[KEPT_FIGURES] = {0}, none[KEPT_FIGURES];
	kept_open(build, now_s);
	bool is_known = kept_get(KEPT_BITS, v);
	check(!kept_get(KEPT_WAKE, none));
	kept_close();
	if (is_known)
		check(v[1] == 7 && v[2] == 1000);
	return is_known ? (long)v[0] : 0;
}

/* The first figure of the latest; 0: there is none. */
static long latest(uint64_t build, time_t now_s, bool wants)
{
	uint64_t v[KEPT_FIGURES] = {0}, none[KEPT_FIGURES];
	kept_open(build, now_s);
	bool is_known = kept_latest(KEPT_BITS, v);
	check(!kept_latest(KEPT_WAKE, none) && kept_wants(KEPT_WAKE));
	check(kept_wants(KEPT_BITS) == wants);
	kept_close();
	return is_known ? (long)v[0] : 0;
}

/* Of however few. */
static void test_latest(void)
{
	remove(costs);
	check_int(latest(BUILD, NOW, true), 0);
	measure(BUILD, NOW, 30);
	check_int(latest(BUILD, NOW, true), 30);
	measure(BUILD, NOW + 10, 900);
	check_int(latest(BUILD, NOW + 10, true), 900);
	measure(BUILD, NOW + 20, 50);
	check_int(latest(BUILD, NOW + 20, false), 50);
	check_int(latest(BUILD, NOW + KEPT_S, true), 50);
	check_int(latest(BUILD + 1, NOW + 20, true), 0);
}

static void measure_all(void)
{
	remove(costs);
	measure(BUILD, NOW, 30);
	check_int(start(BUILD, NOW), 0);
	measure(BUILD, NOW + 10, 900);
	check_int(start(BUILD, NOW + 10), 0);
	measure(BUILD, NOW + 20, 50);
}

/* The median; of the latest, and while they are new. */
static void test_times(void)
{
	measure_all();
	check_int(start(BUILD, NOW + 20), 50);
	measure(BUILD, NOW + 30, 20);
	check_int(start(BUILD, NOW + 30), 50);
	measure(BUILD, NOW + 40, 20);
	check_int(start(BUILD, NOW + 40), 20);
	check_int(start(BUILD, NOW + 19 + KEPT_S), 20);
	check_int(start(BUILD, NOW + 20 + KEPT_S), 0);
	/* The clock was put back. */
	check_int(start(BUILD, NOW + 39), 0);
}

/* For whom they were measured. */
static void test_key(void)
{
	cpu_set_t all, one;
	measure_all();
	check_int(start(BUILD + 1, NOW + 20), 0);
	check_int(start(0, NOW + 20), 0);
	check(!sched_getaffinity(0, sizeof(all), &all));
	if (CPU_COUNT(&all) > 1) {
		CPU_ZERO(&one);
		CPU_SET((unsigned)sched_getcpu(), &one);
		check(!sched_setaffinity(0, sizeof(one), &one));
		check_int(start(BUILD, NOW + 20), 0);
		check(!sched_setaffinity(0, sizeof(all), &all));
	}
	check_int(start(BUILD, NOW + 20), 50);
	/* Another's take its place. */
	measure(BUILD + 1, NOW + 20, 60);
	check_int(start(BUILD, NOW + 20), 0);
}

/* Each byte of the file, changed: a figure, or none, but none that cannot be.
 */
static void test_damage(void)
{
	char text[1000];
	measure_all();
	FILE *f = fopen(costs, "re");
	size_t len = f ? fread(text, 1, sizeof(text), f) : 0;
	check(f && !fclose(f) && len > 100 && len < sizeof(text));
	for (size_t i = 0; i <= len; i++) {
		char was = text[i < len ? i : 0];
		f = fopen(costs, "we");
		check(f != NULL);
		text[i < len ? i : 0] = i < len && was != '-' ? '-' : '9';
		check(fwrite(text, 1, i < len ? len : i / 2, f) && !fclose(f));
		text[i < len ? i : 0] = was;
		check(start(BUILD, NOW + 20) <= (long)NSEC_PER_SEC);
		check(start(BUILD, NOW + 20) >= 0);
	}
	f = fopen(costs, "we");
	check(f != NULL);
	char *third = strstr(text, "\nbits");
	check(fwrite(text, 1, len, f) == len);
	for (int i = 0; f && third && i < 3; i++)
		fprintf(f, "bits %d 3000000000 7 1000 0\n", NOW);
	check(f && !fclose(f));
	check_int(start(BUILD, NOW + 20), 0);
}

/* Whoever cannot keep it measures. */
static void test_nowhere(void)
{
	uint64_t v[KEPT_FIGURES];
	measure_all();
	check(setenv("SMCO_CACHE_DIR", "", 1) == 0);
	measure(BUILD, NOW + 20, 50);
	check_int(start(BUILD, NOW + 20), 0);
	for (int i = 0; i < KEPT_TIMES; i++)
		kept_add(KEPT_BITS, (const uint64_t[KEPT_FIGURES]){1, 2, 3});
	check(!kept_get(KEPT_BITS, v)); /* never opened: --no-cache */
	check(!kept_latest(KEPT_BITS, v) && !kept_wants(KEPT_BITS));
}

int main(void)
{
	check(setenv("SMCO_CACHE_DIR", scratch_dir(), 1) == 0);
	costs = scratch_path("costs");
	test_latest();
	test_times();
	test_key();
	test_damage();
	test_nowhere();
	return tap_done();
}
