/*
 * What the supervisor's own CPU time takes from the program: the waits of a
 * traced task and of one that wakes a traced task count, anybody else's not.
 * All of them on one CPU but for those that wait elsewhere; whatever the
 * machine does besides, this process computes for SPIN_NS and nobody can have
 * waited for it longer than that.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

#include "t/unit/clock.h"
#include "t/unit/puppet.h"

#define SPIN_NS (200 * NSEC_PER_MSEC)
#define NR_MANY 16

static void spin(uint64_t ns)
{
	for (uint64_t end = smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;
	     smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end;)
		;
}

static void stay_on(pid_t pid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	check_int(sched_setaffinity(pid, sizeof(set), &set), 0);
}

/* One that we may use beside @cpu; -1 = none. */
static int other_than(int cpu)
{
	cpu_set_t set;
	int i = CPU_SETSIZE - 1;
	check_int(sched_getaffinity(0, sizeof(set), &set), 0);
	while (i >= 0 && (i == cpu || !CPU_ISSET((unsigned)i, &set)))
		i--;
	return i;
}

/* A child that computes for ever, on this CPU. If it has a pipe's end it writes
 * a byte to it after each half millisecond of its CPU time. */
static pid_t start_computing(int fd)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		spin(NSEC_PER_MSEC / 2);
		if (fd >= 0 && write(fd, "x", 1) != 1)
			_exit(1);
	}
}

/* A child that sleeps unless a byte comes, and computes for so long then. */
static pid_t start_reading(int fd, uint64_t ns)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid)
		return pid;
	char byte;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, &byte, 1) == 1)
		spin(ns);
	_exit(0);
}

static void end(pid_t pid)
{
	int status;
	kill(pid, SIGKILL);
	check_int(waitpid(pid, &status, 0), pid);
}

/* What others missed by our computing now. */
static uint64_t compute(void)
{
	usleep(50000);
	uint64_t before = now().displaced_ns;
	spin(SPIN_NS);
	usleep(50000);
	return now().displaced_ns - before;
}

static void test_traced(void)
{
	pid_t pid = start_computing(-1);
	check_int(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	uint64_t ns = compute();
	printf("# traced: %llu ns\n", (unsigned long long)ns);
	check(ns >= SPIN_NS / 2);
	check(ns <= SPIN_NS + 100 * NSEC_PER_MSEC);
	end(pid);
}

/* Many wait for what one of them could have had. */
static void test_many(void)
{
	pid_t pids[NR_MANY];
	cpu_set_t all;
	memset(&all, 0xff, sizeof(all));
	for (int i = 0; i < NR_MANY; i++) {
		pids[i] = start_computing(-1);
		/* So that the scheduler moves them. */
		sched_setaffinity(pids[i], sizeof(all), &all);
		check_int(ptrace(PTRACE_SEIZE, pids[i], 0, 0), 0);
	}
	uint64_t before = smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID), ns = 0;
	for (int i = 0; i < 5; i++)
		ns += compute();
	uint64_t used = smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
	printf("# %d traced: %llu ns of %llu\n", NR_MANY,
	       (unsigned long long)ns, (unsigned long long)used);
	check(ns <= used + used / 10);
	for (int i = 0; i < NR_MANY; i++)
		end(pids[i]);
}

/* Two share the other CPU, and nobody is behind us: one of them could be here.
 */
static void test_elsewhere(int own, int other)
{
	pid_t pids[2];
	cpu_set_t all;
	CPU_ZERO(&all);
	CPU_SET(own, &all);
	CPU_SET(other, &all);
	for (int i = 0; i < 2; i++) {
		pids[i] = start_computing(-1);
		check_int(ptrace(PTRACE_SEIZE, pids[i], 0, 0), 0);
		stay_on(pids[i], other);
	}
	spin(NSEC_PER_MSEC);
	for (int i = 0; i < 2; i++)
		check_int(sched_setaffinity(pids[i], sizeof(all), &all), 0);
	uint64_t before = now().displaced_ns;
	spin(SPIN_NS);
	uint64_t ns = now().displaced_ns - before;
	printf("# traced, elsewhere: %llu ns\n", (unsigned long long)ns);
	check(ns >= SPIN_NS / 2);
	check(ns <= SPIN_NS + 100 * NSEC_PER_MSEC);
	for (int i = 0; i < 2; i++)
		end(pids[i]);
}

