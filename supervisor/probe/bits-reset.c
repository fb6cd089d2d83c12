#include "supervisor/probe/bits-reset.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/probe/hop.h"

/* What stopping and resuming costs, roughly and on the high side. */
#define STOP_NS	     (100 * NSEC_PER_USEC)
#define STOP_TASK_NS (30 * NSEC_PER_USEC)
/* What coming and going costs the program, beyond waiting for the CPU, roughly:
 * to choose a way. 15 to 50 us were measured. */
#define HOP_NS (30 * NSEC_PER_USEC)
/* How long the program waits meanwhile, roughly, and on the high side. */
#define RANGE_NS 700
#define PAGE_NS	 100
/* A stop is not made for more than that, nor lasts it longer. */
#define STOPPED_MOST_NS (8 * NSEC_PER_MSEC)
/* One call: some 100 us by these figures; more where to ask who runs takes
 * long (50 ns a thread). Of bytes a multiple of a huge mapping, which must not
 * be split. */
#define BRIEF_IOVECS 128
#define BRIEF_NS     (300 * NSEC_PER_USEC)
#define BRIEF_BYTES  (4UL << 20)
#define HUGE_SIZE    (2UL << 20)
#define BATCH_IOVECS IOV_MAX
_Static_assert(BRIEF_IOVECS <= BATCH_IOVECS && BRIEF_BYTES % HUGE_SIZE == 0,
	       "a brief batch");

/*
 * By calls run in the tracee, which stands meanwhile. The stop clock has what
 * it costs.
 */
static int reset_injected(struct bits_reset *br, const struct reset_work *w)
{
	struct tsyscall calls[64];
	int r = tproc_stop(br->proc, NULL);
	if (r)
		return r;
	for (size_t done = 0; !r && done < w->n;) {
		size_t nr = w->n - done < 64 ? w->n - done : 64;
		for (size_t i = 0; i < nr; i++)
			calls[i] = (struct tsyscall){
				.nr = SYS_madvise,
				.args = {(uintptr_t)w->iov[done + i].iov_base,
					 w->iov[done + i].iov_len, MADV_COLD}};
		r = tproc_syscalls(br->proc, calls, nr, NULL);
		for (size_t i = 0; i < nr; i++)
			w->error[done + i] = (int)-calls[i].ret;
		done += nr;
	}
	tproc_cont(br->proc);
	return r;
}

/* How far a reset by process_madvise has come: iovec @at, of which the first
 * @offset bytes are done. */
struct progress {
	size_t at;
	size_t offset;
};

/* How long a range takes us, roughly. Where its page table is written for a
 * host, too, that is about half of what it costs the program later: 9 of 20 us
 * were measured. */
static uint64_t range_work_ns(const struct bits_reset *br)
{
	return br->flush_ns / 2 > RANGE_NS ? br->flush_ns / 2 : RANGE_NS;
}

/* Many in a call, but none of them may last: who waits for our CPU is taken to
 * another one then, where each range interrupts it. */
static size_t most_iovecs(const struct bits_reset *br)
{
	size_t most = tproc_nr_tasks(br->proc);
	size_t brief = BRIEF_NS / range_work_ns(br);
	if (most < BRIEF_IOVECS)
		most = BRIEF_IOVECS;
	if (most > BATCH_IOVECS)
		most = BATCH_IOVECS;
	return most < brief || !br->flush_ns ? most : brief ? brief : 1;
}

/* The next iovecs for one call that takes brief, in @v. Returns how many; at
 * least one if any is left. */
static size_t next_iovecs(const struct bits_reset *br,
			  const struct reset_work *w, const struct progress *pg,
			  struct iovec *v)
{
	size_t most = most_iovecs(br);
	size_t room = BRIEF_BYTES, nr = 0, offset = pg->offset;
	for (size_t i = pg->at; i < w->n && nr < most; i++, offset = 0) {
		uintptr_t start = (uintptr_t)w->iov[i].iov_base + offset;
		size_t len = w->iov[i].iov_len - offset;
		if (len > room && nr)
			break;
		if (len > room) /* alone: cut between huge mappings */
			len = ((start + room) & ~(HUGE_SIZE - 1)) - start;
		v[nr++] = (struct iovec){.iov_base = (void *)start,
					 .iov_len = len};
		room -= len < room ? len : room;
	}
	return nr;
}

