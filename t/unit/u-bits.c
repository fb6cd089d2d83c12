/*
 * Accessed bits: every touched page is seen, no other is; what cannot be
 * reset is said; huge pages stay whole; nonsense is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>

#include "supervisor/probe/ptread.h"

#define PAGES  4096
#define BIG_NR 100000
#include "t/unit/bits.h"
#include "t/unit/pidproc.h"

static char *huge; /* 4 huge pages, if there are any */
static char *big;  /* 2 * BIG_NR pages, every other one used */
static volatile long *shared_rounds;
static volatile bool *shared_quit;

/* Through a pipe: write(2) reads the page, read(2) writes it. */
static long act_syscalls(long first, long is_read)
{
	int fd[2];
	char c[16] = "";
	if (pipe(fd))
		return -1;
	for (long i = first; i < PAGES; i += 13) {
		char *from = is_read ? c : mem + i * 4096 + 8;
		char *to = is_read ? mem + i * 4096 + 8 : c;
		if (write(fd[1], from, 16) != 16 || read(fd[0], to, 16) != 16)
			return -1;
	}
	close(fd[0]);
	close(fd[1]);
	return 0;
}

/* Read one page of @nr, @stride apart, again and again until told to quit. */
static long act_hot(long nr, long stride)
{
	while (!*shared_quit) {
		for (long i = 0; i < nr; i++)
			(void)*(volatile char *)(mem + i * stride * 4096);
		++*shared_rounds;
	}
	return 0;
}

static long act_touch(long addr, long is_write)
{
	if (is_write)
		*(volatile char *)addr = 3;
	else
		(void)*(volatile char *)addr;
	return 0;
}

static long act_mlock(long addr, long len)
{
	/* Not mlock(): sanitizers make that do nothing. */
	return syscall(SYS_mlock, addr, len);
}

static long act_fork(long unused1, long unused2)
{
	(void)unused1;
	(void)unused2;
	pid_t pid = fork();
	if (!pid)
		for (;;)
			pause();
	return pid;
}

static long act_reap(long pid, long unused)
{
	(void)unused;
	kill((pid_t)pid, SIGKILL);
	return waitpid((pid_t)pid, NULL, 0);
}

static long act_big(long first, long stride)
{
	for (long i = first; i < BIG_NR; i += stride)
		*(volatile char *)(big + i * 2 * 4096) = 1;
	return 0;
}

static long act_map(long pages, long unused)
{
	(void)unused;
	char *at = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long i = 0; at != MAP_FAILED && i < pages; i++)
		at[i * 4096] = 1;
	return at == MAP_FAILED ? 0 : (long)at;
}

struct trial {
	int nr, missed, wrong, other;
};

/* Reset all, let the puppet act, compare page by page, then as one range. */
static struct trial try_exact(puppet_fn fn, long first, long arg, long stride)
{
	static struct page_range r[PAGES];
	struct trial t = {0};
	set_pages(r, PAGES, mem, 1);
	t.other += !settle(r, PAGES);
	t.other += puppet_do(&pup, fn, first, arg) < 0;
	t.other += a->ops->collect(a, r, PAGES) != 0;
	for (long i = 0; i < PAGES; i++) {
		bool want = i >= first && (i - first) % stride == 0;
		t.nr += want;
		t.missed += want && (r[i].nr_touched != 1 ||
				     r[i].first_touched != r[i].start);
		t.wrong += !want && r[i].nr_touched;
		t.wrong += r[i].nr_present != 1;
	}
	struct page_range all = range_at(mem, PAGES);
	t.other += a->ops->collect(a, &all, 1) != 0;
	t.missed += all.nr_touched != (uint32_t)t.nr;
	t.missed += all.first_touched - all.start != (taddr_t)first * PAGE;
	t.wrong += all.nr_present != PAGES;
	/* collect does not reset, arm does and says how many. */
	t.other += a->ops->arm(a, &all, 1) != 0;
	t.missed += all.nr_reset != (uint32_t)t.nr;
	t.other += a->ops->collect(a, &all, 1) != 0;
	t.wrong += all.nr_touched != 0;
	return t;
}

static void test_exact(const char *what, puppet_fn fn, long first, long arg,
		       long stride)
{
	struct trial t = {.missed = 1};
	for (int k = 0; k < TRIALS && t.missed && !t.wrong && !t.other; k++)
		t = try_exact(fn, first, arg, stride);
	check_msg(t.nr > 300 && !t.missed,
		  "%s: all of %d touched pages seen (%d missed)", what, t.nr,
		  t.missed);
	check_msg(!t.wrong, "%s: no other page (%d)", what, t.wrong);
	check_int(t.other, 0);
}

