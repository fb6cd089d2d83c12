/*
 * Entries of the warden image, at the offsets that abi.h names. The image
 * has no relocations; the shared table follows it in memory.
 */
#include "supervisor/probe/warden/abi.h"

	.section .entry, "ax"
	.balign 16
	jmp warden_spawn
	.balign 16
	jmp warden_handler
	.balign 16
	movl $15, %eax /* rt_sigreturn */
	syscall
	.balign 16
	jmp warden_altstack

/*
 * long warden_clone(flags, stack top, function, child tid address): the
 * function runs in the child with that stack and never returns.
 */
	.text
	.globl warden_clone
warden_clone:
	movq %rdx, %r9
	movq %rcx, %rdx /* for whoever makes it, */
	movq %rcx, %r10 /* and to be cleared in the end */
	xorl %r8d, %r8d
	movl $56, %eax
	syscall
	testq %rax, %rax
	jnz 1f
	xorl %ebp, %ebp
	call *%r9
	ud2
1:	ret

/*
 * Back to where the thread was, with all registers, by the thread itself.
 * Never returns.
 */
	.globl warden_restore
warden_restore:
	leaq warden_base+WARDEN_CODE_SIZE+WARDEN_SAVED_OFFSET(%rip), %rsp
	popq %rax
	popq %rbx
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	popq %rbp
	popq %r8
	popq %r9
	popq %r10
	popq %r11
	popq %r12
	popq %r13
	popq %r14
	popq %r15
	iretq
	.section .note.GNU-stack, "", @progbits
