/*
 * Page-scan: the kernel keeps for every page of a range whether it was written
 * since it was write-protected (PAGEMAP_SCAN, userfaultfd in asynchronous
 * mode, Linux 6.7). The first write to a page costs a short fault that the
 * kernel answers itself: no stop, no signal, no wrong result of a system
 * call. Sees writes only, by the program and by the kernel for it.
 *
 * The userfaultfd must belong to the monitored address space: it is made there
 * by an injected call, taken with pidfd_getfd and closed there at once. So it
 * vanishes with the supervisor, and the kernel then undoes every protection.
 *
 * Huge pages are left alone: a protected 2 MiB mapping would be split at its
 * first write. Ranges with one get nr_stuck. Mappings are registered as a
 * whole, never a part of one, so that none is split.
 */
#include "reports/median.h"
#include "reports/procfs.h"
#include "supervisor/probe/access.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/probe/bits-cost.h"
#include "supervisor/probe/open-fds.h"
#include "supervisor/probe/uring.h"

/* Newer than Debian 12's headers. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define FEATURE_WP	       (1 << 0)
#define FEATURE_WP_UNPOPULATED (1 << 13)
#define FEATURE_WP_ASYNC       (1 << 15)

enum page_is {
	PAGE_WRITTEN = 1 << 1,
	PAGE_PRESENT = 1 << 3,
	PAGE_SWAPPED = 1 << 4,
	PAGE_HUGE = 1 << 6,
};
enum scan_flags {
	SCAN_PROTECT = 1 << 0,	   /* those that match */
	SCAN_CHECK_ASYNC = 1 << 1, /* EPERM if a mapping is not registered */
};
struct scan_region {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};
struct scan_arg {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end;
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};
#define PAGEMAP_SCAN_IOCTL _IOWR('f', 16, struct scan_arg)

#define REGIONS	      256
#define HUGE_SIZE     (2ULL << 20)
#define USER_END      0x7ffffffff000ULL
#define CALIBRATE_NR  256
#define CALIBRATE_RUN 5
/* To look for descriptors takes one part in so many of our time at most. */
#define OWN_SHARE 100
#define OWN_NS	  (100 * NSEC_PER_MSEC)

struct pagescan {
	struct access access;
	int pagemap_fd;
	int uffd; /* -1: the program uses its own, see pagescan_yield() */
	uint64_t own_due_ns;
	uint64_t touch_ns;
	uint64_t shootdown_ns;
	uint64_t side_ns;
	struct scan_region regions[REGIONS];
};

static struct pagescan *pagescan_of(struct access *a)
{
	return (struct pagescan *)a;
}

struct scan_sum {
	uint64_t nr_present;
	uint64_t nr_written;
	uint64_t nr_huge_pages;
	taddr_t first_written;
};

/*
 * The kernel calls written what it does not protect. Some kernels (6.18) say so
 * of pages, too, that never had memory; and what it protects without memory is
 * "swapped", as its marks are kept where such entries are.
 */
static void add_region(struct scan_sum *sum, const struct scan_region *r)
{
	uint64_t pages = (r->end - r->start) / TPAGE_SIZE;
	bool is_written = r->categories & PAGE_WRITTEN &&
			  r->categories & (PAGE_PRESENT | PAGE_SWAPPED);
	if (is_written || r->categories & PAGE_PRESENT)
		sum->nr_present += pages;
	if (r->categories & PAGE_HUGE)
		sum->nr_huge_pages += pages;
	if (!is_written)
		return;
	sum->nr_written += pages;
	if (!sum->first_written)
		sum->first_written = r->start;
}

/* All pages of [start, end) that have one of @any. 0 or an errno. */
static int scan(struct pagescan *s, taddr_t start, taddr_t end, uint64_t any,
		uint64_t flags, struct scan_sum *sum)
{
	*sum = (struct scan_sum){0};
	while (start < end) {
		struct scan_arg arg = {.size = sizeof(arg),
				       .flags = flags,
				       .start = start,
				       .end = end,
				       .vec = (uintptr_t)s->regions,
				       .vec_len = REGIONS,
				       .category_anyof_mask = any,
				       .return_mask = PAGE_WRITTEN |
						      PAGE_PRESENT |
						      PAGE_SWAPPED | PAGE_HUGE};
		int n = ioctl(s->pagemap_fd, PAGEMAP_SCAN_IOCTL, &arg);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		for (int i = 0; i < n; i++)
			add_region(sum, &s->regions[i]);
		if (arg.walk_end <= start)
			break;
		start = arg.walk_end;
	}
	return 0;
}

static bool is_valid(const struct page_range *r)
{
	return r->start < r->end && r->end <= USER_END &&
	       !(r->start & (TPAGE_SIZE - 1)) && !(r->end & (TPAGE_SIZE - 1));
}