/* Touched @k and the last of @nr pages: seen, and reset as one range. */
static bool try_few(long nr, long k)
{
	struct page_range r = range_at(mem + (size_t)k * PAGE, (size_t)nr);
	taddr_t page = r.start + (taddr_t)k * PAGE;
	uint32_t want = k < nr - 1 ? 2 : 1;
	if (!settle(&r, 1))
		return false;
	puppet_do(&pup, act_touch, (long)page, 0);
	puppet_do(&pup, act_touch, (long)(r.end - PAGE), 0);
	a->ops->collect(a, &r, 1);
	if (r.nr_present != nr || r.nr_touched != want ||
	    r.first_touched != page)
		return false;
	a->ops->arm(a, &r, 1);
	a->ops->collect(a, &r, 1);
	return r.nr_reset == want && r.nr_touched == 0;
}

/* Small ranges are counted in another way than large ones. */
static void test_few(void)
{
	int nr_wrong = 0;
	for (long nr = 1; nr <= 12; nr++)
		for (long k = 0; k < nr; k++) {
			bool good = false;
			for (int i = 0; i < TRIALS && !good; i++)
				good = try_few(nr, k);
			nr_wrong += !good;
		}
	check_int(nr_wrong, 0);
}

/* What a thread reads all the time must not look quiet once it has read it
 * again after the reset: no stale TLB entry hides it. Twice in a row is not
 * somebody else's doing. */
static void test_hot(void)
{
	struct page_range r[16] = {0};
	int in_a_row[16] = {0}, missed = 0;
	set_pages(r, 16, mem, 100);
	*shared_quit = false;
	puppet_begin(&pup, act_hot, 16, 100);
	for (int k = 0; k < 20; k++) {
		a->ops->arm(a, r, 16);
		long rounds = *shared_rounds;
		usleep(10000);
		while (*shared_rounds < rounds + 2)
			usleep(1000);
		a->ops->collect(a, r, 16);
		for (int i = 0; i < 16; i++) {
			in_a_row[i] = r[i].nr_touched ? 0 : in_a_row[i] + 1;
			missed += in_a_row[i] > 1;
		}
	}
	*shared_quit = true;
	puppet_wait(&pup);
	check_msg(!missed, "hot pages: none of 16 missed twice running (%d)",
		  missed);
}

/* A thread that computes on CPU @cpu, @mm as scanned from another one: it waits
 * for that CPU once we are there, and only then. */
static void test_displaced(struct ptread *pt, int fd, struct ptread_mm mm,
			   int cpu)
{
	int was_away = 0, failed = 0, seen = 0;
	cpu_set_t here, there;
	check(mm.running_tid > 0);
	sched_getaffinity(0, sizeof(here), &here);
	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	mm.displaced_tid = mm.running_tid;
	for (int k = 0; k < 100; k++) {
		failed += ptread_scan(pt, fd, 0, &mm) != 0;
		was_away += mm.is_displaced;
	}
	sched_setaffinity(0, sizeof(there), &there);
	for (int k = 0; k < 10000 && seen < 10; k++) {
		failed += ptread_scan(pt, fd, 0, &mm) != 0;
		seen += mm.is_displaced && !mm.nr_running;
	}
	/* Another one. */
	mm.displaced_tid++;
	failed += ptread_scan(pt, fd, 0, &mm) != 0 || mm.is_displaced;
	sched_setaffinity(0, sizeof(here), &here);
	check_int(was_away, 0);
	check_int(seen, 10);
	check_int(failed, 0);
}

/* A thread of the program that computes on another CPU is counted; this one
 * is not, nor one that waits. */
static void test_running(void)
{
	struct ptread *pt;
	struct smco_err err = {0};
	struct ptread_mm mm = {.want_running = true};
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pup.pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	cpu_set_t all, here, there;
	sched_getaffinity(0, sizeof(all), &all);
	if (CPU_COUNT(&all) < 2 || ptread_get(&pt, &err)) {
		tap_skip("one CPU only");
		return;
	}
	int first = -1, other = -1;
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		other = i;
		if (first < 0)
			first = i;
	}
	CPU_ZERO(&here);
	CPU_SET(first, &here);
	CPU_ZERO(&there);
	CPU_SET(other, &there);
	sched_setaffinity(0, sizeof(here), &here);
	sched_setaffinity(pup.pid, sizeof(there), &there);
	/* It has answered, and may need a moment to go to sleep. */
	int seen = 0, quiet = 0, failed = 0;
	for (int k = 0; k < 5000 && quiet < 20; k++) {
		usleep(1000);
		failed += ptread_scan(pt, fd, 0, &mm) != 0;
		quiet = mm.nr_running ? 0 : quiet + 1;
	}
	*shared_quit = false;
	puppet_begin(&pup, act_hot, 16, 100);
	for (int k = 0; k < 10000 && seen < 10; k++) {
		usleep(1000);
		failed += ptread_scan(pt, fd, 0, &mm) != 0;
		seen += mm.nr_running == 1 && mm.running_cpu == other;
		failed += mm.nr_running > 1;
		if (seen == 10)
			test_displaced(pt, fd, mm, other);
	}
	*shared_quit = true;
	puppet_wait(&pup);
	sched_setaffinity(0, sizeof(all), &all);
	sched_setaffinity(pup.pid, sizeof(all), &all);
	check_int(quiet, 20);
	check_int(seen, 10);
	check_int(failed, 0);
	ptread_put(pt);
	close(fd);
}

