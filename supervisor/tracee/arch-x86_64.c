#include "supervisor/tracee/arch.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>
#include <sys/syscall.h>

#define USER_CS	    0x33 /* of 64-bit code */
#define XEN_USER_CS 0xe033
#define USER_FLAGS  0x202UL /* are set in all */
#define MOST_FLAGS  0x3fffffUL

/* Kernel-internal, never seen by programs, but seen through ptrace. */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

/*
 * The signal handler moves a program counter inside [begin, end) to abort.
 * A blocking call that a signal interrupts has its pc put back onto the
 * syscall instruction (SA_RESTART, or because the call is of that kind), so it
 * lies inside too; after a completed one it lies at end, and the result is
 * kept.
 */
asm(".pushsection .text\n"
    ".globl arch_endable_call\n"
    ".type arch_endable_call, @function\n"
    "arch_endable_call:\n"
    "	movq %rdi, %rax\n"
    "	movq %rsi, %rdi\n"
    "	movq %rdx, %rsi\n"
    "	movq %rcx, %rdx\n" /* syscall clobbers rcx */
    "	movq %r8, %r10\n"
    "smco_endable_begin:\n"
    "	cmpl $0, (%r9)\n"
    "	jne smco_endable_abort\n"
    "	syscall\n"
    "smco_endable_end:\n"
    "	ret\n"
    "smco_endable_abort:\n"
    "	movq $-4, %rax\n"
    "	ret\n"
    ".size arch_endable_call, . - arch_endable_call\n"
    ".popsection\n");
_Static_assert(EINTR == 4, "the number in arch_endable_call");

extern const char smco_endable_begin[], smco_endable_end[],
	smco_endable_abort[];

void arch_end_call(void *ucontext)
{
	ucontext_t *uc = ucontext;
	greg_t *pc = &uc->uc_mcontext.gregs[REG_RIP];
	if ((uintptr_t)*pc >= (uintptr_t)smco_endable_begin &&
	    (uintptr_t)*pc < (uintptr_t)smco_endable_end)
		*pc = (greg_t)(uintptr_t)smco_endable_abort;
}

/*
 * The stub that runs calls for us, first page of two; the second holds what
 * struct arch_stub_data says. rbx = first call, rbp = end of the calls, r13 =
 * tgid, r14 = tid, r15 = signal. Uses no stack. The tgkill to itself stops a
 * traced task whatever it does with that signal, and the supervisor gives it
 * its registers back. Should the supervisor have died, it runs on and does
 * that by itself.
 */
#define RAISE                                                                  \
	"	movl $234, %eax\n" /* tgkill */                                \
	"	movq %r13, %rdi\n"                                                   \
	"	movq %r14, %rsi\n"                                                   \
	"	movq %r15, %rdx\n"                                                   \
	"	syscall\n"