/* Make every mapping that overlaps @r known to the userfaultfd, if it can be.
 */
static bool register_mappings(struct pagescan *s, const struct page_range *r)
{
	struct tmaps maps;
	bool any = false;
	if (tproc_read_maps(s->access.proc, &maps, NULL))
		return false;
	for (size_t i = 0; i < maps.nr; i++) {
		const struct tmap *m = &maps.maps[i];
		if (m->end <= r->start || m->start >= r->end)
			continue;
		struct uffdio_register reg = {
			.range = {.start = m->start, .len = m->end - m->start},
			.mode = UFFDIO_REGISTER_MODE_WP};
		any |= !ioctl(s->uffd, UFFDIO_REGISTER, &reg);
	}
	tmaps_deinit(&maps);
	return any;
}

static int arm_one(struct pagescan *s, struct page_range *r)
{
	struct scan_sum sum;
	int e = scan(s, r->start, r->end, PAGE_PRESENT | PAGE_WRITTEN, 0, &sum);
	if (e)
		return e;
	r->nr_present = (uint32_t)sum.nr_present;
	r->nr_touched = (uint32_t)sum.nr_written;
	if (sum.nr_huge_pages) {
		r->nr_reset = 0;
		r->nr_stuck = (uint32_t)sum.nr_huge_pages;
		return 0;
	}
	e = scan(s, r->start, r->end, PAGE_WRITTEN,
		 SCAN_PROTECT | SCAN_CHECK_ASYNC, &sum);
	if (e == EPERM && register_mappings(s, r))
		e = scan(s, r->start, r->end, PAGE_WRITTEN,
			 SCAN_PROTECT | SCAN_CHECK_ASYNC, &sum);
	if (e)
		return e;
	r->nr_reset = (uint32_t)sum.nr_written;
	s->side_ns += sum.nr_written ? s->shootdown_ns : 0;
	return 0;
}

static void pagescan_yield(struct access *a)
{
	struct pagescan *s = pagescan_of(a);
	if (s->uffd >= 0)
		close(s->uffd);
	s->uffd = -1;
	smco_debug("pagescan", "%d: %s", (int)tproc_pid(a->proc), OWN_UFFD_WHY);
}

static const char *pagescan_refusal(const struct access *a)
{
	return ((const struct pagescan *)a)->uffd < 0 ? OWN_UFFD_WHY : NULL;
}

/* One that it has made past our sensors is found a little later. */
static void look_for_own(struct pagescan *s)
{
	uint64_t began_ns = smco_now_ns();
	if (s->uffd < 0 || began_ns < s->own_due_ns)
		return;
	if (own_uffd_look(tproc_pid(s->access.proc), NULL))
		pagescan_yield(&s->access);
	uint64_t now_ns = smco_now_ns();
	s->own_due_ns = now_ns + OWN_NS + OWN_SHARE * (now_ns - began_ns);
}

static int pagescan_arm(struct access *a, struct page_range *r, size_t n)
{
	struct pagescan *s = pagescan_of(a);
	look_for_own(s);
	for (size_t i = 0; i < n; i++) {
		r[i].nr_reset = UINT32_MAX;
		r[i].nr_stuck = 0;
		r[i].armed_ns = 0;
		if (s->uffd < 0 || !is_valid(&r[i]))
			continue;
		int e = arm_one(s, &r[i]);
		if (e == ESRCH)
			return SMCO_GONE;
		if (!e)
			r[i].armed_ns = smco_now_ns();
	}
	return 0;
}

/* A page that stands protected costs its next write a fault and nothing else;
 * lifting it costs more than that. */
static int pagescan_disarm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	(void)r;
	(void)n;
	return 0;
}

/* What is registered with a ring is written past the protection. */
static void note_pinned(struct access *a, struct page_range *r, size_t n)
{
	struct addr_ranges list = {0};
	struct tmaps maps;
	bool any_asked = false;
	for (size_t i = 0; i < n; i++)
		any_asked |= r[i].want_aged;
	if (!any_asked || tproc_read_maps(a->proc, &maps, NULL))
		return;
	uring_add_buffers(a->proc, &maps, &list);
	tmaps_deinit(&maps);
	for (size_t i = 0; i < n; i++)
		if (r[i].want_aged)
			r[i].nr_pinned =
				addr_ranges_hit(&list, r[i].start, r[i].end);
	addr_ranges_free(&list);
}

