/*
 * arch.h - everything about the processor that the tracee engine knows. To
 * port it, write one more arch-*.c with these functions; the rest of the room
 * names no register.
 */
#ifndef SMCO_TRACEE_ARCH_H
#define SMCO_TRACEE_ARCH_H

#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "reports/base.h"

/* The stub's data page, ARCH_STUB_DATA bytes after its code. */
#define ARCH_STUB_DATA	    4096
#define ARCH_BOOT_LIBS	    192 /* where the code of libs.c has its place */
#define ARCH_BOOT_DATA	    256
#define ARCH_BOOT_SAVED	    160 /* bytes of struct arch_stub_data in use */
#define ARCH_STUB_CALLS	    256 /* offset of the array of struct tsyscall */
#define ARCH_STUB_MAX_CALLS ((4096 - ARCH_STUB_CALLS) / 64)
struct arch_stub_data {
	uint64_t words[ARCH_STUB_CALLS / 8];
};

#define ARCH_RAISE_MAX (ARCH_BOOT_DATA - ARCH_BOOT_LIBS)
/* Of code that raises @sig for the thread that runs it, puts @home where its
 * own address was, and goes there. */
struct arch_raise {
	int sig;
	taddr_t slot, home;
};
#define ARCH_LINKER_CODE 16

struct arch_ops {
	const char *name;
	uint8_t syscall_insn[4];
	size_t syscall_insn_len;
	uint8_t breakpoint[4];
	size_t breakpoint_len;
	/* What to subtract from the pc after a breakpoint was hit. */
	unsigned breakpoint_pc_bias;
	/* An instruction, one byte, that is a debug exception. */
	uint8_t debug_trap;
	taddr_t (*pc)(const struct user_regs_struct *r);
	taddr_t (*sp)(const struct user_regs_struct *r);
	void (*set_pc)(struct user_regs_struct *r, taddr_t pc);
	void (*set_sp)(struct user_regs_struct *r, taddr_t sp);
	int64_t (*syscall_ret)(const struct user_regs_struct *r);
	/* That code, its length, at most ARCH_RAISE_MAX, and where it stands
	 * when the signal comes. What a function returns, and what a program is
	 * begun with, is as it was when it goes home. */
	size_t (*raise_code)(uint8_t *buf, const struct arch_raise *r,
			     size_t *done_offset_ret);
	/* Are the ARCH_RAISE_MAX bytes @code such code? */
	bool (*is_raise_code)(const uint8_t *code, struct arch_raise *ret);
	/* From behind its first instruction, straight home. */
	void (*leave_raise)(struct user_regs_struct *r, taddr_t home);
	/*
	 * The ARCH_LINKER_CODE bytes @code at the program counter begin with
	 * the call that is all that a dynamic linker does before constructors
	 * run: as if it had been made, but that @*home_ret, where it returns
	 * to, is not at the stack pointer yet. False: it is other code.
	 */
	bool (*enter_linker)(struct user_regs_struct *r, const uint8_t *code,
			     taddr_t *home_ret);
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
	/*
	 * The stub that runs an array of struct tsyscall: its code, length,
	 * and where in it the calls are done.
	 */
	size_t (*stub_code)(const uint8_t **ret, size_t *done_offset_ret);
	/* Run @nr calls, then raise @sig for itself. */
	void (*set_stub)(struct user_regs_struct *r, taddr_t code, size_t nr,
			 pid_t tgid, pid_t tid, int sig);
	/*
	 * The same for a single call @call (number, six arguments), with its
	 * data ARCH_BOOT_DATA bytes after the start, in memory that need not
	 * be writable, and nothing of its own from ARCH_BOOT_LIBS on. The
	 * result is in a register when the call is done.
	 */
	size_t (*boot_code)(const uint8_t **ret, size_t *done_offset_ret);
	void (*set_boot)(struct user_regs_struct *r, taddr_t code,
			 const uint64_t call[7], pid_t tgid, pid_t tid,
			 int sig);
	int64_t (*boot_ret)(const struct user_regs_struct *r);
	/* What the kernel does on leaving the stop when no handler runs. */
	void (*restart_by_hand)(struct user_regs_struct *r);
	/* What the stub needs to go back by itself, without a supervisor. */
	void (*stub_save)(struct arch_stub_data *d,
			  const struct user_regs_struct *r, uint64_t mask);
	/* Restart the call, or end it with EINTR if a handler runs. */
	void (*ask_restart)(struct user_regs_struct *r);
	void (*set_syscall_ret)(struct user_regs_struct *r, int64_t ret);
	/* The kernel will restart the call when it leaves this stop. */
	bool (*restart_pending)(const struct user_regs_struct *r);
	/* The kernel has prepared to make call @nr again, which had ended with
	 * @ret: as if it had not yet. */
	void (*undo_restart)(struct user_regs_struct *r, long nr, int64_t ret);
	/* Are there among @nr words of a stack two that each frame of a signal
	 * has in it, and little else? */
	bool (*has_frame)(const uint64_t *words, size_t nr);
	/* At the entry of a call: it may have been made in another way than by
	 * syscall_insn. */
	bool (*may_be_compat_call)(const struct user_regs_struct *r);
	uint32_t audit_arch; /* of calls by syscall_insn */
	/* Code runs in 32-bit mode. */
	bool (*is_compat)(const struct user_regs_struct *r);
	/*
	 * Debug registers, of which there are TWATCH_MOST: where they are in
	 * struct user; what has register @i stop whoever has written to the
	 * @bytes at its address, all of them or'ed; which of them a status
	 * says were hit, 1 << i.
	 */
	size_t (*watch_at)(unsigned i);
	size_t watch_control_at, watch_status_at;
	uint64_t (*watch_control)(unsigned i, unsigned bytes);
	unsigned (*watch_hits)(uint64_t status);
};

