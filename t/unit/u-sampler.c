/*
 * Samples by the kernel, of an event that a program knows the number of: one at
 * each page fault. Where they are taken, of whom, what of the stack comes
 * along, and that none goes uncounted.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmu/open.h"
#include "pmu/sampler.h"
#include "t/unit/tap.h"

#define PAGES 300

static struct sampler_params by_fault(size_t ring_bytes, uint32_t stack_bytes)
{
	struct sampler_params p = {
		.period = 1,
		.stack_bytes = stack_bytes,
		.ring_bytes = ring_bytes,
	};
	struct smco_err err = {0};
	/* User level only: the same everywhere. */
	if (pmu_event_parse("page-faults:u", &p.event, &err) ||
	    pmu_try(&p.event, &err)) {
		printf("1..0 # SKIP %s\n", err.msg);
		exit(0);
	}
	return p;
}

static char *map_pages(void)
{
	char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, PAGES * 4096, MADV_NOHUGEPAGE);
	return p;
}

/* In a section of its own, whose ends the linker knows: a fault in a function
 * beside it is not one in it. */
__attribute__((section("touch_code"), noinline,
	       no_sanitize("address", "undefined"))) static void
touch(char *p)
{
	volatile char mark[64];
	mark[0] = 'M';
	for (int i = 0; i < PAGES; i++)
		((volatile char *)p)[i * 4096] = mark[0];
	munmap(p, PAGES * 4096);
	mark[1] = 'm'; /* no tail call: it has a frame */
}

struct seen {
	uint64_t nr, nr_in_touch, nr_whole, nr_foreign;
	pid_t tid[8];
	size_t nr_tids;
};

extern const char __start_touch_code[], __stop_touch_code[];

/* Behind its first byte and those where a page begins: there the code itself
 * may not be in memory yet. */
static bool is_in_touch(uint64_t ip)
{
	return ip > (uint64_t)(uintptr_t)__start_touch_code &&
	       ip < (uint64_t)(uintptr_t)__stop_touch_code && ip % 4096;
}

static void look(struct seen *s, const struct ring_record *r)
{
	s->nr++;
	s->nr_foreign += r->pid != (uint32_t)getpid();
	for (size_t i = 0; i <= s->nr_tids && i < ARRAY_SIZE(s->tid); i++) {
		if (i == s->nr_tids)
			s->tid[s->nr_tids++] = (pid_t)r->tid;
		if (s->tid[i] == (pid_t)r->tid)
			break;
	}
	if (!is_in_touch(r->sample.ip))
		return;
	s->nr_in_touch++;
	s->nr_whole +=
		r->sample.user.value.nr == SAMPLER_NR_REGS &&
		ring_u64(r->sample.user.value, SAMPLER_IP) == r->sample.ip &&
		r->sample.stack.nr >= 64 &&
		memchr(r->sample.stack.data, 'M', r->sample.stack.nr);
}

static struct seen drain(struct sampler *s)
{
	struct seen seen = {0};
	struct ring_record r;
	while (sampler_next(s, &r))
		look(&seen, &r);
	return seen;
}

static void *touch_new(void *arg)
{
	touch(map_pages());
	return arg;
}

static void whole(void)
{
	struct sampler_params p = by_fault(4u << 20, 1024);
	struct sampler *s = NULL;
	char *pages = map_pages();
	check_int(sampler_create(&p, &s, NULL), 0);
	check_int(sampler_add(s, gettid(), false, NULL), 0);
	touch(pages);
	sampler_set(s, false);
	char *more = map_pages();
	touch(more); /* is not sampled */
	struct seen seen = drain(s);
	check_int(seen.nr_in_touch, PAGES);
	check_int(seen.nr_whole, PAGES);
	check_int(seen.nr_foreign, 0);
	check_int(sampler_lost(s, true), 0);
	check_int(sampler_damaged(s), 0);
	more = map_pages();
	sampler_set(s, true);
	touch(more);
	sampler_set(s, false);
	check_int(drain(s).nr_in_touch, PAGES);
	sampler_destroy(s);
}

