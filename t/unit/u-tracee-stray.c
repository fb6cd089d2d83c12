/*
 * SIGTRAPs that the kernel sends for a hit of a debug register that it cannot
 * account for, as where a virtual machine's host has lost what is in DR6: here
 * a thread sends them to itself, the same in all that can be seen of them. They
 * would kill the program, which has not done anything; what it does itself to
 * get such a signal it gets.
 */
#include <string.h>
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct tracer *tr;
static volatile int nr_traps, code; /* in the puppet */

static void note(int sig, siginfo_t *si, void *context)
{
	(void)sig;
	(void)context;
	nr_traps++;
	code = si->si_code;
}

static long prepare(long unused, long unused_too)
{
	struct sigaction sa = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
	(void)unused;
	(void)unused_too;
	return sigaction(SIGTRAP, &sa, NULL);
}

/* As the kernel's, of an exception at the instruction behind the call, or
 * @ahead bytes behind that. */
static long pretend(long code_sent, long ahead)
{
	siginfo_t si = {.si_signo = SIGTRAP, .si_code = (int)code_sent};
	pid_t pid = getpid(), tid = gettid();
	register siginfo_t *info __asm__("r10") = &si;
	register long behind __asm__("r8") = ahead;
	long ret = SYS_rt_tgsigqueueinfo;
	__asm__ volatile("lea 1f(%%rip), %%r9\n"
			 "add %%r9, %%r8\n"
			 "mov %%r8, %[addr]\n"
			 "syscall\n"
			 "1:"
			 : "+a"(ret), "+r"(behind), [addr] "=m"(si.si_addr)
			 : "D"(pid), "S"(tid), "d"(SIGTRAP), "r"(info)
			 : "rcx", "r9", "r11", "memory");
	return ret ? -1 : nr_traps;
}

static long int1(long unused, long unused_too)
{
	(void)unused;
	(void)unused_too;
	__asm__ volatile(".byte 0xf1");
	return nr_traps;
}

static long int3(long unused, long unused_too)
{
	(void)unused;
	(void)unused_too;
	__asm__ volatile("int3");
	return nr_traps;
}

/* The trap comes behind the instruction that follows. */
static long step(long unused, long unused_too)
{
	(void)unused;
	(void)unused_too;
	__asm__ volatile(
		"sub $128, %%rsp\n pushf\n orl $0x100, (%%rsp)\n popf\n"
		"nop\n pushf\n andl $~0x100, (%%rsp)\n popf\n"
		"add $128, %%rsp" ::
			: "memory", "cc");
	return nr_traps;
}

static long get_code(long unused, long unused_too)
{
	(void)unused;
	(void)unused_too;
	return code;
}

int main(void)
{
	struct smco_err err = {0};
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	struct puppet pup = puppet_start();
	check_int(puppet_do(&pup, prepare, 0, 0), 0);
	/* Without us it gets all of them. */
	check_int(puppet_do(&pup, pretend, TRAP_BRKPT, 0), 1);
	check_int(puppet_do(&pup, pretend, TRAP_HWBKPT, 0), 2);
	struct tproc *p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	check_int(traced_do(tr, &pup, pretend, TRAP_BRKPT, 0), 2);
	check_int(traced_do(tr, &pup, pretend, TRAP_HWBKPT, 0), 2);
	/* Its own. */
	check_int(traced_do(tr, &pup, int1, 0, 0), 3);
	check_int(traced_do(tr, &pup, get_code, 0, 0), TRAP_BRKPT);
	check_int(traced_do(tr, &pup, int3, 0, 0), 4);
	check_int(traced_do(tr, &pup, pretend, TRAP_BRKPT, 1), 5);
	check_int(traced_do(tr, &pup, pretend, TRAP_TRACE, 0), 6);
	check_int(traced_do(tr, &pup, pretend, SI_QUEUE, 0), 7);
	long before = traced_do(tr, &pup, step, 0, 0);
	check(before > 8);
	check_int(traced_do(tr, &pup, get_code, 0, 0), TRAP_TRACE);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
