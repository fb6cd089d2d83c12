/*
 * guard-drive - run a fixture under the tracer and guard what it asks for
 * (t/fixtures/guard_ctl.h). Ends like the fixture; says on stderr what was
 * seen. Usage: guard-drive [-m MECHANISM] [-k AFTER_US] [-a] COMMAND
 *
 *	-m NAME	mprotect, uffd, bits, pagescan. The last two are no guards: what
 *		is armed is looked at all the time, and a range that was
 *		touched is a hit
 *	-k US	kill -9 itself so many microseconds after the first arming
 *	-a	arm again whatever was hit, as fast as it can
 *	-d HITS	detach after so many hits
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/probe/access.h"
#include "t/fixtures/guard_ctl.h"
#include "t/unit/scratch.h"

static struct {
	const struct access_ops *ops;
	struct tracer *tr;
	struct guard_ctl *ctl;
	struct access *access;
	struct tproc *proc;
	long kill_us;
	bool again;
	uint64_t detach_hits;
	uint64_t hits, kernel_hits, write_hits, gaps, faults;
	uint64_t costs[65536]; /* ns, of hits that say so */
	size_t nr_costs;
	uint64_t first_ns;
	struct page_range ranges[GUARD_CTL_MAX];
	bool armed[GUARD_CTL_MAX];
	uint64_t looks;
	unsigned nr;
	bool detached;
} d;

static void die(const char *what, const struct smco_err *err)
{
	fprintf(stderr, "guard-drive: %s: %s\n", what, err ? err->msg : "");
	exit(99);
}

/* On a busy machine a program may not stop in the time that beginning with
 * guards is worth. Monitors ask at their next tick; so does this. */
#define ARM_TRIES 1000
static int arm_in_time(struct page_range *r, size_t n)
{
	int rc = SMCO_BUSY;
	for (int i = 0; i < ARM_TRIES && rc == SMCO_BUSY; i++) {
		if (i)
			nanosleep(&(struct timespec){0, NSEC_PER_MSEC}, NULL);
		rc = d.access->ops->arm(d.access, r, n);
	}
	return rc;
}

static void arm(struct page_range *r, size_t n)
{
	int rc = d.access ? arm_in_time(r, n) : SMCO_GONE;
	unsigned armed = 0;
	for (size_t i = 0; i < n; i++) {
		struct page_range *own = r[i].user;
		d.armed[own - d.ranges] = !rc && r[i].nr_reset != UINT32_MAX;
		armed += d.armed[own - d.ranges];
	}
	d.ctl->nr_armed = armed;
	if (armed && !d.first_ns)
		d.first_ns = smco_now_ns();
}

/* Mechanisms that are asked: a range that was touched is armed no more. */
static void look(void)
{
	if (d.ops->is_guard || !d.access)
		return;
	for (unsigned i = 0; i < d.nr; i++) {
		struct page_range *r = &d.ranges[i];
		if (!d.armed[i] || d.ops->collect(d.access, r, 1) ||
		    r->nr_reset == UINT32_MAX || !r->nr_touched)
			continue;
		d.armed[i] = false;
		d.hits++;
	}
	d.looks++;
	d.ctl->hits = d.hits;
}

/* Those of the request that are not armed; d.ctl->nr_armed says how many are.
 */
static void arm_those_left(void)
{
	unsigned armed = 0;
	for (unsigned i = 0; i < d.nr; i++) {
		if (!d.armed[i])
			arm(&d.ranges[i], 1);
		armed += d.armed[i];
	}
	d.ctl->nr_armed = armed;
}

#define REQUEST_TRIES 20