static void inherited(bool threads_only)
{
	struct sampler_params p = by_fault(4u << 20, 1024);
	struct sampler *s = NULL;
	pthread_t thread;
	p.threads_only = threads_only;
	check_int(sampler_create(&p, &s, NULL), 0);
	check_int(sampler_add(s, gettid(), false, NULL), 0);
	pthread_create(&thread, NULL, touch_new, NULL);
	pthread_join(thread, NULL);
	pid_t child = fork();
	if (!child) {
		touch_new(NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	sampler_set(s, false);
	struct seen seen = drain(s);
	check_int(seen.nr_in_touch, threads_only ? PAGES : 2 * PAGES);
	check_int(seen.nr_foreign >= PAGES, !threads_only);
	check_int(seen.nr_tids, threads_only ? 2 : 3);
	sampler_destroy(s);
}

/* Rings that are too small, and nobody reads them in time. */
static void lossy(void)
{
	struct sampler_params p = by_fault(16384, 1024);
	struct sampler *s = NULL;
	char *pages = map_pages();
	check_int(sampler_create(&p, &s, NULL), 0);
	check_int(sampler_add(s, gettid(), false, NULL), 0);
	touch(pages);
	sampler_set(s, false);
	struct seen seen = drain(s);
	uint64_t lost = sampler_lost(s, true);
	check_msg(seen.nr < PAGES && seen.nr, "%ju of %d were kept",
		  (uintmax_t)seen.nr, PAGES);
	/* What is not in touch() is the faults of these lines themselves. */
	check_msg(seen.nr + lost >= PAGES && seen.nr + lost < PAGES + 20,
		  "%ju and %ju lost are %d and few", (uintmax_t)seen.nr,
		  (uintmax_t)lost, PAGES);
	sampler_destroy(s);
}

/* Each record that is read makes another one: there is an end all the same, and
 * what comes later is read the next time. */
static void endless(void)
{
	struct sampler_params p = by_fault(16384, 1024);
	struct sampler *s = NULL;
	struct ring_record r;
	size_t most = 2000, nr = 0;
	char *pages = mmap(NULL, (most + 1) * 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(pages, (most + 1) * 4096, MADV_NOHUGEPAGE);
	check_int(sampler_create(&p, &s, NULL), 0);
	check_int(sampler_add(s, gettid(), false, NULL), 0);
	do
		pages[nr++ * 4096] = 1;
	while (nr < most && sampler_next(s, &r));
	check_msg(nr < most, "%zu records in a row", nr);
	drain(s); /* some were lost, maybe all */
	pages[most * 4096] = 1;
	sampler_set(s, false);
	check(drain(s).nr > 0);
	check_int(drain(s).nr, 0);
	sampler_destroy(s);
	munmap(pages, (most + 1) * 4096);
}

static void on_exec(void)
{
	struct sampler_params p = by_fault(1u << 20, 1024);
	struct sampler *s = NULL;
	int go[2];
	if (pipe(go))
		return;
	check_int(sampler_create(&p, &s, NULL), 0);
	pid_t child = fork();
	if (!child) {
		char c;
		touch_new(NULL);
		if (read(go[0], &c, 1) == 1) {
			touch_new(NULL);
			execlp("true", "true", NULL);
		}
		_exit(1);
	}
	check_int(sampler_add(s, child, true, NULL), 0);
	check_int(write(go[1], "g", 1), 1);
	waitpid(child, NULL, 0);
	struct seen seen = drain(s);
	check_int(seen.nr_in_touch, 0);
	check(seen.nr > 10); /* a program that starts */
	check_int(seen.nr_foreign, seen.nr);
	close(go[0]);
	close(go[1]);
	sampler_destroy(s);
}

static void go_to_cpu(bool last)
{
	cpu_set_t all, one;
	int cpu = -1;
	CPU_ZERO(&one);
	sched_getaffinity(getppid(), sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && (cpu < 0 || last))
			cpu = i;
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/*
 * Code that a process maps is told before the samples that came after it, also
 * of one that went over to another CPU and ended before anybody read.
 */
static void mappings(bool asked)
{
	struct sampler_params p = by_fault(4u << 20, 1024);
	struct sampler *s = NULL;
	char *pages = map_pages();
	p.with_mappings = asked;
	check_int(sampler_create(&p, &s, NULL), 0);
	check_int(sampler_add(s, gettid(), false, NULL), 0);
	pid_t child = fork();
	if (!child) {
		go_to_cpu(true);
		int fd = open("/proc/self/exe", O_RDONLY);
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 8192);
		go_to_cpu(false);
		touch(pages);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	sampler_set(s, false);
	struct ring_record r;
	struct seen before = {0}, after = {0};
	uint64_t time = 0, nr_mapped = 0, nr_disordered = 0;
	while (sampler_next(s, &r)) {
		nr_disordered += r.time < time;
		time = r.time;
		if (r.type == PERF_RECORD_MMAP2)
			nr_mapped += r.pid == (uint32_t)child &&
				     r.mmap.len == 4096 &&
				     r.mmap.pgoff == 8192 &&
				     r.mmap.prot == (PROT_READ | PROT_EXEC) &&
				     strstr(r.mmap.name, "/u-sampler");
		else
			look(nr_mapped ? &after : &before, &r);
	}
	check_int(nr_mapped, asked);
	check_int(before.nr_in_touch, asked ? 0 : PAGES);
	check_int(after.nr_in_touch, asked ? PAGES : 0);
	check_int(nr_disordered, 0);
	munmap(pages, PAGES * 4096);
	sampler_destroy(s);
}

static void refused(void)
{
	struct sampler_params p = by_fault(65536, 1020);
	struct sampler *s = NULL;
	struct smco_err err = {0};
	check_int(sampler_create(&p, &s, &err), SMCO_UNSUPPORTED);
	p.stack_bytes = 1024;
	p.period = 0;
	check_int(sampler_create(&p, &s, &err), SMCO_UNSUPPORTED);
	p.period = 1;
	check_int(sampler_create(&p, &s, &err), 0);
	pid_t gone = fork();
	if (!gone)
		_exit(0);
	waitpid(gone, NULL, 0);
	check_int(sampler_add(s, gone, false, &err), SMCO_GONE);
	struct ring_record r;
	check(!sampler_next(s, &r));
	check_int(sampler_lost(s, true), 0);
	sampler_destroy(s);
	sampler_destroy(NULL);
}

/* Of ourselves by the clock; the share of gaps that are clearly shorter than
 * the period, per cent. */
static uint64_t short_gaps(bool dither, size_t *nr_ret)
{
	struct sampler_params p = {
		.frequency_hz = 1000, .stack_bytes = 64, .ring_bytes = 65536};
	struct sampler *s = NULL;
	struct ring_record r;
	uint64_t last_ns = 0, nr = 0, nr_short = 0;
	check_int(pmu_event_parse("cpu-clock", &p.event, NULL), 0);
	check_int(pmu_try(&p.event, NULL), 0);
	check_int(sampler_create(&p, &s, NULL), 0);
	check_int(sampler_add(s, gettid(), false, NULL), 0);
	while (nr < 1000) {
		if (dither)
			sampler_dither(s, smco_now_ns());
		for (int i = 0; i < 100; i++)
			smco_now_ns();
		while (sampler_next(s, &r)) {
			uint64_t gap_ns = r.time - last_ns;
			nr++;
			nr_short += gap_ns > 700000 && gap_ns < 950000;
			last_ns = r.time;
		}
	}
	sampler_destroy(s);
	*nr_ret = nr;
	return nr_short * 100 / nr;
}

/* Two of five periods are that much shorter. Where others want the CPU, gaps
 * are longer, but not all; and where a timer comes late the next gap is short,
 * too: so one of some. */
static void dithered(void)
{
	size_t nr = 0;
	uint64_t without = 0, with = 0;
	for (int i = 0; i < 20 && (with < 12 || with < 2 * without); i++) {
		without = short_gaps(false, &nr);
		with = short_gaps(true, &nr);
	}
	check_msg(with >= 12 && with >= 2 * without,
		  "%ju %% of %zu gaps are short, %ju %% without",
		  (uintmax_t)with, nr, (uintmax_t)without);
	/* Every one means every one. */
	struct sampler_params p = by_fault(4u << 20, 1024);
	struct sampler *s = NULL;
	check_int(sampler_create(&p, &s, NULL), 0);
	check_int(sampler_add(s, gettid(), false, NULL), 0);
	sampler_dither(s, smco_now_ns());
	touch(map_pages());
	sampler_set(s, false);
	check_int(drain(s).nr_in_touch, PAGES);
	sampler_destroy(s);
}

static void calibrated(void)
{
	struct sampler_params p = {
		.frequency_hz = 999, .stack_bytes = 4096, .ring_bytes = 65536};
	struct smco_err err = {0};
	check_int(pmu_event_parse("cpu-clock", &p.event, &err), 0);
	check_int(pmu_try(&p.event, &err), 0);
	/* Nothing that others on the machine could make of it is taken for it.
	 */
	uint64_t cost_ns = 0;
	for (int i = 0; i < 20 && !cost_ns; i++) {
		cost_ns = sampler_cost_ns(&p);
		check(!cost_ns || cost_ns >= 1000);
	}
	check(cost_ns > 0);
}

int main(void)
{
	whole();
	inherited(false);
	inherited(true);
	lossy();
	endless();
	on_exec();
	mappings(true);
	mappings(false);
	refused();
	dithered();
	calibrated();
	return tap_done();
}
