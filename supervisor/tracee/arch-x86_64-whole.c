#include <string.h>

#include "supervisor/tracee/arch.h"

/*
 * Code that makes a call again with what is left of its buffer until all is
 * done, an error comes, or nothing moves any more; then it returns as the call
 * would have. It needs nothing but the frame on the stack of the thread that
 * runs it, so any number of threads can, with or without a supervisor. What
 * the call leaves as it was is left so, the flags too.
 */
#define NR    "0(%rsp)"
#define DONE  "8(%rsp)"
#define RDI   "16(%rsp)"
#define RSI   "24(%rsp)"
#define RDX   "32(%rsp)"
#define PC    "40(%rsp)"
#define FLAGS "48(%rsp)"
#define SP    "56(%rsp)"

/* clang-format off */
#define WHOLE(name, buf, len)                                                  \
	".balign 16\n"                                                         \
	name ":\n"                                                             \
	"1:	movq " NR ", %rax\n"                                           \
	"	syscall\n"                                                     \
	name "_called:\n"                                                      \
	"	testq %rax, %rax\n"                                            \
	"	jle 2f\n"                                                      \
	"	addq %rax, " DONE "\n"                                         \
	name "_added:\n"                                                       \
	"	addq %rax, " buf "\n"                                          \
	"	subq %rax, " len "\n"                                          \
	"	ja 1b\n"                                                       \
	name "_over:\n"                                                        \
	"2:	movq " RDI ", %rdi\n"                                          \
	"	movq " RSI ", %rsi\n"                                          \
	"	movq " RDX ", %rdx\n"                                          \
	"	movq " PC ", %rcx\n"                                           \
	"	movq " FLAGS ", %r11\n"                                        \
	"	movq " DONE ", %rax\n"                                         \
	"	movq " SP ", %rsp\n"                                           \
	/* Below the red zone, where the frame was. */                         \
	"	leaq -192(%rsp), %rsp\n"                                       \
	"	pushq %r11\n"                                                  \
	"	popfq\n"                                                       \
	"	leaq 192(%rsp), %rsp\n"                                        \
	"	jmpq *%rcx\n"

asm(".pushsection .rodata\n"
    ".globl arch_whole_begin, arch_whole_end, arch_whole_1, arch_whole_0\n"
    ".globl arch_whole_1_called, arch_whole_1_added, arch_whole_1_over\n"
    ".globl arch_whole_0_called, arch_whole_0_added, arch_whole_0_over\n"
    ".balign 16\n"
    "arch_whole_begin:\n"
    WHOLE("arch_whole_1", "%rsi", "%rdx")
    WHOLE("arch_whole_0", "%rdi", "%rsi")
    "arch_whole_end:\n"
    ".popsection\n");
/* clang-format on */

extern const uint8_t arch_whole_begin[], arch_whole_end[];
extern const uint8_t arch_whole_1[], arch_whole_1_called[],
	arch_whole_1_added[], arch_whole_1_over[];
extern const uint8_t arch_whole_0[], arch_whole_0_called[],
	arch_whole_0_added[], arch_whole_0_over[];

/* By buf_arg. */
static const struct loop {
	const uint8_t *start;
	const uint8_t *called; /* the call has returned */
	const uint8_t *added;  /* what it did is in the frame */
	const uint8_t *over;   /* nothing is waited for any more */
} loops[] = {
	{arch_whole_0, arch_whole_0_called, arch_whole_0_added,
	 arch_whole_0_over},
	{arch_whole_1, arch_whole_1_called, arch_whole_1_added,
	 arch_whole_1_over},
};

#define RED_ZONE 128

size_t arch_whole_code(const uint8_t **ret)
{
	*ret = arch_whole_begin;
	return (size_t)(arch_whole_end - arch_whole_begin);
}

taddr_t arch_whole_enter(struct user_regs_struct *r, taddr_t code, int buf_arg,
			 struct arch_whole_frame *f)
{
	uint64_t done = r->rax;

	*f = (struct arch_whole_frame){{r->orig_rax, done, r->rdi, r->rsi,
					r->rdx, r->rip, r->eflags, r->rsp}};
	if (buf_arg == 1) {
		r->rsi += done;
		r->rdx -= done;
	} else {
		r->rdi += done;
		r->rsi -= done;
	}
	r->rip = code + (taddr_t)(loops[buf_arg].start - arch_whole_begin);
	r->orig_rax = (uint64_t)-1;
	r->rsp = (r->rsp - RED_ZONE - sizeof(*f)) & ~15ULL;
	return r->rsp;
}

bool arch_whole_is_inside(const struct user_regs_struct *r, taddr_t code)
{
	return r->rip >= code &&
	       r->rip < code + (taddr_t)(arch_whole_end - arch_whole_begin);
}

bool arch_whole_leave(struct user_regs_struct *r, taddr_t code,
		      const struct arch_whole_frame *f)
{
	const uint64_t *w = f->words;
	const uint8_t *at = arch_whole_begin + (r->rip - code);
	const struct loop *l = &loops[at < arch_whole_0];

	if (at >= l->over)
		return false;
	bool counts = at >= l->called && at < l->added && (int64_t)r->rax > 0;
	r->rax = w[1] + (counts ? r->rax : 0);
	r->orig_rax = (uint64_t)-1;
	r->rdi = w[2];
	r->rsi = w[3];
	r->rdx = w[4];
	r->rcx = r->rip = w[5];
	r->r11 = r->eflags = w[6];
	r->rsp = w[7];
	return true;
}
