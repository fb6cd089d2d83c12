#include "supervisor/tracee/arch.h"

#include <errno.h>
#include <ucontext.h>
#include <sys/syscall.h>

/* Kernel-internal, never seen by programs, but seen through ptrace. */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

/*
 * The signal handler moves a program counter inside [begin, end) to abort.
 * A blocking wait4 that a signal interrupts has its pc put back onto the
 * syscall instruction (SA_RESTART), so it lies inside too; after a completed
 * one it lies at end, and the result is kept.
 */
asm(".pushsection .text\n"
    ".globl arch_wait4\n"
    ".type arch_wait4, @function\n"
    "arch_wait4:\n"
    "	xorl %r10d, %r10d\n"
    "	movq %rcx, %r8\n" /* syscall clobbers rcx */
    "smco_wait4_begin:\n"
    "	cmpl $0, (%r8)\n"
    "	jne smco_wait4_abort\n"
    "	movl $61, %eax\n"
    "	syscall\n"
    "smco_wait4_end:\n"
    "	ret\n"
    "smco_wait4_abort:\n"
    "	movq $-4, %rax\n"
    "	ret\n"
    ".size arch_wait4, . - arch_wait4\n"
    ".popsection\n");
_Static_assert(SYS_wait4 == 61 && EINTR == 4, "numbers in arch_wait4");

extern const char smco_wait4_begin[], smco_wait4_end[], smco_wait4_abort[];

void arch_end_wait(void *ucontext)
{
	ucontext_t *uc = ucontext;
	greg_t *pc = &uc->uc_mcontext.gregs[REG_RIP];
	if ((uintptr_t)*pc >= (uintptr_t)smco_wait4_begin &&
	    (uintptr_t)*pc < (uintptr_t)smco_wait4_end)
		*pc = (greg_t)(uintptr_t)smco_wait4_abort;
}

/*
 * rbx = first call, r12 = end of the calls, r13 = tgid, r14 = tid, r15 =
 * signal. Uses no stack. Ends with tgkill(r13, r14, r15), which stops a traced
 * task whatever it does with that signal; should nobody be there any more it
 * would run on into ud2, but then it would not have been sent here.
 */
static const uint8_t batch_code[] = {
	0x4c, 0x39, 0xe3,	      /* loop: cmp r12, rbx */
	0x73, 0x27,		      /* jae done */
	0x48, 0x8b, 0x03,	      /* mov (rbx), rax */
	0x48, 0x8b, 0x7b, 0x08,	      /* mov 8(rbx), rdi */
	0x48, 0x8b, 0x73, 0x10,	      /* mov 16(rbx), rsi */
	0x48, 0x8b, 0x53, 0x18,	      /* mov 24(rbx), rdx */
	0x4c, 0x8b, 0x53, 0x20,	      /* mov 32(rbx), r10 */
	0x4c, 0x8b, 0x43, 0x28,	      /* mov 40(rbx), r8 */
	0x4c, 0x8b, 0x4b, 0x30,	      /* mov 48(rbx), r9 */
	0x0f, 0x05,		      /* syscall */
	0x48, 0x89, 0x43, 0x38,	      /* mov rax, 56(rbx) */
	0x48, 0x83, 0xc3, 0x40,	      /* add 64, rbx */
	0xeb, 0xd4,		      /* jmp loop */
	0xb8, 0xea, 0x00, 0x00, 0x00, /* done: mov 234, eax */
	0x4c, 0x89, 0xef,	      /* mov r13, rdi */
	0x4c, 0x89, 0xf6,	      /* mov r14, rsi */
	0x4c, 0x89, 0xfa,	      /* mov r15, rdx */
	0x0f, 0x05,		      /* syscall */
	0x0f, 0x0b,		      /* ud2 */
};
_Static_assert(SYS_tgkill == 234, "number in batch_code");

static taddr_t x86_pc(const struct user_regs_struct *r)
{
	return r->rip;
}

static taddr_t x86_sp(const struct user_regs_struct *r)
{
	return r->rsp;
}

static void x86_set_pc(struct user_regs_struct *r, taddr_t pc)
{
	r->rip = pc;
}

