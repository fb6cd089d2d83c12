/*
 * Time at levels: what a lower level proves to have been inside, and what stays
 * open, where calls are left without an end and where some were open before.
 */
#include "supervisor/monitor/phase-levels.h"
#include "t/unit/tap.h"

static struct phase_levels l;

static void at(int64_t level, double ns)
{
	const struct phase_inside more = {ns, {0, 0}};
	phase_levels_add(&l, level, &more);
}

static int64_t leave(int64_t level)
{
	return (int64_t)phase_levels_leave(&l, level).ns;
}

static void nested(void)
{
	l.nr = 0;
	at(0, 5);
	at(1, 10);
	at(2, 20);
	check_int(leave(1), 20);
	at(1, 30);
	check_int(leave(1), 0);
	check_int(leave(0), 40);
	check_int(leave(0), 0);
	check_int(l.nr, 1);
}

/* The call at level 1 and that at level 2 are left; after that it is outside at
 * level 2, and what comes then is known as before. */
static void left(void)
{
	l.nr = 0;
	at(1, 10);
	at(2, 20);
	check_int(leave(2), 0);
	at(2, 1000);
	at(3, 7);
	check_int(leave(2), 7);
	at(2, 1000);
	check_int(leave(2), 0);
}

/* Two were open when counting began. */
static void open_before(void)
{
	l.nr = 0;
	at(0, 10);
	at(1, 1);
	check_int(leave(0), 1);
	at(0, 20);
	check_int(leave(-1), 30);
	at(-1, 5);
	check_int(leave(-2), 5);
	at(-2, 1000);
	check_int(leave(-2), 0);
}

/* More levels than there is room for: the lowest ones wait for the lowest. */
static void many(void)
{
	l.nr = 0;
	for (int64_t i = 0; i < PHASE_LEVELS + 2; i++)
		at(i, 1);
	check_int(l.nr, PHASE_LEVELS);
	check_int(leave(2), PHASE_LEVELS - 1);
	check_int(leave(0), 0);
	check_int(leave(-1), 3);
}

/* What is scaled later, and twice. */
static void scaled(void)
{
	const double first[2] = {10, 100}, second[2] = {2, 3};
	struct phase_inside more = {0, {1, 2}};
	l.nr = 0;
	phase_levels_add(&l, 1, &more);
	phase_levels_scale(&l, first);
	phase_levels_add(&l, 1, &more);
	struct phase_inside in = phase_levels_leave(&l, 0);
	check_int((int64_t)in.ns, 210);
	check_int((int64_t)in.part[0], 1);
	check_int((int64_t)in.part[1], 2);
	phase_inside_scale(&in, second);
	check_int((int64_t)in.ns, 218);
	check_int((int64_t)in.part[0], 0);
}

int main(void)
{
	nested();
	left();
	open_before();
	many();
	scaled();
	return tap_done();
}
