/*
 * Accessed bits are cleared in each of the ways; a stop for it ends when its
 * time is over, and the rest is done all the same, also behind a hole.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>

#include "supervisor/probe/bits-reset.h"
#include "supervisor/probe/hop.h"
#include "supervisor/probe/lrudrain.h"

/* Ranges of 2 pages and, last, one larger than what a stop does at once. */
#define RANGES 500
#define BIG_AT (RANGES * 4)
#define BIG_NR 4000
#define PAGES  (BIG_AT + BIG_NR)
_Static_assert(RANGES < PTREAD_MAX_SLOTS, "looked at together");
#define SHOOT_NS 5000
#define FLUSH_NS 7
#define DEAR_NS	 30000
/* Calls for all but the last range, 128 in one. */
#define SMALL_CALLS ((RANGES + 127) / 128)
#include "t/unit/pages.h"

struct tproc {
	unsigned nr_stops, nr_conts;
};

unsigned tproc_nr_tasks(const struct tproc *p)
{
	(void)p;
	return 8;
}

pid_t tproc_pid(const struct tproc *p)
{
	(void)p;
	return pup.pid;
}

int tproc_stop(struct tproc *p, struct smco_err *err)
{
	(void)err;
	p->nr_stops++;
	return 0;
}

int tproc_stop_briefly(struct tproc *p, struct smco_err *err)
{
	return tproc_stop(p, err);
}

void tproc_cont(struct tproc *p)
{
	p->nr_conts++;
}

int tproc_syscalls(struct tproc *p, struct tsyscall *calls, size_t n,
		   struct smco_err *err)
{
	(void)p;
	(void)calls;
	(void)n;
	return smco_fail(err, SMCO_UNSUPPORTED, 0, "no calls here");
}

/* Does our thread take turns with others? */
static bool is_relaxed;

struct tracer *tproc_tracer(struct tproc *p)
{
	(void)p;
	return NULL;
}

bool tracer_relax(struct tracer *tr, bool relaxed)
{
	(void)tr;
	bool was = is_relaxed;
	is_relaxed = relaxed;
	return was;
}

static struct ptread *pt;
static int pagemap_fd;

/* Whoever is asked says the same each time. */
struct asked {
	struct ptread_mm says;
	unsigned times;
	unsigned nr_relaxed; /* of these, while that was so */
};

static int who_runs(void *arg, struct ptread_mm *mm)
{
	struct asked *a = arg;
	a->times++;
	a->nr_relaxed += is_relaxed;
	*mm = a->says;
	return 0;
}

/* Pages of the ranges whose bit is set; -1 if that cannot be said. */
static long nr_set(void)
{
	struct ptread_slot *slots = ptread_slots(pt);
	struct ptread_mm mm = {0};
	for (size_t i = 0; i < RANGES; i++)
		slots[i] = (struct ptread_slot){
			.start = (uintptr_t)mem + i * 4 * PAGE,
			.end = (uintptr_t)mem + (i * 4 + 2) * PAGE};
	slots[RANGES] =
		(struct ptread_slot){.start = (uintptr_t)mem + BIG_AT * PAGE,
				     .end = (uintptr_t)mem + PAGES * PAGE};
	if (ptread_scan(pt, pagemap_fd, RANGES + 1, &mm))
		return -1;
	long sum = 0;
	for (size_t i = 0; i <= RANGES; i++)
		sum += slots[i].nr_touched;
	return sum;
}

static struct iovec iov[RANGES + 1];
static int error[RANGES + 1];

static void fill_iov(void)
{
	for (size_t i = 0; i < RANGES; i++)
		iov[i] = (struct iovec){.iov_base = mem + i * 4 * PAGE,
					.iov_len = 2 * PAGE};
	iov[RANGES] = (struct iovec){.iov_base = mem + BIG_AT * PAGE,
				     .iov_len = BIG_NR * PAGE};
}

/*
 * Touch all, reset all by @br; how many are still set. New pages can take a
 * moment until they can be reset, and the kernel may touch one.
 */
static long reset_all(struct bits_reset *br, const struct ptread_mm *mm)
{
	struct reset_work w = {.iov = iov,
			       .error = error,
			       .n = RANGES + 1,
			       .nr_pages = RANGES * 2 + BIG_NR};
	puppet_do(&pup, act_store, 0, 1);
	check_int(bits_reset(br, &w, mm), 0);
	return nr_set();
}

static size_t nr_errors(int which)
{
	size_t n = 0;
	for (size_t i = 0; i <= RANGES; i++)
		n += error[i] == which;
	return n;
}

static struct bits_cost cost = {.shootdown_ns = SHOOT_NS};

#define UNTOLD UINT64_MAX
struct expected {
	unsigned stops;
	uint64_t side_ns; /* or UNTOLD */
};

