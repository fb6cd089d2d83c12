/*
 * The reader of a userfaultfd goes before others, in real time where it may
 * have that, and where the program is, for what passes until it has heard of a
 * hit is less there, and then that is charged. Where the program has real
 * time its reader would get none beside it, and stays off.
 */
#include <dirent.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include "supervisor/probe/uffd-private.h"
#include "tap.h"
#include "traced.h"
#include "uffd.h"

#define FAR_NS	   (2000 * NSEC_PER_SEC)
#define NEAR_NS	   (1000 * NSEC_PER_SEC)
#define PATIENCE_S 20

static char *memory;

static long move_to(long cpu, long priority)
{
	cpu_set_t set;
	struct sched_param sp = {.sched_priority = (int)priority};
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER,
				  &sp) ||
	       sched_setaffinity(0, sizeof(set), &set);
}

static long poke(long at, long value)
{
	memory[at] = (char)value;
	return memory[at];
}

/* The only thread of ours beside this one. */
static pid_t reader_tid(void)
{
	pid_t tid = 0;
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	while (dir && (e = readdir(dir)))
		if (atoi(e->d_name) && atoi(e->d_name) != getpid())
			tid = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return tid;
}

/* The one CPU that it stays on; -1 = it may use several. */
static int stays_on(pid_t tid)
{
	cpu_set_t set;
	if (sched_getaffinity(tid, sizeof(set), &set) || CPU_COUNT(&set) != 1)
		return -1;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET((unsigned)i, &set))
			return i;
	return -1;
}

/* What it is charged with; 0 = it was not told. */
static uint64_t hit(struct tracer *tr, struct access *a, struct puppet *pup)
{
	struct access_hit h = {0};
	struct page_range r = {
		.start = (taddr_t)(uintptr_t)memory,
		.end = (taddr_t)(uintptr_t)memory + TPAGE_SIZE,
	};
	if (access_uffd.arm(a, &r, 1) || r.nr_reset != 1)
		return 0;
	puppet_begin(pup, poke, 5, 9);
	usleep(12000); /* the reader is to have it, and to look where again */
	uint64_t end_ns = smco_now_ns() + PATIENCE_S * NSEC_PER_SEC;
	bool told = false;
	while (!told && smco_now_ns() < end_ns)
		told = access_uffd.next_hit(a, &h);
	if (told && h.stopped)
		access_uffd.resume(a, &h);
	return traced_wait(tr, pup) == 9 && told ? h.cost_ns : 0;
}

/* After some hits at most it stays on @cpu. */
static bool comes_to(int cpu, struct tracer *tr, struct access *a,
		     struct puppet *pup)
{
	pid_t tid = reader_tid();
	uint64_t end_ns = smco_now_ns() + PATIENCE_S * NSEC_PER_SEC;
	while (stays_on(tid) != cpu && smco_now_ns() < end_ns)
		if (!hit(tr, a, pup))
			return false;
	return stays_on(tid) == cpu;
}

/* Of some hits at most one is charged with less than @least_ns, but with
 * @most_ns. */
static bool is_charged(uint64_t least_ns, uint64_t most_ns, struct tracer *tr,
		       struct access *a, struct puppet *pup)
{
	for (int i = 0; i < 100; i++) {
		uint64_t ns = hit(tr, a, pup);
		if (ns >= least_ns && ns < most_ns)
			return true;
	}
	return false;
}

static void test_follows(struct tracer *tr, struct access *a,
			 struct puppet *pup)
{
	const struct uffd_cost cost = {FAR_NS, NEAR_NS, FAR_NS};
	uffd_cost_know(&cost);
	check(hit(tr, a, pup) >= FAR_NS);
	check(comes_to(1, tr, a, pup));
	check(is_charged(NEAR_NS, FAR_NS, tr, a, pup));
	check_int(traced_do(tr, pup, move_to, 0, 0), 0);
	check(comes_to(0, tr, a, pup));
	if (traced_do(tr, pup, move_to, 0, 1)) {
		tap_skip("no real time here");
		return;
	}
	check_int(sched_getscheduler(reader_tid()),
		  SCHED_FIFO | SCHED_RESET_ON_FORK);
	check(comes_to(-1, tr, a, pup));
	check(is_charged(FAR_NS, UINT64_MAX, tr, a, pup));
}

int main(void)
{
	struct tracer *tr;
	struct access *a;
	memory = mmap(NULL, TPAGE_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct puppet pup = puppet_start();
	if (puppet_do(&pup, move_to, 1, 0)) {
		printf("1..0 # SKIP needs two CPUs\n");
		return 0;
	}
	puppet_do(&pup, poke, 0, 1);
	struct tproc *p = uffd_attach(&pup, &tr, &a);
	tproc_resume_new(p);
	test_follows(tr, a, &pup);
	access_uffd.close(a);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
