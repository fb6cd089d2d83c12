/*
 * Guards by userfaultfd write-protection (access_uffd): the first write to a
 * block waits in the kernel until we have seen it, whoever makes it, the
 * program's code or a system call; results stay right by construction. Reads
 * pass. The descriptor is made in the program, taken over and closed there:
 * when the supervisor dies the kernel closes it, which opens every guard and
 * lets every waiting thread go on.
 *
 * A thread that waits inside a system call cannot be stopped, and burns a CPU
 * if somebody tries. So a thread of ours reads the descriptor: it opens the
 * block at once for such threads, and hands those that wait in the program's
 * own code to the event loop, which stops them at the very instruction and
 * opens the block then. A loop that does not come in time is not waited for.
 */
#include "supervisor/probe/uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/probe/access.h"
#include "supervisor/probe/guardtab.h"
#include "supervisor/probe/open-fds.h"
#include "supervisor/probe/place.h"
#include "supervisor/probe/robust.h"
#include "supervisor/probe/uffd-private.h"
#include "supervisor/probe/uring.h"

#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#define FEATURES                                                               \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID |             \
	 UFFD_FEATURE_EXACT_ADDRESS | UFFD_FEATURE_WP_UNPOPULATED |            \
	 UFFD_FEATURE_EVENT_REMOVE)
/* A hit before the first one was measured, beyond the stop, as often as what it
 * takes where only the reader has to wake up: the loop has to, too. */
#define HIT_GUESS  2
#define MAX_RANGES 16384
/* To look for descriptors takes one part in so many of our time at most. */
#define OWN_SHARE 100
#define OWN_NS	  (100 * NSEC_PER_MSEC)

static void uffd_close(struct access *a);
static void uffd_yield(struct access *a);

/* --- kernel --- */