static void x86_set_sp(struct user_regs_struct *r, taddr_t sp)
{
	r->rsp = sp;
}

static int64_t x86_syscall_ret(const struct user_regs_struct *r)
{
	return (int64_t)r->rax;
}

static long x86_syscall_nr(const struct user_regs_struct *r)
{
	return (long)(int64_t)r->orig_rax;
}

static uint64_t x86_syscall_arg(const struct user_regs_struct *r, int i)
{
	const uint64_t args[] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
	return args[i];
}

static void x86_set_syscall_arg(struct user_regs_struct *r, int i, uint64_t v)
{
	switch (i) {
	case 0:
		r->rdi = v;
		break;
	case 1:
		r->rsi = v;
		break;
	case 2:
		r->rdx = v;
		break;
	case 3:
		r->r10 = v;
		break;
	case 4:
		r->r8 = v;
		break;
	case 5:
		r->r9 = v;
		break;
	}
}

static void x86_set_syscall(struct user_regs_struct *r, taddr_t insn, long nr,
			    const uint64_t args[6])
{
	for (int i = 0; i < 6; i++)
		x86_set_syscall_arg(r, i, args[i]);
	r->rax = (uint64_t)nr;
	r->orig_rax = (uint64_t)-1;
	r->rip = insn;
}

static void x86_skip_syscall(struct user_regs_struct *r)
{
	r->orig_rax = (uint64_t)-1;
}

static void x86_rewind_syscall(struct user_regs_struct *r, long nr)
{
	r->rip -= 2;
	r->rax = (uint64_t)nr;
	r->orig_rax = (uint64_t)-1;
}

static void x86_set_batch(struct user_regs_struct *r, taddr_t code,
			  taddr_t calls, size_t nr, pid_t tgid, pid_t tid,
			  int sig)
{
	r->rip = code;
	r->rbx = calls;
	r->r12 = calls + 64 * nr;
	r->r13 = (uint64_t)tgid;
	r->r14 = (uint64_t)tid;
	r->r15 = (uint64_t)sig;
	r->orig_rax = (uint64_t)-1;
	r->eflags &= ~0x500ULL; /* no single step, direction up */
}

static void x86_leave_function(struct user_regs_struct *r, taddr_t to)
{
	r->rip = to;
	r->rsp += 8;
}

static void x86_ask_restart(struct user_regs_struct *r)
{
	r->rax = (uint64_t)-ERESTARTNOHAND;
}

static void x86_set_syscall_ret(struct user_regs_struct *r, int64_t ret)
{
	r->rax = (uint64_t)ret;
}

static bool x86_restart_pending(const struct user_regs_struct *r)
{
	if ((int64_t)r->orig_rax < 0)
		return false;
	switch (-(int64_t)r->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		return true;
	default:
		return false;
	}
}

static bool x86_is_compat(const struct user_regs_struct *r)
{
	return r->cs != 0x33;
}

const struct arch_ops arch = {
	.name = "x86_64",
	.syscall_insn = {0x0f, 0x05},
	.syscall_insn_len = 2,
	.breakpoint = {0xcc},
	.breakpoint_len = 1,
	.breakpoint_pc_bias = 1,
	.batch_code = batch_code,
	.batch_code_len = sizeof(batch_code),
	.pc = x86_pc,
	.sp = x86_sp,
	.set_pc = x86_set_pc,
	.set_sp = x86_set_sp,
	.syscall_ret = x86_syscall_ret,
	.syscall_nr = x86_syscall_nr,
	.syscall_arg = x86_syscall_arg,
	.set_syscall_arg = x86_set_syscall_arg,
	.set_syscall = x86_set_syscall,
	.skip_syscall = x86_skip_syscall,
	.rewind_syscall = x86_rewind_syscall,
	.set_batch = x86_set_batch,
	.leave_function = x86_leave_function,
	.ask_restart = x86_ask_restart,
	.set_syscall_ret = x86_set_syscall_ret,
	.restart_pending = x86_restart_pending,
	.is_compat = x86_is_compat,
};