static void serve(void)
{
	uint32_t r = __atomic_load_n(&d.ctl->request, __ATOMIC_SEQ_CST);
	if (r == d.ctl->answer)
		return;
	/* What is still armed from before stands in the way. */
	look();
	if (d.access && d.ops->disarm)
		d.ops->disarm(d.access, d.ranges, d.nr);
	d.nr = d.ctl->nr;
	for (unsigned i = 0; i < d.nr; i++)
		d.ranges[i] = (struct page_range){
			.start = d.ctl->range[i].start,
			.end = d.ctl->range[i].end,
			.user = &d.ranges[i],
		};
	arm(d.ranges, d.nr);
	/* What was given back a moment ago is not armed yet. */
	for (int i = 0; i < REQUEST_TRIES && d.ctl->nr_armed < d.nr; i++) {
		nanosleep(&(struct timespec){0, NSEC_PER_MSEC}, NULL);
		arm_those_left();
	}
	__atomic_store_n(&d.ctl->answer, r, __ATOMIC_SEQ_CST);
}

static void count(const struct access_hit *hit)
{
	struct page_range *own = hit->range.user;
	if (!own)
		return;
	d.armed[own - d.ranges] = false;
	if (hit->is_gap) {
		d.gaps++;
	} else {
		d.hits++;
		d.kernel_hits += hit->in_kernel;
		d.write_hits += hit->is_write;
		if (hit->cost_ns && d.nr_costs < ARRAY_SIZE(d.costs))
			d.costs[d.nr_costs++] = hit->cost_ns;
	}
	d.ctl->hits = d.hits;
	d.ctl->gaps = d.gaps;
}

static void drain(void)
{
	struct access_hit hit;
	while (d.access && d.access->ops->next_hit &&
	       d.access->ops->next_hit(d.access, &hit)) {
		count(&hit);
		if (hit.stopped && d.access->ops->resume)
			d.access->ops->resume(d.access, &hit);
	}
}

static void memory_event(struct tevent *ev)
{
	struct access_hit hit;
	int sig = ev->kind == TEV_FAULT ? ev->siginfo.si_signo : 0;
	if (ev->proc == d.proc && d.access && d.access->ops->on_event &&
	    d.access->ops->on_event(d.access, ev, &hit)) {
		sig = 0;
		count(&hit);
	} else if (sig) {
		d.faults++;
	}
	tracer_resume(d.tr, ev->task, sig);
}

static void proc_new(struct tevent *ev)
{
	struct smco_err err = {0};
	if (ev->why == TPROC_LAUNCHED) {
		d.proc = ev->proc;
		if (d.ops->open(ev->proc, &d.access, &err))
			die("open", &err);
	} else if (ev->why == TPROC_EXECED && ev->proc == d.proc) {
		d.access->ops->forget(d.access);
		d.access = NULL;
		if (d.ops->open(ev->proc, &d.access, &err))
			die("open after exec", &err);
	}
	tproc_resume_new(ev->proc);
}