static int pagescan_collect(struct access *a, struct page_range *r, size_t n)
{
	struct pagescan *s = pagescan_of(a);
	for (size_t i = 0; i < n; i++) {
		struct scan_sum sum;
		r[i].nr_present = r[i].nr_touched = r[i].nr_huge = 0;
		r[i].first_touched = 0;
		if (!is_valid(&r[i]))
			continue;
		if (s->uffd < 0) {
			r[i].nr_pinned = r[i].nr_present =
				(uint32_t)((r[i].end - r[i].start) /
					   TPAGE_SIZE);
			continue;
		}
		int e = scan(s, r[i].start, r[i].end,
			     PAGE_PRESENT | PAGE_WRITTEN, 0, &sum);
		if (e == ESRCH)
			return SMCO_GONE;
		if (e)
			continue;
		r[i].nr_present = (uint32_t)sum.nr_present;
		r[i].nr_touched = (uint32_t)sum.nr_written;
		r[i].nr_huge = (uint32_t)((sum.nr_huge_pages * TPAGE_SIZE +
					   HUGE_SIZE - 1) /
					  HUGE_SIZE);
		r[i].first_touched = sum.first_written;
	}
	if (s->uffd >= 0)
		note_pinned(a, r, n);
	return 0;
}

/* Closing the last descriptor makes the kernel unregister and unprotect. */
static void pagescan_close(struct access *a)
{
	struct pagescan *s = pagescan_of(a);
	if (s->uffd >= 0)
		close(s->uffd);
	if (s->pagemap_fd >= 0)
		close(s->pagemap_fd);
	free(s);
}

/* An unknown system call may be death to a program under a filter. */
static bool has_seccomp(pid_t pid)
{
	char path[PROCFS_PATH], line[128];
	int mode = 0;
	procfs_path(path, sizeof(path), procfs_holder(pid), "status");
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	if (f)
		fclose(f);
	return mode != 0;
}

static int enable(int uffd)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = FEATURE_WP |
					     FEATURE_WP_UNPOPULATED |
					     FEATURE_WP_ASYNC};
	return ioctl(uffd, UFFDIO_API, &api) ? errno : 0;
}

/* userfaultfd(2) here or, through the tracee, there; -errno. */
static int make_here(void)
{
	int fd = (int)syscall(SYS_userfaultfd,
			      O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	return fd < 0 ? -errno : fd;
}

static int make_there(struct tproc *p, struct smco_err *err)
{
	pid_t pid = tproc_pid(p);
	if (has_seccomp(pid))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "page-scan: process %d has a seccomp filter, "
				 "which may kill it for userfaultfd(2)",
				 (int)pid);
	int64_t fd;
	uint64_t args[6] = {O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY};
	int r = tproc_syscall(p, SYS_userfaultfd, args, &fd, err);
	if (r)
		return r;
	if (fd < 0)
		return smco_fail(err, SMCO_UNSUPPORTED, (int)-fd,
				 "page-scan: userfaultfd(2) in the program");
	int ours = tproc_take_fd(p, (int)fd);
	int sys_errno = errno;
	int64_t ignored;
	uint64_t close_args[6] = {(uint64_t)fd};
	tproc_syscall(p, SYS_close, close_args, &ignored, NULL);
	if (ours < 0)
		return smco_fail(err, SMCO_PERM, sys_errno,
				 "page-scan: pidfd_getfd on process %d",
				 (int)pid);
	return ours;
}

static int64_t write_all_ns(volatile char *mem)
{
	uint64_t start = smco_now_ns();
	for (size_t i = 0; i < CALIBRATE_NR; i++)
		mem[i * TPAGE_SIZE] = 1;
	return (int64_t)(smco_now_ns() - start);
}

static int calibrate_on(struct pagescan *s, char *mem, size_t size,
			struct smco_err *err)
{
	struct uffdio_register reg = {
		.range = {.start = (uintptr_t)mem, .len = size},
		.mode = UFFDIO_REGISTER_MODE_WP};
	if (ioctl(s->uffd, UFFDIO_REGISTER, &reg))
		return smco_fail(err, SMCO_UNSUPPORTED, errno,
				 "page-scan: cannot register memory");
	write_all_ns(mem);
	int64_t cost[CALIBRATE_RUN];
	for (int k = 0; k < CALIBRATE_RUN; k++) {
		struct scan_sum sum;
		int e = scan(s, (uintptr_t)mem, (uintptr_t)mem + size,
			     PAGE_WRITTEN, SCAN_PROTECT | SCAN_CHECK_ASYNC,
			     &sum);
		if (e || sum.nr_written != CALIBRATE_NR)
			return smco_fail(err, SMCO_UNSUPPORTED, e,
					 "page-scan needs PAGEMAP_SCAN (Linux "
					 "6.7); it saw %d of %d writes",
					 (int)sum.nr_written, CALIBRATE_NR);
		int64_t first = write_all_ns(mem);
		cost[k] = (first - write_all_ns(mem)) / CALIBRATE_NR;
	}
	int64_t ns = median_i64(cost, CALIBRATE_RUN);
	s->touch_ns = ns > 1 ? (uint64_t)ns : 1;
	return 0;
}

