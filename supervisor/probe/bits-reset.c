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
/* What coming and going costs the program, beyond waiting for the CPU. */
#define HOP_NS (15 * NSEC_PER_USEC)
/* How long the program waits meanwhile, roughly, and on the high side. */
#define RANGE_NS 700
#define PAGE_NS	 100
/* A stop is not made for more than that, nor lasts it longer. */
#define STOPPED_MOST_NS (8 * NSEC_PER_MSEC)
/* One call while it stands: some 100 us by these figures. Of bytes a multiple
 * of a huge mapping, which must not be split. */
#define BRIEF_IOVECS 128
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

/* The next iovecs for one call, in @v, all of them or what is done in brief.
 * Returns how many; at least one if any is left. */
static size_t next_iovecs(const struct reset_work *w, const struct progress *pg,
			  bool is_brief, struct iovec *v)
{
	size_t most = is_brief ? BRIEF_IOVECS : BATCH_IOVECS;
	size_t room = is_brief ? BRIEF_BYTES : SIZE_MAX;
	size_t nr = 0, offset = pg->offset;
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
 * By process_madvise, which ends at the first iovec that fails and returns the
 * bytes of those before it: from @pg on until all are done, or until @end_ns
 * if that is not 0.
 */
static int reset_remote(struct bits_reset *br, const struct reset_work *w,
			struct progress *pg, uint64_t end_ns)
{
	struct iovec v[BATCH_IOVECS];
	while (pg->at < w->n && (!end_ns || smco_now_ns() < end_ns)) {
		size_t nr = next_iovecs(w, pg, end_ns != 0, v);
		long bytes = syscall(SYS_process_madvise, br->pidfd, v, nr,
				     MADV_COLD, 0);
		if (bytes > 0) {
			advance(w, pg, (size_t)bytes);
			continue;
		}
		if (bytes < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (bytes < 0 && errno == ESRCH)
			return SMCO_GONE;
		if (bytes < 0 && errno == EPERM)
			return SMCO_PERM;
		/* This one fails (a hole: what is mapped of it was reset, or
		 * locked memory); the others must not suffer. */
		w->error[pg->at] = bytes < 0 ? errno : EINVAL;
		advance(w, pg, v[0].iov_len);
	}
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
			   const struct reset_work *w,
			   const struct ptread_mm *mm, uint64_t *side_ns)
{
	uint64_t one = w->n * br->shootdown_ns;
	uint64_t plain = one * mm->nr_running;
	uint64_t work = w->n * RANGE_NS + w->nr_pages * PAGE_NS;
	uint64_t hop = UINT64_MAX;
	uint64_t stop = STOP_NS + tproc_nr_tasks(br->proc) * STOP_TASK_NS;
	/* All wait for that, and not just who runs on the CPU that we take. */
	stop += work;
	if (work > br->stopped_most_ns)
		stop = UINT64_MAX;
	if (mm->nr_running && mm->running_cpu >= 0)
		hop = HOP_NS + work + plain - one;

	*side_ns = plain;
	if (plain <= hop && plain <= stop)
		return WAY_PLAIN;
	/* Waiting for us is on the CPU account. */
	*side_ns = HOP_NS + plain - one;
	if (hop <= stop)
		return WAY_HOP;
	*side_ns = 0; /* the stop clock has it */
	return WAY_STOP;
}

/* While it stands, for as long as that may last. */
static int reset_stopped(struct bits_reset *br, const struct reset_work *w,
			 struct progress *pg)
{
	if (tproc_stop_briefly(br->proc, NULL))
		return 0;
	int r = reset_remote(br, w, pg, smco_now_ns() + br->stopped_most_ns);
	tproc_cont(br->proc);
	return r;
}

/* What is left of it, while it runs, on whichever CPU. */
static int reset_running(struct bits_reset *br, const struct reset_work *w,
			 const struct ptread_mm *mm, struct progress *pg)
{
	br->side_ns += (w->n - pg->at) * mm->nr_running * br->shootdown_ns;
	return reset_remote(br, w, pg, 0);
}

static int reset_hopping(struct bits_reset *br, const struct reset_work *w,
			 const struct ptread_mm *mm, uint64_t side_ns,
			 struct progress *pg)
{
	cpu_set_t back;
	if (hop_to(mm->running_cpu, &back))
		return 0;
	int r = reset_remote(br, w, pg, 0);
	hop_back(&back);
	br->side_ns += side_ns;
	return r;
}

int bits_reset(struct bits_reset *br, const struct reset_work *w,
	       const struct ptread_mm *mm)
{
	struct progress pg = {0};
	uint64_t side_ns;
	int r = 0;
	memset(w->error, 0, w->n * sizeof(*w->error));
	if (br->by_injection)
		return reset_injected(br, w);
	enum way way = choose_way(br, w, mm, &side_ns);
	if (way == WAY_STOP)
		r = reset_stopped(br, w, &pg);
	else if (way == WAY_HOP)
		r = reset_hopping(br, w, mm, side_ns, &pg);
	if (!r)
		r = reset_running(br, w, mm, &pg);
	if (r != SMCO_PERM)
		return r;
	br->by_injection = true; /* it has changed its user since */
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
		     uint64_t shootdown_ns)
{
	*br = (struct bits_reset){.proc = p,
				  .shootdown_ns = shootdown_ns,
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