/* How long task @pid ran and waited for CPUs, as the scheduler says. */
static void ask(pid_t pid, int64_t *ran_ret, int64_t *waited_ret)
{
	char path[64];
	unsigned long long ran = 0, waits = 0;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%llu %llu", &ran, &waits) != 2)
		ran = waits = 0;
	if (f)
		fclose(f);
	*ran_ret = (int64_t)ran;
	*waited_ret = (int64_t)waits;
}

static int64_t waited(pid_t pid)
{
	int64_t ran, waits;
	ask(pid, &ran, &waits);
	return waits;
}

static int64_t has_run(pid_t pid)
{
	int64_t ran, waits;
	ask(pid, &ran, &waits);
	return ran;
}

#define SLACK_NS ((int64_t)NSEC_PER_MSEC)

/* All its waits count, for us and for a stranger; how often for us, too. The
 * kernel does not tell of each single switch, so the last wait may be missing
 * now and then. */
static bool try_waits(pid_t pid)
{
	int64_t out = waited(pid);
	struct stopclock_reading a = now();
	int64_t in = waited(pid);
	spin(SPIN_NS);
	usleep(50000);
	in = waited(pid) - in;
	struct stopclock_reading b = now();
	out = waited(pid) - out;
	int64_t ns = b.waited_ns - a.waited_ns;
	uint64_t nr = b.nr_displaced - a.nr_displaced;
	printf("# waited %jd ns, the scheduler says %jd to %jd, %ju times for "
	       "us\n",
	       (intmax_t)ns, (intmax_t)in, (intmax_t)out, (uintmax_t)nr);
	return in > 0 && nr >= 1 && ns >= in - SLACK_NS && ns <= out + SLACK_NS;
}

