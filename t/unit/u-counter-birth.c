/*
 * What a task has counted before its counters were opened: told by the kernel,
 * or with its creator's.
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmu/counter.h"
#include "t/unit/kept.h"
#include "t/unit/orders.h"
#include "t/unit/tap.h"

static void test_birth(const struct counter_plan *p)
{
	struct child c = make_child();
	struct counter_thread *t = NULL;
	struct counter_sum sum = {0};
	struct rusage ru;
	tell(&c, 500);
	kept_let_sleep(c.pid);
	check_int(counter_thread_open(p, c.pid, COUNTER_BIRTH, &t, NULL), 0);
	tell(&c, 50);
	kept_let_sleep(c.pid);
	uint64_t nr_switches = 0, nr_faults = 0, kept;
	do {
		kept = kept_switches(c.pid);
		if (counter_thread_take(t, 0, &sum, NULL)) {
			nr_faults += sum.value[0];
			nr_switches += sum.value[1];
		}
	} while (kept_switches(c.pid) != kept);
	check_int(nr_switches, kept);
	tell(&c, 'q');
	/* Everything that its parent is told it had. */
	int status;
	wait4(c.pid, &status, 0, &ru);
	if (counter_thread_take(t, 0, &sum, NULL))
		nr_faults += sum.value[0];
	check_int(nr_faults, ru.ru_minflt + ru.ru_majflt);
	check(nr_faults >= 550);
	counter_thread_close(t);
	close(c.order);
	close(c.answer);
}

/* The time stamp counter has gone on as the clock has, also before. */
static void test_birth_tsc(void)
{
	struct counter_plan p;
	struct counter_thread *t = NULL;
	struct counter_sum before, since;
	if (!plan_of("task-clock,msr/tsc/", &p))
		return;
	check_int(p.nr_groups, 1);
	check(!counter_plan_inherit(&p, true));
	struct child c = make_child();
	tell(&c, 20000);
	check_int(counter_thread_open(&p, c.pid, COUNTER_BIRTH, &t, NULL), 0);
	check(counter_thread_take(t, 0, &before, NULL));
	tell(&c, 20000);
	check(counter_thread_take(t, 0, &since, NULL));
	check(before.value[0] > 0 && since.value[0] > 0);
	check_range((double)before.value[1] / (double)before.value[0] *
			    (double)since.value[0] / (double)since.value[1],
		    0.9, 1.1);
	counter_thread_close(t);
	tell(&c, 'q');
	end_child(&c);
	counter_plan_deinit(&p);
}

/* Of one event of no history. */
static uint64_t taken(struct counter_thread *t)
{
	struct counter_sum sum;
	counter_thread_take(t, 0, &sum, NULL);
	return sum.value[0];
}

/* A child of a child that is counted: of whom is what it does? */
static void test_renew(bool of_processes)
{
	struct counter_plan p;
	struct counter_thread *t = NULL;
	if (!plan_of("page-faults:k,page-faults,page-faults:u", &p))
		return;
	check_int(counter_plan_inherit(&p, of_processes), true);
	check(p.group[0].inherits && !p.group[1].inherits);
	check(make_ways_for_grandchild());
	struct child c = make_child(), grandchild = {.pid = -1};
	close(of_grandchild[0]);
	close(of_grandchild[1]);
	check_int(counter_thread_open(&p, c.pid, COUNTER_NOW, &t, NULL), 0);
	tell(&c, -100);
	check_range((double)taken(t), 100, 130);
	tell_to_fork(&c, &grandchild);
	taken(t);
	tell(&grandchild, -300);
	double its = (double)taken(t);
	check_range(its, of_processes ? 300 : 0, of_processes ? 330 : 30);
	check_int(counter_thread_renew(t, NULL), 0);
	tell(&grandchild, -300);
	tell(&c, -100);
	check_range((double)taken(t), 100, 130);
	counter_thread_set_level(t, COUNTER_NONE);
	check_int(counter_thread_renew(t, NULL), 0);
	tell(&c, -100);
	check_int(taken(t), 0);
	counter_thread_set_level(t, COUNTER_ALL);
	tell(&c, -100);
	check_range((double)taken(t), 100, 130);
	tell(&grandchild, 'q');
	tell(&c, 'q');
	end_child(&c);
	check_int(counter_thread_renew(t, NULL), SMCO_GONE);
	counter_thread_close(t);
	close(grandchild.order);
	close(grandchild.answer);
	counter_plan_deinit(&p);
}

/* What needs no help of that kind gets none. */
static void test_renew_nothing(void)
{
	struct counter_plan p;
	struct counter_every every = {.nr = 1000};
	struct pmu_event ev;
	check_int(pmu_event_parse("page-faults:k", &ev, NULL), 0);
	check_int(pmu_event_parse("page-faults", &every.ev, NULL), 0);
	if (!plan_of("page-faults,context-switches,task-clock,cpu-migrations,"
		     "page-faults:u,alignment-faults",
		     &p))
		return;
	check_int(counter_plan_inherit(&p, true), false);
	counter_plan_deinit(&p);
	/* The kernel samples no event of several threads. */
	check_int(counter_plan_make(&ev, 1, false, &every, &p, NULL), 0);
	check_int(counter_plan_inherit(&p, true), false);
	counter_plan_deinit(&p);
}

int main(void)
{
	struct counter_plan p;
	if (plan_of("page-faults,context-switches", &p)) {
		test_birth(&p);
		counter_plan_deinit(&p);
	}
	test_birth_tsc();
	test_renew(true);
	test_renew(false);
	test_renew_nothing();
	return tap_done();
}