#define D(base, data, offset) #base " + " #data " + " #offset "(%rip)"
#define WAY_BACK(base, data)                                                                                                                                                                                                                                                                                                                                                                                       \
	"	movl $14, %eax\n" /* rt_sigprocmask */                                                                                                                                                                                                                                                                                                                                                             \
	"	movl $2, %edi\n"  /* SIG_SETMASK */                                                                                                                                                                                                                                                                                                                                                                \
	"	leaq " D(                                                                                                                                                                                                                                                                                                                                                                                          \
		base, data,                                                                                                                                                                                                                                                                                                                                                                                        \
		0x90) ", %rsi\n"                                                                                                                                                                                                                                                                                                                                                                                   \
		      "	xorl %edx, %edx\n"                                                                                                                                                                                                                                                                                                                                                                         \
		      "	movl $8, %r10d\n"                                                                                                                                                                                                                                                                                                                                                                          \
		      "	syscall\n"                                                                                                                                                                                                                                                                                                                                                                                 \
		      "	leaq " D(                                                                                                                                                                                                                                                                                                                                                                                  \
			      base, data,                                                                                                                                                                                                                                                                                                                                                                          \
			      0x78) ", %rsp\n"                                                                                                                                                                                                                                                                                                                                                                     \
				    "	popfq\n"                                                                                                                                                                                                                                                                                                                                                                     \
				    "	movq " D(                                                                                                                                                                                                                                                                                                                                                                  \
					    base, data,                                                                                                                                                                                                                                                                                                                                                            \
					    0x00) ", %rax\n"                                                                                                                                                                                                                                                                                                                                                       \
						  "	movq " D(                                                                                                                                                                                                                                                                                                                                                  \
							  base, data,                                                                                                                                                                                                                                                                                                                                              \
							  0x08) ", %rbx\n"                                                                                                                                                                                                                                                                                                                                         \
								"	movq"                                                                                                                                                                                                                                                                                                                                            \
								" " D(base,                                                                                                                                                                                                                                                                                                                                        \
								      data,                                                                                                                                                                                                                                                                                                                                        \
								      0x10) ", %rcx\n"                                                                                                                                                                                                                                                                                                                             \
									    "	movq " D(                                                                                                                                                                                                                                                                                                                          \
										    base,                                                                                                                                                                                                                                                                                                                          \
										    data,                                                                                                                                                                                                                                                                                                                          \
										    0x18) ", %rdx\n"                                                                                                                                                                                                                                                                                                               \
											  "	movq " D(                                                                                                                                                                                                                                                                                                          \
												  base,                                                                                                                                                                                                                                                                                                            \
												  data,                                                                                                                                                                                                                                                                                                            \
												  0x20) ", %rsi\n"                                                                                                                                                                                                                                                                                                 \
													"	movq " D(base, data, 0x28) ", %rdi\n"                                                                                                                                                                                                                                                              \
																	   "	movq " D(                                                                                                                                                                                                                                                          \
																		   base, data, 0x30) ", %rbp\n"                                                                                                                                                                                                                                    \
																				     "	movq " D(                                                                                                                                                                                                                                  \
																					     base, data, 0x38) ", %r8\n"                                                                                                                                                                                                           \
																							       "	movq " D(base, data, 0x40) ", %r9\n"                                                                                                                                                                       \
																												   "	movq " D(                                                                                                                                                                  \
																													   base,                                                                                                                                                                   \
																													   data,                                                                                                                                                                   \
																													   0x48) ", %r10\n"                                                                                                                                                        \
																														 "	movq " D(                                                                                                                                                  \
																															 base, data, 0x50) ", %r11\n"                                                                                                                              \
																																	   "	movq " D(                                                                                                                          \
																																		   base,                                                                                                                           \
																																		   data,                                                                                                                           \
																																		   0x58) ", %r12\n"                                                                                                                \
																																			 "	movq " D(base, data, 0x60) ", %r13\n"                                                                              \
																																							   "	movq " D(                                                                          \
																																								   base,                                                                           \
																																								   data, 0x68) ", %r14\n"                                                          \
																																									       "	movq " D(                                                  \
																																										       base, data, 0x70) ", %r15\n"                                \
																																													 "	movq " D(                          \
																																														 base, data, 0x80) ", %rsp\n"      \
																																																   "	jmpq *" D( \
																																																	   base,   \
																																																	   data,   \
																																																	   0x88) "\n"
asm(".pushsection .rodata\n"
    ".globl arch_stub_begin, arch_stub_done, arch_stub_end\n"
    ".globl arch_boot_begin, arch_boot_done, arch_boot_end\n"
    ".balign 16\n"
    "arch_stub_begin:\n"
    "1:	cmpq %rbp, %rbx\n"
    "	jae 2f\n"
    "	movq (%rbx), %rax\n"
    "	movq 8(%rbx), %rdi\n"
    "	movq 16(%rbx), %rsi\n"
    "	movq 24(%rbx), %rdx\n"
    "	movq 32(%rbx), %r10\n"
    "	movq 40(%rbx), %r8\n"
    "	movq 48(%rbx), %r9\n"
    "	syscall\n"
    "	movq %rax, 56(%rbx)\n"
    "	addq $64, %rbx\n"
    "	jmp 1b\n"
    "2:\n" RAISE "arch_stub_done:\n" WAY_BACK(
	    arch_stub_begin,
	    0x1000) "arch_stub_end:\n"
		    ".balign 16\n"
		    /* For one call, all in memory that the program cannot
		       write. */
		    "arch_boot_begin:\n"
		    "	syscall\n"
		    "	movq %rax, %r12\n" RAISE
		    "arch_boot_done:\n" WAY_BACK(arch_boot_begin,
						 0x100) "arch_boot_end:\n"
							".popsection\n");
#undef D
#undef RAISE
#undef WAY_BACK
_Static_assert(SYS_tgkill == 234 && SYS_rt_sigprocmask == 14, "in the stub");

extern const uint8_t arch_stub_begin[], arch_stub_done[], arch_stub_end[];
extern const uint8_t arch_boot_begin[], arch_boot_done[], arch_boot_end[];

static size_t x86_boot_code(const uint8_t **ret, size_t *done_offset_ret)
{
	*ret = arch_boot_begin;
	*done_offset_ret = (size_t)(arch_boot_done - arch_boot_begin);
	return (size_t)(arch_boot_end - arch_boot_begin);
}