static int wp_register(struct uffd *u, taddr_t start, taddr_t end)
{
	struct uffdio_register r = {
		.range = {start, end - start},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect wp = {
		.range = {start, end - start},
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	if (ioctl(u->fd, UFFDIO_REGISTER, &r))
		return -errno;
	if (ioctl(u->fd, UFFDIO_WRITEPROTECT, &wp)) {
		int e = errno;
		ioctl(u->fd, UFFDIO_UNREGISTER, &r.range);
		return -e;
	}
	return 0;
}

/* --- hits --- */

static struct task *find_task(struct uffd *u, pid_t tid)
{
	for (struct task *t = tproc_first_task(u->base.proc); t;
	     t = task_next(t))
		if (task_tid(t) == tid)
			return t;
	return NULL;
}

/* Of what is not so large that to open it is most of it. */
static void average(struct uffd *u, const struct page_range *r,
		    uint64_t cost_ns)
{
	if (r->end - r->start > GUARD_SMALL)
		return;
	u->hit_ns = (uint64_t)((int64_t)u->hit_ns +
			       ((int64_t)cost_ns - (int64_t)u->hit_ns) / 8);
}

static bool uffd_next_hit(struct access *a, struct access_hit *hit)
{
	struct uffd *u = (struct uffd *)a;
	struct uffd_hit h;
	pthread_mutex_lock(&u->lock);
	/* Whoever met a guard before this call is told of by it, also when the
	 * reader did not get to it yet: who was not may be called quiet. */
	if (!u->nr && u->fd >= 0)
		uffd_take_messages(u);
	bool any = uffd_queue_get(u, &h);
	if (any && h.waits) {
		/* The lock keeps the reader from letting it go meanwhile. */
		h.hit.task = find_task(u, h.tid);
		h.hit.stopped = h.hit.task && !task_stop(h.hit.task);
		uint64_t stopped_ns = smco_now_ns();
		uint64_t waited_ns = uffd_charged_ns(
			uffd_heard_ns(u) + stopped_ns - h.hit.time_ns);
		uffd_open_waiting(u, &h);
		h.hit.cost_ns = waited_ns + smco_now_ns() - stopped_ns +
				tracer_stop_cost_ns(tproc_tracer(a->proc));
		average(u, &h.hit.range, h.hit.cost_ns);
		/* The stop clock knows nothing of the wait before the stop, but
		 * all that comes then: that the block is opened, too. */
		if (h.hit.stopped)
			u->side_ns += waited_ns;
	}
	if (!u->nr)
		pthread_cond_signal(&u->looked);
	pthread_mutex_unlock(&u->lock);
	if (!any)
		return false;
	if (!h.hit.task)
		h.hit.task = find_task(u, h.tid);
	*hit = h.hit;
	return true;
}

static void uffd_resume(struct access *a, const struct access_hit *hit)
{
	if (hit->task && hit->stopped)
		tracer_resume(tproc_tracer(a->proc), hit->task, 0);
}

/* Nothing comes as a fault or a syscall-stop. */
static bool uffd_on_event(struct access *a, struct tevent *ev,
			  struct access_hit *hit)
{
	(void)a, (void)ev, (void)hit;
	return false;
}

/* --- arm and disarm --- */

static void drop_overlaps(struct uffd *u, taddr_t start, taddr_t end)
{
	for (;;) {
		size_t i = guardtab_first(&u->tab, start);
		if (i == u->tab.nr || u->tab.v[i].start >= end)
			return;
		taddr_t s = u->tab.v[i].start, e = u->tab.v[i].end;
		guardtab_remove(&u->tab, i);
		uffd_wp_open(u, s, e);
	}
}

/*
 * A thread that ends waits for nobody: the kernel gives up its last writes if
 * they meet a guard. What is registered with an io_uring is written past it.
 */
static const char no_guard[] =
	"a robust mutex, a thread area or an io_uring's buffer";

static void find_unguardable(const struct uffd *u, const struct tmaps *maps,
			     struct addr_ranges *ret)
{
	uring_add_buffers(u->base.proc, maps, ret);
	for (struct task *t = tproc_first_task(u->base.proc); t;
	     t = task_next(t))
		robust_list_add(u->base.proc, task_tid(t), ret);
}

/* A robust mutex that is taken after we have guarded it opens the block, and so
 * does who registers it; what was taken meanwhile is on a list now. */
static void open_unguardable(struct uffd *u, const struct tmaps *maps,
			     struct page_range *r, size_t n)
{
	struct addr_ranges list = {0};
	find_unguardable(u, maps, &list);
	for (size_t i = 0; i < n; i++) {
		if (r[i].nr_reset == UINT32_MAX ||
		    !addr_ranges_hit(&list, r[i].start, r[i].end))
			continue;
		smco_debug("uffd", "%#llx: %s", (unsigned long long)r[i].start,
			   no_guard);
		drop_overlaps(u, r[i].start, r[i].end);
		r[i].nr_reset = UINT32_MAX;
	}
	addr_ranges_free(&list);
}

/* NULL, or why not. */
static const char *may_guard(const struct tmaps *maps,
			     const struct page_range *r)
{
	uint32_t any, all;
	const char *why = place_check(maps, r->start, r->end, &any, &all);
	return !why && !(all & PROT_WRITE) ? "not writable" : why;
}

/* With the lock held. NULL, or why not. */
static const char *arm_one(struct uffd *u, const struct tmaps *maps,
			   const struct addr_ranges *list,
			   const struct page_range *r)
{
	uint32_t slot;
	const char *why = may_guard(maps, r);
	if (why)
		return why;
	if (addr_ranges_hit(list, r->start, r->end))
		return no_guard;
	if (guardtab_overlap(&u->tab, r->start, r->end))
		return "armed already";
	if (uffd_is_removed(u, r->start, r->end, smco_now_ns()))
		return "given back by the program just now";
	if (!uffd_queue_reserve(u, 1))
		return "out of memory";
	if (guardtab_add(&u->tab, r->start, r->end, 0, r->user, &slot))
		return "no mappings to spare";
	/* EAGAIN: some of its memory is being given back. */
	if (wp_register(u, r->start, r->end)) {
		why = strerror(errno);
		guardtab_remove(&u->tab, guardtab_first(&u->tab, r->start));
	}
	return why;
}

/* One that it has made past our sensors is found a little later. */
static void look_for_own(struct uffd *u)
{
	uint64_t began_ns = smco_now_ns();
	if (u->has_yielded || began_ns < u->own_due_ns)
		return;
	if (own_uffd_look(tproc_pid(u->base.proc), NULL))
		uffd_yield(&u->base);
	uint64_t now_ns = smco_now_ns();
	u->own_due_ns = now_ns + OWN_NS + OWN_SHARE * (now_ns - began_ns);
}

static int uffd_arm(struct access *a, struct page_range *r, size_t n)
{
	struct uffd *u = (struct uffd *)a;
	struct addr_ranges list = {0};
	struct tmaps maps;
	for (size_t i = 0; i < n; i++)
		r[i].nr_reset = UINT32_MAX;
	look_for_own(u);
	if (u->has_yielded)
		return SMCO_UNSUPPORTED;
	int rc = tproc_read_maps(a->proc, &maps, NULL);
	if (rc)
		return rc;
	/* Before all of a block is protected in vain. */
	find_unguardable(u, &maps, &list);
	pthread_mutex_lock(&u->lock);
	/* So far the program ran on. */
	uint64_t begin = smco_now_ns();
	for (size_t i = 0; i < n; i++) {
		const char *why = arm_one(u, &maps, &list, &r[i]);
		if (why)
			smco_debug("uffd", "%#llx-%#llx not armed: %s",
				   (unsigned long long)r[i].start,
				   (unsigned long long)r[i].end, why);
		else
			r[i].nr_reset = (uint32_t)((r[i].end - r[i].start) /
						   TPAGE_SIZE);
	}
	addr_ranges_free(&list);
	open_unguardable(u, &maps, r, n);
	u->side_ns += smco_now_ns() - begin;
	pthread_mutex_unlock(&u->lock);
	tmaps_deinit(&maps);
	return 0;
}

static int uffd_disarm(struct access *a, struct page_range *r, size_t n)
{
	struct uffd *u = (struct uffd *)a;
	pthread_mutex_lock(&u->lock);
	for (size_t i = 0; i < n; i++)
		drop_overlaps(u, r[i].start, r[i].end);
	pthread_mutex_unlock(&u->lock);
	return 0;
}

static void uffd_drop(struct access *a, taddr_t start, taddr_t end)
{
	struct uffd *u = (struct uffd *)a;
	pthread_mutex_lock(&u->lock);
	drop_overlaps(u, start, end);
	pthread_mutex_unlock(&u->lock);
}

static int uffd_collect(struct access *a, struct page_range *r, size_t n)
{
	struct uffd *u = (struct uffd *)a;
	pthread_mutex_lock(&u->lock);
	for (size_t i = 0; i < n; i++) {
		const struct guard_entry *e =
			guardtab_overlap(&u->tab, r[i].start, r[i].end);
		r[i].nr_present =
			(uint32_t)((r[i].end - r[i].start) / TPAGE_SIZE);
		r[i].nr_touched = r[i].nr_huge = 0;
		r[i].first_touched = 0;
		if (!e || e->start != r[i].start || e->end != r[i].end)
			r[i].nr_reset = UINT32_MAX;
	}
	pthread_mutex_unlock(&u->lock);
	return 0;
}

/* --- life --- */

static int uffd_prepare(struct smco_err *err)
{
	(void)err;
	uffd_cost_measure();
	return 0;
}

static int take_descriptor(struct uffd *u, struct smco_err *err)
{
	struct tproc *p = u->base.proc;
	int64_t fd, ret;
	const uint64_t make[6] = {O_CLOEXEC | O_NONBLOCK};
	int rc = tproc_syscall(p, SYS_userfaultfd, make, &fd, err);
	if (!rc && fd == -EPERM)
		rc = uffd_by_device(p, &fd, err);
	if (rc)
		return rc;
	if (fd < 0)
		return smco_fail(err, SMCO_UNSUPPORTED, (int)-fd,
				 "the program cannot create a userfaultfd");
	u->fd = tproc_take_fd(p, (int)fd);
	int e = errno;
	const uint64_t done[6] = {(uint64_t)fd};
	tproc_syscall(p, SYS_close, done, &ret, NULL);
	if (u->fd < 0)
		return smco_fail(err, SMCO_UNSUPPORTED, e, "pidfd_getfd");
	fcntl(u->fd, F_SETFD, FD_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};
	if (ioctl(u->fd, UFFDIO_API, &api))
		return smco_fail(err, SMCO_UNSUPPORTED, errno,
				 "userfaultfd write-protection of pages that "
				 "are not there yet (Linux 6.4)");
	return 0;
}

static void uffd_free(struct uffd *u)
{
	uffd_stop_reader(u);
	if (u->fd >= 0)
		close(u->fd); /* opens everything */
	if (u->quit_fd >= 0)
		close(u->quit_fd);
	guardtab_deinit(&u->tab);
	free(u->queue);
	free(u);
}

static void let_go(struct uffd *u)
{
	uffd_stop_reader(u);
	if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
}

/* What is registered with ours is free as soon as that is closed. */
static void uffd_yield(struct access *a)
{
	struct uffd *u = (struct uffd *)a;
	if (u->has_yielded)
		return;
	u->has_yielded = true;
	uffd_stop_reader(u);
	pthread_mutex_lock(&u->lock);
	uffd_take_messages(u);
	uffd_end_all(u);
	pthread_mutex_unlock(&u->lock);
	let_go(u);
	smco_debug("uffd", "%d: %s", (int)tproc_pid(a->proc), OWN_UFFD_WHY);
}

static const char *uffd_refusal(const struct access *a)
{
	return ((const struct uffd *)a)->has_yielded ? OWN_UFFD_WHY : NULL;
}

static int undo(struct tproc *p, void *arg)
{
	struct uffd *u = arg;
	(void)p;
	u->undo = NULL;
	let_go(u);
	return 0;
}

static int uffd_open(struct tproc *p, struct access **ret, struct smco_err *err)
{
	struct uffd *u = calloc(1, sizeof(*u));
	if (!u)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	u->base.ops = &access_uffd;
	u->base.proc = p;
	u->fd = u->quit_fd = -1;
	u->hit_ns = tracer_stop_cost_ns(tproc_tracer(p)) +
		    HIT_GUESS * uffd_cost().whole_ns;
	guardtab_init(&u->tab, MAX_RANGES);
	int rc = own_uffd_look(tproc_pid(p), err);
	if (!rc)
		rc = take_descriptor(u, err);
	if (!rc) {
		int e = uffd_start_reader(u);
		if (e)
			rc = smco_fail(err, SMCO_SYS, e, "thread");
	}
	if (!rc) {
		u->undo = tproc_undo_push(p, undo, u);
		if (!u->undo)
			rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	if (rc) {
		uffd_free(u);
		return rc;
	}
	*ret = &u->base;
	return 0;
}

static void uffd_close(struct access *a)
{
	struct uffd *u = (struct uffd *)a;
	if (u->undo)
		tproc_undo_drop(a->proc, u->undo);
	uffd_free(u);
}

static void uffd_forget(struct access *a)
{
	uffd_free((struct uffd *)a);
}

static uint64_t uffd_touch_cost_ns(const struct access *a)
{
	return ((const struct uffd *)a)->hit_ns;
}

static uint64_t uffd_side_cost_ns(const struct access *a)
{
	return ((const struct uffd *)a)->side_ns;
}

/* A fork needs nothing: the kernel registers no copy of a mapping with anybody
 * and copies no protection, as UFFD_FEATURE_EVENT_FORK is not asked for. */
const struct access_ops access_uffd = {
	.name = "uffd",
	.sees = ACCESS_WRITES | ACCESS_KERNEL,
	.is_guard = true,
	.prepare = uffd_prepare,
	.open = uffd_open,
	.close = uffd_close,
	.forget = uffd_forget,
	.arm = uffd_arm,
	.disarm = uffd_disarm,
	.collect = uffd_collect,
	.on_event = uffd_on_event,
	.next_hit = uffd_next_hit,
	.resume = uffd_resume,
	.drop = uffd_drop,
	.touch_cost_ns = uffd_touch_cost_ns,
	.side_cost_ns = uffd_side_cost_ns,
	.yield = uffd_yield,
	.refusal = uffd_refusal,
};