static void test_waits(void)
{
	pid_t stranger = start_computing(-1), pid = start_computing(-1);
	bool is_right = false;
	check_int(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	usleep(50000);
	for (int i = 0; i < 10 && !is_right; i++)
		is_right = try_waits(pid);
	check(is_right);
	end(pid);
	end(stranger);
}

/* Who sleeps is woken up and waits until we sleep: it did not have to go. It
 * may be met on its way back to sleep now and then. */
static bool try_woken(int fd)
{
	struct stopclock_reading a = now();
	for (int i = 0; i < 20; i++) {
		check_int(write(fd, "x", 1), 1);
		spin(NSEC_PER_MSEC / 4);
		usleep(2000);
	}
	struct stopclock_reading b = now();
	uint64_t ns = b.displaced_ns - a.displaced_ns;
	uint64_t nr = b.nr_displaced - a.nr_displaced;
	printf("# woken: waited %ju ns for us, went %ju times\n", (uintmax_t)ns,
	       (uintmax_t)nr);
	return ns && !nr;
}

static void test_woken(void)
{
	bool is_right = false;
	int fds[2];
	check_int(pipe(fds), 0);
	pid_t reader = start_reading(fds[0], 0);
	check_int(ptrace(PTRACE_SEIZE, reader, 0, 0), 0);
	usleep(50000);
	for (int i = 0; i < 20 && !is_right; i++)
		is_right = try_woken(fds[1]);
	check(is_right);
	end(reader);
	close(fds[0]);
	close(fds[1]);
}

/* What a stranger runs is told when it leaves its CPU; what we and the traced
 * one run is not in it. */
#define TURN_NS (50 * (int64_t)NSEC_PER_MSEC)

static bool try_strange(pid_t stranger, pid_t pid)
{
	int64_t nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t since = smco_now_ns();
	uint64_t own = smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int64_t ran = has_run(stranger), theirs = has_run(pid);
	struct stopclock_reading a = now();
	spin(SPIN_NS);
	usleep(50000);
	struct stopclock_reading b = now();
	theirs = has_run(pid) - theirs;
	ran = has_run(stranger) - ran;
	own = smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own;
	int64_t all = nr_cpus * (int64_t)(smco_now_ns() - since);
	int64_t ns = (int64_t)(b.strange_ns - a.strange_ns);
	printf("# strangers %jd ns, that one %jd, traced %jd, we %jd of %jd\n",
	       (intmax_t)ns, (intmax_t)ran, (intmax_t)theirs, (intmax_t)own,
	       (intmax_t)all);
	return ran > TURN_NS && ns >= ran - TURN_NS &&
	       ns <= all - theirs - (int64_t)own + nr_cpus * TURN_NS;
}

static void test_strange(void)
{
	pid_t stranger = start_computing(-1), pid = start_computing(-1);
	bool is_right = false;
	check_int(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	usleep(50000);
	for (int i = 0; i < 10 && !is_right; i++)
		is_right = try_strange(stranger, pid);
	check(is_right);
	end(pid);
	end(stranger);
}

/* While strangers keep all other CPUs: what @worker runs is not theirs. */
static bool try_known(pid_t pid, pid_t worker)
{
	int64_t nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t since = smco_now_ns();
	int64_t ran = has_run(worker), theirs = has_run(pid);
	struct stopclock_reading a = now();
	/* Long enough for the difference to be told. */
	while (has_run(worker) - ran < 4 * nr_cpus * TURN_NS &&
	       smco_now_ns() - since < 10 * NSEC_PER_SEC)
		usleep(100000);
	struct stopclock_reading b = now();
	int64_t all = nr_cpus * (int64_t)(smco_now_ns() - since);
	ran = has_run(worker) - ran;
	theirs = has_run(pid) - theirs;
	int64_t ns = (int64_t)(b.strange_ns - a.strange_ns);
	printf("# strangers %jd ns, worker %jd, traced %jd, of %jd\n",
	       (intmax_t)ns, (intmax_t)ran, (intmax_t)theirs, (intmax_t)all);
	return ran >= 4 * nr_cpus * TURN_NS &&
	       ns <= all - theirs - ran + nr_cpus * TURN_NS;
}

#define MOST_CPUS 64

/* Two on each other CPU, so that they take turns: a turn is told at its end. */
static void test_known(int own)
{
	pid_t strangers[2 * MOST_CPUS];
	int fds[2], nr = 0;
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bool is_right = false;
	for (int cpu = 0; cpu < nr_cpus && cpu < MOST_CPUS; cpu++)
		for (int i = 0; cpu != own && i < 2; i++) {
			strangers[nr] = start_computing(-1);
			stay_on(strangers[nr++], cpu);
		}
	check_int(pipe(fds), 0);
	pid_t worker = start_reading(fds[0], NSEC_PER_MSEC / 2),
	      pid = start_computing(fds[1]);
	check_int(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	usleep(50000);
	for (int i = 0; i < 10 && !is_right; i++)
		is_right = try_known(pid, worker);
	check(is_right);
	close(fds[0]);
	close(fds[1]);
	end(pid);
	end(worker);
	while (nr)
		end(strangers[--nr]);
}

/* It computes; if it is a partner the bytes go to a traced reader. */
static uint64_t beside(bool is_traced)
{
	int fds[2];
	check_int(pipe(fds), 0);
	pid_t reader = start_reading(fds[0], 0);
	if (is_traced)
		check_int(ptrace(PTRACE_SEIZE, reader, 0, 0), 0);
	pid_t writer = start_computing(fds[1]);
	uint64_t ns = compute();
	printf("# writer to a %s reader: %llu ns\n",
	       is_traced ? "traced" : "strange", (unsigned long long)ns);
	end(writer);
	end(reader);
	close(fds[0]);
	close(fds[1]);
	return ns;
}

int main(void)
{
	clock_open();
	int cpu = sched_getcpu(), other = other_than(cpu);
	stay_on(0, cpu);
	test_traced();
	if (other >= 0)
		test_elsewhere(cpu, other);
	test_many();
	test_waits();
	test_strange();
	test_known(cpu);
	check(beside(true) >= SPIN_NS / 2);
	check_int(beside(false), 0);
	test_woken();
	stopclock_close(c);
	return tap_done();
}