static uint64_t side_ns;    /* of the last way */
static unsigned nr_relaxed; /* the same */

static unsigned test_way(const char *what, uint64_t most_ns,
			 const struct ptread_mm *mm,
			 const struct ptread_mm *later, struct expected want)
{
	struct asked asked;
	struct tproc proc = {0};
	struct bits_reset br;
	long left = -1;
	printf("# --- %s\n", what);
	for (int k = 0; k < 50; k++) {
		memset(&proc, 0, sizeof(proc));
		asked = (struct asked){.says = *later};
		bits_reset_init(&br, &proc, &cost, who_runs, &asked);
		check(!br.by_injection);
		br.stopped_most_ns = most_ns;
		left = reset_all(&br, mm);
		bits_reset_deinit(&br);
		if (!left)
			break;
		lrudrain_ask(~0ULL);
		usleep(60000);
	}
	check_int(left, 0);
	check_int(nr_errors(0), RANGES + 1);
	check_int(proc.nr_stops, want.stops);
	check_int(proc.nr_conts, want.stops);
	if (want.side_ns != UNTOLD)
		check_int(br.side_ns, want.side_ns);
	side_ns = br.side_ns;
	nr_relaxed = asked.nr_relaxed;
	return asked.times;
}

/* All page tables from the first range to the last. */
static uint64_t nr_tables(void)
{
	uintptr_t first = (uintptr_t)mem, last = first + PAGES * PAGE - 1;
	return last / (2 << 20) - first / (2 << 20) + 1;
}

static void test_ways(void)
{
	const struct ptread_mm two = {.nr_running = 2, .running_cpu = -1};
	const struct ptread_mm none = {.running_cpu = -1};
	test_way("nobody runs", NSEC_PER_SEC, &none, &none,
		 (struct expected){0, 0});
	/* While it stands all wait for the work as well, so a stop saves
	 * nothing where only one runs. */
	const struct ptread_mm one = {.nr_running = 1,
				      .running_cpu = sched_getcpu()};
	test_way("beside the one that runs", 3600 * NSEC_PER_SEC, &one, &none,
		 (struct expected){0, 0}); /* nobody is interrupted */
	test_way("stopped", 3600 * NSEC_PER_SEC, &two, &two,
		 (struct expected){1, 0});
	/* What a page table costs is lost whoever runs then. */
	cost.flush_ns = FLUSH_NS;
	test_way("stopped, flushed", 3600 * NSEC_PER_SEC, &two, &two,
		 (struct expected){1, nr_tables() * FLUSH_NS});
	test_way("nobody runs, flushed", NSEC_PER_SEC, &none, &none,
		 (struct expected){0, nr_tables() * FLUSH_NS});
	/* None of its calls may last, at half of that for each range. */
	cost.flush_ns = DEAR_NS;
	unsigned brief =
		test_way("nobody runs, flushed, dear", NSEC_PER_SEC, &none,
			 &none, (struct expected){0, nr_tables() * DEAR_NS});
	check_msg(brief >= RANGES / (300000 / (DEAR_NS / 2)), "%u calls",
		  brief);
	cost.flush_ns = 0;
	unsigned calls = 1 + test_way("too much for a stop", 1, &two, &two,
				      (struct expected){0, UNTOLD});
	/* Each range, and the large one once for each call that has a part. */
	check_msg(calls > SMALL_CALLS, "%u calls", calls);
	check_int(side_ns, (RANGES + calls - SMALL_CALLS) * 2ULL * SHOOT_NS);
}

/* Whoever waits for us is taken to another CPU each time: we follow, and half
 * of what was done before each time is charged. Not for the last range, whose
 * parts are too few to go after it. */
static void test_pulled(void)
{
	const struct ptread_mm one = {.nr_running = 1,
				      .running_cpu = sched_getcpu()};
	unsigned calls = 1 + test_way("it is taken away", 0, &one, &one,
				      (struct expected){0, UNTOLD});
	check_msg(calls > SMALL_CALLS, "%u calls", calls);
	check_int(side_ns,
		  RANGES * SHOOT_NS / 2 + (calls - SMALL_CALLS) * SHOOT_NS);
}

/* Whom we have taken the CPU from waits for it, and somebody else runs for a
 * moment each time: we stay, for who waits would be interrupted otherwise. */
static void test_displaced(void)
{
	const struct ptread_mm one = {.nr_running = 1,
				      .running_cpu = sched_getcpu()};
	struct ptread_mm another = one;
	another.is_displaced = true;
	unsigned calls = 1 + test_way("it waits for us", 0, &one, &another,
				      (struct expected){0, UNTOLD});
	check_msg(calls > SMALL_CALLS, "%u calls", calls);
	check_int(side_ns, 128 * SHOOT_NS / 2 + (RANGES - 128) * SHOOT_NS +
				   (calls - SMALL_CALLS) * SHOOT_NS);
}

