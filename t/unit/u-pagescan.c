/*
 * Page-scan: every written page is seen, by the program and by system calls,
 * and no other; huge pages stay whole; fork, unmap and nonsense do no harm;
 * nothing is left after close.
 */
#include <errno.h>

#define PAGES 4096
#include "t/unit/pages.h"
#include "t/unit/traced.h"

static char *huge, *bare;
static struct access *a;

static long act_read(long first, long stride)
{
	int fd[2];
	char c[16] = "from a pipe";
	if (pipe(fd))
		return -1;
	for (long i = first; i < PAGES; i += stride)
		if (write(fd[1], c, 16) != 16 ||
		    read(fd[0], mem + i * 4096 + 8, 16) != 16 ||
		    strcmp(mem + i * 4096 + 8, c))
			return -1;
	close(fd[0]);
	close(fd[1]);
	return 0;
}

static long act_write_one(long addr, long value)
{
	*(volatile char *)addr = (char)value;
	return *(volatile char *)addr;
}

/* A fork whose child writes to protected pages; its exit status. */
static long act_fork(long addr, long unused)
{
	(void)unused;
	int status;
	pid_t pid = fork();
	if (!pid) {
		for (int i = 0; i < 8; i++)
			((volatile char *)addr)[i * 4096]++;
		_exit(*(volatile char *)addr == 8 ? 42 : 1);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long act_count_fds(long unused1, long unused2)
{
	(void)unused1;
	(void)unused2;
	long nr = 0;
	for (int fd = 0; fd < 256; fd++)
		nr += lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF;
	return nr;
}

static long act_dontneed(long addr, long len)
{
	return madvise((void *)addr, (size_t)len, MADV_DONTNEED);
}

/* A mapping of eight pages without memory, apart from all others. */
static void map_bare(void)
{
	bare = mmap(NULL, 10 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	bare += PAGE;
	check_int(mprotect(bare, 8 * PAGE, PROT_READ | PROT_WRITE), 0);
}

static void test_exact(const char *what, puppet_fn fn, long first, long stride,
		       bool is_seen)
{
	static struct page_range r[PAGES];
	int missed = 0, wrong = 0, nr = 0;
	for (size_t i = 0; i < PAGES; i++)
		r[i] = range_at(mem + i * PAGE, 1);
	check_int(a->ops->arm(a, r, PAGES), 0);
	check_int(puppet_do(&pup, fn, first, stride) < 0, 0);
	check_int(a->ops->collect(a, r, PAGES), 0);
	for (long i = 0; i < PAGES; i++) {
		bool want = is_seen && i >= first && (i - first) % stride == 0;
		nr += want;
		missed += want && (r[i].nr_touched != 1 ||
				   r[i].first_touched != r[i].start);
		wrong += (!want && r[i].nr_touched) || r[i].nr_present != 1;
	}
	check_msg(!missed, "%s: all %d writes seen (%d missed)", what, nr,
		  missed);
	check_msg(!wrong, "%s: no other page (%d)", what, wrong);
	struct page_range all = range_at(mem, PAGES);
	a->ops->collect(a, &all, 1);
	check_int(all.nr_touched, nr);
	check_int(all.nr_present, PAGES);
	check_int(a->ops->arm(a, &all, 1), 0);
	check_int(all.nr_reset, nr);
	a->ops->collect(a, &all, 1);
	check_int(all.nr_touched, 0);
}

static void test_edges(struct tracer *tr)
{
	struct page_range r[] = {
		{.start = (uintptr_t)mem + 1, .end = (uintptr_t)mem + PAGE},
		{.start = (uintptr_t)mem + PAGE, .end = (uintptr_t)mem},
		{.start = 0xffff888000000000, .end = 0xffff888000001000},
		{.start = 0x7ffffffff000, .end = 0x800000000000},
		range_at(mem, 8), /* goes away */
		range_at(mem + 16 * PAGE, 8),
	};
	const size_t n = ARRAY_SIZE(r);
	check_int(puppet_do(&pup, act_munmap, (long)mem, 8 * PAGE), 0);
	check_int(a->ops->arm(a, r, n), 0);
	for (size_t i = 0; i < 4; i++)
		check_msg(r[i].nr_reset == UINT32_MAX, "nonsense %zu refused",
			  i);
	check(r[5].nr_reset != UINT32_MAX);
	puppet_do(&pup, act_write_one, (long)r[5].start + 3 * PAGE, 5);
	check_int(a->ops->collect(a, r, n), 0);
	check_int(r[4].nr_present, 0);
	check_int(r[5].nr_touched, 1);
	check_int(r[5].first_touched, r[5].start + 3 * PAGE);

	/* Parent and child of a fork write to what is protected. */
	a->ops->arm(a, &r[5], 1);
	puppet_do(&pup, act_write_one, (long)r[5].start, 7);
	a->ops->arm(a, &r[5], 1);
	check_int(traced_do(tr, &pup, act_fork, (long)r[5].start, 0), 42);
	a->ops->collect(a, &r[5], 1);
	check_int(r[5].nr_touched, 0);
	check_int(puppet_do(&pup, act_write_one, (long)r[5].start, 9), 9);
	a->ops->collect(a, &r[5], 1);
	check_int(r[5].nr_touched, 1);
}

/* Pages that never had memory, or have none any more, were not written to. */
static void test_without_memory(void)
{
	struct page_range r = range_at(bare, 8);
	puppet_do(&pup, act_write_one, (long)bare + 5 * PAGE, 1);
	for (int i = 0; i < 2; i++) {
		check_int(a->ops->collect(a, &r, 1), 0);
		check_int(r.nr_present, 1);
		check_int(r.nr_touched, 1);
		check_int(r.first_touched, r.start + 5 * PAGE);
		check_int(a->ops->arm(a, &r, 1), 0);
		check_int(r.nr_present, 1);
		check_int(r.nr_touched, 1);
		check_int(r.nr_reset, 1);
		a->ops->collect(a, &r, 1);
		check_int(r.nr_present, 1);
		check_int(r.nr_touched, 0);
		puppet_do(&pup, act_dontneed, (long)bare, 8 * PAGE);
		a->ops->collect(a, &r, 1);
		check_int(r.nr_touched, 0);
		puppet_do(&pup, act_write_one, (long)bare + 5 * PAGE, 1);
	}
}

static void test_huge(void)
{
	puppet_do(&pup, act_fill_huge, (long)huge, 2);
	long before = anon_huge_kb(range_at(huge, 2 * HUGE_PAGE / PAGE));
	if (before < 4096) {
		tap_skip("no huge pages to be had");
		return;
	}
	struct page_range r = range_at(huge + 5 * PAGE, 4);
	check_int(a->ops->arm(a, &r, 1), 0);
	check(r.nr_stuck > 0);
	puppet_do(&pup, act_write_one, (long)r.start, 1);
	a->ops->collect(a, &r, 1);
	check(r.nr_huge > 0);
	check_int(anon_huge_kb(range_at(huge, 2 * HUGE_PAGE / PAGE)), before);
}

static long nr_maps(pid_t pid)
{
	char line[512];
	long nr = 0;
	snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f))
		nr++;
	if (f)
		fclose(f);
	return nr;
}

int main(void)
{
	struct smco_err err = {0};
	if (access_pagescan.probe(&err)) {
		printf("# %s\n", err.msg);
		tap_skip("page-scan is not available here");
		return tap_done();
	}
	huge = map_huge(2);
	map_bare();
	start_with_pages();
	long fds = puppet_do(&pup, act_count_fds, 0, 0);

	struct tracer *tr = NULL;
	struct tracer_options opts = {0};
	check_int(tracer_create(&tr, &opts, &err), 0);
	struct tproc *proc = traced_attach(tr, pup.pid, &err);
	if (!check(proc != NULL)) {
		printf("# %s\n", err.msg);
		return tap_done();
	}
	int r = access_pagescan.open(proc, &a, &err);
	tproc_resume_new(proc);
	if (!check_int(r, 0)) {
		printf("# %s\n", err.msg);
		return tap_done();
	}
	check_int(puppet_do(&pup, act_count_fds, 0, 0), fds);
	test_without_memory();
	struct page_range all = range_at(mem, PAGES);
	a->ops->arm(a, &all, 1); /* registers the mapping */
	a->ops->collect(a, &all, 1);
	check_int(all.nr_touched, 0);
	long maps = nr_maps(pup.pid);
	test_exact("store", act_store, 3, 13, true);
	test_exact("read(2)", act_read, 1, 11, true);
	test_exact("load", act_load, 5, 13, false);
	check_int(nr_maps(pup.pid), maps);
	check(a->ops->touch_cost_ns(a) > 0);
	test_edges(tr);
	test_huge();
	a->ops->close(a);
	tracer_destroy(tr);
	check_int(puppet_do(&pup, act_write_one, (long)mem + 20 * PAGE, 4), 4);
	puppet_end(&pup);
	return tap_done();
}
