#include "supervisor/probe/bits-cost.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reports/median.h"
#include "supervisor/kept.h"
#include "supervisor/probe/bits-first.h"
#include "supervisor/probe/bits-loss.h"

#define TOUCH_PAGES    1024
#define TOUCH_ROUNDS   7
#define TOUCH_LEAST    3 /* rounds, however long they take */
#define TOUCH_STRIDE   (16 * TPAGE_SIZE)
#define IPI_ROUNDS     64
#define IPI_MIN_ROUNDS 8
#define IPI_IDLE_NS    (50 * NSEC_PER_USEC)
#define TOTAL_NS       (15 * NSEC_PER_MSEC)  /* each part then ends */
#define PATIENCE_NS    (100 * NSEC_PER_MSEC) /* for what takes longer */
#define WALK_WAIT_NS   (200 * NSEC_PER_MSEC)

/* The loss of a spell cannot be told to less than that, for a page table. */
#define LEAST_FLUSH_NS (4 * NSEC_PER_USEC)

#define ATTEMPTS 2
/* Where all attempts met a busy CPU: rather too much. */
#define SHOOTDOWN_BUSY_NS (5 * NSEC_PER_USEC)

static uint64_t median(int64_t *v, size_t n)
{
	int64_t ns = median_i64(v, n);
	return ns > 0 ? (uint64_t)ns : 0;
}

/* In an order that no prefetcher follows: the odd multiplier makes it a
 * permutation of the pages. */
static int64_t touch_all_ns(volatile char *mem)
{
	/* Without what others had of the CPU meanwhile. */
	uint64_t start = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < TOUCH_PAGES; i++)
		(void)mem[i * 389 % TOUCH_PAGES * TOUCH_STRIDE];
	return (int64_t)(smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
}

/* Pages far apart, so that each has its own cache line of page table, as
 * sampled pages have. NULL if there is no memory. */
