/*
 * Where a thread stopped is known without its memory: to read that makes the
 * kernel take the page for one in use, and the program has to do with it then.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/rseq.h>

#include "supervisor/probe/stopclock.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define NR_STOPS 4000

/* Of /proc/kpageflags. */
#define PAGE_LRU    (1 << 5)
#define PAGE_ACTIVE (1 << 6)

static taddr_t rseq_area(void)
{
	return (taddr_t)(uintptr_t)__builtin_thread_pointer() +
	       (taddr_t)__rseq_offset;
}

/* Its page is the puppet's own, not its parent's. */
static long take_page(long at, long unused)
{
	(void)unused;
	volatile char *c = (volatile char *)(at - 64);
	*c = *c;
	return 0;
}

static long stop(long nr, long unused)
{
	(void)unused;
	signal(SIGUSR1, SIG_IGN);
	while (nr--)
		raise(SIGUSR1);
	return 0;
}

/* Pages leave the batches of all CPUs for the lists that they belong to. */
static void drain(void)
{
	cpu_set_t may, one;
	void *page = mmap(NULL, TPAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sched_getaffinity(0, sizeof(may), &may);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (CPU_ISSET(cpu, &may) &&
		    !sched_setaffinity(0, sizeof(one), &one))
			madvise(page, TPAGE_SIZE, MADV_COLD);
	}
	sched_setaffinity(0, sizeof(may), &may);
	munmap(page, TPAGE_SIZE);
}

static uint64_t word_of(const char *path, uint64_t at)
{
	uint64_t word = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &word, sizeof(word), (off_t)(at * 8)) != 8)
		word = 0;
	if (fd >= 0)
		close(fd);
	return word;
}

/* 0: not to be had. */
static uint64_t page_flags(pid_t pid, taddr_t at)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	uint64_t pfn = word_of(path, at / TPAGE_SIZE) & ((1ULL << 55) - 1);
	return pfn ? word_of("/proc/kpageflags", pfn) : 0;
}

/* Its flags after many stops. */
static uint64_t flags_after(const struct stopclock *c, bool leaves_cpus)
{
	struct tracer_options opts = {.leaves_cpus = leaves_cpus};
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	struct puppet pup = puppet_start();
	check_int(tracer_create(&tr, &opts, &err), 0);
	struct tproc *p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	if (c)
		tracer_tell_where(tr, stopclock_where, c);
	puppet_begin(&pup, take_page, (long)rseq_area(), 0);
	traced_wait(tr, &pup);
	drain();
	check(!(page_flags(pup.pid, rseq_area()) & PAGE_ACTIVE));
	puppet_begin(&pup, stop, NR_STOPS, 0);
	traced_wait(tr, &pup);
	drain();
	uint64_t flags = page_flags(pup.pid, rseq_area());
	traced_stop(p, &err);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return flags;
}

int main(void)
{
	struct stopclock *c = NULL;
	struct smco_err err = {0};
	if (!page_flags(getpid(), rseq_area()) || !__rseq_size) {
		tap_skip("no rseq area, or flags of pages are not to be had");
		return tap_done();
	}
	if (stopclock_open(&c, &err)) {
		tap_skip(err.msg);
		return tap_done();
	}
	for (int i = 0; i < 2; i++) {
		if (!(flags_after(NULL, i) & PAGE_ACTIVE)) {
			tap_skip("one CPU, or reading a page is no use of it");
			continue;
		}
		uint64_t flags = flags_after(c, i);
		check(flags & PAGE_LRU);
		check(!(flags & PAGE_ACTIVE));
	}
	stopclock_close(c);
	return tap_done();
}
