/*
 * arch.h - everything about the processor that the tracee engine knows. To
 * port it, write one more arch-*.c with these functions; the rest of the room
 * names no register.
 */
#ifndef SMCO_TRACEE_ARCH_H
#define SMCO_TRACEE_ARCH_H

#include <sys/types.h>
#include <sys/user.h>

#include "reports/base.h"

struct arch_ops {
	const char *name;
	uint8_t syscall_insn[4];
	size_t syscall_insn_len;
	uint8_t breakpoint[4];
	size_t breakpoint_len;
	/* What to subtract from the pc after a breakpoint was hit. */
	unsigned breakpoint_pc_bias;
	/* Machine code that runs an array of struct tsyscall (64 bytes each)
	 * and ends in the instruction after a tgkill to itself; see
	 * arch_set_batch. */
	const uint8_t *batch_code;
	size_t batch_code_len;

	taddr_t (*pc)(const struct user_regs_struct *r);
	taddr_t (*sp)(const struct user_regs_struct *r);
	void (*set_pc)(struct user_regs_struct *r, taddr_t pc);
	void (*set_sp)(struct user_regs_struct *r, taddr_t sp);
	int64_t (*syscall_ret)(const struct user_regs_struct *r);
	/* The call being made, -1 if the kernel was not entered by one. */
	long (*syscall_nr)(const struct user_regs_struct *r);
	uint64_t (*syscall_arg)(const struct user_regs_struct *r, int i);
	void (*set_syscall_arg)(struct user_regs_struct *r, int i, uint64_t v);
	/* Make the task run @nr at the syscall instruction at @insn; the
	 * kernel must not restart what it interrupted. */
	void (*set_syscall)(struct user_regs_struct *r, taddr_t insn, long nr,
			    const uint64_t args[6]);
	/* Registers of a syscall-enter-stop, so that the call is not made. */
	void (*skip_syscall)(struct user_regs_struct *r);
	/* After the call was entered or made: make it again. */
	void (*rewind_syscall)(struct user_regs_struct *r, long nr);
	/* Run the batch stub at @code over @nr calls at @calls, then raise
	 * @sig for itself. */
	void (*set_batch)(struct user_regs_struct *r, taddr_t code,
			  taddr_t calls, size_t nr, pid_t tgid, pid_t tid,
			  int sig);
	/* Return from a function whose first instruction is next. */
	void (*leave_function)(struct user_regs_struct *r, taddr_t to);
	/* Restart the call, or end it with EINTR if a handler runs. */
	void (*ask_restart)(struct user_regs_struct *r);
	void (*set_syscall_ret)(struct user_regs_struct *r, int64_t ret);
	/* The kernel will restart the call when it leaves this stop. */
	bool (*restart_pending)(const struct user_regs_struct *r);
	/* Code runs in 32-bit mode. */
	bool (*is_compat)(const struct user_regs_struct *r);
};

extern const struct arch_ops arch;

/*
 * wait4(pid, status, options) that a signal handler can end: returns -EINTR
 * when *@stop is set before or while it waits, whatever SA_RESTART says, and
 * without a window between the look and the wait. The handler must set *@stop
 * and then call arch_end_wait() with its ucontext.
 */
long arch_wait4(pid_t pid, int *status, int options, volatile int *stop);
void arch_end_wait(void *ucontext);

#endif
