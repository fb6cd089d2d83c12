#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "supervisor/tracee/arch.h"

/*
 * Code that makes a call again with what is left of it until all is done, an
 * error comes, or nothing moves any more; then it returns as the call would
 * have. It needs nothing but the frame on the stack of the thread that runs
 * it, so any number of threads can, with or without a supervisor. What the
 * call leaves as it was is left so, the flags too.
 */
enum {
	W_NR,
	W_DONE,
	W_RDI,
	W_RSI,
	W_RDX,
	W_R10,
	W_R8,
	W_R9,
	W_PC,
	W_FLAGS,
	W_SP,
	W_IOV, /* the program's next entry */
	W_IOV_END,
	W_BASE, /* a struct iovec: what is left of this one */
	W_LEN,
	W_ENTRY,       /* a struct mmsghdr: the one after it */
	W_LEFT,	       /* how many there are from there on */
	W_PIECE_NR,    /* the call for the rest of a message, 0 = none */
	W_PIECE_FLAGS, /* and its flags */
	W_ROOM,	       /* how much control data there is room for */
	W_ENDS,	       /* all ones: some of it, and the call is over */
	W_MSG,	       /* a struct msghdr: no name, that vector */
	W_VECTOR = W_MSG + sizeof(struct msghdr) / sizeof(uint64_t),
	/* Of a wait that is made again, which has a shorter frame: */
	W_LATE = W_IOV,		/* the error that says so, positive */
	W_LATE_RET = W_IOV_END, /* what it returns instead */
	W_NO_TIME = W_BASE,	/* a struct timespec of zeros */
	W_CALL = W_ENTRY,	/* its number */
	W_AGAIN_WORDS = W_ENTRY + 1,
};
#define NR	    "0(%rsp)"
#define DONE	    "8(%rsp)"
#define RDI	    "16(%rsp)"
#define RSI	    "24(%rsp)"
#define RDX	    "32(%rsp)"
#define R10	    "40(%rsp)"
#define R8	    "48(%rsp)"
#define R9	    "56(%rsp)"
#define PC	    "64(%rsp)"
#define FLAGS	    "72(%rsp)"
#define SP	    "80(%rsp)"
#define IOV	    "88(%rsp)"
#define IOV_END	    "96(%rsp)"
#define BASE	    "104(%rsp)"
#define LEN	    "112(%rsp)"
#define ENTRY	    "120(%rsp)"
#define LEFT	    "128(%rsp)"
#define PIECE_NR    "136(%rsp)"
#define PIECE_FLAGS "144(%rsp)"
#define ROOM	    "152(%rsp)"
#define ENDS	    "160(%rsp)"
#define LATE	    IOV
#define LATE_RET    IOV_END
#define NO_TIME	    BASE
#define MSG	    "168(%rsp)"
#define MSG_IOV	    "184(%rsp)"
#define MSG_IOVLEN  "192(%rsp)"
#define MSG_CLEN    "208(%rsp)"
#define MSG_FLAGS   "216(%rsp)"

/* clang-format off */
/* The call, and @advance by the %rax that it returned. */
#define LOOP(name, odd, advance)                                               \
	name ":\n"                                                             \
	"1:	movq " NR ", %rax\n"                                           \
	"	syscall\n"                                                     \
	name "_called:\n"                                                      \
	odd                                                                    \
	"	testq %rax, %rax\n"                                            \
	"	jle arch_whole_over\n"                                         \
	"	addq %rax, " DONE "\n"                                         \
	name "_added:\n"                                                       \
	advance                                                                \
	"	ja 1b\n"