static char *map_pages(size_t *size)
{
	*size = TOUCH_PAGES * TOUCH_STRIDE;
	char *mem = mmap(NULL, *size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	madvise(mem, *size, MADV_NOHUGEPAGE); /* EINVAL: there are none */
	return mem;
}

static void write_all(volatile char *mem)
{
	for (size_t i = 0; i < TOUCH_PAGES; i++)
		mem[i * TOUCH_STRIDE] = 1;
}

/* First touches after a reset less those right afterwards, all on one CPU. */
static uint64_t measure_touch_here(char *mem, size_t size)
{
	int64_t cost[TOUCH_ROUNDS];
	size_t nr = 0;
	uint64_t end_ns = smco_now_ns() + TOTAL_NS;
	write_all(mem);
	while (nr < TOUCH_LEAST ||
	       (nr < TOUCH_ROUNDS && smco_now_ns() < end_ns)) {
		madvise(mem, size, MADV_COLD);
		int64_t first = touch_all_ns(mem);
		cost[nr++] = (first - touch_all_ns(mem)) / TOUCH_PAGES;
	}
	return median(cost, nr);
}

uint64_t bits_cost_first(uint64_t first_ns, uint64_t here_ns)
{
	if (!first_ns) /* from 1.2 to 1.4 times was measured */
		return here_ns * 3 / 2;
	return first_ns + first_ns / 8;
}

void bits_cost_add_loss(struct bits_cost *c, const struct bits_loss *loss)
{
	if (loss->range_ns < LEAST_FLUSH_NS)
		return;
	c->flush_ns = loss->range_ns;
	if (loss->touch_ns > c->touch_ns)
		c->touch_ns = loss->touch_ns;
}

/* What the spinning child and its parent share. */
struct spin {
	/* Set by the parent: touch all; UINT32_MAX: no more. */
	volatile uint32_t touch_round;
	volatile uint32_t touch_done;		     /* set by the child */
	volatile int64_t touch_ns[TOUCH_ROUNDS + 1]; /* first less second */
	struct loss_walk walk;			     /* third part */
	volatile uint32_t round; /* set by the parent: touch and start */
	volatile uint32_t ready; /* set by the child: touched, spinning */
	volatile uint32_t done;	 /* set by the parent: round is over */
	volatile int64_t worst[IPI_ROUNDS + 1]; /* longest gap, ns */
	volatile int64_t usual[IPI_ROUNDS + 1]; /* shortest one */
};

/* The child, first part: touch what the parent has reset from its CPU. */
static void touch_on_request(struct spin *s, char *mem)
{
	for (uint32_t k = 1; k <= TOUCH_ROUNDS; k++) {
		while (s->touch_round < k)
			;
		if (s->touch_round == UINT32_MAX)
			break;
		int64_t first = touch_all_ns(mem);
		s->touch_ns[k] = first - touch_all_ns(mem);
		s->touch_done = k;
	}
}

/* Second part: touch one page, then look at the clock and nothing else. */
static void spin_on_request(struct spin *s, volatile char *page)
{
	for (uint32_t k = 1; k <= IPI_ROUNDS; k++) {
		while (s->round < k)
			;
		page[0]++;
		int64_t worst = 0, usual = INT64_MAX;
		uint64_t prev = smco_now_ns();
		s->ready = k;
		while (s->done < k) {
			uint64_t now = smco_now_ns();
			int64_t gap = (int64_t)(now - prev);
			worst = gap > worst ? gap : worst;
			usual = gap < usual ? gap : usual;
			prev = now;
		}
		s->usual[k] = usual;
		s->worst[k] = worst;
		s->ready = UINT32_MAX;
	}
}

/* Wait for *v == want; false when @deadline is reached. */
static bool spin_until(const volatile uint32_t *v, uint32_t want,
		       uint64_t deadline)
{
	while (*v != want)
		if (smco_now_ns() > deadline)
			return false;
	return true;
}

static void idle_ns(uint64_t ns)
{
	uint64_t end = smco_now_ns() + ns;
	while (smco_now_ns() < end)
		;
}

/* Page tables that another CPU wrote last are dearer to touch. 0 = busy. */
static uint64_t play_touch(struct spin *s, int pidfd, char *mem, size_t size)
{
	int64_t cost[TOUCH_ROUNDS];
	size_t nr = 0;
	struct iovec iov = {.iov_base = mem, .iov_len = size};
	uint64_t start_ns = smco_now_ns(), deadline = start_ns + PATIENCE_NS;
	if (!spin_until(&s->touch_done, 0, start_ns + TOTAL_NS))
		return 0;
	for (uint32_t k = 1; k <= TOUCH_ROUNDS; k++) {
		if (nr >= TOUCH_LEAST && smco_now_ns() > start_ns + TOTAL_NS)
			break;
		if (syscall(SYS_process_madvise, pidfd, &iov, 1, MADV_COLD, 0) <
		    0)
			break;
		s->touch_round = k;
		if (!spin_until(&s->touch_done, k, deadline))
			break;
		cost[nr++] = s->touch_ns[k] / TOUCH_PAGES;
	}
	return nr < TOUCH_LEAST ? 0 : median(cost, nr);
}

/* Rounds with and without a reset in turn; the difference of the longest gap
 * is the interrupt. */
static uint64_t play_shootdown(struct spin *s, int pidfd, char *page)
{
	int64_t with[IPI_ROUNDS], without[IPI_ROUNDS];
	size_t nr_with = 0, nr_without = 0;
	struct iovec iov = {.iov_base = page, .iov_len = TPAGE_SIZE};
	/* It may be touching still. */
	uint64_t deadline = smco_now_ns() + PATIENCE_NS;

	for (uint32_t k = 1; k <= IPI_ROUNDS; k++) {
		s->round = k;
		if (!spin_until(&s->ready, k, deadline))
			break;
		if (k == 1)
			deadline = smco_now_ns() + TOTAL_NS;
		if (k & 1 && syscall(SYS_process_madvise, pidfd, &iov, 1,
				     MADV_COLD, 0) < 0)
			break;
		idle_ns(IPI_IDLE_NS);
		s->done = k;
		if (!spin_until(&s->ready, UINT32_MAX, deadline))
			break;
		int64_t gap = s->worst[k] - s->usual[k];
		if (k & 1)
			with[nr_with++] = gap;
		else
			without[nr_without++] = gap;
	}
	s->round = s->done = UINT32_MAX; /* also if it was too slow for that */
	if (nr_with < IPI_MIN_ROUNDS || nr_without < IPI_MIN_ROUNDS)
		return 0;
	uint64_t a = median(with, nr_with), b = median(without, nr_without);
	smco_debug("bits", "longest gap with %llu ns, without %llu ns",
		   (unsigned long long)a, (unsigned long long)b);
	return a > b ? a - b : 0;
}

/* A CPU that we may use and are not on; -1 if there is only one. */
static int other_cpu(const cpu_set_t *allowed, int self)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (i != self && CPU_ISSET(i, allowed))
			return i;
	return -1;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Where the child of play_with_child() runs. */
static void play_loss(struct bits_cost *c, struct spin *s, int pidfd, char *mem)
{
	struct bits_loss loss;
	/* It is to be there; that it walks takes no longer than this. It needs
	 * the CPU for that which we are on, too. */
	const struct timespec ts = {.tv_nsec = NSEC_PER_MSEC};
	uint64_t deadline = smco_now_ns() + WALK_WAIT_NS;
	while (!s->walk.steps && smco_now_ns() < deadline)
		nanosleep(&ts, NULL);
	if (!loss_measure(&s->walk, pidfd, mem, 2 * c->touch_ns, &loss))
		return;
	smco_debug("bits", "lost: %llu ns for a page, %llu for a page table",
		   (unsigned long long)loss.touch_ns,
		   (unsigned long long)loss.range_ns);
	bits_cost_add_loss(c, &loss);
}

/* In @c what is dearer here than it was known to be. From CPU @self, where the
 * child is on CPU @cpu. What is lost takes longest: it is measured once, when
 * the other CPU had time for the rest, or at the @last attempt. */
static void play_all(struct bits_cost *c, struct spin *s, int pidfd, char *mem,
		     size_t size, int self, int cpu, bool last)
{
	uint64_t ns = play_touch(s, pidfd, mem, size);
	if (ns > c->touch_ns)
		c->touch_ns = ns;
	s->touch_round = UINT32_MAX; /* also if it was too slow for that */
	c->shootdown_ns = play_shootdown(s, pidfd, mem);
	if (!c->shootdown_ns && !last)
		return;
	pin(cpu); /* without an interrupt */
	play_loss(c, s, pidfd, mem);
	pin(self);
}

static void play_with_child(struct bits_cost *c, struct spin *s, char *mem,
			    size_t size, int self, int cpu, bool last)
{
	pid_t parent = getpid();
	s->touch_done = UINT32_MAX; /* until the child is ready */
	/* No exit signal and __WCLONE below: the tracer's own wait never
	 * hears of this child. */
	pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent) {
			pin(cpu);
			write_all(mem); /* its own copies, see lrudrain.h */
			s->touch_done = 0;
			touch_on_request(s, mem);
			spin_on_request(s, mem);
			loss_walk(&s->walk, mem);
		}
		_exit(0);
	}
	if (pid < 0)
		return;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0) {
		play_all(c, s, pidfd, mem, size, self, cpu, last);
		close(pidfd);
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
}

