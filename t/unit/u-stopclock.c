/*
 * The kernel's stop clock: every stop is counted, a held one for as long as it
 * was held, others' stops and plain sleeping not at all, and a sleeper's only
 * if it had something to do meanwhile; what a task waits for a CPU behind its
 * own kind afterwards neither, nor what those run while it stands.
 */
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/probe/stopclock-bpf.h"
#include "t/unit/clock.h"
#include "t/unit/puppet.h"
#include "t/unit/traced.h"

/* Resume each stop after @hold_us; how many there were. */
static int serve(pid_t pid, useconds_t hold_us)
{
	int status, nr = 0;
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		nr++;
		if (hold_us)
			usleep(hold_us);
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	return nr;
}

static long act_sleep(long us, long unused)
{
	(void)unused;
	return usleep((useconds_t)us);
}

static void compute(uint64_t ns)
{
	for (uint64_t end = smco_now_ns() + ns; smco_now_ns() < end;)
		;
}

/* Reads a byte, computes for @ms, and so on. */
static pid_t start_reader(int *fd, uint64_t ms)
{
	int fds[2];
	if (pipe(fds))
		return -1;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		char byte;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		while (read(fds[0], &byte, 1) == 1)
			compute(ms * NSEC_PER_MSEC);
		_exit(0);
	}
	close(fds[0]);
	*fd = fds[1];
	usleep(50000);
	ptrace(PTRACE_SEIZE, pid, 0, 0);
	return pid;
}

/* The kernel does not tell of every single one, and those are counted, too. */
static uint64_t nr_seen_or_not(struct stopclock_reading r)
{
	return r.nr_stops + r.nr_unseen;
}

/* Stop @pid five times for 20 ms. What the clock says that it lost, and by how
 * many of these stops: *nr_ret. */
static uint64_t hold(pid_t pid, int fd, bool give_work, uint64_t *nr_ret)
{
	struct stopclock_reading before = now();
	int status;
	for (int i = 0; i < 5; i++) {
		ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		check_int(waitpid(pid, &status, 0), pid);
		if (give_work)
			check_int(write(fd, "x", 1), 1);
		usleep(20000);
		ptrace(PTRACE_CONT, pid, 0, 0);
		usleep(50000);
	}
	struct stopclock_reading after = now();
	check_int(nr_seen_or_not(after) - nr_seen_or_not(before), 5);
	*nr_ret = after.nr_stops - before.nr_stops;
	return after.stop_ns - before.stop_ns;
}

static void test_asleep(void)
{
	int fd = -1, status;
	pid_t pid = start_reader(&fd, 20);
	/* It sleeps before, and goes on sleeping; on a machine with too much to
	 * do even that may take long. */
	uint64_t lost = UINT64_MAX, nr;
	for (int i = 0; i < 30 && lost >= 50 * NSEC_PER_MSEC; i++)
		lost = hold(pid, fd, false, &nr);
	check(lost < 50 * NSEC_PER_MSEC);
	/* Work came meanwhile, which had to wait. */
	lost = hold(pid, fd, true, &nr);
	check(nr > 0 && lost >= nr * 20 * NSEC_PER_MSEC);
	close(fd);
	check_int(waitpid(pid, &status, 0), pid);
}

static struct tracer *start_tracer(struct puppet *pup, struct tproc **p)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	*pup = puppet_start();
	check_int(tracer_create(&tr, NULL, &err), 0);
	*p = traced_attach(tr, pup->pid, &err);
	check_msg(*p != NULL, "attached %s", err.msg);
	tproc_resume_new(*p);
	return tr;
}

static long act_wait(long ms, long pipe_fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd = epoll_create1(0);
	epoll_ctl(fd, EPOLL_CTL_ADD, (int)pipe_fd, &ev);
	int nr = epoll_wait(fd, &ev, 1, (int)ms);
	compute(5 * NSEC_PER_MSEC);
	return nr;
}

/* Stands for 20 ms: the tracer's signals do not end it. */
static void hold_all(struct tproc *p)
{
	check_int(traced_stop(p, NULL), 0);
	uint64_t end = smco_now_ns() + 20 * NSEC_PER_MSEC;
	while (smco_now_ns() < end)
		usleep(1000);
}

/* Stopped once in a wait that is to end in time, and thus at the entry of its
 * call once more, and if it was so before, at its end first. */
