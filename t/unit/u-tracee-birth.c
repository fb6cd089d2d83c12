/*
 * Who creates a thread or a child stands until that goes on, if that is asked
 * for, and then goes on first; but not for ever, for the new one may wait for
 * its creator. And whoever is killed first keeps nobody waiting. When a child
 * has ended, all CPU time that it used is told, to the end, if it is its own
 * only.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define HELD_NS (100 * NSEC_PER_MSEC) /* at least, from its stop on */
#define TRIES	1000

static struct tracer *tr;
static struct puppet pup;

static long make_child(long a, long b)
{
	int status = 0;
	(void)b;
	pid_t pid = fork();
	if (!pid)
		_exit((int)a);
	/* Killed before it began, perhaps. */
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

#define BURNT_NS (20 * NSEC_PER_MSEC)

static uint64_t all_us(const struct rusage *u)
{
	return (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

/* Returns what the kernel says that it used, us; it has a child itself if
 * @has_child. */
static long make_busy_child(long has_child, long b)
{
	struct rusage u;
	int status = 0;
	(void)b;
	pid_t pid = fork();
	if (!pid) {
		while (smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < BURNT_NS)
			;
		if (has_child)
			make_child(0, 0);
		_exit(0);
	}
	if (wait4(pid, &status, 0, &u) != pid || status)
		return -1;
	return (long)all_us(&u);
}

/* Up to the event of the new one, whose creator is @creator. */
static bool next_birth(pid_t creator, struct tevent *ev)
{
	uint64_t deadline = smco_now_ns() + 20 * NSEC_PER_SEC;
	while (tracer_next(tr, deadline, ev) > 0 && ev->kind != TEV_NONE)
		if (ev->kind == TEV_TASK_NEW ||
		    (ev->kind == TEV_PROC_NEW && ev->why == TPROC_FORKED))
			return check(ev->creator &&
				     task_tid(ev->creator) == creator);
	return check(!"a birth");
}

/* Did @ev end one that was born before @born? */
static bool is_end_of_other(const struct tevent *ev, const struct tevent *born)
{
	if (ev->kind == TEV_PROC_GONE)
		return tproc_pid(ev->proc) != pup.pid &&
		       tproc_pid(ev->proc) != task_tid(born->task);
	return ev->kind == TEV_TASK_GONE && task_tid(ev->task) != pup.pid &&
	       ev->task != born->task;
}

/* The loop runs for so long, without an event: @born stands, and so does who
 * made it, perhaps. */
static void let_pass(const struct tevent *born, uint64_t ns)
{
	struct tevent ev;
	uint64_t end_ns = smco_now_ns() + ns;
	while (smco_now_ns() < end_ns &&
	       tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) > 0)
		if (!is_end_of_other(&ev, born))
			check_int(ev.kind, TEV_NONE);
}

static void go_on(const struct tevent *ev)
{
	if (ev->kind == TEV_PROC_NEW)
		tproc_resume_new(ev->proc);
	else
		tracer_resume(tr, ev->task, 0);
}

/* False: so long went by that its creator may have been let go. */
static bool stands(puppet_fn make)
{
	struct tevent ev;
	uint64_t began_ns = smco_now_ns();
	puppet_begin(&pup, make, 0, 0);
	if (!next_birth(pup.pid, &ev))
		return true;
	char at_first = puppet_state(pup.pid);
	check_int(puppet_state(task_tid(ev.task)), 't');
	let_pass(&ev, 20 * NSEC_PER_MSEC);
	char later = puppet_state(pup.pid);
	bool in_time = smco_now_ns() - began_ns < HELD_NS;
	if (in_time) {
		check_int(at_first, 't');
		check_int(later, 't');
	}
	go_on(&ev);
	check_int(traced_wait(tr, &pup), 0);
	return in_time;
}

static void test_stands(puppet_fn make)
{
	bool in_time = false;
	for (int i = 0; i < TRIES && !in_time; i++)
		in_time = stands(make);
	check(in_time);
}

static void test_not_for_ever(void)
{
	struct tevent ev;
	puppet_begin(&pup, make_child, 0, 0);
	if (!next_birth(pup.pid, &ev))
		return;
	/* Until it waits for its child. */
	for (int i = 0; i < TRIES && puppet_state(pup.pid) != 'S'; i++)
		let_pass(&ev, 20 * NSEC_PER_MSEC);
	check_int(puppet_state(pup.pid), 'S');
	check_int(puppet_state(task_tid(ev.task)), 't');
	go_on(&ev);
	check_int(traced_wait(tr, &pup), 0);
}

static bool gets_to(pid_t pid, char state)
{
	for (int i = 0; i < TRIES && puppet_state(pid) != state; i++)
		usleep(1000);
	return puppet_state(pid) == state;
}

/* Both had stopped before anybody looked: the younger is told of first, where
 * the creator is not the one that stops all the time. */
static void test_creator_first(void)
{
	struct tevent ev;
	puppet_begin(&pup, make_busy_child, true, 0);
	if (!next_birth(pup.pid, &ev))
		return;
	pid_t child = task_tid(ev.task);
	go_on(&ev);
	usleep(3 * BURNT_NS / NSEC_PER_USEC);
	check(gets_to(child, 't'));
	usleep(20000);
	if (!next_birth(child, &ev))
		return;
	go_on(&ev);
	check(gets_to(child, 'S')); /* waits for its child, with no loop */
	check(traced_wait(tr, &pup) > 0);
}

static void test_killed(void)
{
	struct tevent ev;
	puppet_begin(&pup, make_child, 0, 0);
	if (!next_birth(pup.pid, &ev))
		return;
	kill(task_tid(ev.task), SIGKILL);
	check_int(traced_wait(tr, &pup), SIGKILL);
}

/* Who made it is told in any case. */
static void test_told(puppet_fn make)
{
	struct tevent ev;
	puppet_begin(&pup, make, 0, 0);
	if (!next_birth(pup.pid, &ev))
		return;
	go_on(&ev);
	check_int(traced_wait(tr, &pup), 0);
}

/* The first child's, of those that end; *@nr_ret: of how many. */
static uint64_t cpu_of_first(unsigned *nr_ret)
{
	struct pollfd fd = {.fd = pup.answer, .events = POLLIN};
	struct tevent ev;
	pid_t first = 0;
	uint64_t ns = 0;
	*nr_ret = 0;
	while (poll(&fd, 1, 0) <= 0) {
		if (tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) <= 0)
			continue;
		if (ev.kind == TEV_PROC_NEW || ev.kind == TEV_TASK_NEW) {
			if (!first)
				first = tproc_pid(ev.proc);
			go_on(&ev);
		}
		*nr_ret += ev.kind == TEV_PROC_GONE;
		if (ev.kind == TEV_PROC_GONE && tproc_pid(ev.proc) == first)
			ns = ev.cpu_ns;
	}
	return ns;
}

static void test_cpu_time(void)
{
	unsigned nr;
	puppet_begin(&pup, make_busy_child, false, 0);
	uint64_t ns = cpu_of_first(&nr);
	long us = puppet_wait(&pup);
	check_int(nr, 1);
	/* Whoever hears of it first hears of less of its last steps. */
	check(ns / NSEC_PER_USEC + 2 >= BURNT_NS / NSEC_PER_USEC);
	check((long)(ns / NSEC_PER_USEC) <= us);

	puppet_begin(&pup, make_busy_child, true, 0);
	ns = cpu_of_first(&nr);
	check(puppet_wait(&pup) > 0);
	check_int(nr, 2);
	check_int((long)ns, 0);
}

static void run(bool hold)
{
	struct smco_err err = {0};
	const struct tracer_options opts = {
		.follow = true, .hold_new_tasks = true, .hold_creators = hold};
	check_int(tracer_create(&tr, &opts, &err), 0);
	pup = puppet_start();
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check(p != NULL))
		return;
	tproc_resume_new(p);
	test_told(make_thread);
	test_told(make_child);
	for (int i = 0; hold && i < 5; i++) {
		test_stands(make_thread);
		test_stands(make_child);
	}
	if (hold) {
		test_not_for_ever();
		test_creator_first();
	}
	test_killed();
	test_cpu_time();
	tracer_destroy(tr);
	puppet_end(&pup);
}

int main(void)
{
	run(true);
	run(false);
	return tap_done();
}
