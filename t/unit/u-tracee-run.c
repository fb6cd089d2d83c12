/*
 * The engine on children of our own: waiting and waking, memory, maps, traps,
 * faults, injected calls, linker events.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/tracee.h"
#include "tap.h"

#define LONG_MS 60000 /* however busy the machine is */

static struct tracer *tr;
static int to_child[2];
static char *shared;		/* memory that both see */
static char *private_mem;	/* at the same address in both */
static uint32_t own_words[700]; /* as the child has them */

void raise_trap(void);
void after_trap(void);
__asm__(".pushsection .text\n"
	"raise_trap:\n"
	"	movq %rdi, %r8\n"
	"	movl $39, %eax\n" /* getpid */
	"	syscall\n"
	"	movq %rax, %rdi\n"
	"	movq %rax, %rsi\n"
	"	movl $23, %edx\n"  /* SIGURG */
	"	movl $234, %eax\n" /* tgkill */
	"	syscall\n"
	"after_trap:\n"
	"	ret\n"
	".popsection\n");

static void __attribute__((noreturn)) child_main(void)
{
	char c;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(to_child[0], &c, 1) == 1) {
		switch (c) {
		case 't': /* our trap, then the program's own of that number */
			raise_trap();
			shared[0]++;
			syscall(SYS_tgkill, getpid(), getpid(), SIGURG);
			shared[0]++;
			break;
		case 'f': /* a fault that the tracer mends */
			*(volatile char *)(private_mem + TPAGE_SIZE) = 7;
			shared[1]++;
			break;
		case 'q':
			_exit(9);
		}
	}
	_exit(8);
}

static pid_t start_child(void)
{
	if (pipe(to_child))
		exit(2);
	fflush(stdout);
	for (unsigned i = 0; i < sizeof(own_words) / sizeof(*own_words); i++)
		own_words[i] = 3 * i + 1;
	pid_t pid = fork();
	if (pid == 0)
		child_main();
	return pid;
}

static void tell(char c)
{
	if (write(to_child[1], &c, 1) != 1)
		exit(2);
}

static enum tevent_kind next(struct tevent *ev, unsigned ms)
{
	uint64_t deadline = smco_now_ns() + ms * NSEC_PER_MSEC;
	if (tracer_next(tr, deadline, ev) < 0)
		exit(2);
	return ev->kind;
}

/* Until the child has come so far: the first event meanwhile, TEV_NONE. */
static enum tevent_kind until_shared(int at, char value)
{
	struct tevent ev = {0};
	uint64_t deadline = smco_now_ns() + LONG_MS * NSEC_PER_MSEC;
	while (((volatile char *)shared)[at] != value &&
	       smco_now_ns() < deadline)
		if (next(&ev, 1) != TEV_NONE)
			return ev.kind;
	check_int(shared[at], value);
	return next(&ev, 1);
}

static void test_maps_and_memory(struct tproc *p)
{
	struct tmaps m;
	struct smco_err err;
	char buf[3 * TPAGE_SIZE];

	check_int(tmaps_read(tproc_pid(p), &m, &err), 0);
	bool sorted = true;
	for (size_t i = 1; i < m.nr; i++)
		sorted &= m.maps[i - 1].end <= m.maps[i].start;
	check(sorted);
	const struct tmap *map =
		tmaps_find(&m, (taddr_t)(uintptr_t)private_mem);
	check(map && map->prot == (PROT_READ | PROT_WRITE) && !map->shared);
	map = tmaps_find(&m, (taddr_t)(uintptr_t)shared);
	check(map && map->shared);
	check(!tmaps_find(&m, 8));
	map = tmaps_find(&m, (taddr_t)(uintptr_t)&raise_trap);
	check(map && map->prot == (PROT_READ | PROT_EXEC) && map->inode);
	tmaps_deinit(&m);

	taddr_t at = (taddr_t)(uintptr_t)private_mem;
	memset(buf, 'x', sizeof(buf));
	check_int(tmem_read(p, at, buf, TPAGE_SIZE), 0);
	check_int(buf[5], 42);
	/* The second page is PROT_NONE: read all the same; the third is not
	 * there. */
	check_int(tmem_read(p, at, buf, 2 * TPAGE_SIZE), 0);
	check_int(tmem_read(p, at, buf, 2 * TPAGE_SIZE + 1), SMCO_FAULT);
	check_int(tmem_read_some(p, at, buf, sizeof(buf)), 2 * TPAGE_SIZE);
	check_int(tmem_read_some(p, 4096, buf, 10), 0);
	check_int(tmem_read(p, UINT64_MAX - 10, buf, 10), SMCO_FAULT);
	check_int(tmem_write(p, UINT64_MAX - 10, buf, 10), SMCO_FAULT);
	/* More words than one call takes, in any order. */
	enum { NR_WORDS = 700 };
	taddr_t ats[NR_WORDS];
	uint32_t words[NR_WORDS];
	unsigned nr_wrong = 0;
	for (unsigned i = 0; i < NR_WORDS; i++)
		ats[i] = (taddr_t)(uintptr_t)&own_words[NR_WORDS - 1 - i];
	check_int(tmem_read_words(p, ats, NR_WORDS, words), 0);
	for (unsigned i = 0; i < NR_WORDS; i++)
		nr_wrong += words[i] != own_words[NR_WORDS - 1 - i];
	check_int(nr_wrong, 0);
	ats[300] = at + TPAGE_SIZE; /* PROT_NONE, once more */
	check_int(tmem_read_words(p, ats, NR_WORDS, words), 0);
	check_int(words[299], own_words[NR_WORDS - 300]);
	check_int(words[301], own_words[NR_WORDS - 302]);
	ats[600] = at + 2 * TPAGE_SIZE;
	check_int(tmem_read_words(p, ats, NR_WORDS, words), SMCO_FAULT);
	/* Text can be written; each process has its own. */
	uint8_t was, now = 0x90;
	taddr_t text = (taddr_t)(uintptr_t)&child_main;
	check_int(tmem_read(p, text, &was, 1), 0);
	check_int(tmem_write(p, text, &now, 1), 0);
	check(*(uint8_t *)(uintptr_t)&child_main == was);
	check_int(tmem_read(p, text, &now, 1), 0);
	check_int(now, 0x90);
	tmem_write(p, text, &was, 1);
}