/* Of so many somebody else takes a bit away in nearly every trial: each is to
 * be right in one of them. */
static struct trial try_many(struct page_range *r)
{
	static bool was_right[BIG_NR];
	struct trial t = {0};
	t.other += !settle(r, BIG_NR);
	puppet_do(&pup, act_big, 3, 7);
	t.other += a->ops->collect(a, r, BIG_NR) != 0;
	for (uint32_t i = 0; i < BIG_NR; i++) {
		bool want = i % 7 == 3;
		t.nr += want;
		was_right[i] |= r[i].nr_touched == 1;
		t.missed += want && !was_right[i];
		t.wrong += !want && r[i].nr_touched;
		t.wrong += r[i].nr_present != 1;
	}
	return t;
}

static void test_many(void)
{
	struct page_range *r = calloc(BIG_NR, sizeof(*r));
	struct trial t = {.missed = 1};
	puppet_do(&pup, act_big, 0, 1);
	set_pages(r, BIG_NR, big, 2);
	for (int k = 0; k < TRIALS && t.missed && !t.wrong && !t.other; k++)
		t = try_many(r);
	check_msg(!t.missed && !t.wrong,
		  "100 000 ranges: each answer right (%d missed, %d wrong)",
		  t.missed, t.wrong);
	check_int(t.other, 0);
	free(r);
	munmap(big, 2 * BIG_NR * PAGE);
	puppet_do(&pup, act_munmap, (long)big, 2 * BIG_NR * PAGE);
}

/* Neighbours become one reset, in whatever order they come; a page between
 * two ranges is not theirs to reset. */
static void test_order(void)
{
	static const int order[] = {9, 3, 2, 1, 7, 0, 8};
	struct page_range r[ARRAY_SIZE(order)] = {0};
	struct page_range others = range_at(mem + 4 * PAGE, 3);
	struct page_range first = range_at(mem, 10);
	check(settle(&first, 1));
	for (int i = 0; i < 10; i++)
		puppet_do(&pup, act_touch, (long)(mem + (long)i * 4096), 0);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		r[i] = range_at(mem + (size_t)order[i] * PAGE, 1);
	check_int(a->ops->arm(a, r, ARRAY_SIZE(order)), 0);
	check_int(a->ops->collect(a, r, ARRAY_SIZE(order)), 0);
	uint32_t touched = 0, reset = 0;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		touched += r[i].nr_touched;
		reset += r[i].nr_reset;
	}
	check_int(touched, 0);
	check_int(reset, ARRAY_SIZE(order));
	check_int(a->ops->collect(a, &others, 1), 0);
	check_int(others.nr_touched, 3);

	/* A gap of one page between two that are reset. */
	struct page_range pair[] = {range_at(mem + 4 * PAGE, 1),
				    range_at(mem + 6 * PAGE, 1)};
	struct page_range gap = range_at(mem + 5 * PAGE, 1);
	a->ops->arm(a, pair, 2);
	a->ops->collect(a, &gap, 1);
	check_int(gap.nr_touched, 1);

	/* Three that have the first's last page, and the last's first one, in
	 * common: each counts once. */
	struct page_range common[] = {range_at(mem + 4 * PAGE, 3),
				      range_at(mem, 3),
				      range_at(mem + 2 * PAGE, 3)};
	for (int i = 0; i < 10; i++)
		puppet_do(&pup, act_touch, (long)(mem + (long)i * 4096), 0);
	check_int(a->ops->arm(a, common, 3), 0);
	check_int(common[0].nr_touched, 3);
	check_int(common[1].nr_reset, 3);
	check_int(common[2].nr_reset, 2);
	check_int(common[0].nr_reset, 2);
}