/* With a child on another CPU. Leaves *c as it is when that was too busy to
 * tell. False with one CPU only. @last: it is not tried again. */
static bool measure_across(struct bits_cost *c, char *mem, size_t size,
			   bool last)
{
	cpu_set_t allowed;
	int self = sched_getcpu();
	if (sched_getaffinity(0, sizeof(allowed), &allowed) || self < 0)
		return false;
	int cpu = other_cpu(&allowed, self);
	if (cpu < 0)
		return false;
	struct spin *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return true;
	pin(self);
	play_with_child(c, s, mem, size, self, cpu, last);
	sched_setaffinity(0, sizeof(allowed), &allowed);
	munmap(s, sizeof(*s));
	return true;
}

/* False: the other CPU was too busy to tell all. */
static bool measure(struct bits_cost *c, char *mem, size_t size)
{
	uint64_t here_ns = measure_touch_here(mem, size);
	uint64_t first_ns = bits_first_touch_ns();
	c->touch_ns = here_ns;
	/* The other CPU may be too busy once. Never again later, when a stopped
	 * program would wait for it. */
	bool has_other = true;
	for (int k = 0; has_other && k < ATTEMPTS && !c->shootdown_ns; k++)
		has_other = measure_across(c, mem, size, k + 1 == ATTEMPTS);
	bool is_whole = !has_other || c->shootdown_ns;
	if (!is_whole)
		c->shootdown_ns = SHOOTDOWN_BUSY_NS;
	smco_debug("bits",
		   "measured: first touch %llu ns, on another CPU %llu, among "
		   "other memory %llu",
		   (unsigned long long)here_ns, (unsigned long long)c->touch_ns,
		   (unsigned long long)first_ns);
	first_ns = bits_cost_first(first_ns, here_ns);
	if (first_ns > c->touch_ns)
		c->touch_ns = first_ns;
	return is_whole;
}

static int measure_and_keep(struct bits_cost *c, struct smco_err *err)
{
	size_t size;
	char *mem = map_pages(&size);
	if (!mem)
		return smco_fail(err, SMCO_NOMEM, errno,
				 "cannot map pages to calibrate with");
	if (measure(c, mem, size))
		kept_add(KEPT_BITS,
			 (const uint64_t[KEPT_FIGURES]){
				 c->touch_ns, c->shootdown_ns, c->flush_ns});
	munmap(mem, size);
	return 0;
}

int bits_cost_get(struct bits_cost *ret, struct smco_err *err)
{
	static struct bits_cost known;
	static bool is_known;
	uint64_t v[KEPT_FIGURES];
	if (!is_known && kept_get(KEPT_BITS, v)) {
		known = (struct bits_cost){v[0], v[1], v[2]};
		is_known = true;
	}
	if (!is_known) {
		int rc = measure_and_keep(&known, err);
		if (rc)
			return rc;
		is_known = true;
	}
	*ret = known;
	return 0;
}
