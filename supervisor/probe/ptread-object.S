/* The BPF program of ptread.bpf.c as built, for bpf_object__open_mem(). */
	.section .rodata
	.balign 16
	.globl ptread_object_start, ptread_object_end
ptread_object_start:
#ifdef PTREAD_OBJECT
	.incbin PTREAD_OBJECT
#endif
ptread_object_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