asm(".pushsection .rodata\n"
    ".globl arch_whole_begin, arch_whole_end, arch_whole_over\n"
    ".globl arch_whole_buf0, arch_whole_buf0_called, arch_whole_buf0_added\n"
    ".globl arch_whole_buf1, arch_whole_buf1_called, arch_whole_buf1_added\n"
    ".globl arch_whole_len3, arch_whole_len3_called, arch_whole_len3_added\n"
    ".globl arch_whole_len4, arch_whole_len4_called, arch_whole_len4_added\n"
    ".globl arch_whole_msgs, arch_whole_msgs_called, arch_whole_msgs_added\n"
    ".globl arch_whole_iov, arch_whole_iov_called, arch_whole_iov_added\n"
    ".globl arch_whole_basic_end, arch_whole_events\n"
    ".globl arch_whole_events_called, arch_whole_events_added\n"
    ".globl arch_whole_batch, arch_whole_batch_called, arch_whole_batch_added\n"
    ".globl arch_whole_room, arch_whole_room_called, arch_whole_room_added\n"
    ".globl arch_whole_piece, arch_whole_piece_called, arch_whole_piece_added\n"
    ".globl arch_whole_again_called, arch_whole_again_home\n"
    ".globl arch_whole_again_end, arch_whole_waitv, arch_whole_waitv_called\n"
    ".globl arch_whole_waitv_asks, arch_whole_waitv_done\n"
    ".globl arch_whole_waitv_end\n"
    ".balign 16\n"
    "arch_whole_begin:\n"
    /* A wait, made again. The flags stay as they are. */
	"	syscall\n"
    "arch_whole_again_called:\n"
	"	movq " LATE ", %rcx\n"
	"	leaq (%rcx,%rax), %rcx\n"
	"	jrcxz 2f\n"
	"1:	movq " PC ", %rcx\n"
	"	movq " SP ", %rsp\n"
    "arch_whole_again_home:\n"
	"	jmpq *%rcx\n"
	"2:	movq " LATE_RET ", %rax\n"
	"	jmp 1b\n"
    "arch_whole_again_end:\n"
    LOOP("arch_whole_buf0", "",
	"	addq %rax, %rdi\n"
	"	subq %rax, %rsi\n")
	"	jmp arch_whole_over\n"
    LOOP("arch_whole_buf1", "",
	"	addq %rax, %rsi\n"
	"	subq %rax, %rdx\n")
	"	jmp arch_whole_over\n"
    LOOP("arch_whole_len3", "",
	"	subq %rax, %r10\n")
	"	jmp arch_whole_over\n"
    LOOP("arch_whole_len4", "",
	"	subq %rax, %r8\n")
	"	jmp arch_whole_over\n"
    /* The kernel leaves ERESTARTSYS as an error of the socket when recvmmsg
     * was interrupted after some messages: it is nobody's. */
    LOOP("arch_whole_msgs",
	"	cmpq $-512, %rax\n"
	"	je 1b\n",
	"	movq %rax, %rcx\n"
	"	shlq $6, %rcx\n"
	"	addq %rcx, %rsi\n"
	"	subq %rax, %rdx\n")
	"	jmp arch_whole_over\n"
    LOOP("arch_whole_iov", "",
	"	addq %rax, " BASE "\n"
	"	subq %rax, " LEN "\n")
	"2:	movq " IOV ", %rcx\n"
	"	cmpq " IOV_END ", %rcx\n"
	"	jae arch_whole_over\n"
	"	addq $16, " IOV "\n"
	"	movq (%rcx), %rax\n"
	"	movq %rax, " BASE "\n"
	"	movq 8(%rcx), %rax\n"
	"	movq %rax, " LEN "\n"
	"	testq %rax, %rax\n"
	"	je 2b\n"
	"	jmp 1b\n"
    "arch_whole_over:\n"
	"	movq " RDI ", %rdi\n"
	"	movq " RSI ", %rsi\n"
	"	movq " RDX ", %rdx\n"
	"	movq " R10 ", %r10\n"
	"	movq " R8 ", %r8\n"
	"	movq " R9 ", %r9\n"
	"	movq " PC ", %rcx\n"
	"	movq " FLAGS ", %r11\n"
	"	movq " DONE ", %rax\n"
	"	movq " SP ", %rsp\n"
	/* Below the red zone, where the frame was. */
	"	leaq -192(%rsp), %rsp\n"
	"	pushq %r11\n"
	"	popfq\n"
	"	leaq 192(%rsp), %rsp\n"
	"	jmpq *%rcx\n"
    "arch_whole_basic_end:\n"
    LOOP("arch_whole_events", "",
	"	movq %rax, %rcx\n"
	"	shlq $5, %rcx\n"
	"	addq %rcx, %r10\n"
	"	subq %rax, %rdx\n"
	"	subq %rax, %rsi\n")
	"	jmp arch_whole_over\n"
    /* Messages on a stream: of the last one that counts a part may be
     * missing. */
    LOOP("arch_whole_batch",
	"	cmpq $-512, %rax\n"
	"	je 1b\n",
	"	movq %rax, %rcx\n"
	"	shlq $6, %rcx\n"
	"	addq %rcx, %rsi\n"
	"	subq %rax, %rdx\n"
	"	movq %rsi, " ENTRY "\n"
	"	movq %rdx, " LEFT "\n"
	"	cmpq $0, " PIECE_NR "\n"
	"	je 6f\n"
	"	movl -8(%rsi), %eax\n" /* what it has got */
	"	movq -48(%rsi), %rcx\n" /* its vector */
	"	movq -40(%rsi), %r9\n"
	"	shlq $4, %r9\n"
	"	addq %rcx, %r9\n"
	"	movq %r9, " IOV_END "\n"
	"2:	cmpq " IOV_END ", %rcx\n"
	"	jae 6f\n"
	"	addq $16, %rcx\n"
	"	subq -8(%rcx), %rax\n"
	"	jae 2b\n" /* not below zero: all of this piece */
	"	movq -16(%rcx), %r9\n"
	"	addq -8(%rcx), %r9\n"
	"	addq %rax, %r9\n"
	"	movq %r9, " BASE "\n"
	"	negq %rax\n"
	"	movq %rax, " LEN "\n"
	"	movq %rcx, " IOV "\n"
    "arch_whole_piece:\n"
	"3:	leaq " MSG ", %rsi\n"
	"	movq " PIECE_FLAGS ", %rdx\n"
	"	movq " PIECE_NR ", %rax\n"
	"	syscall\n"
    "arch_whole_piece_called:\n"
	"	cmpq $-512, %rax\n"
	"	je 3b\n"
	"	testq %rax, %rax\n"
	"	jle arch_whole_over\n"
	"	movq " ENTRY ", %rcx\n"
	"	addl %eax, -8(%rcx)\n"
    "arch_whole_piece_added:\n"
	"	addq %rax, " BASE "\n"
	"	subq %rax, " LEN "\n"
	"	ja 3b\n"
	"4:	movq " IOV ", %rcx\n"
	"	cmpq " IOV_END ", %rcx\n"
	"	jae 5f\n"
	"	addq $16, " IOV "\n"
	"	movq (%rcx), %rax\n"
	"	movq %rax, " BASE "\n"
	"	movq 8(%rcx), %rax\n"
	"	movq %rax, " LEN "\n"
	"	testq %rax, %rax\n"
	"	je 4b\n"
	"	jmp 3b\n"
	"5:	movq " ENTRY ", %rsi\n"
	"	movq " LEFT ", %rdx\n"
	"6:	testq %rdx, %rdx\n")
	"	jmp arch_whole_over\n"
    /* The program's own message is told of what each part brought along. */
    "arch_whole_room:\n"
	"1:	movq " ROOM ", %rcx\n"
	"	movq %rcx, " MSG_CLEN "\n"
	"	movq " NR ", %rax\n"
	"	syscall\n"
    "arch_whole_room_called:\n"
	"	testq %rax, %rax\n"
	"	jle arch_whole_over\n"
	"	movq " RSI ", %rcx\n"
	"	movl " MSG_FLAGS ", %r11d\n"
	"	movl %r11d, 48(%rcx)\n"
	"	andl $8, %r11d\n" /* MSG_CTRUNC */
	"	orq " MSG_CLEN ", %r11\n"
	"	andq " ENDS ", %r11\n"
	"	movq " MSG_CLEN ", %rdx\n"
	"	movq %rdx, 40(%rcx)\n"
	"	addq %rax, " DONE "\n"
    "arch_whole_room_added:\n"
	"	testq %r11, %r11\n"
	"	jne arch_whole_over\n"
	"	movq " RDX ", %rdx\n"
	"	movq " MSG_IOV ", %rcx\n"
	"2:	cmpq $0, " MSG_IOVLEN "\n"
	"	je arch_whole_over\n"
	"	cmpq 8(%rcx), %rax\n"
	"	jb 3f\n"
	"	subq 8(%rcx), %rax\n"
	"	addq $16, %rcx\n"
	"	decq " MSG_IOVLEN "\n"
	"	jmp 2b\n"
	"3:	addq %rax, (%rcx)\n"
	"	subq %rax, 8(%rcx)\n"
	"	movq %rcx, " MSG_IOV "\n"
	"	jmp 1b\n"
    /* futex_waitv: the result is which one has changed. The kernel is asked
     * for each alone, for it knows whether the memory can be read. If it was
     * changed back meanwhile, all wait again. */
    "arch_whole_waitv:\n"
	"1:	syscall\n"
    "arch_whole_waitv_called:\n"
	"	cmpq $-11, %rax\n"
	"	jne arch_whole_waitv_done\n"
    "arch_whole_waitv_asks:\n"
	"	movl $1, %esi\n"
	"	leaq " NO_TIME ", %r10\n"
	"	xorl %r9d, %r9d\n"
	"2:	movl $449, %eax\n"
	"	syscall\n"
	"	cmpq $-11, %rax\n"
	"	movq %r9, %rax\n"
	"	je arch_whole_waitv_done\n"
	"	addq $24, %rdi\n"
	"	incq %r9\n"
	"	cmpq " RSI ", %r9\n"
	"	jb 2b\n"
	"	movq " RDI ", %rdi\n"
	"	movq " RSI ", %rsi\n"
	"	movq " R10 ", %r10\n"
	"	movl $449, %eax\n"
	"	jmp 1b\n"
    "arch_whole_waitv_done:\n"
	"	movq %rax, " DONE "\n"
	"	jmp arch_whole_over\n"
    "arch_whole_waitv_end:\n"
    "arch_whole_end:\n"
    ".popsection\n");