extern const struct arch_ops arch;

/*
 * Code at @code that carries on with a call that was cut short after some of
 * it; see arch-*-whole.c. A stopped task whose call has just returned how much
 * enters it: the frame must be written where the function says before the
 * registers are set. The same call is made again, with @args and while
 * anything is left, by what it returns:
 */
enum arch_whole_loop {
	ARCH_WHOLE_BUF0, /* arguments 0 and 1: rest of a buffer, its length */
	ARCH_WHOLE_BUF1, /* arguments 1 and 2 */
	ARCH_WHOLE_LEN3, /* argument 3: how much is left */
	ARCH_WHOLE_LEN4, /* argument 4 */
	ARCH_WHOLE_MSGS, /* arguments 1 and 2: struct mmsghdr, how many */
	ARCH_WHOLE_IOV,	 /* arguments 1 and 2: a vector; see .base */
	ARCH_WHOLE_MSG,	 /* argument 1: a struct msghdr with one */
	/* The rest is there where there is room for all of the code. */
	ARCH_WHOLE_EVENTS, /* arguments 1 to 3: fewest, most events, where */
	/* As ARCH_WHOLE_MSGS, on a stream: what the last one lacks comes first
	 * each time, by .piece_nr. */
	ARCH_WHOLE_BATCH,
	ARCH_WHOLE_PIECE, /* the same, it lacks .base and so on now */
	/* Argument 1: a struct msghdr with .vector and room for control data;
	 * what of that comes is handed on to the program's own. */
	ARCH_WHOLE_ROOM,
};
/* A longer one is not taken as a whole. */
#define ARCH_WHOLE_VECTOR 8
struct arch_whole_rest {
	enum arch_whole_loop loop;
	uint64_t args[6];
	/* Of a vector: what is left of the piece that was begun, and the
	 * program's entries that follow. The call gets one piece at a time. */
	uint64_t base, len;
	taddr_t iov, iov_end;
	/* Control data that belongs to each piece of a message. */
	taddr_t control;
	uint64_t control_len;
	bool ends_with_control; /* a call that has got any is over */
	struct iovec vector[ARCH_WHOLE_VECTOR];
	size_t nr_vector;
	/* sendmsg or recvmsg, 0 = what a message lacks it is not to get. */
	long piece_nr;
	uint64_t piece_flags;
	/* Messages: how many there are, where that is not what the call has
	 * returned; see whole_pull(). 0 = as it says. */
	uint64_t done;
	taddr_t pull;	  /* the first whose bytes are partly in later ones */
	uint64_t pull_nr; /* from that one on, 0 = none */
};
struct arch_whole_frame {
	uint64_t words[44];
};
/* Its length; *basic_ret bytes of it are of use alone. */
size_t arch_whole_code(const uint8_t **ret, size_t *basic_ret);
/* Is @loop in the first @len bytes? */
bool arch_whole_has(enum arch_whole_loop loop, size_t len);
taddr_t arch_whole_enter(struct user_regs_struct *r, taddr_t code,
			 const struct arch_whole_rest *rest,
			 struct arch_whole_frame *f);
bool arch_whole_is_inside(const struct user_regs_struct *r, taddr_t code);
/*
 * A wait that the kernel is going to make again when it leaves this stop is
 * made there, and an error that only says that it came too late then becomes
 * what it would have returned had it waited all the time. The frame must be
 * written where the function says before the registers are set.
 */
struct arch_whole_late {
	int error;	/* positive */
	int64_t ret;	/* in its place */
	bool is_vector; /* futex_waitv and EAGAIN: which one has changed */
};
taddr_t arch_whole_again(struct user_regs_struct *r, taddr_t code,
			 const struct arch_whole_late *late,
			 struct arch_whole_frame *f);
/* Is the code for a vector in the first @len bytes? The other always is. */
bool arch_whole_has_vector(size_t len);
/* Is that what it does in there? */
bool arch_whole_is_again(const struct user_regs_struct *r, taddr_t code);
/* How much there is of the frame, for one inside. */
size_t arch_whole_frame_len(const struct user_regs_struct *r, taddr_t code);
/* Back to where the call was made, with what has been done so far; false if
 * it is on its way there already. *@fix says what memory lacks then. */
struct arch_whole_fix {
	taddr_t at; /* of 32 bits */
	uint32_t add;
	taddr_t msg; /* of a struct msghdr that gets these two, 0 = none */
	uint64_t control_len;
	int msg_flags;
};
bool arch_whole_leave(struct user_regs_struct *r, taddr_t code,
		      const struct arch_whole_frame *f,
		      struct arch_whole_fix *fix);

/*
 * System call @nr that a signal handler can end: returns -EINTR when *@stop is
 * set before or while it waits, whatever SA_RESTART says, and without a window
 * between the look and the wait. The handler must set *@stop and then call
 * arch_end_call() with its ucontext. Only for calls that have done nothing yet
 * when a signal makes them start again.
 */
long arch_endable_call(long nr, long a, long b, long c, long d,
		       volatile int *stop);
void arch_end_call(void *ucontext);

#endif
