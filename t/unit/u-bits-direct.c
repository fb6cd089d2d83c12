/*
 * What the kernel reads and writes by itself, past the page table, is seen as
 * well: pages of a file that is read or written without its cache (O_DIRECT).
 */
#include <fcntl.h>

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

static long act_direct(long is_write, long q)
{
	(void)q;
	char *at = (char *)mem + FIRST * PAGE;
	return is_write ? pwrite(file, at, NR * PAGE, 0)
			: pread(file, at, NR * PAGE, 0);
}

/* One perfect trial is asked for: others may come by. */
static bool try_direct(long is_write)
{
	struct page_range before = range_at(mem, FIRST),
			  used = range_at(mem + FIRST * PAGE, NR);
	before.want_aged = used.want_aged = true;
	before.was_aged = used.was_aged = true;
	if (!settle(&before, 1) || !settle(&used, 1))
		return false;
	a->ops->collect(a, &used, 1);
	if (used.nr_touched || used.nr_aged ||
	    puppet_do(&pup, act_direct, is_write, 0) != NR * PAGE)
		return false;
	a->ops->collect(a, &before, 1);
	a->ops->collect(a, &used, 1);
	return !before.nr_touched && !before.nr_aged &&
	       used.nr_touched + used.nr_aged == NR;
}

static void test_direct(long is_write)
{
	bool good = false;
	for (int k = 0; k < TRIALS && !good; k++)
		good = try_direct(is_write);
	check_msg(good, "%s", is_write ? "written to a file" : "read from one");
}

int main(void)
{
	start_with_pages();
	struct tproc proc = {pup.pid};
	if (!bits_open(&proc))
		return tap_done();
	if (puppet_do(&pup, act_open, 0, 0) < 0 ||
	    puppet_do(&pup, act_fill, 7, 0) != NR * PAGE) {
		tap_skip("no O_DIRECT here");
	} else {
		test_direct(0);
		test_direct(1);
	}
	puppet_end(&pup);
	return tap_done();
}