static bool is_stop_free(struct tracer *tr, struct tproc *p)
{
	struct stopclock_reading before = now(), after;
	struct tevent ev;
	hold_all(p);
	tproc_cont(p);
	for (uint64_t end = smco_now_ns() + 50 * NSEC_PER_MSEC;
	     smco_now_ns() < end;)
		tracer_next(tr, end, &ev);
	after = now();
	return after.nr_stops - before.nr_stops >= 2 &&
	       after.stop_ns == before.stop_ns;
}

static void test_wait_with_end(void)
{
	int fds[2];
	struct puppet pup;
	struct tproc *p;
	struct stopclock_reading before;
	int nr_free = 0;
	check_int(pipe(fds), 0);
	struct tracer *tr = start_tracer(&pup, &p);
	puppet_begin(&pup, act_wait, 3600 * 1000L, fds[0]);
	usleep(20000);
	/* On a machine with too much to do it may take long to stop. */
	for (int i = 0; i < 100 && nr_free < 3; i++)
		nr_free += is_stop_free(tr, p);
	check_int(nr_free, 3);
	/* What it waited for comes while it stands: that is late. */
	before = now();
	hold_all(p);
	check_int(write(fds[1], "x", 1), 1);
	tproc_cont(p);
	check_int(traced_wait(tr, &pup), 1);
	/* Only when it has left its CPU is it known what it did there. */
	check_int(traced_do(tr, &pup, act_sleep, 1000, 0), 0);
	check(now().stop_ns - before.stop_ns >= 20 * NSEC_PER_MSEC);
	check_int(tproc_detach(p, NULL), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	close(fds[0]);
	close(fds[1]);
}

#define NR_READERS 20

/* All of many sleepers stand for 20 ms, in which each gets something to do. */
static void test_many_asleep(void)
{
	const uint64_t nr_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	pid_t pid[NR_READERS];
	int fd[NR_READERS], status;
	for (int i = 0; i < NR_READERS; i++)
		pid[i] = start_reader(&fd[i], 1);
	struct stopclock_reading before = now();
	uint64_t begin = smco_now_ns();
	for (int i = 0; i < NR_READERS; i++) {
		ptrace(PTRACE_INTERRUPT, pid[i], 0, 0);
		check_int(waitpid(pid[i], &status, 0), pid[i]);
		check_int(write(fd[i], "x", 1), 1);
	}
	uint64_t all = smco_now_ns();
	while (smco_now_ns() < all + 20 * NSEC_PER_MSEC)
		usleep(1000);
	for (int i = 0; i < NR_READERS; i++)
		ptrace(PTRACE_CONT, pid[i], 0, 0);
	/* The later ones have the pipes of those before. */
	for (int i = NR_READERS - 1; i >= 0; i--) {
		close(fd[i]);
		check_int(waitpid(pid[i], &status, 0), pid[i]);
	}
	uint64_t lost = now().stop_ns - before.stop_ns;
	uint64_t most = nr_cpus * (smco_now_ns() - begin);
	check_msg(lost >= 20 * NSEC_PER_MSEC && lost <= most,
		  "%llu us, at most %llu", (unsigned long long)lost / 1000,
		  (unsigned long long)most / 1000);
}

/* What one stop of 20 ms cost somebody who slept before we came. */
static uint64_t first_stop(void)
{
	int fd = -1, status;
	pid_t pid = start_reader(&fd, 20);
	struct stopclock_reading before = now();
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	check_int(waitpid(pid, &status, 0), pid);
	usleep(20000);
	ptrace(PTRACE_CONT, pid, 0, 0);
	usleep(50000);
	uint64_t lost = now().stop_ns - before.stop_ns;
	close(fd);
	check_int(waitpid(pid, &status, 0), pid);
	return lost;
}

static void test_first_stop(void)
{
	uint64_t lost = UINT64_MAX;
	for (int i = 0; i < 30 && lost >= 20 * NSEC_PER_MSEC; i++)
		lost = first_stop();
	check(lost < 20 * NSEC_PER_MSEC);
}

#define NR_SPINNERS 4

/* Some that share a CPU and have enough to do; the first comes last there. */
static void start_spinners(pid_t pids[NR_SPINNERS], bool on_one)
{
	cpu_set_t set, all;
	sched_getaffinity(0, sizeof(set), &set);
	all = set;
	int cpu = 0;
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	fflush(stdout);
	for (int i = 0; i < NR_SPINNERS; i++) {
		pids[i] = fork();
		if (pids[i]) {
			ptrace(PTRACE_SEIZE, pids[i], 0, 0);
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sched_setaffinity(0, sizeof(set), on_one ? &set : &all);
		setpriority(PRIO_PROCESS, 0, i || !on_one ? 0 : 19);
		for (;;)
			;
	}
}

/* What @pid has waited for CPUs so far, and how often it was given one. */
static void sched_stat(pid_t pid, unsigned long *waited_ns, unsigned long *nr)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	FILE *f = fopen(path, "r");
	*waited_ns = *nr = 0;
	if (!f)
		return;
	check_int(fscanf(f, "%*u %lu %lu", waited_ns, nr), 2);
	fclose(f);
}

/* Stop @pid for a moment. True if it had to wait for its turn afterwards and
 * that did not count. */
static bool turn_is_free(pid_t pid)
{
	unsigned long before, after, nr, nr_now;
	int status;
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	check_int(waitpid(pid, &status, 0), pid);
	struct stopclock_reading start = now();
	sched_stat(pid, &before, &nr);
	ptrace(PTRACE_CONT, pid, 0, 0);
	do {
		usleep(2000);
		sched_stat(pid, &after, &nr_now);
	} while (nr_now == nr);
	uint64_t lost = now().stop_ns - start.stop_ns;
	return after - before >= 5 * NSEC_PER_MSEC &&
	       lost < (after - before) / 2;
}

static void test_turns(void)
{
	pid_t pids[NR_SPINNERS];
	bool is_free = false;
	start_spinners(pids, true);
	usleep(20000);
	for (int i = 0; i < 200 && !is_free; i++)
		is_free = turn_is_free(pids[0]);
	check(is_free);
	for (int i = 0; i < NR_SPINNERS; i++) {
		kill(pids[i], SIGKILL);
		check_int(waitpid(pids[i], NULL, 0), pids[i]);
	}
}

/* The stops of a process that was stopped @nr_stops times, and made a hundred
 * calls of ours in each. */
static uint64_t stops_with_calls(struct tproc *p, int nr_stops)
{
	struct stopclock_reading before = now();
	int64_t ret;
	for (int i = 0; i < nr_stops; i++) {
		check_int(tproc_stop(p, NULL), 0);
		for (int k = 0; k < 100; k++)
			tproc_syscall(p, SYS_getpid, (uint64_t[6]){0}, &ret,
				      NULL);
		tproc_cont(p);
		usleep(20000);
	}
	return nr_seen_or_not(now()) - nr_seen_or_not(before);
}

static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;
	return clock_getcpuclockid(pid, &clock) ? 0 : smco_clock_ns(clock);
}