/* Run on the first (0) or last (1) CPU that is allowed. */
static long act_pin(long last, long unused)
{
	cpu_set_t all, one;
	(void)unused;
	if (sched_getaffinity(0, sizeof(all), &all))
		return -1;
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all) || (!last && CPU_COUNT(&one)))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
	}
	return sched_setaffinity(0, sizeof(one), &one);
}

/* Five pages that are new on another CPU, which then goes idle. */
static void test_new(void)
{
	cpu_set_t before;
	sched_getaffinity(0, sizeof(before), &before);
	puppet_do(&pup, act_pin, 1, 0);
	act_pin(0, 0);
	long addr = puppet_do(&pup, act_map, 5, 0);
	struct page_range r = range_at((char *)addr, 5);
	check_msg(settle(&r, 1), "new pages can be reset in the end");
	check_int(r.nr_present, 5);
	sched_setaffinity(0, sizeof(before), &before);
	sched_setaffinity(pup.pid, sizeof(before), &before);
}

/* Ranges that vanish must not spoil the batch they are in. */
static void test_unmapped(void)
{
	struct page_range r[8] = {0};
	puppet_do(&pup, act_store, 0, 1);
	set_pages(r, 8, mem + 512 * PAGE, 4);
	r[6].end += 2 * PAGE; /* three pages, the middle one goes */
	puppet_do(&pup, act_munmap, (long)r[2].start, PAGE);
	puppet_do(&pup, act_munmap, (long)r[6].start + PAGE, PAGE);
	check_msg(settle(r, 8), "the rest is reset, both sides of a hole too");
	check_int(r[2].nr_reset, 0);
	check_int(r[2].nr_present, 0);
	check_int(r[6].nr_present, 2);
	puppet_do(&pup, act_touch, (long)r[7].start, 0);
	puppet_do(&pup, act_touch, (long)r[6].start + 2 * PAGE, 0);
	check_int(a->ops->collect(a, r, 8), 0);
	check_int(r[7].nr_touched, 1);
	check_int(r[6].nr_touched, 1);
	check_int(r[6].first_touched, r[6].start + 2 * PAGE);
	check_int(r[3].nr_touched, 0);
}

static void test_stuck(void)
{
	struct page_range r = range_at(mem + 1024 * PAGE, 16);
	check(settle(&r, 1));
	puppet_do(&pup, act_load, 0, 1);
	long child = puppet_do(&pup, act_fork, 0, 0);
	check_int(a->ops->arm(a, &r, 1), 0);
	check_int(r.nr_stuck, 16);
	check_int(r.nr_reset, 0);
	puppet_do(&pup, act_touch, (long)r.start, 1);
	puppet_do(&pup, act_touch, (long)r.start + PAGE, 1);
	/* The two copies just made are new pages: they settle in time. */
	for (int k = 0; k < 1000 && r.nr_touched != 14; k++) {
		usleep(20000);
		a->ops->arm(a, &r, 1);
		a->ops->collect(a, &r, 1);
	}
	check_int(r.nr_stuck, 14);
	check_int(r.nr_touched, 14);
	puppet_do(&pup, act_reap, child, 0);
	check_msg(settle(&r, 1), "observable again when the child has gone");
	check_int(r.nr_stuck, 0);

	struct page_range locked = range_at(mem + 1100 * PAGE, 4);
	puppet_do(&pup, act_store, 0, 1);
	if (puppet_do(&pup, act_mlock, (long)locked.start, 4 * PAGE)) {
		tap_skip("cannot lock memory here");
	} else {
		/* Somebody who is short of memory may clear a bit before we
		 * look: then it is not set, and nothing is stuck. */
		for (int i = 0; i < 100 && locked.nr_stuck != 4; i++) {
			puppet_do(&pup, act_store, 0, 1);
			a->ops->arm(a, &locked, 1);
		}
		check_int(locked.nr_stuck, 4);
	}
}

