/*
 * Way in and out of the agent. A near stub has pushed the number of its hook
 * and jumped here; below that is the return address into the program, so the
 * final ret pairs with the program's own call.
 */
#include "supervisor/probe/agent_abi.h"

	.section .header, "a"
agent_header:
	.quad	0x32746e6761736d
	.long	agent_entry - agent_header
	.long	agent_trapped - agent_header
	.long	agent_text_end - agent_header
	.long	agent_returned - agent_header
	.long	agent_framed - agent_header
	.long	agent_unframed - agent_header
	.long	agent_trap - agent_header
	.long	0

	.section .text.entry, "ax"
	.globl	agent_entry
	.hidden	agent_priv, agent_dispatch
agent_entry:
	push	%r9			/* struct agent_frame, from its end */
	push	%r8
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r15
	push	%r14
	push	%r13
	push	%r12
	push	%rbp
	push	%rbx
	push	$0
	push	$0
	mov	%rsp, %rdi
	mov	%rsp, %rbp
agent_framed:
	and	$-16, %rsp
	lock incl AGENT_INSIDE+agent_priv(%rip)
	call	agent_dispatch
agent_returned:
	lock decl AGENT_INSIDE+agent_priv(%rip)
	mov	%rbp, %rsp
agent_unframed:
	mov	24(%rsp), %rbp		/* others are as C code left them */
	test	%rdx, %rdx
	jnz	1f
	add	$(15 * 8), %rsp
	ret
1:	mov	%rdx, %r11		/* run the original in our place */
	mov	64(%rsp), %rdi
	mov	72(%rsp), %rsi
	mov	80(%rsp), %rdx
	mov	88(%rsp), %rcx
	mov	96(%rsp), %r8
	mov	104(%rsp), %r9
	add	$(15 * 8), %rsp
	jmp	*%r11

/*
 * void agent_trap(frame, reason, pid, tid, signal): the signal's default is
 * to be ignored, so without a tracer nothing happens. With one, the thread
 * stops at agent_trapped.
 */
	.globl	agent_trap
agent_trap:
	push	%rbx
	push	%r12
	push	%r13
	movabs	$0x32746e6761736d, %rbx
	mov	%rdi, %r12
	mov	%rsi, %r13
	mov	%rdx, %rdi
	mov	%rcx, %rsi
	mov	%r8, %rdx
	mov	$234, %eax		/* tgkill */
	syscall
agent_trapped:
	pop	%r13
	pop	%r12
	pop	%rbx
	ret

	.section .note.GNU-stack, "", @progbits
