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
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/probe/access.h"
#include "supervisor/probe/guardtab.h"
#include "supervisor/probe/place.h"
#include "supervisor/probe/robust.h"

#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#define FEATURES                                                               \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID |             \
	 UFFD_FEATURE_EXACT_ADDRESS | UFFD_FEATURE_WP_UNPOPULATED)
/* A thread waits no longer than this for the event loop to look at it. */
#define PATIENCE_MS  5
#define HIT_GUESS_NS (100 * NSEC_PER_USEC)
#define MAX_RANGES   16384

struct uffd_hit {
	struct access_hit hit;
	pid_t tid;
	bool waits; /* still in the fault: to be stopped, then let go */
};

struct uffd {
	struct access base;
	int fd;
	int quit_fd; /* eventfd: the reader ends */
	struct tundo *undo;
	pthread_t reader;
	bool has_reader;
	pthread_mutex_t lock;  /* protects all below */
	pthread_cond_t looked; /* the loop took hits */
	struct guardtab tab;
	struct uffd_hit *queue; /* ring */
	size_t head;
	size_t nr;
	size_t cap;
	uint64_t hit_ns;
	uint64_t side_ns;
};

static void uffd_close(struct access *a);

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

/* Takes the protection off, wakes who waits there, and leaves the mapping as
 * it was. What is no longer mapped has nothing to open. */
static void wp_open(struct uffd *u, taddr_t start, taddr_t end)
{
	struct uffdio_range r = {start, end - start};
	if (ioctl(u->fd, UFFDIO_UNREGISTER, &r)) {
		struct uffdio_writeprotect wp = {.range = r, .mode = 0};
		ioctl(u->fd, UFFDIO_WRITEPROTECT, &wp);
	}
	ioctl(u->fd, UFFDIO_WAKE, &r);
}

/*
 * Where does the thread wait? In a system call: its number. In the program's
 * own code: -1. Unknown, as for a kernel thread that works for it: -2.
 */
static long waits_in(pid_t tid)
{
	char path[64], buf[64];
	long nr;
	/* Not below the process: a vfork child uses the same memory. */
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)tid);
	/* It may not have fallen asleep yet. */
	for (int i = 0; i < 20; i++) {
		_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
		if (n <= 0)
			return -2;
		buf[n] = '\0';
		if (sscanf(buf, "%ld", &nr) == 1)
			return nr < 0 ? -1 : nr;
		usleep(20);
	}
	return -2;
}

/* --- the queue; called with the lock held --- */

/* Room for what @more guards will put there: a hit that cannot be kept would
 * leave its thread waiting for ever. False: no memory. */
static bool queue_reserve(struct uffd *u, size_t more)
{
	size_t need = u->nr + u->tab.nr + more;
	if (need <= u->cap)
		return true;
	size_t cap = u->cap ? u->cap * 2 : 64;
	if (cap < need)
		cap = need;
	struct uffd_hit *q = malloc(cap * sizeof(*q));
	if (!q)
		return false;
	for (size_t i = 0; i < u->nr; i++)
		q[i] = u->queue[(u->head + i) % u->cap];
	free(u->queue);
	u->queue = q;
	u->head = 0;
	u->cap = cap;
	return true;
}

/* Of a guard that was reserved for and is in the table no more. */
static void queue_put(struct uffd *u, const struct uffd_hit *h)
{
	u->queue[(u->head + u->nr++) % u->cap] = *h;
}

static bool queue_get(struct uffd *u, struct uffd_hit *ret)
{
	if (!u->nr)
		return false;
	*ret = u->queue[u->head];
	u->head = (u->head + 1) % u->cap;
	u->nr--;
	return true;
}

static void open_waiting(struct uffd *u, struct uffd_hit *h)
{
	if (h->waits)
		wp_open(u, h->hit.range.start, h->hit.range.end);
	h->waits = false;
}

static bool anybody_waits(const struct uffd *u)
{
	for (size_t i = 0; i < u->nr; i++)
		if (u->queue[(u->head + i) % u->cap].waits)
			return true;
	return false;
}

/* --- the reader --- */

static void on_message(struct uffd *u, const struct uffd_msg *m)
{
	if (m->event != UFFD_EVENT_PAGEFAULT)
		return;
	taddr_t addr = m->arg.pagefault.address;
	pid_t tid = (pid_t)m->arg.pagefault.feat.ptid;
	uint64_t now = smco_now_ns();
	size_t i = guardtab_first(&u->tab, addr);
	if (i == u->tab.nr || u->tab.v[i].start > addr) {
		/* A second thread on a block whose first hit is being told:
		 * opening that block wakes this one too. Or opened by now. */
		struct uffdio_range page = {addr & ~(TPAGE_SIZE - 1),
					    TPAGE_SIZE};
		if (!anybody_waits(u))
			ioctl(u->fd, UFFDIO_WAKE, &page);
		return;
	}
	const struct guard_entry e = u->tab.v[i];
	long nr = waits_in(tid);
	struct uffd_hit h = {
		.tid = tid,
		.waits = nr == -1,
		.hit =
			{
				.range = {.start = e.start,
					  .end = e.end,
					  .user = e.user},
				.time_ns = now,
				.is_write = true,
				.in_kernel = nr != -1,
				.syscall_nr = nr < 0 ? -1 : nr,
				.addr = addr,
			},
	};
	guardtab_remove(&u->tab, i);
	if (!h.waits) {
		wp_open(u, e.start, e.end);
		h.hit.cost_ns = u->hit_ns + smco_now_ns() - now;
	}
	queue_put(u, &h);
	tracer_wake(tproc_tracer(u->base.proc));
}