/* Two small ranges in one huge page, one across two, one of a whole one. */
static void test_huge(void)
{
	puppet_do(&pup, act_fill_huge, (long)huge, 4);
	long before = anon_huge_kb(range_at(huge, 4 * HUGE_PAGE / PAGE));
	if (before < 8192) {
		tap_skip("no huge pages to be had");
		return;
	}
	struct page_range one = range_at(huge + 10 * PAGE, 2);
	struct page_range two = range_at(huge + 100 * PAGE, 3);
	struct page_range across = range_at(huge + 2 * HUGE_PAGE - PAGE, 2);
	check(settle(&one, 1));
	check_int(one.nr_huge, 1);
	check_int(one.nr_present, 2);
	check(settle(&two, 1));
	check(settle(&across, 1));
	check_int(across.nr_huge, 2);
	puppet_do(&pup, act_touch, (long)two.start, 0);
	a->ops->collect(a, &two, 1);
	check_int(two.nr_touched, 3);
	check_int(two.first_touched, two.start);
	/* Resetting for one must not hide from two what happened to it. */
	a->ops->arm(a, &one, 1);
	a->ops->collect(a, &two, 1);
	check_int(two.nr_touched, 3);
	a->ops->collect(a, &one, 1);
	check_int(one.nr_touched, 0);
	a->ops->arm(a, &two, 1);
	a->ops->collect(a, &two, 1);
	check_int(two.nr_touched, 0);
	a->ops->collect(a, &across, 1);
	check_int(across.nr_touched, 0);
	puppet_do(&pup, act_touch, (long)across.start + PAGE, 0);
	a->ops->collect(a, &across, 1);
	check_int(across.nr_touched, 1);
	check_int(across.first_touched, across.start + PAGE);
	check_int(anon_huge_kb(range_at(huge, 4 * HUGE_PAGE / PAGE)), before);
}

static void test_hostile(void)
{
	struct page_range r[] = {
		{.start = (uintptr_t)mem + 1, .end = (uintptr_t)mem + PAGE},
		{.start = (uintptr_t)mem, .end = (uintptr_t)mem + 17},
		{.start = (uintptr_t)mem + PAGE, .end = (uintptr_t)mem},
		{.start = (uintptr_t)mem, .end = (uintptr_t)mem},
		{.start = 0xffff888000000000, .end = 0xffff888000001000},
		{.start = 0x7ffffffff000, .end = 0x800000000000},
		{.start = 0x800000000000, .end = 0x800000001000},
		{.start = 0, .end = UINT64_MAX & ~(PAGE - 1)},
		{.start = UINT64_MAX & ~(PAGE - 1), .end = 0},
		range_at(mem, 8),
	};
	const size_t n = ARRAY_SIZE(r);
	puppet_do(&pup, act_store, 2048, 1);
	puppet_do(&pup, act_touch, (long)mem, 0);
	check_int(a->ops->collect(a, r, n), 0);
	size_t answered = 0;
	for (size_t i = 0; i + 1 < n; i++)
		answered += r[i].nr_present || r[i].nr_touched;
	check_int(answered, 0);
	check(r[n - 1].nr_touched >= 1);
	check_int(a->ops->arm(a, r, n), 0);
	for (size_t i = 0; i + 1 < n; i++)
		if (r[i].nr_reset != UINT32_MAX)
			check_msg(false, "hostile range %zu was armed", i);
	check(r[n - 1].nr_reset != UINT32_MAX);
	/* The whole of user space is one legal range. */
	struct page_range all = {.start = 0, .end = 0x7ffffffff000};
	check_int(a->ops->collect(a, &all, 1), 0);
	check(all.nr_present >= PAGES - 2);
	/* Nothing asked, nothing answered. */
	check_int(a->ops->collect(a, NULL, 0), 0);
	check_int(a->ops->arm(a, NULL, 0), 0);
}

static void test_gone(void)
{
	struct page_range r = range_at(mem, 8);
	puppet_end(&pup);
	check_int(a->ops->collect(a, &r, 1), SMCO_GONE);
	check_int(a->ops->arm(a, &r, 1), SMCO_GONE);
	a->ops->forget(a);
	struct tproc nobody = {pup.pid};
	struct access *none = NULL;
	struct smco_err err = {0};
	check_int(access_bits.open(&nobody, &none, &err), SMCO_GONE);
	check(none == NULL && err.msg[0]);
}

int main(void)
{
	big = map_anon(2 * BIG_NR * PAGE, MAP_PRIVATE);
	madvise(big, 2 * BIG_NR * PAGE, MADV_NOHUGEPAGE);
	huge = map_huge(4);
	shared_rounds = (long *)map_anon(PAGE, MAP_SHARED);
	shared_quit = (bool *)(shared_rounds + 1);

	start_with_pages();
	struct tproc proc = {pup.pid};
	if (!bits_open(&proc)) {
		puppet_end(&pup);
		return tap_done();
	}
	test_exact("load", act_load, 5, 13, 13);
	test_exact("store", act_store, 3, 13, 13);
	test_exact("write(2)", act_syscalls, 7, 0, 13);
	test_exact("read(2)", act_syscalls, 1, 1, 13);
	check(a->ops->touch_cost_ns(a) > 0);
	test_few();
	test_hot();
	test_running();
	test_order();
	test_new();
	test_many();
	test_stuck();
	test_huge();
	test_unmapped();
	test_hostile();
	test_gone();
	return tap_done();
}
