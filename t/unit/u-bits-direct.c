/*
 * What the kernel reads and writes by itself, past the page table, is seen as
 * well: pages, small and huge, of a file that is read or written without its
 * cache (O_DIRECT). As long as a ring has its buffers registered nothing can be
 * known of those, which is said.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "supervisor/probe/ptread.h"

#define PAGES 64
#include "t/unit/bits.h"

#define FIRST 8 /* page */
#define NR    16

static int file = -1;

static long act_open(long p, long q)
{
	(void)p, (void)q;
	file = open(".", O_TMPFILE | O_RDWR | O_DIRECT, 0600);
	return file;
}

/* Kept apart from what is watched. */
static long act_fill(long byte, long q)
{
	(void)q;
	char *from = mmap(NULL, NR * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(from, (int)byte, NR * PAGE);
	long n = pwrite(file, from, NR * PAGE, 0);
	munmap(from, NR * PAGE);
	return n;
}

static char *huge;

static long act_direct(long at, long is_write)
{
	return is_write ? pwrite(file, (char *)at, NR * PAGE, 0)
			: pread(file, (char *)at, NR * PAGE, 0);
}

/* NR pages of what lies at @at, and the FIRST before them. */
struct pair {
	struct page_range before, used;
};

static struct pair pair_at(const char *at)
{
	struct pair p = {.before = range_at(at, FIRST),
			 .used = range_at(at + FIRST * PAGE, NR)};
	p.before.want_aged = p.used.want_aged = true;
	p.before.was_aged = p.used.was_aged = true;
	return p;
}

static void look_at(struct pair *p)
{
	a->ops->collect(a, &p->before, 1);
	a->ops->collect(a, &p->used, 1);
}

/* One perfect trial is asked for: others may come by. @is_apart: the pages
 * before have marks of their own. */
static bool try_direct(char *at, bool is_write, bool is_apart)
{
	struct pair p = pair_at(at);
	if (!settle(&p.before, 1) || !settle(&p.used, 1))
		return false;
	look_at(&p);
	if (p.used.nr_touched || p.used.nr_aged ||
	    puppet_do(&pup, act_direct, (long)at + FIRST * PAGE, is_write) !=
		    NR * PAGE)
		return false;
	look_at(&p);
	uint32_t before = p.before.nr_touched + p.before.nr_aged;
	return (!before || !is_apart) &&
	       p.used.nr_touched + p.used.nr_aged == NR;
}

static void test_direct(char *at, bool is_write, bool is_apart)
{
	bool good = false;
	for (int k = 0; k < TRIALS && !good; k++)
		good = try_direct(at, is_write, is_apart);
	check_msg(good, "%s%s",
		  is_write ? "written to a file" : "read from one",
		  is_apart ? "" : ", huge pages");
}

static int ring = -1;

static long act_register(long at, long nr)
{
	struct iovec iov = {(void *)at, (size_t)nr * PAGE};
	struct io_uring_params par = {0};
	if (ring < 0)
		ring = (int)syscall(SYS_io_uring_setup, 4, &par);
	return syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS,
		       &iov, 1);
}

static long act_unregister(long p, long q)
{
	(void)p, (void)q;
	return syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS,
		       NULL, 0);
}

/* A trial in which others make no marks. */
static bool try_pinned(struct pair *p)
{
	for (int k = 0; k < TRIALS; k++) {
		if (!settle(&p->before, 1) || !settle(&p->used, 1))
			return false;
		look_at(p);
		if (!p->before.nr_touched && !p->used.nr_touched)
			return true;
	}
	return false;
}

static void test_pinned(char *at, bool is_apart)
{
	struct pair p = pair_at(at);
	check(try_pinned(&p));
	check_int(p.used.nr_pinned, 0);
	if (puppet_do(&pup, act_register, (long)at + FIRST * PAGE, NR)) {
		tap_skip("no io_uring here");
		return;
	}
	check(try_pinned(&p));
	check_int(p.used.nr_pinned, NR);
	if (is_apart)
		check_int(p.before.nr_pinned, 0);
	check_int(puppet_do(&pup, act_unregister, 0, 0), 0);
	check(try_pinned(&p));
	check_int(p.used.nr_pinned, 0);
}

static void test_huge(bool has_direct)
{
	puppet_do(&pup, act_fill_huge, (long)huge, 1);
	if (!anon_huge_kb(range_at(huge, HUGE_PAGE / PAGE))) {
		tap_skip("no huge pages to be had");
		return;
	}
	test_pinned(huge, false);
	if (has_direct) {
		test_direct(huge, false, false);
		test_direct(huge, true, false);
	}
	check(anon_huge_kb(range_at(huge, HUGE_PAGE / PAGE)) > 0);
}

int main(void)
{
	huge = map_huge(1);
	start_with_pages();
	struct tproc proc = {pup.pid};
	if (!bits_open(&proc))
		return tap_done();
	test_pinned(mem, true);
	bool has_direct = puppet_do(&pup, act_open, 0, 0) >= 0 &&
			  puppet_do(&pup, act_fill, 7, 0) == NR * PAGE;
	if (has_direct) {
		test_direct(mem, false, true);
		test_direct(mem, true, true);
	} else {
		tap_skip("no O_DIRECT here");
	}
	test_huge(has_direct);
	puppet_end(&pup);
	return tap_done();
}