static void advance(const struct reset_work *w, struct progress *pg,
		    size_t bytes)
{
	while (bytes) {
		size_t left = w->iov[pg->at].iov_len - pg->offset;
		if (bytes < left) {
			pg->offset += bytes;
			return;
		}
		bytes -= left;
		pg->at++;
		pg->offset = 0;
	}
}

/*
 * One call of process_madvise, which ends at the first iovec that fails and
 * returns the bytes of those before it.
 */
static int reset_some(struct bits_reset *br, const struct reset_work *w,
		      struct progress *pg)
{
	struct iovec v[BATCH_IOVECS];
	size_t nr = next_iovecs(br, w, pg, v);
	long bytes =
		syscall(SYS_process_madvise, br->pidfd, v, nr, MADV_COLD, 0);
	if (bytes > 0) {
		advance(w, pg, (size_t)bytes);
		return 0;
	}
	if (bytes < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (bytes < 0 && errno == ESRCH)
		return SMCO_GONE;
	if (bytes < 0 && errno == EPERM)
		return SMCO_PERM;
	/* This one fails (a hole: what is mapped of it was reset, or locked
	 * memory); the others must not suffer. */
	w->error[pg->at] = bytes < 0 ? errno : EINVAL;
	advance(w, pg, v[0].iov_len);
	return 0;
}

/*
 * Each range that is reset interrupts every other CPU that runs the program,
 * and in a virtual machine that is dear. Where there are many ranges, it is
 * cheaper to do it on the CPU that runs the program, which waits meanwhile, or
 * to stop the program: a CPU that does not run it is not interrupted.
 */
enum way { WAY_PLAIN, WAY_HOP, WAY_STOP };

static enum way choose_way(const struct bits_reset *br,
			   const struct reset_work *w, size_t nr_done,
			   const struct ptread_mm *mm)
{
	uint64_t nr = w->n - nr_done;
	uint64_t one = nr * br->shootdown_ns;
	uint64_t plain = one * mm->nr_running;
	uint64_t work =
		nr * range_work_ns(br) + w->nr_pages * nr / w->n * PAGE_NS;
	uint64_t hop = UINT64_MAX;
	uint64_t stop = STOP_NS + tproc_nr_tasks(br->proc) * STOP_TASK_NS;
	/* All wait for that, and not just who runs on the CPU that we take. */
	stop += work;
	if (work > br->stopped_most_ns || nr_done)
		stop = UINT64_MAX;
	if (mm->nr_running && mm->running_cpu >= 0)
		hop = HOP_NS + work + plain - one;
	if (plain <= hop && plain <= stop)
		return WAY_PLAIN;
	return hop <= stop ? WAY_HOP : WAY_STOP;
}

/* While it stands, for as long as that may last. The stop clock has the cost.
 */
static int reset_stopped(struct bits_reset *br, const struct reset_work *w,
			 struct progress *pg)
{
	if (tproc_stop_briefly(br->proc, NULL))
		return 0;
	int r = 0;
	uint64_t end_ns = smco_now_ns() + br->stopped_most_ns;
	while (!r && pg->at < w->n && smco_now_ns() < end_ns)
		r = reset_some(br, w, pg);
	tproc_cont(br->proc);
	return r;
}

/* Where we are among the CPUs. */
struct place {
	bool has_hopped;
	bool was_relaxed; /* then */
	struct hop back;  /* then */
	uint64_t since_ns;
};

/* Waiting for us, and that we come and go, is on the CPU account (wakecost.h).
 */
static void hop(struct bits_reset *br, struct ptread_mm *mm, struct place *pl)
{
	struct hop back;
	struct tracer *tr = tproc_tracer(br->proc);
	/* Before others: who comes to a CPU that is in use would wait there. */
	bool was_relaxed = tracer_relax(tr, false);
	if (!hop_to(mm->running_cpu, &back)) {
		tracer_relax(tr, was_relaxed);
		return;
	}
	if (!pl->has_hopped)
		*pl = (struct place){
			.back = back,
			.was_relaxed = was_relaxed,
			.since_ns = smco_now_ns(),
		};
	pl->has_hopped = true;
	mm->displaced_tid = mm->running_tid;
	mm->nr_running--;
}

/*
 * The rest, while it runs, on whichever CPU. Who waits for the CPU that we are
 * on is soon moved to another one, sometimes in the middle of a call: its first
 * half interrupted nobody then.
 */
static int reset_running(struct bits_reset *br, const struct reset_work *w,
			 struct progress *pg, struct ptread_mm *mm)
{
	struct place place = {0};
	int r = 0;
	while (!r && pg->at < w->n) {
		size_t nr_done = pg->at;
		/* Who waits here would run, and be interrupted, as soon as we
		 * go after somebody else, who may have nearly done. */
		if (!mm->is_displaced &&
		    choose_way(br, w, nr_done, mm) != WAY_PLAIN)
			hop(br, mm, &place);
		uint64_t nr_before = mm->nr_running;
		r = reset_some(br, w, pg);
		if (!r && pg->at < w->n)
			r = br->who_runs(br->who_arg, mm);
		size_t nr = pg->at - nr_done + (pg->offset > 0);
		br->side_ns += nr * br->shootdown_ns *
			       (nr_before + mm->nr_running) / 2;
	}
	if (place.has_hopped) {
		br->waited_ns += HOP_NS + smco_now_ns() - place.since_ns;
		hop_back(&place.back);
		tracer_relax(tproc_tracer(br->proc), place.was_relaxed);
	}
	return r;
}

/* Page tables in which something is reset: of ranges in order, the right
 * number. */
static uint64_t nr_tables(const struct reset_work *w)
{
	uint64_t nr = 0;
	uintptr_t prev = UINTPTR_MAX;
	for (size_t i = 0; i < w->n; i++) {
		uintptr_t start = (uintptr_t)w->iov[i].iov_base;
		uintptr_t first = start / HUGE_SIZE;
		uintptr_t last = (start + w->iov[i].iov_len - 1) / HUGE_SIZE;
		nr += last - first + (first != prev);
		prev = last;
	}
	return nr;
}

int bits_reset(struct bits_reset *br, const struct reset_work *w,
	       const struct ptread_mm *mm)
{
	struct ptread_mm now = *mm;
	struct progress pg = {0};
	int r = 0;
	memset(w->error, 0, w->n * sizeof(*w->error));
	br->side_ns += nr_tables(w) * br->flush_ns;
	if (br->by_injection)
		return reset_injected(br, w);
	if (choose_way(br, w, 0, mm) == WAY_STOP)
		r = reset_stopped(br, w, &pg);
	if (!r)
		r = reset_running(br, w, &pg, &now);
	if (r != SMCO_PERM && r != SMCO_GONE)
		return r;
	/* It has changed its user since, or its first thread has ended, by
	 * whose number it was known: others still have its memory. */
	br->by_injection = true;
	return reset_injected(br, w);
}

/* May process_madvise be used on this process? An empty vector asks without
 * touching anything. */
static bool may_madvise(const struct bits_reset *br)
{
	struct iovec none = {0};
	return br->pidfd >= 0 && syscall(SYS_process_madvise, br->pidfd, &none,
					 0, MADV_COLD, 0) == 0;
}

void bits_reset_init(struct bits_reset *br, struct tproc *p,
		     const struct bits_cost *cost, bits_who_runs *who_runs,
		     void *arg)
{
	*br = (struct bits_reset){.proc = p,
				  .who_runs = who_runs,
				  .who_arg = arg,
				  .shootdown_ns = cost->shootdown_ns,
				  .flush_ns = cost->flush_ns,
				  .stopped_most_ns = STOPPED_MOST_NS};
	br->pidfd = (int)syscall(SYS_pidfd_open, tproc_pid(p), 0);
	br->by_injection = !may_madvise(br);
}

void bits_reset_deinit(struct bits_reset *br)
{
	if (br->pidfd >= 0)
		close(br->pidfd);
	br->pidfd = -1;
}