static const struct access_ops *find_mechanism(const char *name)
{
	const struct access_ops *all[ACCESS_NR] = {
		&access_mprotect, &access_uffd, &access_bits, &access_pagescan};
	for (size_t i = 0; i < ACCESS_NR; i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	die("no such mechanism", NULL);
	return NULL;
}

static void options(int argc, char **argv)
{
	int c;
	d.ops = &access_mprotect;
	while ((c = getopt(argc, argv, "+m:k:ad:")) != -1) {
		switch (c) {
		case 'm':
			d.ops = find_mechanism(optarg);
			break;
		case 'k':
			d.kill_us = atol(optarg);
			break;
		case 'a':
			d.again = true;
			break;
		case 'd':
			d.detach_hits = (uint64_t)atol(optarg);
			break;
		default:
			exit(99);
		}
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void summary(void)
{
	qsort(d.costs, d.nr_costs, sizeof(d.costs[0]), by_size);
	const struct access *a = d.access;
	fprintf(stderr,
		"hits %llu kernel %llu writes %llu gaps %llu faults %llu "
		"median_ns %llu min_ns %llu stops %llu looks %llu\n",
		(unsigned long long)d.hits, (unsigned long long)d.kernel_hits,
		(unsigned long long)d.write_hits, (unsigned long long)d.gaps,
		(unsigned long long)d.faults,
		(unsigned long long)(d.nr_costs ? d.costs[d.nr_costs / 2] : 0),
		(unsigned long long)(d.nr_costs ? d.costs[0] : 0),
		(unsigned long long)tracer_nr_stops(d.tr),
		(unsigned long long)d.looks);
	if (a && a->ops->refusal && a->ops->refusal(a))
		fprintf(stderr, "refused: %s\n", a->ops->refusal(a));
}

static void arm_again(void)
{
	static struct page_range r[GUARD_CTL_MAX];
	size_t n = 0;
	for (unsigned i = 0; i < d.nr; i++) {
		if (d.armed[i])
			continue;
		if (!d.ops->is_guard)
			arm(&d.ranges[i], 1);
		else
			r[n++] = d.ranges[i];
	}
	if (n)
		arm(r, n);
}

static void turn(void)
{
	drain();
	serve();
	look();
	if (d.again && d.access)
		arm_again();
	if (d.kill_us && d.first_ns &&
	    smco_now_ns() > d.first_ns + (uint64_t)d.kill_us * 1000)
		kill(getpid(), SIGKILL);
	if (d.detach_hits && d.hits >= d.detach_hits && !d.detached) {
		struct smco_err err = {0};
		d.detached = true;
		d.access = NULL; /* closed by the undo list */
		if (tracer_detach_all(d.tr, &err))
			fprintf(stderr, "detach: %s\n", err.msg);
	}
}

/*
 * With -k the driver dies: a parent stays behind, inherits the program and
 * ends like it. Never returns in the parent.
 */
static void leave_a_parent(void)
{
	int status, result = 0;
	pid_t pid, driver;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	driver = fork();
	if (!driver)
		return;
	while ((pid = wait(&status)) > 0) {
		if (pid == driver && WIFSIGNALED(status))
			continue;
		if (WIFSIGNALED(status))
			result = 128 + WTERMSIG(status);
		else if (WEXITSTATUS(status))
			result = WEXITSTATUS(status);
	}
	exit(result);
}

int main(int argc, char **argv)
{
	struct tracer_options opts = {.follow = true};
	struct smco_err err = {0};
	struct tevent ev;
	int status = 0;
	pid_t pid;
	options(argc, argv);
	/* Before the fork: who stays behind cleans up. */
	const char *name = scratch_path("ctl");
	if (d.kill_us)
		leave_a_parent();
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*d.ctl)))
		die("ctl", NULL);
	fchmod(fd, 0666); /* for programs with less rights */
	chmod(scratch_dir(), 0711);
	setenv("GUARD_CTL", name, 1);
	d.ctl = mmap(NULL, sizeof(*d.ctl), PROT_READ | PROT_WRITE, MAP_SHARED,
		     fd, 0);
	d.ctl->at_once = d.ops == &access_mprotect;
	if (tracer_create(&d.tr, &opts, &err) ||
	    tracer_launch(d.tr, argv + optind, &pid, &err))
		die("launch", &err);
	while (tracer_next(d.tr, smco_now_ns() + 200 * NSEC_PER_USEC, &ev) >
	       0) {
		switch (ev.kind) {
		case TEV_PROC_NEW:
			proc_new(&ev);
			break;
		case TEV_PROC_GONE:
			if (ev.proc == d.proc) {
				status = ev.exit_status;
				drain();
				summary();
				d.access->ops->forget(d.access);
				d.access = NULL;
				d.proc = NULL;
			}
			break;
		case TEV_FAULT:
		case TEV_SYSCALL_IN:
		case TEV_SYSCALL_OUT:
			memory_event(&ev);
			break;
		case TEV_LIBS:
		case TEV_TRAP:
			tracer_resume(d.tr, ev.task, 0);
			break;
		default:
			break;
		}
		turn();
	}
	if (d.detached) {
		summary();
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	tracer_destroy(d.tr);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}
