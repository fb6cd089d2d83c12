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
#include <unistd.h>

#define TOUCH_PAGES    1024
#define TOUCH_ROUNDS   7
#define IPI_ROUNDS     64
#define IPI_MIN_ROUNDS 8
#define IPI_ROUND_NS   (NSEC_PER_MSEC / 4)
#define IPI_TOTAL_NS   (15 * NSEC_PER_MSEC)

static int cmp_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t median(int64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), cmp_i64);
	return n && v[n / 2] > 0 ? (uint64_t)v[n / 2] : 0;
}

static int64_t touch_all_ns(volatile char *mem)
{
	uint64_t start = smco_now_ns();
	for (size_t i = 0; i < TOUCH_PAGES; i++)
		(void)mem[i * TPAGE_SIZE];
	return (int64_t)(smco_now_ns() - start);
}

/* First touches after a reset less those right afterwards. */
static int measure_touch(uint64_t *ret, struct smco_err *err)
{
	size_t size = TOUCH_PAGES * TPAGE_SIZE;
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return smco_fail(err, SMCO_NOMEM, errno,
				 "cannot map pages to calibrate with");
	madvise(mem, size, MADV_NOHUGEPAGE); /* EINVAL: no huge pages at all */
	for (size_t i = 0; i < TOUCH_PAGES; i++)
		mem[i * TPAGE_SIZE] = 1;
	int64_t cost[TOUCH_ROUNDS];
	for (size_t k = 0; k < TOUCH_ROUNDS; k++) {
		madvise(mem, size, MADV_COLD);
		int64_t first = touch_all_ns(mem);
		cost[k] = (first - touch_all_ns(mem)) / TOUCH_PAGES;
	}
	munmap(mem, size);
	*ret = median(cost, TOUCH_ROUNDS);
	return 0;
}

/* What the spinning child and its parent share. */
struct spin {
	volatile uint32_t round; /* set by the parent: touch and start */
	volatile uint32_t ready; /* set by the child: touched, spinning */
	volatile uint32_t done;	 /* set by the parent: round is over */
	volatile int64_t worst[IPI_ROUNDS + 1]; /* longest gap, ns */
	volatile int64_t usual[IPI_ROUNDS + 1]; /* shortest one */
};

/* The child: touch the page, then look at the clock and nothing else. */
static void spin_forever(struct spin *s, volatile char *page)
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

/* Rounds with and without a reset in turn; the difference of the longest gap
 * is the interrupt. */
static uint64_t play(struct spin *s, int pidfd, char *page)
{
	int64_t with[IPI_ROUNDS], without[IPI_ROUNDS];
	size_t nr_with = 0, nr_without = 0;
	struct iovec iov = {.iov_base = page, .iov_len = TPAGE_SIZE};
	uint64_t deadline = smco_now_ns() + IPI_TOTAL_NS;

	for (uint32_t k = 1; k <= IPI_ROUNDS; k++) {
		s->round = k;
		if (!spin_until(&s->ready, k, deadline))
			break;
		if (k & 1 && syscall(SYS_process_madvise, pidfd, &iov, 1,
				     MADV_COLD, 0) < 0)
			break;
		idle_ns(IPI_ROUND_NS / 5);
		s->done = k;
		if (!spin_until(&s->ready, UINT32_MAX, deadline))
			break;
		int64_t gap = s->worst[k] - s->usual[k];
		if (k & 1)
			with[nr_with++] = gap;
		else
			without[nr_without++] = gap;
	}
	if (nr_with < IPI_MIN_ROUNDS || nr_without < IPI_MIN_ROUNDS)
		return 0;
	uint64_t a = median(with, nr_with), b = median(without, nr_without);
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

static uint64_t play_with_child(struct spin *s, char *page, int cpu)
{
	pid_t parent = getpid();
	/* No exit signal and __WCLONE below: the tracer's own wait never
	 * hears of this child. */
	pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent) {
			pin(cpu);
			spin_forever(s, page);
		}
		_exit(0);
	}
	if (pid < 0)
		return 0;
	uint64_t ns = 0;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0) {
		ns = play(s, pidfd, page);
		close(pidfd);
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	return ns;
}

/* What a spinning thread on another CPU loses when a page that it has used is
 * reset. 0 with one CPU, or when that CPU was too busy to tell. */
static uint64_t measure_shootdown(void)
{
	cpu_set_t allowed;
	int self = sched_getcpu();
	if (sched_getaffinity(0, sizeof(allowed), &allowed) || self < 0)
		return 0;
	int cpu = other_cpu(&allowed, self);
	if (cpu < 0)
		return 0;
	struct spin *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *page = mmap(NULL, TPAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t ns = 0;
	if (s != MAP_FAILED && page != MAP_FAILED) {
		pin(self);
		ns = play_with_child(s, page, cpu);
		sched_setaffinity(0, sizeof(allowed), &allowed);
	}
	if (s != MAP_FAILED)
		munmap(s, sizeof(*s));
	if (page != MAP_FAILED)
		munmap(page, TPAGE_SIZE);
	return ns;
}

int bits_cost_get(struct bits_cost *ret, struct smco_err *err)
{
	static struct bits_cost known;
	if (!known.touch_ns) {
		int r = measure_touch(&known.touch_ns, err);
		if (r)
			return r;
	}
	if (!known.shootdown_ns)
		known.shootdown_ns = measure_shootdown();
	*ret = known;
	return 0;
}
