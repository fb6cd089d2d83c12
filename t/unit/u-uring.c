/*
 * What is registered with an io_uring the kernel uses past all protection:
 * userfaultfd does not guard it, page-scan says that nothing is known of it, as
 * long as it is registered; of what lies beside it as always.
 */
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "supervisor/probe/uring.h"
#include "tap.h"
#include "traced.h"
#include "uffd.h"

#define PAGES 8 /* used, and between guards as many beside it */

static char *memory;
static int ring = -1;

static struct page_range used(void)
{
	taddr_t at = (taddr_t)(uintptr_t)memory;
	return (struct page_range){.start = at, .end = at + PAGES * TPAGE_SIZE};
}
static struct page_range beside(void)
{
	struct page_range r = used();
	r.start += PAGES * TPAGE_SIZE;
	r.end += PAGES * TPAGE_SIZE;
	return r;
}

static long act_fill(long byte, long unused)
{
	(void)unused;
	memset(memory, (int)byte, (size_t)2 * PAGES * TPAGE_SIZE);
	return 0;
}

static long act_register(long nr_buffers, long unused)
{
	(void)unused;
	struct io_uring_params par = {0};
	struct iovec iov[2] = {{memory, 3 * TPAGE_SIZE},
			       {memory + 5 * TPAGE_SIZE, TPAGE_SIZE}};
	if (ring < 0) {
		ring = (int)syscall(SYS_io_uring_setup, 4, &par);
		if (ring < 0 || mmap(NULL, TPAGE_SIZE, PROT_READ, MAP_SHARED,
				     ring, IORING_OFF_SQ_RING) == MAP_FAILED)
			return -1;
	}
	return syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS,
		       iov, nr_buffers);
}

static long act_unregister(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	return syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS,
		       NULL, 0);
}

static void check_buffers(struct tproc *p, size_t nr)
{
	struct addr_ranges list = {0};
	struct tmaps maps;
	if (!check_int(tproc_read_maps(p, &maps, NULL), 0))
		return;
	uring_add_buffers(p, &maps, &list);
	tmaps_deinit(&maps);
	check_int(list.nr, nr);
	for (size_t i = 0; i < nr && nr == 2; i++) {
		taddr_t start = used().start + 5 * i * TPAGE_SIZE;
		check(list.v[i].start == start);
		check(list.v[i].end == start + (i ? 1 : 3) * TPAGE_SIZE);
	}
	addr_ranges_free(&list);
}

/* Is that so of what is registered, and not of its neighbour? */
static void check_pinned(struct access *a, bool is_pinned)
{
	struct page_range r[2] = {used(), beside()};
	check_int(a->ops->arm(a, r, 2), 0);
	check_int(a->ops->collect(a, r, 2), 0);
	check_int(r[0].nr_pinned, 0); /* not asked for */
	r[0].want_aged = r[1].want_aged = true;
	check_int(a->ops->collect(a, r, 2), 0);
	check_int(r[0].nr_pinned > 0, is_pinned);
	check_int(r[1].nr_pinned, 0);
}
static void check_guarded(struct access *a, bool is_pinned)
{
	struct page_range r[2] = {used(), beside()};
	check_int(a->ops->arm(a, r, 2), 0);
	check_int(r[0].nr_reset, is_pinned ? UINT32_MAX : PAGES);
	check_int(r[1].nr_reset, PAGES);
	check_int(a->ops->disarm(a, r, 2), 0);
}

static void test_with(struct tracer *tr, struct tproc *p, struct puppet *pup,
		      struct access *a,
		      void (*check_all)(struct access *, bool))
{
	check_all(a, false);
	if (!check_int(traced_do(tr, pup, act_register, 2, 0), 0))
		return;
	check_buffers(p, 2);
	check_all(a, true);
	check_int(traced_do(tr, pup, act_unregister, 0, 0), 0);
	check_buffers(p, 0);
	check_all(a, false);
}

int main(void)
{
	struct tracer *tr;
	struct access *a, *scan;
	struct smco_err err = {0};
	memory = mmap(NULL, (size_t)2 * PAGES * TPAGE_SIZE,
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	struct puppet pup = puppet_start();
	puppet_do(&pup, act_fill, 1, 0);
	if (puppet_do(&pup, act_register, 1, 0) ||
	    puppet_do(&pup, act_unregister, 0, 0)) {
		printf("1..0 # SKIP no io_uring here\n");
		return 0;
	}
	struct tproc *p = uffd_attach(&pup, &tr, &a);
	check(uring_has_fd(pup.pid));
	check(!uring_has_fd(getpid()));
	tproc_resume_new(p);
	test_with(tr, p, &pup, a, check_guarded);
	access_uffd.close(a);
	check_int(traced_stop(p, NULL), 0);
	bool opened = check_int(access_pagescan.open(p, &scan, &err), 0);
	tproc_cont(p);
	if (opened) {
		test_with(tr, p, &pup, scan, check_pinned);
		access_pagescan.close(scan);
	}
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