static uint64_t sum_cpu(const pid_t pids[NR_SPINNERS])
{
	uint64_t sum = 0;
	for (int i = 0; i < NR_SPINNERS; i++)
		sum += cpu_of(pids[i]);
	return sum;
}

/* While others of the program have all CPUs, what one of them loses is theirs:
 * no more counts than there was of CPUs beside them. */
static void test_theirs(void)
{
	uint64_t nr_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	pid_t pids[NR_SPINNERS];
	int status;
	/* The kernel does not tell of each switch: then more counts. */
	int nr = 0;
	start_spinners(pids, false);
	usleep(20000);
	for (int i = 0; i < 9; i++) {
		uint64_t since_ns = smco_now_ns(), theirs = sum_cpu(pids);
		struct stopclock_reading start = now();
		ptrace(PTRACE_INTERRUPT, pids[0], 0, 0);
		check_int(waitpid(pids[0], &status, 0), pids[0]);
		usleep(100000);
		ptrace(PTRACE_CONT, pids[0], 0, 0);
		usleep(50000);
		uint64_t lost = now().stop_ns - start.stop_ns;
		theirs = sum_cpu(pids) - theirs;
		uint64_t all = (smco_now_ns() - since_ns) * nr_cpus;
		printf("# of %g ms of CPUs %g were theirs, and %g lost\n",
		       (double)all / 1e6, (double)theirs / 1e6,
		       (double)lost / 1e6);
		nr += lost + theirs <= all + NSEC_PER_MSEC;
	}
	check_range(nr, 5, 9);
	for (int i = 0; i < NR_SPINNERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

static void test_lent(void)
{
	struct smco_err err = {0};
	struct puppet pup;
	struct tproc *p;
	struct tracer *tr = start_tracer(&pup, &p);
	usleep(20000);
	/* Nobody says so: each call is a stop. */
	check(stops_with_calls(p, 2) > 150);
	tracer_tell_lent(tr, stopclock_lending(c));
	check_int(stops_with_calls(p, 3), 3);
	/* And what one that slept lends us is not its own time. */
	uint64_t lost = UINT64_MAX, nr = 0;
	for (int i = 0; i < 30 && (lost || nr != 1); i++) {
		struct stopclock_reading before = now();
		stops_with_calls(p, 1);
		lost = now().stop_ns - before.stop_ns;
		nr = now().nr_stops - before.nr_stops;
	}
	check_int(lost, 0);
	check_int(nr, 1);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
}

/* What a task takes itself to stop and to go on is added to each stop, but not
 * to those of one that sleeps, see test_lent(). */
static void test_own(void)
{
	struct stopclock_reading before = now();
	stopclock_set_own(c, NSEC_PER_SEC);
	check_int(serve(start_tracee(100), 0), 100);
	struct stopclock_reading after = now();
	uint64_t nr = after.nr_stops - before.nr_stops;
	uint64_t lost = after.stop_ns - before.stop_ns;
	check(nr > 50);
	check(lost > nr * NSEC_PER_SEC && lost < 2 * nr * NSEC_PER_SEC);
	check(after.longest_ns < NSEC_PER_SEC);
}

/* A CPU on which nobody waits for us, by who has which. */
static void test_choice(void)
{
	const uint32_t idle = STOPCLOCK_IDLE;
	struct stopclock_sum cpu[4] = {0};
	cpu_set_t all, two, none;
	CPU_ZERO(&none);
	two = all = none;
	for (unsigned i = 0; i < 4; i++)
		CPU_SET(i, &all);
	CPU_SET(0, &two);
	CPU_SET(1, &two);

	/* Nothing is known, not that another one is idle either. */
	check_int(stopclock_choose(cpu, 4, 1, &all), 1);
	cpu[1] = (struct stopclock_sum){.runs = 7, .took = 20};
	check_int(stopclock_choose(cpu, 4, 1, &all), -1);
	cpu[0].runs = 21;
	cpu[2].runs = 22;
	cpu[3].runs = 23;
	check_int(stopclock_choose(cpu, 4, 1, &all), -1);
	cpu[2].runs = idle;
	check_int(stopclock_choose(cpu, 4, 1, &all), 2);
	/* Not one that we may not use. */
	check_int(stopclock_choose(cpu, 4, 1, &two), -1);
	check_int(stopclock_choose(cpu, 4, 1, &none), -1);
	check_int(stopclock_choose(cpu, 2, 1, &all), -1);
	cpu[0].runs = idle;
	check_int(stopclock_choose(cpu, 4, 1, &two), 0);
	/* Who had to go has found another one, though there are idle ones. */
	cpu[3].runs = 20;
	check_int(stopclock_choose(cpu, 4, 1, &all), 1);
	/* Nobody had to go: it was idle. */
	cpu[1].took = 0;
	cpu[3].runs = 23;
	check_int(stopclock_choose(cpu, 4, 1, &all), 1);
	check_int(stopclock_choose(cpu, 4, 4, &all), -1);
	check_int(stopclock_choose(cpu, 4, -1, &all), -1);
}

/* Who has a CPU, or would have ours? */
static void test_has_cpu(void)
{
	struct stopclock_sum cpu[4] = {{.runs = 20},
				       {.runs = 7, .took = 21},
				       {.runs = STOPCLOCK_IDLE, .took = 22},
				       {.runs = 23, .took = 24}};
	check_int(stopclock_has_cpu(cpu, 4, 1, 7, 20), 1);
	check_int(stopclock_has_cpu(cpu, 4, 1, 7, 23), 1);
	check_int(stopclock_has_cpu(cpu, 4, 1, 7, 21), 1);
	/* Somebody else's CPU it would not get. */
	check_int(stopclock_has_cpu(cpu, 4, 1, 7, 22), 0);
	check_int(stopclock_has_cpu(cpu, 4, 1, 7, 24), 0);
	check_int(stopclock_has_cpu(cpu, 3, 1, 7, 23), 0);
	/* Numbers are others here. */
	check_int(stopclock_has_cpu(cpu, 4, 1, 8, 20), -1);
	check_int(stopclock_has_cpu(cpu, 4, 4, 7, 20), -1);
	check_int(stopclock_has_cpu(cpu, 4, -1, 7, 20), -1);
}

/* Binds @pid to this CPU, and us. */
static int bind_both(pid_t pid, cpu_set_t *all)
{
	cpu_set_t here;
	int cpu = sched_getcpu();
	CPU_ZERO(&here);
	CPU_SET((unsigned)cpu, &here);
	sched_getaffinity(0, sizeof(*all), all);
	sched_setaffinity(0, sizeof(here), &here);
	sched_setaffinity(pid, sizeof(here), &here);
	return cpu;
}

/* In how many of @times after a moment's sleep is this CPU one on which
 * somebody waits for us? */
static int nr_in_the_way(int cpu, int times)
{
	cpu_set_t none;
	int nr = 0;
	CPU_ZERO(&none);
	for (int i = 0; i < times; i++) {
		usleep(2000);
		now();
		nr += stopclock_idle_cpu(c, cpu, &none) != cpu;
	}
	return nr;
}

/* Others may come between now and then, but not each time. */
static void test_in_the_way(void)
{
	enum { TIMES = 50 };
	cpu_set_t all;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	int cpu = bind_both(pid, &all), nr = 0;
	/* Where others have the other CPUs, too, there is none to go to. */
	for (int i = 0; i < 200 && nr < TIMES / 2; i++)
		nr = nr_in_the_way(cpu, TIMES);
	check_msg(nr >= TIMES / 2, "%d times of %d in the way", nr, TIMES);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 20 && nr > TIMES / 2; i++)
		nr = nr_in_the_way(cpu, TIMES);
	printf("# %d times of %d beside nobody\n", nr, TIMES);
	sched_setaffinity(0, sizeof(all), &all);
}

int main(void)
{
	test_choice();
	test_has_cpu();
	clock_open();
	test_in_the_way();
	struct stopclock_reading zero = now();
	check_int(zero.nr_stops, 0);
	check_int(zero.stop_ns, 0);

	check_int(serve(start_tracee(1000), 0), 1000);
	struct stopclock_reading many = now();
	check_int(nr_seen_or_not(many), 1000);
	check(many.stop_ns > 0);
	check(many.longest_ns <= many.stop_ns);

	/* Held for at least 5 x 20 ms. */
	check_int(serve(start_tracee(5), 20000), 5);
	struct stopclock_reading held = now();
	check_int(nr_seen_or_not(held) - nr_seen_or_not(many), 5);
	check(held.stop_ns - many.stop_ns >=
	      (held.nr_stops - many.nr_stops) * 20 * NSEC_PER_MSEC);
	check(many.nr_unseen < 100);
	check(held.nr_stops > many.nr_stops);
	check(held.longest_ns >= 20 * NSEC_PER_MSEC);
	check(held.longest_ns < held.stop_ns);

	/* A process that sleeps, and one that somebody else traces. */
	struct puppet p = puppet_start();
	puppet_do(&p, act_sleep, 30000, 0);
	puppet_end(&p);
	fflush(stdout);
	pid_t other = fork();
	if (!other)
		_exit(serve(start_tracee(100), 0) == 100 ? 0 : 1);
	int status = -1;
	check_int(waitpid(other, &status, 0), other);
	check_int(status, 0);
	struct stopclock_reading after = now();
	check_int(after.nr_stops, held.nr_stops);
	check_int(after.stop_ns, held.stop_ns);

	/* Detached in its stop: that one counts as well. */
	pid_t pid = start_tracee(1);
	check_int(waitpid(pid, &status, 0), pid);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	waitpid(pid, &status, 0);
	check_int(nr_seen_or_not(now()), nr_seen_or_not(after) + 1);
	test_asleep();
	test_first_stop();
	test_wait_with_end();
	test_many_asleep();
	test_turns();
	test_theirs();
	test_own();
	test_lent();
	stopclock_close(c);
	stopclock_close(NULL);
	return tap_done();
}