static void test_calls(struct tproc *p)
{
	struct tsyscall calls[150] = {0};
	struct smco_err err = {0};
	size_t n = ARRAY_SIZE(calls);

	for (size_t i = 0; i < n; i++) {
		calls[i].nr = i % 2 ? SYS_getpid : SYS_lseek;
		calls[i].args[0] = (uint64_t)-1;
	}
	int r;
	do /* on a busy machine a thread may get no CPU to stop on */
		r = tproc_stop(p, &err);
	while (r == SMCO_BUSY);
	check_int(r, 0);
	check_int(tproc_syscalls(p, calls, n, &err), 0);
	int wrong = 0;
	for (size_t i = 0; i < n; i++)
		wrong += calls[i].ret != (i % 2 ? tproc_pid(p) : -EBADF);
	check_int(wrong, 0);
	int64_t ret = 0;
	const uint64_t args[6] = {1, 2, 3, 4, 5, 6};
	check_int(tproc_syscall(p, 100000, args, &ret, &err), 0);
	check_int(ret, -ENOSYS);
	tproc_cont(p);
}

static void test_trap(struct tproc *p)
{
	struct tevent ev;
	taddr_t after = (taddr_t)(uintptr_t)&after_trap;

	check_int(tproc_trap_signal(p), SIGURG);
	check_int(tproc_set_trap_range(p, after, after), 0);
	/* One that is never hit, above all code. */
	check_int(tproc_set_trap_range(p, UINT64_MAX - 1, UINT64_MAX), 0);
	tell('t');
	check_int(next(&ev, LONG_MS), TEV_TRAP);
	struct user_regs_struct regs;
	check_int(task_get_regs(ev.task, &regs), 0);
	check(regs.rip == after);
	check_int(ev.siginfo.si_code, SI_TKILL);
	tracer_resume(tr, ev.task, 0);
	/* The one from elsewhere is no trap. */
	check_int(until_shared(0, 2), TEV_NONE);
	tproc_clear_trap_range(p, after, after);
	tell('t');
	check_int(until_shared(0, 4), TEV_NONE);
}

static void test_fault(struct tproc *p)
{
	struct tevent ev;
	int64_t ret = -1;
	uint64_t at = (uint64_t)(uintptr_t)private_mem + TPAGE_SIZE;
	const uint64_t args[6] = {at, TPAGE_SIZE, PROT_READ | PROT_WRITE};

	tell('f');
	check_int(next(&ev, LONG_MS), TEV_FAULT);
	check_int(ev.siginfo.si_signo, SIGSEGV);
	check((uint64_t)(uintptr_t)ev.siginfo.si_addr == at);
	check_int(tproc_syscall(p, SYS_mprotect, args, &ret, NULL), 0);
	check_int(ret, 0);
	/* Still the same stop, with the same signal to give or to keep. */
	tracer_resume(tr, ev.task, 0);
	check_int(until_shared(1, 1), TEV_NONE);
}

static void on_alarm(int sig)
{
	(void)sig;
	tracer_wake(tr);
}

static void *waker(void *arg)
{
	usleep(50000);
	tracer_wake(tr);
	return arg;
}