/* clang-format on */

extern const uint8_t arch_whole_begin[], arch_whole_over[],
	arch_whole_basic_end[], arch_whole_end[];
#define DECLARE(name)                                                          \
	extern const uint8_t name[], name##_called[], name##_added[]
DECLARE(arch_whole_buf0);
DECLARE(arch_whole_buf1);
DECLARE(arch_whole_len3);
DECLARE(arch_whole_len4);
DECLARE(arch_whole_msgs);
DECLARE(arch_whole_iov);
DECLARE(arch_whole_events);
DECLARE(arch_whole_batch);
DECLARE(arch_whole_piece);
DECLARE(arch_whole_room);
extern const uint8_t arch_whole_again_called[], arch_whole_again_home[],
	arch_whole_again_end[], arch_whole_waitv[], arch_whole_waitv_called[],
	arch_whole_waitv_asks[], arch_whole_waitv_done[],
	arch_whole_waitv_end[];

static const struct loop {
	const uint8_t *start;
	const uint8_t *called; /* the call has returned */
	const uint8_t *added;  /* what it did is in the frame */
} loops[] = {
#define POINTS(name)                                                           \
	{                                                                      \
		name, name##_called, name##_added                              \
	}
	[ARCH_WHOLE_BUF0] = POINTS(arch_whole_buf0),
	[ARCH_WHOLE_BUF1] = POINTS(arch_whole_buf1),
	[ARCH_WHOLE_LEN3] = POINTS(arch_whole_len3),
	[ARCH_WHOLE_LEN4] = POINTS(arch_whole_len4),
	[ARCH_WHOLE_MSGS] = POINTS(arch_whole_msgs),
	[ARCH_WHOLE_IOV] = POINTS(arch_whole_iov),
	[ARCH_WHOLE_MSG] = POINTS(arch_whole_iov),
	[ARCH_WHOLE_EVENTS] = POINTS(arch_whole_events),
	[ARCH_WHOLE_BATCH] = POINTS(arch_whole_batch),
	[ARCH_WHOLE_PIECE] = POINTS(arch_whole_piece),
	[ARCH_WHOLE_ROOM] = POINTS(arch_whole_room),
};