/* Try everything on memory of our own: does it work, what does it cost? */
static int try_here(uint64_t *touch_ns, struct smco_err *err)
{
	size_t size = CALIBRATE_NR * TPAGE_SIZE;
	_cleanup_free_ struct pagescan *s = calloc(1, sizeof(*s));
	_cleanup_close_ int uffd = make_here();
	_cleanup_close_ int pagemap =
		open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (uffd < 0 || pagemap < 0)
		return smco_fail(err, SMCO_UNSUPPORTED,
				 uffd < 0 ? -uffd : errno,
				 "page-scan needs userfaultfd(2) and pagemap");
	int e = enable(uffd);
	if (e)
		return smco_fail(err, SMCO_UNSUPPORTED, e,
				 "page-scan needs asynchronous write-protect "
				 "of userfaultfd (Linux 6.7)");
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return smco_fail(err, SMCO_NOMEM, errno, "cannot map pages");
	madvise(mem, size, MADV_NOHUGEPAGE);
	s->uffd = uffd;
	s->pagemap_fd = pagemap;
	int r = calibrate_on(s, mem, size, err);
	munmap(mem, size);
	*touch_ns = s->touch_ns;
	return r;
}

static int pagescan_probe(struct smco_err *err)
{
	uint64_t ns;
	return try_here(&ns, err);
}

/* Both take long (tens of ms, on a busy machine hundreds), and are the same for
 * all processes. */
static int costs(uint64_t *touch_ns, uint64_t *shootdown_ns,
		 struct smco_err *err)
{
	static uint64_t known_touch_ns;
	if (!known_touch_ns) {
		int r = try_here(&known_touch_ns, err);
		if (r) {
			known_touch_ns = 0;
			return r;
		}
	}
	*touch_ns = known_touch_ns;
	struct bits_cost bits;
	*shootdown_ns = bits_cost_get(&bits, NULL)
				? 0
				: bits.shootdown_ns + bits.flush_ns;
	return 0;
}

static int pagescan_prepare(struct smco_err *err)
{
	uint64_t touch_ns, shootdown_ns;
	return costs(&touch_ns, &shootdown_ns, err);
}

static int pagescan_open(struct tproc *p, struct access **ret,
			 struct smco_err *err)
{
	struct pagescan *s = calloc(1, sizeof(*s));
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	s->access.ops = &access_pagescan;
	s->access.proc = p;
	s->uffd = s->pagemap_fd = -1;
	int r = own_uffd_look(tproc_pid(p), err);
	if (!r)
		r = costs(&s->touch_ns, &s->shootdown_ns, err);
	if (r)
		goto fail;
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), procfs_holder(tproc_pid(p)), "pagemap");
	s->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->pagemap_fd < 0) {
		r = smco_fail(err, errno == ENOENT ? SMCO_GONE : SMCO_PERM,
			      errno, "cannot open /proc/%d/pagemap",
			      (int)tproc_pid(p));
		goto fail;
	}
	r = s->uffd = make_there(p, err);
	if (r < 0)
		goto fail;
	int e = enable(s->uffd);
	if (e) {
		r = smco_fail(err, SMCO_UNSUPPORTED, e,
			      "page-scan: asynchronous write-protect");
		goto fail;
	}
	*ret = &s->access;
	return 0;
fail:
	pagescan_close(&s->access);
	return r;
}

static void pagescan_drop(struct access *a, taddr_t start, taddr_t end)
{
	(void)a;
	(void)start;
	(void)end;
}

static uint64_t pagescan_touch_cost_ns(const struct access *a)
{
	return ((const struct pagescan *)a)->touch_ns;
}

/* Charged as if one thread always ran on another CPU. */
static uint64_t pagescan_side_cost_ns(const struct access *a)
{
	return ((const struct pagescan *)a)->side_ns;
}

/* A fork needs nothing: the kernel does not hand the registration down. */
const struct access_ops access_pagescan = {
	.name = "pagescan",
	.sees = ACCESS_WRITES | ACCESS_KERNEL,
	.probe = pagescan_probe,
	.prepare = pagescan_prepare,
	.open = pagescan_open,
	.close = pagescan_close,
	.forget = pagescan_close,
	.arm = pagescan_arm,
	.disarm = pagescan_disarm,
	.collect = pagescan_collect,
	.drop = pagescan_drop,
	.touch_cost_ns = pagescan_touch_cost_ns,
	.side_cost_ns = pagescan_side_cost_ns,
	.yield = pagescan_yield,
	.refusal = pagescan_refusal,
};