/* Nothing happens for ever: each of these returns only if it is woken. */
static void test_wake(void)
{
	struct tevent ev;
	pthread_t t;

	pthread_create(&t, NULL, waker, NULL);
	check(tracer_next(tr, UINT64_MAX, &ev) == 1 && ev.kind == TEV_NONE);
	pthread_join(t, NULL);
	for (int restart = 0; restart < 2; restart++) {
		/* From a handler on top of the wait itself, many times: the
		 * moment at which it comes differs. */
		struct sigaction sa = {.sa_handler = on_alarm,
				       .sa_flags = restart ? SA_RESTART : 0};
		sigaction(SIGALRM, &sa, NULL);
		int n = 0;
		for (int i = 0; i < 300; i++) {
			ualarm((useconds_t)(1 + i % 60), 0);
			n += tracer_next(tr, UINT64_MAX, &ev) == 1 &&
			     ev.kind == TEV_NONE;
		}
		check_int(n, 300);
	}
	tracer_wake(tr); /* before the wait */
	check(tracer_next(tr, UINT64_MAX, &ev) == 1 && ev.kind == TEV_NONE);
	check(tracer_next(tr, 0, &ev) == 1 && ev.kind == TEV_NONE);
}

static void test_end(pid_t pid)
{
	struct tevent ev;
	tell('q');
	/* Always too late: what happened is told all the same. */
	int tries = 0;
	while (tracer_next(tr, 1, &ev) > 0 && ev.kind == TEV_NONE &&
	       tries++ < LONG_MS)
		usleep(1000);
	check_int(ev.kind, TEV_TASK_GONE);
	check_int(next(&ev, LONG_MS), TEV_PROC_GONE);
	check_int(tproc_pid(ev.proc), pid);
	check(WIFEXITED(ev.exit_status) && WEXITSTATUS(ev.exit_status) == 9);
	check_int(tracer_next(tr, UINT64_MAX, &ev), 0);
	check_int(ev.kind, TEV_DONE);
}

static bool is_mapped(pid_t pid, const char *name, uint32_t prot)
{
	struct tmaps m;
	bool found = false;
	if (tmaps_read(pid, &m, NULL) < 0)
		return false;
	for (size_t i = 0; i < m.nr; i++)
		found |= strstr(m.maps[i].path, name) &&
			 (m.maps[i].prot & prot) == prot;
	tmaps_deinit(&m);
	return found;
}

/* Libraries are mapped, and not a line has been printed yet. */
static void test_libs(void)
{
	static char ls[] = "ls", dir[] = "/nonexistent-directory";
	char *argv[] = {ls, dir, NULL};
	struct smco_err err = {0};
	struct tevent ev;
	pid_t pid = 0;

	check_int(tracer_launch(tr, argv, &pid, &err), 0);
	check_int(next(&ev, LONG_MS), TEV_PROC_NEW);
	check_int(ev.why, TPROC_LAUNCHED);
	check(!is_mapped(pid, "/libc.so", PROT_EXEC));
	tproc_resume_new(ev.proc);
	check_int(next(&ev, LONG_MS), TEV_LIBS);
	check(is_mapped(pid, "/libc.so", PROT_EXEC));
	/* The breakpoint that told us is gone. */
	struct user_regs_struct regs;
	uint8_t byte = 0xcc;
	check_int(task_get_regs(ev.task, &regs), 0);
	check_int(tmem_read(ev.proc, regs.rip, &byte, 1), 0);
	check(byte != 0xcc);
	tracer_resume(tr, ev.task, 0);
	check_int(next(&ev, LONG_MS), TEV_TASK_GONE);
	check_int(next(&ev, LONG_MS), TEV_PROC_GONE);
	check_int(WEXITSTATUS(ev.exit_status), 2);
}

int main(void)
{
	struct smco_err err = {0};
	struct tevent ev;

	shared = mmap(NULL, TPAGE_SIZE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	private_mem = mmap(NULL, 3 * TPAGE_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	private_mem[5] = 42;
	mprotect(private_mem + TPAGE_SIZE, TPAGE_SIZE, PROT_NONE);
	munmap(private_mem + 2 * TPAGE_SIZE, TPAGE_SIZE);
	pid_t pid = start_child();

	if (tracer_create(&tr, NULL, &err) < 0 ||
	    tracer_attach(tr, pid, &err) < 0) {
		printf("# %s\n", err.msg);
		return 1;
	}
	check(tracer_stop_own_ns(tr) > 0);
	check(tracer_stop_own_ns(tr) <= tracer_stop_cost_ns(tr));
	check_int(next(&ev, LONG_MS), TEV_PROC_NEW);
	check_int(ev.why, TPROC_ATTACHED);
	check_int(tracer_attach(tr, pid, &err), SMCO_BUSY);
	struct tproc *p = ev.proc;
	tproc_resume_new(p);
	test_maps_and_memory(p);
	test_calls(p);
	test_trap(p);
	test_fault(p);
	test_wake();
	test_end(pid);
	test_libs();
	tracer_destroy(tr);
	return tap_done();
}