#define RED_ZONE 128

size_t arch_whole_code(const uint8_t **ret, size_t *basic_ret)
{
	*ret = arch_whole_begin;
	*basic_ret = (size_t)(arch_whole_basic_end - arch_whole_begin);
	return (size_t)(arch_whole_end - arch_whole_begin);
}

bool arch_whole_has(enum arch_whole_loop loop, size_t len)
{
	return loops[loop].start < arch_whole_begin + len;
}

/* Of a frame: the call's registers and where it returns to. */
#define W_CALLER(r)                                                            \
	[W_DONE] = (r)->rax, [W_RDI] = (r)->rdi, [W_RSI] = (r)->rsi,           \
	[W_RDX] = (r)->rdx, [W_R10] = (r)->r10, [W_R8] = (r)->r8,              \
	[W_R9] = (r)->r9, [W_PC] = (r)->rip, [W_FLAGS] = (r)->eflags,          \
	[W_SP] = (r)->rsp

taddr_t arch_whole_enter(struct user_regs_struct *r, taddr_t code,
			 const struct arch_whole_rest *rest,
			 struct arch_whole_frame *f)
{
	taddr_t sp = (r->rsp - RED_ZONE - sizeof(*f)) & ~15ULL;
	taddr_t vector = sp + W_BASE * sizeof(uint64_t);
	if (rest->loop == ARCH_WHOLE_ROOM)
		vector = sp + W_VECTOR * sizeof(uint64_t);
	const struct msghdr msg = {.msg_iov = (struct iovec *)vector,
				   .msg_iovlen = rest->loop == ARCH_WHOLE_ROOM
							 ? rest->nr_vector
							 : 1,
				   .msg_control = (void *)rest->control,
				   .msg_controllen = rest->control_len};

