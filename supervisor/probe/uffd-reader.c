/*
 * The thread that reads a userfaultfd: it opens the block at once for threads
 * that wait in a system call, and queues the others for the event loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/probe/uffd-private.h"

/* A thread waits no longer than this for the event loop to look at it. */
#define PATIENCE_MS 5
/* How often to look where the program runs, 10 us of that CPU's time. */
#define LOOK_NS (10 * NSEC_PER_MSEC)
/* Of real time: before the event loop, which has 1. */
#define PRIORITY 2

void uffd_wp_open(struct uffd *u, taddr_t start, taddr_t end)
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
	char path[PROCFS_PATH], buf[64];
	long nr;
	/* Not below the process: a vfork child uses the same memory. */
	procfs_path(path, sizeof(path), tid, "syscall");
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

bool uffd_queue_reserve(struct uffd *u, size_t more)
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

bool uffd_queue_get(struct uffd *u, struct uffd_hit *ret)
{
	if (!u->nr)
		return false;
	*ret = u->queue[u->head];
	u->head = (u->head + 1) % u->cap;
	u->nr--;
	return true;
}

void uffd_open_waiting(struct uffd *u, struct uffd_hit *h)
{
	if (h->waits)
		uffd_wp_open(u, h->hit.range.start, h->hit.range.end);
	h->waits = false;
}

static bool anybody_waits(const struct uffd *u)
{
	for (size_t i = 0; i < u->nr; i++)
		if (u->queue[(u->head + i) % u->cap].waits)
			return true;
	return false;
}

/* --- where the reader is --- */

static void stay(struct uffd *u, int cpu)
{
	cpu_set_t one;
	if (cpu == u->cpu)
		return;
	CPU_ZERO(&one);
	if (cpu >= 0)
		CPU_SET((unsigned)cpu, &one);
	if (!sched_setaffinity(0, sizeof(one), cpu < 0 ? &u->may : &one))
		u->cpu = cpu;
}

/*
 * Beside others' work its turn would come after some milliseconds, in which the
 * program stands: of hits beside a build one in a hundred took 4 ms until it
 * was heard of. It sleeps again after some 50 us. Where that is refused it
 * waits.
 */
static void go_first(void)
{
	const struct sched_param sp = {.sched_priority = PRIORITY};
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &sp);
}

/*
 * To the CPU of who was hit: it sleeps as soon as it has told, and to wake
 * somebody there is a switch; elsewhere it is an interrupt to a CPU that has to
 * get out of its sleep, which in a virtual machine takes ten times as long. Not
 * to one of real time, who would not let us have it.
 */
static void follow(struct uffd *u, pid_t tid)
{
	uint64_t now_ns = smco_now_ns();
	if (now_ns - u->looked_ns < LOOK_NS)
		return;
	u->looked_ns = now_ns;
	int cpu = thread_cpu(tid);
	if (cpu >= CPU_SETSIZE || (cpu >= 0 && !CPU_ISSET(cpu, &u->may)))
		cpu = -1;
	u->is_near = cpu >= 0 && cpu == u->cpu;
	stay(u, cpu);
}

uint64_t uffd_heard_ns(const struct uffd *u)
{
	const struct uffd_cost cost = uffd_cost();
	return u->is_near ? cost.near_ns : cost.heard_ns;
}

/* --- the reader --- */

bool uffd_is_removed(const struct uffd *u, taddr_t start, taddr_t end,
		     uint64_t now_ns)
{
	const struct uffd_removed *oldest = &u->removed[u->next_removed];
	/* More than can be kept: any. */
	if (oldest->told_ns && now_ns - oldest->told_ns < UFFD_REMOVED_NS)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(u->removed); i++) {
		const struct uffd_removed *r = &u->removed[i];
		if (r->told_ns && now_ns - r->told_ns < UFFD_REMOVED_NS &&
		    r->start < end && start < r->end)
			return true;
	}
	return false;
}

/* There will be no stop whose clock has seen the wait. */
static void let_go(struct uffd *u, struct uffd_hit *h)
{
	if (!h->waits)
		return;
	uffd_open_waiting(u, h);
	h->hit.cost_ns = uffd_charged_ns(uffd_heard_ns(u) + smco_now_ns() -
					 h->hit.time_ns);
}

/* Of guard @i nobody knows any more whether it would be hit, since @now_ns. */
static void end_as_gap(struct uffd *u, size_t i, taddr_t at, long syscall_nr,
		       uint64_t now_ns)
{
	const struct guard_entry e = u->tab.v[i];
	struct uffd_hit h = {
		.hit = {.range = {.start = e.start,
				  .end = e.end,
				  .user = e.user},
			.time_ns = now_ns,
			.in_kernel = true,
			.is_gap = true,
			.syscall_nr = syscall_nr,
			.addr = e.start > at ? e.start : at},
	};
	guardtab_remove(&u->tab, i);
	uffd_wp_open(u, e.start, e.end);
	h.hit.cost_ns = uffd_heard_ns(u) + smco_now_ns() - now_ns;
	queue_put(u, &h);
	tracer_wake(tproc_tracer(u->base.proc));
}

/*
 * The program gives pages back (MADV_DONTNEED, MADV_FREE) and waits until it
 * has been heard. With them goes their protection: what is written there then
 * would not be seen, and the block seem unused for ever.
 */
static void on_remove(struct uffd *u, taddr_t start, taddr_t end)
{
	uint64_t now = smco_now_ns();
	u->removed[u->next_removed] = (struct uffd_removed){start, end, now};
	u->next_removed = (u->next_removed + 1) % UFFD_REMOVED;
	size_t i;
	while ((i = guardtab_first(&u->tab, start)) < u->tab.nr &&
	       u->tab.v[i].start < end)
		end_as_gap(u, i, start, SYS_madvise, now);
}

void uffd_end_all(struct uffd *u)
{
	uint64_t now = smco_now_ns();
	while (u->tab.nr)
		end_as_gap(u, u->tab.nr - 1, 0, -1, now);
	for (size_t i = 0; i < u->nr; i++)
		let_go(u, &u->queue[(u->head + i) % u->cap]);
}

static void on_message(struct uffd *u, const struct uffd_msg *m)
{
	if (m->event == UFFD_EVENT_REMOVE)
		on_remove(u, m->arg.remove.start, m->arg.remove.end);
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
		uffd_wp_open(u, e.start, e.end);
		h.hit.cost_ns =
			uffd_heard_ns(u) + u->hit_ns + smco_now_ns() - now;
	}
	u->last_tid = tid;
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
		let_go(u, &u->queue[(u->head + i) % u->cap]);
}

void uffd_take_messages(struct uffd *u)
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
	u->cpu = -1;
	go_first();
	struct pollfd p[2] = {{u->fd, POLLIN, 0}, {u->quit_fd, POLLIN, 0}};
	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents || p[0].revents & (POLLERR | POLLHUP))
			break;
		pthread_mutex_lock(&u->lock);
		uffd_take_messages(u);
		be_patient(u);
		pid_t tid = u->last_tid;
		pthread_mutex_unlock(&u->lock);
		if (tid)
			follow(u, tid);
	}
	return NULL;
}

int uffd_start_reader(struct uffd *u)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	pthread_mutex_init(&u->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&u->looked, &attr);
	pthread_condattr_destroy(&attr);
	u->may = *tracer_cpus(tproc_tracer(u->base.proc));
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

void uffd_stop_reader(struct uffd *u)
{
	uint64_t one = 1;
	if (!u->has_reader)
		return;
	if (write(u->quit_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(u->reader, NULL);
	u->has_reader = false;
}
