/*
 * When counting of marks ends because of what it costs: never before it has
 * cost the budget of the shortest run that the bound speaks of, never after the
 * bound; and who owns counts in shared memory.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"
#include "supervisor/probe/mark-cost.h"
#include "t/unit/phase-shm.h"

#define TICK_NS (10 * NSEC_PER_MSEC)
#define TARGET	(PPB / 10)

static struct mark_shm *make_shm(void)
{
	struct mark_shm *shm = phase_shm();
	if (shm)
		shm->tid_offset = 1;
	return shm;
}

/* A program at the ledger, with one memory that it counts in. */
struct scene {
	struct phases ph;
	struct shared sh;
	uint64_t now_ns, run_ns, gap_ns;
};

static void begin(struct scene *s, uint64_t start_cost_ns)
{
	memset(s, 0, sizeof(*s));
	s->sh.shm = make_shm();
	mark_shm_own(s->sh.shm, 1, 1);
	s->ph.p.nr = 1;
	s->ph.p.m_t_ppb = control_m_from_overhead(TARGET);
	s->ph.p.m_most_ppb = control_m_from_overhead(TARGET + PPB / 100);
	s->ph.ledger = ledger_create(TARGET);
	s->ph.shared = &s->sh;
	s->now_ns = s->ph.tick_ns = s->ph.p.start_ns = NSEC_PER_SEC;
	s->gap_ns = 2 * NSEC_PER_MSEC;
	ledger_advance(s->ph.ledger, s->now_ns, 0);
	ledger_charge(s->ph.ledger, LEDGER_STOP, PHASES_MONITOR, start_cost_ns);
}

static void end(struct scene *s)
{
	ledger_destroy(s->ph.ledger);
	mark_shm_unref(s->sh.shm);
}

/* Until the next look; counting takes @percent of the time. */
static void turn(struct scene *s, unsigned percent)
{
	uint64_t ps = s->gap_ns * 10 * percent;
	s->now_ns += s->gap_ns;
	s->run_ns += s->gap_ns;
	if (!s->sh.is_dear)
		s->sh.shm->data->own[1][0] += ps / mark_cost_here()->owner;
	ledger_advance(s->ph.ledger, s->now_ns, s->gap_ns);
	ledger_charge(s->ph.ledger, LEDGER_OTHER, PHASES_MONITOR,
		      phase_cost_take(&s->ph, &s->sh));
	s->gap_ns = phase_cost_judge(&s->ph, s->now_ns, TICK_NS);
}

/* Until the program has run for @run_ns. */
static void run(struct scene *s, uint64_t run_ns, unsigned percent)
{
	while (s->run_ns < run_ns)
		turn(s, percent);
}

static int64_t overhead(const struct scene *s)
{
	struct ledger_totals t;
	ledger_get(s->ph.ledger, &t);
	return t.overhead_ppb;
}

/* A million in a tenth of a second, and less than the budget for long. */
static void cheap(void)
{
	struct scene s;
	begin(&s, 0);
	run(&s, 100 * NSEC_PER_MSEC, 3);
	check(!s.sh.is_dear);
	check_range((double)s.ph.counting_ns, 2.5e6, 3.5e6);
	run(&s, 30 * NSEC_PER_SEC, 8);
	check(!s.sh.is_dear);
	end(&s);
	/* Starting was dear, which counting is not to blame for. */
	begin(&s, 30 * NSEC_PER_MSEC);
	run(&s, 30 * NSEC_PER_SEC, 4);
	check(!s.sh.is_dear);
	end(&s);
}

/* Most of the time is spent counting: within the bound from the shortest run
 * on, and not before there is no room. */
static void dear(unsigned percent)
{
	struct scene s;
	begin(&s, 0);
	while (!s.sh.is_dear && s.run_ns < NSEC_PER_SEC)
		turn(&s, percent);
	check(s.sh.is_dear);
	check_range((double)s.ph.counting_ns, 8.8e6, 9.92e6);
	check_int(s.ph.nr_trimmed, 1);
	check_int(s.ph.trimmed_ns, s.now_ns - NSEC_PER_SEC);
	run(&s, 100 * NSEC_PER_MSEC, 0);
	check(overhead(&s) <= TARGET + PPB / 100);
	end(&s);
}

/* Beside what starting has cost. */
static void beside_start(void)
{
	struct scene s;
	begin(&s, 5 * NSEC_PER_MSEC);
	while (!s.sh.is_dear && s.run_ns < NSEC_PER_SEC)
		turn(&s, 9);
	check(s.sh.is_dear);
	check(s.run_ns > 100 * NSEC_PER_MSEC);
	check(overhead(&s) <= (TARGET + PPB / 100) * 3 / 2);
	run(&s, 2 * s.run_ns, 0);
	check(overhead(&s) <= TARGET + PPB / 100);
	end(&s);
}