	*f = (struct arch_whole_frame){{
		[W_NR] = r->orig_rax,
		W_CALLER(r),
		[W_IOV] = rest->iov,
		[W_IOV_END] = rest->iov_end,
		[W_BASE] = rest->base,
		[W_LEN] = rest->len,
		[W_ENTRY] = rest->args[1],
		[W_LEFT] = rest->args[2],
		[W_PIECE_NR] = (uint64_t)rest->piece_nr,
		[W_PIECE_FLAGS] = rest->piece_flags,
		[W_ROOM] = rest->control_len,
		[W_ENDS] = rest->ends_with_control ? UINT64_MAX : 0,
	}};
	static_assert(sizeof(*f) == W_VECTOR * sizeof(uint64_t) +
					    sizeof(rest->vector),
		      "the vector is what the frame ends with");
	memcpy(&f->words[W_MSG], &msg, sizeof(msg));
	memcpy(&f->words[W_VECTOR], rest->vector, sizeof(rest->vector));
	r->rdi = rest->args[0];
	r->rsi = rest->args[1];
	r->rdx = rest->args[2];
	r->r10 = rest->args[3];
	r->r8 = rest->args[4];
	r->r9 = rest->args[5];
	if (rest->loop == ARCH_WHOLE_IOV) {
		r->rsi = vector;
		r->rdx = 1;
	} else if (rest->loop == ARCH_WHOLE_MSG ||
		   rest->loop == ARCH_WHOLE_ROOM) {
		r->rsi = sp + W_MSG * sizeof(uint64_t);
	}
	r->rip = code + (taddr_t)(loops[rest->loop].start - arch_whole_begin);
	r->orig_rax = (uint64_t)-1;
	r->rsp = sp;
	return sp;
}

bool arch_whole_is_inside(const struct user_regs_struct *r, taddr_t code)
{
	return r->rip >= code &&
	       r->rip < code + (taddr_t)(arch_whole_end - arch_whole_begin);
}

/* --- waits that are made again --- */

bool arch_whole_has_vector(size_t len)
{
	return arch_whole_waitv < arch_whole_begin + len;
}

static bool is_again(const uint8_t *at)
{
	return at < arch_whole_again_end ||
	       (at >= arch_whole_waitv && at < arch_whole_waitv_end);
}

bool arch_whole_is_again(const struct user_regs_struct *r, taddr_t code)
{
	return arch_whole_is_inside(r, code) &&
	       is_again(arch_whole_begin + (r->rip - code));
}

size_t arch_whole_frame_len(const struct user_regs_struct *r, taddr_t code)
{
	return arch_whole_is_again(r, code) ? W_AGAIN_WORDS * sizeof(uint64_t)
					    : sizeof(struct arch_whole_frame);
}

