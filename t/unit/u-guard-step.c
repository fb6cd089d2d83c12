/*
 * The moments around guards that a running program rarely shows, one step
 * after the other: what must not be armed is not, from the first guard on; a
 * fault whose guard somebody has opened meanwhile is tried again; at a fault of
 * the program's own no guard is left when its handler runs.
 */
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 16
#include "supervisor/probe/guard.h"
#include "t/unit/pages.h"
#include "t/unit/traced.h"

/* What is on which page. */
enum { TOUCHED = 0, ROBUST = 3, LOCKED = 5, READ = 7, READONLY = 9 };

static int feed[2];
static sigjmp_buf back;

static char *page(long nr)
{
	return mem + nr * (long)PAGE;
}

/* --- in the puppet --- */

static void jump_back(int sig)
{
	siglongjmp(back, sig);
}

static long act_prepare(long unused1, long unused2)
{
	static struct robust_list_head head;
	struct robust_list *lock = (struct robust_list *)(page(ROBUST) + 64);
	struct sigaction sa = {.sa_handler = jump_back};
	(void)unused1, (void)unused2;
	lock->next = &head.list;
	head.list.next = lock;
	head.futex_offset = 16;
	return syscall(SYS_set_robust_list, &head, sizeof(head)) |
	       /* Sanitizers make nothing of libc's. */
	       (int)syscall(SYS_mlock, page(LOCKED), PAGE) |
	       mprotect(page(READONLY), PAGE, PROT_READ) |
	       sigaction(SIGSEGV, &sa, NULL);
}

static long act_read(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	return read(feed[0], page(READ), 10);
}

static long act_write(long nr, long unused)
{
	(void)unused;
	if (!sigsetjmp(back, 1))
		*(volatile char *)page(nr) = 1;
	else
		return -1;
	return *(volatile char *)page(nr);
}

/* --- the supervisor --- */

static struct tracer *tr;
static struct access *a;

static void until_it_reads(void)
{
	char path[64], want[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pup.pid);
	snprintf(want, sizeof(want), "0 %#x %#lx ", (unsigned)feed[0],
		 (unsigned long)(uintptr_t)page(READ));
	while (strncmp(line, want, strlen(want)) != 0) {
		usleep(1000);
		if (smco_slurp(path, line, sizeof(line)) < 0)
			exit(2);
	}
}

/* Pages that cannot be accessed. */
static int nr_closed(void)
{
	struct tmaps maps;
	int nr = 0;
	if (tmaps_read(pup.pid, &maps, NULL))
		return -1;
	for (int i = 0; i < PAGES; i++) {
		const struct tmap *m = tmaps_find(&maps, (uintptr_t)page(i));
		nr += !m || !(m->prot & PROT_READ);
	}
	tmaps_deinit(&maps);
	return nr;
}

/* Events until there is a fault that on_event() has not seen yet; false: the
 * puppet has answered. */
static bool run_to_fault(struct tevent *ev)
{
	struct pollfd fd = {.fd = pup.answer, .events = POLLIN};
	while (poll(&fd, 1, 0) <= 0) {
		struct access_hit hit;
		uint64_t soon = smco_now_ns() + NSEC_PER_MSEC;
		if (tracer_next(tr, soon, ev) < 1 || !ev->task)
			continue;
		if (ev->kind == TEV_FAULT)
			return true;
		access_mprotect.on_event(a, ev, &hit);
		tracer_resume(tr, ev->task, 0);
	}
	return false;
}

/* Each page by itself. */
static void arm_all(struct page_range r[PAGES])
{
	struct tevent ev;
	for (int i = 0; i < PAGES; i++)
		r[i] = range_at(page(i), 1);
	while (access_mprotect.arm(a, r, PAGES) == SMCO_BUSY)
		if (tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) > 0 &&
		    ev.task)
			tracer_resume(tr, ev.task, 0);
}

/* In a call, robust lists, locked memory: found when tracing begins, with no
 * call of the program's seen yet. */
static void what_is_not_armed(void)
{
	struct page_range r[PAGES];
	puppet_begin(&pup, act_read, 0, 0);
	until_it_reads();
	arm_all(r);
	for (int i = 0; i < PAGES; i++)
		check_msg((r[i].nr_reset == UINT32_MAX) ==
				  (i == ROBUST || i == LOCKED || i == READ),
			  "page %d: %u", i, r[i].nr_reset);
	check_int(nr_closed(), PAGES - 3);
	struct tevent ev;
	check_int(write(feed[1], "0123456789", 10), 10);
	check(!run_to_fault(&ev));
	check_int(puppet_wait(&pup), 10);
}

static void opened_meanwhile(void)
{
	struct page_range r = range_at(page(TOUCHED), 1);
	struct access_hit hit;
	struct tevent ev;
	puppet_begin(&pup, act_write, TOUCHED, 0);
	if (!check(run_to_fault(&ev)))
		return;
	check_int((long)(uintptr_t)ev.siginfo.si_addr, (long)r.start);
	check_int(access_mprotect.disarm(a, &r, 1), 0);
	bool ours = access_mprotect.on_event(a, &ev, &hit);
	check(ours);
	tracer_resume(tr, ev.task, ours ? 0 : SIGSEGV);
	check(!run_to_fault(&ev));
	check_int(puppet_wait(&pup), 1);
}

/* It is tried again, too, and found to be nobody's. */
static void its_own(void)
{
	struct page_range r = range_at(page(READONLY), 1);
	struct access_hit hit;
	struct tevent ev;
	access_mprotect.disarm(a, &r, 1);
	check(nr_closed() > 0);
	puppet_begin(&pup, act_write, READONLY, 0);
	check(run_to_fault(&ev));
	check(access_mprotect.on_event(a, &ev, &hit));
	tracer_resume(tr, ev.task, 0);
	check(run_to_fault(&ev));
	check(nr_closed() > 0);
	check(!access_mprotect.on_event(a, &ev, &hit));
	check_int(nr_closed(), 0);
	tracer_resume(tr, ev.task, SIGSEGV);
	check(!run_to_fault(&ev));
	check_int(puppet_wait(&pup), -1);
}

int main(void)
{
	struct smco_err err = {0};
	if (pipe(feed))
		return 2;
	start_with_pages();
	check_int(puppet_do(&pup, act_prepare, 0, 0), 0);
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *proc = traced_attach(tr, pup.pid, &err);
	if (!check(proc != NULL))
		return tap_done();
	check_int(access_mprotect.open(proc, &a, &err), 0);
	tproc_resume_new(proc);
	what_is_not_armed();
	opened_meanwhile();
	its_own();
	access_mprotect.close(a);
	check_int(tproc_detach(proc, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