/* What was not spent for long may not be spent at once. */
static void late(void)
{
	struct scene s;
	begin(&s, 0);
	run(&s, 100 * NSEC_PER_SEC, 0);
	while (!s.sh.is_dear && s.run_ns < 102 * NSEC_PER_SEC)
		turn(&s, 60);
	check(s.sh.is_dear);
	check(s.ph.counting_ns < 60 * NSEC_PER_MSEC);
	end(&s);
}

static void unlimited(void)
{
	struct scene s;
	begin(&s, 0);
	s.ph.p.m_t_ppb = INT64_MAX;
	run(&s, NSEC_PER_SEC, 90);
	check(!s.sh.is_dear);
	end(&s);
}

static bool owns(const struct mark_shm *shm, uint32_t number)
{
	return shm->data->owner[number % MARK_OWNERS] == number;
}

/* One number, one owner. */
static void owners(void)
{
	struct mark_shm *shm = make_shm();
	for (uint32_t i = 0; i < MARK_OWNERS; i++)
		if (shm->data->owner[i] % MARK_OWNERS == i)
			check_msg(false, "number %u finds a count of its own",
				  shm->data->owner[i]);
	check(!owns(shm, 0));
	mark_shm_own(shm, 1000, 1000);
	mark_shm_own(shm, 1001, 1000);
	check(owns(shm, 1000) && owns(shm, 1001));
	mark_shm_own(shm, 1000 + MARK_OWNERS, 1000); /* no room */
	check(owns(shm, 1000) && !owns(shm, 1000 + MARK_OWNERS));
	mark_shm_pause(shm, 1000);
	check(!owns(shm, 1000));
	mark_shm_own(shm, 1000 + MARK_OWNERS, 1000); /* it may be in there */
	check(!owns(shm, 1000 + MARK_OWNERS));
	mark_shm_resume(shm, 1000);
	check(owns(shm, 1000));
	shm->data->own[1000 % MARK_OWNERS][3] = 5;
	mark_shm_disown(shm, 1000, 7); /* another's */
	check(owns(shm, 1000));
	mark_shm_disown(shm, 1000, 1000);
	check(!owns(shm, 1000) && owns(shm, 1001));
	mark_shm_resume(shm, 1000);
	check(!owns(shm, 1000));
	mark_shm_own(shm, 1000 + MARK_OWNERS,
		     1000); /* counts go on from there */
	check(owns(shm, 1000 + MARK_OWNERS));
	shm->data->own[1000 % MARK_OWNERS][3] += 2;
	shm->data->count[3] = 10;
	check_int(mark_shm_count(shm, 3), 17);
	check_int(mark_shm_passings(shm, 4).by_owners, 7);
	check_int(mark_shm_passings(shm, 4).by_others, 10);
	check_int(mark_shm_passings(shm, 3).by_owners, 0);
	mark_shm_disown(shm, 0, 1000); /* its process has gone */
	check(!owns(shm, 1001) && !owns(shm, 1000 + MARK_OWNERS));
	mark_shm_own(shm, 1002, 1000);
	mark_shm_own(shm, 1003, 1000);
	mark_shm_own(shm, 1002, 2000); /* in another namespace */
	check(!owns(shm, 1002) && !owns(shm, 1003));
	mark_shm_own(shm, 1004, 1000);
	mark_shm_resume(shm, 1003);
	check(!owns(shm, 1004) && !owns(shm, 1003));
	check_int(mark_shm_count(shm, 3), 17);
	mark_shm_unref(shm);
}

/* It runs, and each of both ways costs something. */
static void measured(void)
{
	struct mark_cost c = {0}, most = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
	struct smco_err err = {0};
	check_int(mark_cost_measure(&c, &err), 0);
	printf("# %u ps, %u without a count of its own, %u with a record\n",
	       c.owner, c.other, c.timing);
	check(c.owner && c.other > c.owner && c.timing > c.owner);
	c = (struct mark_cost){0};
	mark_cost_bound(&c);
	check(!memcmp(&c, &mark_cost_usual, sizeof(c)));
	mark_cost_bound(&most);
	check_int(most.owner, 8 * mark_cost_usual.owner);
	check_int(most.other, 8 * mark_cost_usual.other);
	check_int(most.timing, 2 * MARK_RECORD_NS * 1000);
	check(mark_cost_here()->owner >= mark_cost_usual.owner);
}

int main(void)
{
	cheap();
	dear(20);
	dear(60);
	dear(100);
	beside_start();
	late();
	unlimited();
	owners();
	measured();
	return tap_done();
}