static size_t x86_stub_code(const uint8_t **ret, size_t *done_offset_ret)
{
	*ret = arch_stub_begin;
	*done_offset_ret = (size_t)(arch_stub_done - arch_stub_begin);
	return (size_t)(arch_stub_end - arch_stub_begin);
}

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
	r->eflags &= ~0x500ULL; /* no single step, direction up */
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

static void x86_set_stub(struct user_regs_struct *r, taddr_t code, size_t nr,
			 pid_t tgid, pid_t tid, int sig)
{
	r->rip = code;
	r->rbx = code + ARCH_STUB_DATA + ARCH_STUB_CALLS;
	r->rbp = r->rbx + 64 * nr;
	r->r13 = (uint64_t)tgid;
	r->r14 = (uint64_t)tid;
	r->r15 = (uint64_t)sig;
	r->orig_rax = (uint64_t)-1;
	r->eflags &= ~0x500ULL; /* no single step, direction up */
}

static void x86_set_boot(struct user_regs_struct *r, taddr_t code,
			 const uint64_t call[7], pid_t tgid, pid_t tid, int sig)
{
	x86_set_syscall(r, code, (long)call[0], call + 1);
	r->r13 = (uint64_t)tgid;
	r->r14 = (uint64_t)tid;
	r->r15 = (uint64_t)sig;
}

static int64_t x86_boot_ret(const struct user_regs_struct *r)
{
	return (int64_t)r->r12;
}

static void x86_restart_by_hand(struct user_regs_struct *r)
{
	if ((int64_t)r->orig_rax < 0)
		return;
	switch (-(int64_t)r->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		r->rax = r->orig_rax;
		r->rip -= 2;
		break;
	case ERESTART_RESTARTBLOCK:
		r->rax = SYS_restart_syscall;
		r->rip -= 2;
		break;
	}
	r->orig_rax = (uint64_t)-1;
}

static void x86_stub_save(struct arch_stub_data *d,
			  const struct user_regs_struct *regs, uint64_t mask)
{
	struct user_regs_struct r = *regs;
	x86_restart_by_hand(&r);
	*d = (struct arch_stub_data){
		.words = {r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8,
			  r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15,
			  r.eflags, r.rsp, r.rip, mask}};
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

#define RAISE_SIGNAL 13 /* where in the code these are */
#define RAISE_HOME   29
#define RAISE_SLOT   39

static size_t x86_raise_code(uint8_t *buf, const struct arch_raise *r,
			     size_t *done_offset_ret)
{
	static const uint8_t raise[] = {
		0x49, 0x89, 0xc0,	      /* movq %rax, %r8 */
		0xb8, 0xba, 0x00, 0x00, 0x00, /* movl $SYS_gettid, %eax */
		0x0f, 0x05,		      /* syscall */
		0x89, 0xc7,		      /* movl %eax, %edi */
		0xbe, 0x00, 0x00, 0x00, 0x00, /* movl $sig, %esi */
		0xb8, 0xc8, 0x00, 0x00, 0x00, /* movl $SYS_tkill, %eax */
		0x0f, 0x05,		      /* syscall */
	};
	static const uint8_t go_home[] = {
		0x4c, 0x89, 0xc0,		       /* movq %r8, %rax */
		0x48, 0xb9, 0,	  0, 0, 0, 0, 0, 0, 0, /* movabsq, %rcx */
		0x48, 0xbe, 0,	  0, 0, 0, 0, 0, 0, 0, /* movabsq, %rsi */
		0x48, 0x89, 0x0e,		       /* movq %rcx, (%rsi) */
		0xff, 0xe1,			       /* jmpq *%rcx */
	};
	_Static_assert(SYS_gettid == 0xba && SYS_tkill == 0xc8, "");
	_Static_assert(sizeof(raise) + sizeof(go_home) <= ARCH_RAISE_MAX, "");
	memcpy(buf, raise, sizeof(raise));
	memcpy(buf + sizeof(raise), go_home, sizeof(go_home));
	memcpy(buf + RAISE_SIGNAL, &r->sig, 4);
	memcpy(buf + RAISE_HOME, &r->home, 8);
	memcpy(buf + RAISE_SLOT, &r->slot, 8);
	*done_offset_ret = sizeof(raise);
	return sizeof(raise) + sizeof(go_home);
}

static bool x86_is_raise_code(const uint8_t *code, struct arch_raise *ret)
{
	uint8_t same[ARCH_RAISE_MAX];
	size_t done;
	memcpy(&ret->sig, code + RAISE_SIGNAL, 4);
	memcpy(&ret->home, code + RAISE_HOME, 8);
	memcpy(&ret->slot, code + RAISE_SLOT, 8);
	return !memcmp(code, same, x86_raise_code(same, ret, &done));
}

static void x86_leave_raise(struct user_regs_struct *r, taddr_t home)
{
	r->rax = r->r8;
	r->orig_rax = (uint64_t)-1;
	r->rip = home;
}

/* glibc's: movq %rsp, %rdi; call _dl_start. */
static bool x86_enter_linker(struct user_regs_struct *r, const uint8_t *code,
			     taddr_t *home_ret)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const uint8_t begin[] = {0x48, 0x89, 0xe7, 0xe8};
	int32_t rel;
	size_t i = memcmp(code, endbr, sizeof(endbr)) ? 0 : sizeof(endbr);
	if (memcmp(code + i, begin, sizeof(begin)) != 0)
		return false;
	i += sizeof(begin);
	memcpy(&rel, code + i, sizeof(rel));
	*home_ret = r->rip + i + sizeof(rel);
	r->rip = *home_ret + (uint64_t)(int64_t)rel;
	r->rdi = r->rsp;
	r->rsp -= 8;
	return true;
}