/* On the program's CPU we do not take turns, elsewhere we do if we did. */
static void test_relaxed(void)
{
	const struct ptread_mm one = {.nr_running = 1,
				      .running_cpu = sched_getcpu()};
	const struct ptread_mm nowhere = {.nr_running = 1,
					  .running_cpu = CPU_SETSIZE};
	const struct ptread_mm none = {.running_cpu = -1};
	const struct expected any = {0, UNTOLD};
	is_relaxed = true;
	check(test_way("hops, relaxed", 0, &one, &one, any) > 0);
	check_int(nr_relaxed, 0);
	check(is_relaxed);
	unsigned calls = test_way("stays, relaxed", 0, &none, &none, any);
	check_int(nr_relaxed, calls);
	check(is_relaxed);
	calls = test_way("cannot hop, relaxed", 0, &nowhere, &nowhere, any);
	check_int(nr_relaxed, calls);
	check(is_relaxed);
	is_relaxed = false;
	test_way("hops", 0, &one, &one, any);
	check(!is_relaxed);
}

/* Nobody who comes back still computes where the program wants to. */
static void test_away(void)
{
	cpu_set_t all;
	printf("# --- gone afterwards\n");
	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		return;
	unsigned nr = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct hop back;
		cpu_set_t after;
		/* The kernel may take us back, but hardly each time. */
		for (int k = 0; k < 10 && CPU_ISSET(cpu, &all); k++) {
			check(hop_to(cpu, &back));
			check_int(sched_getcpu(), cpu);
			hop_back(&back);
			nr += sched_getcpu() != cpu;
			check(!sched_getaffinity(0, sizeof(after), &after));
			check(CPU_EQUAL(&all, &after));
		}
	}
	check_msg(nr > 5U * (unsigned)CPU_COUNT(&all), "%u times", nr);
}

/* Far more than the time allows: the large range again and again. */
static void test_time_over(void)
{
	enum { AGAIN = 2000 };
	static struct iovec many[AGAIN];
	static int errors[AGAIN];
	const struct ptread_mm two = {.nr_running = 2, .running_cpu = -1};
	struct tproc proc = {0};
	struct bits_reset br;
	struct reset_work w = {.iov = many, .error = errors, .n = AGAIN};
	printf("# --- its time is over\n");
	for (size_t i = 0; i < AGAIN; i++)
		many[i] = iov[RANGES];
	struct asked asked = {.says = two};
	bits_reset_init(&br, &proc, &cost, who_runs, &asked);
	br.stopped_most_ns = 2 * NSEC_PER_MSEC; /* more than w seems to take */
	check_int(bits_reset(&br, &w, &two), 0);
	check_int(proc.nr_stops, 1);
	check_int(proc.nr_conts, 1);
	check_msg(br.side_ns > 0 && br.side_ns % (2 * SHOOT_NS) == 0,
		  "the rest is charged: %llu", (unsigned long long)br.side_ns);
	bits_reset_deinit(&br);
}

/* A range that is gone: only its own error, and the others are reset. */
static void test_hole(void)
{
	enum { GONE = 7 };
	puppet_do(&pup, act_munmap, (long)iov[GONE].iov_base,
		  (long)iov[GONE].iov_len);
	memset(error, -1, sizeof(error));
	struct tproc proc = {0};
	struct bits_reset br;
	const struct ptread_mm none = {.running_cpu = -1};
	struct reset_work w = {.iov = iov, .error = error, .n = RANGES + 1};
	printf("# --- a hole\n");
	struct asked asked = {.says = none};
	bits_reset_init(&br, &proc, &cost, who_runs, &asked);
	check_int(bits_reset(&br, &w, &none), 0);
	check_int(error[GONE], ENOMEM);
	check_int(nr_errors(0), RANGES);
	bits_reset_deinit(&br);
}

int main(void)
{
	struct smco_err err = {0};
	char path[64];
	hop_prepare();
	start_with_pages();
	int r = ptread_get(&pt, &err);
	if (r == SMCO_PERM || r == SMCO_UNSUPPORTED) {
		printf("# %s\n", err.msg);
		tap_skip("accessed bits are not available here");
		puppet_end(&pup);
		return tap_done();
	}
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pup.pid);
	pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (check_int(r, 0) && check(pagemap_fd >= 0)) {
		fill_iov();
		test_ways();
		test_pulled();
		test_displaced();
		test_relaxed();
		test_away();
		test_time_over();
		test_hole();
	}
	ptread_put(pt);
	puppet_end(&pup);
	return tap_done();
}
