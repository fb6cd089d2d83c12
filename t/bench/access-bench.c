/*
 * What accessed bits cost, on this machine: reading, resetting, and what the
 * program pays. Prints a table; asserts nothing. Usage: access-bench [MiB]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/probe/access.h"
#include "t/unit/pidproc.h"

enum mode { REST, TOUCH_ALL, RANDOM };
static struct shared {
	volatile enum mode mode;
	volatile bool done;
	volatile uint64_t nr_reads;
} * shared;
static char *mem;
static size_t size;

static void child(void)
{
	uint64_t x = 88172645463325252ULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < size; i += 4096)
		mem[i] = 1;
	shared->done = true;
	for (;;) {
		if (shared->mode == TOUCH_ALL) {
			for (size_t i = 0; i < size; i += 4096)
				(void)*(volatile char *)(mem + i);
			shared->mode = REST;
			shared->done = true;
		} else if (shared->mode == RANDOM) {
			for (int i = 0; i < 1000; i++) {
				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				(void)*(volatile char *)(mem + x % size);
			}
			shared->nr_reads += 1000;
		} else {
			usleep(50);
		}
	}
}

static void touch_all(void)
{
	shared->done = false;
	shared->mode = TOUCH_ALL;
	while (!shared->done)
		usleep(50);
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), cmp);
	return v[n / 2];
}

typedef int (*call_fn)(struct access *, struct page_range *, size_t);

static double time_us(call_fn fn, struct access *a, struct page_range *r,
		      size_t n)
{
	uint64_t start = smco_now_ns();
	if (fn(a, r, n))
		printf("(failed)\n");
	return (double)(smco_now_ns() - start) / 1e3;
}

/* @nr ranges of @pages pages each, evenly spread. */
static void bench_ranges(struct access *a, size_t nr, size_t pages)
{
	struct page_range *r = calloc(nr, sizeof(*r));
	size_t step = size / nr / 4096 * 4096;
	if (step < pages * 4096 || !r)
		goto out;
	for (size_t i = 0; i < nr; i++) {
		r[i].start = (uintptr_t)mem + i * step;
		r[i].end = r[i].start + pages * 4096;
	}
	double collect[9], arm[9], quiet[9];
	for (int k = 0; k < 9; k++) {
		touch_all();
		collect[k] = time_us(a->ops->collect, a, r, nr);
		arm[k] = time_us(a->ops->arm, a, r, nr);
		quiet[k] = time_us(a->ops->arm, a, r, nr);
	}
	double c = median(collect, 9), m = median(arm, 9), q = median(quiet, 9);
	printf("%7zu x %6zu pages: collect %9.1f us (%7.3f us each), "
	       "arm touched %9.1f (%7.3f), arm quiet %9.1f\n",
	       nr, pages, c, c / (double)nr, m, m / (double)nr, q);
out:
	free(r);
}

static double rate_ns(int ms)
{
	uint64_t nr = shared->nr_reads, start = smco_now_ns();
	usleep((useconds_t)ms * 1000);
	return (double)(smco_now_ns() - start) /
	       (double)(shared->nr_reads - nr);
}

/* Random reads while a share of the pages is reset every 20 ms: what a first
 * touch really costs, against what the mechanism says. */
static void bench_touch(struct access *a, size_t every)
{
	size_t nr = size / 4096 / every;
	struct page_range *r = calloc(nr, sizeof(*r));
	for (size_t i = 0; i < nr; i++) {
		r[i].start = (uintptr_t)mem + i * every * 4096;
		r[i].end = r[i].start + 4096;
	}
	shared->mode = RANDOM;
	usleep(50000);
	double base = rate_ns(300);
	uint64_t side = a->ops->side_cost_ns(a), touched = 0;
	uint64_t nr_reads = shared->nr_reads, start = smco_now_ns(), own = 0;
	int passes = 0;
	while (smco_now_ns() - start < 600 * NSEC_PER_MSEC) {
		uint64_t t = smco_now_ns();
		a->ops->arm(a, r, nr);
		own += smco_now_ns() - t;
		for (size_t i = 0; i < nr; i++)
			touched += passes ? r[i].nr_reset : 0;
		passes++;
		usleep(20000);
	}
	double wall = (double)(smco_now_ns() - start);
	double reads = (double)(shared->nr_reads - nr_reads);
	double lost = wall - reads * base;
	side = a->ops->side_cost_ns(a) - side;
	printf("1 page of %zu reset every 20 ms: read %.2f -> %.2f ns; lost "
	       "%.2f %% of the time; the mechanism says touches %.2f %% + "
	       "side %.2f %%; arm takes %.0f us\n",
	       every, base, wall / reads, 100 * lost / wall,
	       100 * (double)(touched * a->ops->touch_cost_ns(a)) / wall,
	       100 * (double)side / wall, (double)own / passes / 1e3);
	shared->mode = REST;
	usleep(1000);
	free(r);
}

int main(int argc, char **argv)
{
	size = (size_t)(argc > 1 ? atol(argv[1]) : 1024) << 20;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED || mem == MAP_FAILED || size < 4096)
		return 1;
	madvise(mem, size, MADV_NOHUGEPAGE);
	struct tproc proc = {fork()};
	if (!proc.pid)
		child();
	while (!shared->done)
		usleep(1000);
	struct access *a;
	struct smco_err err;
	uint64_t start = smco_now_ns();
	if (access_bits.open(&proc, &a, &err)) {
		printf("bits: %s\n", err.msg);
	} else {
		printf("open %.1f ms, touch cost %llu ns\n",
		       (double)(smco_now_ns() - start) / 1e6,
		       (unsigned long long)a->ops->touch_cost_ns(a));
		bench_ranges(a, 1, 1);
		bench_ranges(a, 1, size / 4096);
		bench_ranges(a, 512, 2);
		bench_ranges(a, 512, 16);
		bench_ranges(a, 100000, 2);
		bench_ranges(a, size / 4096 / 16, 16);
		for (size_t every = 1024; every; every /= 32)
			bench_touch(a, every);
		a->ops->close(a);
	}
	kill(proc.pid, SIGKILL);
	waitpid(proc.pid, NULL, 0);
	return 0;
}