static void x86_undo_restart(struct user_regs_struct *r, long nr, int64_t ret)
{
	r->rip += 2;
	r->rax = (uint64_t)ret;
	r->orig_rax = (uint64_t)nr;
}

/* The flags, with interrupts on, then cs, two halfwords of zeros, and ss, for
 * which kernels before 4.6 had no room. */
static bool x86_has_frame(const uint64_t *words, size_t nr)
{
	for (size_t i = 0; i + 1 < nr; i++) {
		/* Hardly any word of a stack is this one. */
		uint64_t cs = words[i + 1] & 0x0000ffffffffffffULL;
		if ((cs == USER_CS || cs == XEN_USER_CS) &&
		    (words[i] & USER_FLAGS) == USER_FLAGS &&
		    words[i] <= MOST_FLAGS)
			return true;
	}
	return false;
}

static bool x86_is_compat(const struct user_regs_struct *r)
{
	return r->cs != USER_CS && r->cs != XEN_USER_CS;
}

/* The instruction leaves the pc behind it in rcx. */
static bool x86_may_be_compat_call(const struct user_regs_struct *r)
{
	return r->rcx != r->rip;
}

#define DR_AT(i) (offsetof(struct user, u_debugreg) + 8 * (i))

static size_t x86_watch_at(unsigned i)
{
	return DR_AT(i);
}

/* DR7: enabled in this thread, at writes, how many bytes. */
static uint64_t x86_watch_control(unsigned i, unsigned bytes)
{
	uint64_t len = bytes == 8 ? 2 : bytes - 1;
	return 1ULL << 2 * i | (1ULL | len << 2) << (16 + 4 * i);
}

static unsigned x86_watch_hits(uint64_t status)
{
	return status & 0xf;
}

const struct arch_ops arch = {
	.name = "x86_64",
	.syscall_insn = {0x0f, 0x05},
	.syscall_insn_len = 2,
	.breakpoint = {0xcc},
	.breakpoint_len = 1,
	.breakpoint_pc_bias = 1,
	.raise_code = x86_raise_code,
	.is_raise_code = x86_is_raise_code,
	.leave_raise = x86_leave_raise,
	.enter_linker = x86_enter_linker,
	.pc = x86_pc,
	.debug_trap = 0xf1, /* INT1 */
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
	.boot_code = x86_boot_code,
	.set_boot = x86_set_boot,
	.boot_ret = x86_boot_ret,
	.stub_code = x86_stub_code,
	.set_stub = x86_set_stub,
	.restart_by_hand = x86_restart_by_hand,
	.stub_save = x86_stub_save,
	.ask_restart = x86_ask_restart,
	.set_syscall_ret = x86_set_syscall_ret,
	.restart_pending = x86_restart_pending,
	.undo_restart = x86_undo_restart,
	.has_frame = x86_has_frame,
	.may_be_compat_call = x86_may_be_compat_call,
	.audit_arch = AUDIT_ARCH_X86_64,
	.is_compat = x86_is_compat,
	.watch_at = x86_watch_at,
	.watch_control_at = DR_AT(7),
	.watch_status_at = DR_AT(6),
	.watch_control = x86_watch_control,
	.watch_hits = x86_watch_hits,
};