/* Give the loop a moment to look at threads that wait, then let them go. */
static void be_patient(struct uffd *u)
{
	struct timespec until;
	if (!anybody_waits(u))
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PATIENCE_MS * (long)NSEC_PER_MSEC;
	if (until.tv_nsec >= (long)NSEC_PER_SEC) {
		until.tv_nsec -= (long)NSEC_PER_SEC;
		until.tv_sec++;
	}
	while (anybody_waits(u))
		if (pthread_cond_timedwait(&u->looked, &u->lock, &until))
			break;
	for (size_t i = 0; i < u->nr; i++)
		open_waiting(u, &u->queue[(u->head + i) % u->cap]);
}

/* With the lock held, so that no message is on its way while somebody else
 * asks what was hit. The descriptor never makes us wait. */
static void take_messages(struct uffd *u)
{
	struct uffd_msg m[16];
	ssize_t n;
	while ((n = read(u->fd, m, sizeof(m))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(m[0]); i++)
			on_message(u, &m[i]);
}

static void *reader(void *arg)
{
	struct uffd *u = arg;
	struct pollfd p[2] = {{u->fd, POLLIN, 0}, {u->quit_fd, POLLIN, 0}};
	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents || p[0].revents & (POLLERR | POLLHUP))
			break;
		pthread_mutex_lock(&u->lock);
		take_messages(u);
		be_patient(u);
		pthread_mutex_unlock(&u->lock);
	}
	return NULL;
}

static int start_reader(struct uffd *u)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	pthread_mutex_init(&u->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&u->looked, &attr);
	pthread_condattr_destroy(&attr);
	u->quit_fd = eventfd(0, EFD_CLOEXEC);
	if (u->quit_fd < 0)
		return errno;
	/* Signals are the event loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int e = pthread_create(&u->reader, NULL, reader, u);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	u->has_reader = !e;
	return e;
}

static void stop_reader(struct uffd *u)
{
	uint64_t one = 1;
	if (!u->has_reader)
		return;
	if (write(u->quit_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(u->reader, NULL);
	u->has_reader = false;
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

static void average(struct uffd *u, uint64_t cost_ns)
{
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
		take_messages(u);
	bool any = queue_get(u, &h);
	if (any && h.waits) {
		/* The lock keeps the reader from letting it go meanwhile. */
		h.hit.task = find_task(u, h.tid);
		h.hit.stopped = h.hit.task && !task_stop(h.hit.task);
		open_waiting(u, &h);
		h.hit.cost_ns = smco_now_ns() - h.hit.time_ns +
				tracer_stop_cost_ns(tproc_tracer(a->proc));
		average(u, h.hit.cost_ns);
		/* The stop clock knows nothing of the wait before the stop. */
		if (h.hit.stopped)
			u->side_ns += smco_now_ns() - h.hit.time_ns;
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
		wp_open(u, s, e);
	}
}

/*
 * A thread that ends waits for nobody: the kernel gives up its last writes if
 * they meet a guard. A robust mutex that is taken after we have guarded it
 * opens the block; one that was taken before is on a list now.
 */
static void open_last_writes(struct uffd *u, struct page_range *r, size_t n)
{
	struct addr_ranges list = {0};
	for (struct task *t = tproc_first_task(u->base.proc); t;
	     t = task_next(t))
		robust_list_add(u->base.proc, task_tid(t), &list);
	for (size_t i = 0; i < n; i++) {
		if (r[i].nr_reset == UINT32_MAX ||
		    !addr_ranges_hit(&list, r[i].start, r[i].end))
			continue;
		smco_debug("uffd", "%#llx: a robust mutex or thread area",
			   (unsigned long long)r[i].start);
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

static int uffd_arm(struct access *a, struct page_range *r, size_t n)
{
	struct uffd *u = (struct uffd *)a;
	struct tmaps maps;
	for (size_t i = 0; i < n; i++)
		r[i].nr_reset = UINT32_MAX;
	int rc = tproc_read_maps(a->proc, &maps, NULL);
	if (rc)
		return rc;
	pthread_mutex_lock(&u->lock);
	/* So far the program ran on. */
	uint64_t begin = smco_now_ns();
	for (size_t i = 0; i < n; i++) {
		uint32_t slot;
		const char *why = may_guard(&maps, &r[i]);
		if (!why && !queue_reserve(u, 1))
			why = "out of memory";
		if (!why && guardtab_add(&u->tab, r[i].start, r[i].end, 0,
					 r[i].user, &slot))
			why = "armed already, or no mappings to spare";
		if (!why && wp_register(u, r[i].start, r[i].end)) {
			guardtab_remove(&u->tab,
					guardtab_first(&u->tab, r[i].start));
			why = strerror(errno);
		}
		if (why)
			smco_debug("uffd", "%#llx-%#llx not armed: %s",
				   (unsigned long long)r[i].start,
				   (unsigned long long)r[i].end, why);
		else
			r[i].nr_reset = (uint32_t)((r[i].end - r[i].start) /
						   TPAGE_SIZE);
	}
	open_last_writes(u, r, n);
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
	_cleanup_close_ int pidfd =
		(int)syscall(SYS_pidfd_open, tproc_pid(p), 0);
	u->fd = pidfd < 0 ? -1
			  : (int)syscall(SYS_pidfd_getfd, pidfd, (int)fd, 0);
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
	stop_reader(u);
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
	stop_reader(u);
	if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
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
	u->hit_ns = tracer_stop_cost_ns(tproc_tracer(p)) + HIT_GUESS_NS;
	guardtab_init(&u->tab, MAX_RANGES);
	int rc = take_descriptor(u, err);
	if (!rc) {
		int e = start_reader(u);
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
};