taddr_t arch_whole_again(struct user_regs_struct *r, taddr_t code,
			 const struct arch_whole_late *late,
			 struct arch_whole_frame *f)
{
	const uint8_t *at = late->is_vector ? arch_whole_waitv_called
					    : arch_whole_again_called;
	taddr_t sp =
		(r->rsp - RED_ZONE - W_AGAIN_WORDS * sizeof(uint64_t)) & ~15ULL;

	*f = (struct arch_whole_frame){{
		W_CALLER(r),
		[W_CALL] = r->orig_rax,
		[W_LATE] = (uint64_t)late->error,
		[W_LATE_RET] = (uint64_t)late->ret,
	}};
	r->rip = code + (taddr_t)(at - arch_whole_begin);
	r->rsp = sp;
	return sp;
}

/* At the entry of the call, which has not been made. */
static bool is_at_entry(const struct user_regs_struct *r)
{
	return (int64_t)r->orig_rax >= 0 && r->rax == (uint64_t)-ENOSYS;
}

static void leave_again(struct user_regs_struct *r, const uint8_t *at,
			const uint64_t *w)
{
	bool is_vector = at >= arch_whole_waitv;
	bool called =
		at == arch_whole_again_called || at == arch_whole_waitv_called;
	bool done = at >= arch_whole_again_called;

	if (is_vector)
		done = at >= arch_whole_waitv_done ||
		       (at >= arch_whole_waitv_called &&
			at < arch_whole_waitv_asks &&
			r->rax != (uint64_t)-EAGAIN);
	if (at == arch_whole_again_home) {
		r->rip = r->rcx;
		return;
	}
	if (!done) {
		r->rax = w[W_DONE];
		r->orig_rax = w[W_CALL];
	} else if (called && arch.restart_pending(r)) {
		r->orig_rax = w[W_CALL]; /* not restart_syscall */
	} else if (!called || !is_at_entry(r)) {
		if (!is_vector && r->rax == -w[W_LATE])
			r->rax = w[W_LATE_RET];
		r->orig_rax = (uint64_t)-1;
	}
	if (is_vector) {
		r->rdi = w[W_RDI];
		r->rsi = w[W_RSI];
		r->r10 = w[W_R10];
		r->r9 = w[W_R9];
		r->eflags = w[W_FLAGS];
	}
	r->rcx = r->rip = w[W_PC];
	r->rsp = w[W_SP];
}

bool arch_whole_leave(struct user_regs_struct *r, taddr_t code,
		      const struct arch_whole_frame *f,
		      struct arch_whole_fix *fix)
{
	const uint64_t *w = f->words;
	const uint8_t *at = arch_whole_begin + (r->rip - code);
	bool counts = false;

	*fix = (struct arch_whole_fix){0};
	if (at >= arch_whole_over && at < arch_whole_basic_end)
		return false;
	if (is_again(at)) {
		leave_again(r, at, w);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		if (at >= loops[i].called && at < loops[i].added)
			counts = (int64_t)r->rax > 0;
	/* Bytes of a message that is counted already. */
	if (counts && at >= arch_whole_piece_called &&
	    at < arch_whole_piece_added) {
		fix->at = w[W_ENTRY] - sizeof(struct mmsghdr) +
			  offsetof(struct mmsghdr, msg_len);
		fix->add = (uint32_t)r->rax;
		counts = false;
	}
	if (counts && at >= arch_whole_room_called &&
	    at < arch_whole_room_added) {
		struct msghdr msg;
		memcpy(&msg, &w[W_MSG], sizeof(msg));
		fix->msg = w[W_RSI];
		fix->control_len = msg.msg_controllen;
		fix->msg_flags = msg.msg_flags;
	}
	r->rax = w[W_DONE] + (counts ? r->rax : 0);
	r->orig_rax = (uint64_t)-1;
	r->rdi = w[W_RDI];
	r->rsi = w[W_RSI];
	r->rdx = w[W_RDX];
	r->r10 = w[W_R10];
	r->r8 = w[W_R8];
	r->r9 = w[W_R9];
	r->rcx = r->rip = w[W_PC];
	r->r11 = r->eflags = w[W_FLAGS];
	r->rsp = w[W_SP];
	return true;
}
