/*
 * Whoever met a guard before next_hit() is asked is told of by it, also when
 * the reader of the descriptor gets no CPU: a block of which nothing was told
 * is quiet. The reader is kept from running by a busy real-time thread. And
 * what passes before a hit is heard of is charged.
 */
#include <errno.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/probe/access.h"
#include "supervisor/probe/uffd-private.h"
#include "tap.h"
#include "traced.h"
#include "uffd.h"

#define LEN (4 * TPAGE_SIZE)

static char *memory;

static long fill(long a, long b)
{
	(void)b;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	memset(memory, (int)a, LEN);
	return 0;
}

static long poke(long at, long value)
{
	memory[at] = (char)value;
	return memory[at];
}

static bool bind_all(pid_t pid, int cpu)
{
	char path[64];
	cpu_set_t set;
	bool ok = true;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	struct dirent *e;
	while (dir && (e = readdir(dir)))
		if (atoi(e->d_name))
			ok &= !sched_setaffinity(atoi(e->d_name), sizeof(set),
						 &set);
	if (dir)
		closedir(dir);
	return ok;
}

/* Without sleeping: until it waits in the kernel. */
static bool spin_until_asleep(pid_t pid)
{
	char path[64], buf[512];
	uint64_t end = smco_now_ns() + 20 * NSEC_PER_SEC;
	snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
	while (smco_now_ns() < end) {
		FILE *f = fopen(path, "re");
		size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;
		buf[n] = '\0';
		if (f)
			fclose(f);
		if (strstr(buf, "userfault"))
			return true;
	}
	return false;
}

static bool set_policy(int policy, int priority)
{
	struct sched_param sp = {.sched_priority = priority};
	return !sched_setscheduler(0, policy, &sp);
}

/* No memory, for the supervisor, while this is set. */
static volatile bool is_out_of_memory;
#ifndef __SANITIZE_ADDRESS__
void *__libc_malloc(size_t size);
void *malloc(size_t size)
{
	return is_out_of_memory ? NULL : __libc_malloc(size);
}
#endif

/* A hit is told, and its thread goes on, also without memory: what there is no
 * room for is not armed. */
static void test_no_memory(struct tracer *tr, struct access *a,
			   struct puppet *pup)
{
	struct access_hit hit = {0};
	struct page_range r = {
		.start = (taddr_t)(uintptr_t)memory,
		.end = (taddr_t)(uintptr_t)memory + TPAGE_SIZE,
	};
	check_int(access_uffd.arm(a, &r, 1), 0);
	check_int(r.nr_reset, 1);
	is_out_of_memory = true;
	puppet_begin(pup, poke, 5, 9);
	uint64_t end = smco_now_ns() + 20 * NSEC_PER_SEC;
	unsigned nr = 0;
	while (!nr && smco_now_ns() < end)
		if (access_uffd.next_hit(a, &hit)) {
			nr++;
			if (hit.stopped)
				access_uffd.resume(a, &hit);
		}
	long got = nr ? traced_wait(tr, pup) : 0;
	is_out_of_memory = false;
	check_int(nr, 1);
	check_int(got, 9);
}

/* Nobody came to stop the thread, the reader let it go: all of that is charged
 * by itself, for no stop has it on its clock. */
static void test_let_go(struct access *a, struct puppet *pup)
{
	struct access_hit hit = {0};
	struct page_range r = {
		.start = (taddr_t)(uintptr_t)memory,
		.end = (taddr_t)(uintptr_t)memory + TPAGE_SIZE,
	};
	const struct uffd_cost dear = {1000 * NSEC_PER_SEC, 1000 * NSEC_PER_SEC,
				       2000 * NSEC_PER_SEC};
	uffd_cost_know(&dear);
	check_int(access_uffd.arm(a, &r, 1), 0);
	check_int(puppet_do(pup, poke, 6, 8), 8);
	check(access_uffd.next_hit(a, &hit));
	check(!hit.stopped);
	check(hit.cost_ns > 1125 * NSEC_PER_SEC);
}

/* A process that keeps @cpu for a while, before all others. */
static pid_t keep_cpu(int cpu)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	set_policy(SCHED_FIFO, 50);
	uint64_t end_ns = smco_now_ns() + 300 * NSEC_PER_MSEC;
	while (smco_now_ns() < end_ns)
		;
	_exit(0);
}

/* Who measures while the reader gets no CPU does not know what a hit costs. */
static void test_measure_busy(void)
{
	cpu_set_t both;
	CPU_ZERO(&both);
	CPU_SET(0, &both);
	CPU_SET(1, &both);
	check_int(sched_setaffinity(0, sizeof(both), &both), 0);
	pid_t pid = keep_cpu(1);
	usleep(20000);
	uffd_cost_measure();
	check_msg(uffd_cost().heard_ns < 20 * NSEC_PER_MSEC,
		  "%llu ns until a hit is heard of",
		  (unsigned long long)uffd_cost().heard_ns);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	struct tracer *tr;
	struct access *a;
	struct access_hit hit = {0};
	struct smco_err err = {0};
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct puppet pup = puppet_start();
	puppet_do(&pup, fill, 1, 0);
	struct tproc *p = uffd_attach(&pup, &tr, &a);
	struct page_range r = {
		.start = (taddr_t)(uintptr_t)memory,
		.end = (taddr_t)(uintptr_t)memory + LEN,
		.user = &r,
	};
	check_int(access_uffd.arm(a, &r, 1), 0);
	tproc_resume_new(p);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || !bind_all(getpid(), 0) ||
	    !set_policy(SCHED_FIFO, 50)) {
		printf("1..1 # needs two CPUs and real-time scheduling\n");
		return 0;
	}
	puppet_begin(&pup, poke, TPAGE_SIZE + 5, 7);
	uint64_t side_ns = access_uffd.side_cost_ns(a);
	const struct uffd_cost dear = {1000 * NSEC_PER_SEC, 1000 * NSEC_PER_SEC,
				       2000 * NSEC_PER_SEC};
	uffd_cost_know(&dear);
	bool asleep = spin_until_asleep(pup.pid);
	bool told = access_uffd.next_hit(a, &hit);
	set_policy(SCHED_OTHER, 0);
	check(asleep);
	check(told);
	check(hit.cost_ns > 1000 * NSEC_PER_SEC);
	side_ns = access_uffd.side_cost_ns(a) - side_ns;
	if (hit.stopped) { /* else the cost is charged by itself */
		check(side_ns > 1125 * NSEC_PER_SEC);
		/* What it took to open the block is on the stop clock. */
		check(side_ns + tracer_stop_cost_ns(tr) < hit.cost_ns);
	}
	check(hit.range.user == &r);
	if (told && hit.stopped)
		access_uffd.resume(a, &hit);
	check_int(traced_wait(tr, &pup), 7);
	check(!access_uffd.next_hit(a, &hit));
	access_uffd.close(a);
	check_int(traced_stop(p, NULL), 0);
	/* With no room in its queue yet. */
	bool opened = check_int(access_uffd.open(p, &a, &err), 0);
	if (opened) /* until a hit is measured */
		check(access_uffd.touch_cost_ns(a) >= 4000 * NSEC_PER_SEC);
	tproc_cont(p);
	if (!opened)
		return tap_done();
	test_no_memory(tr, a, &pup);
	test_let_go(a, &pup);
	uffd_cost_know(&(struct uffd_cost){0});
	test_measure_busy();
	uffd_cost_measure();
	check(uffd_cost().heard_ns > 0);
	check(uffd_cost().whole_ns >= uffd_cost().heard_ns);
	access_uffd.close(a);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
