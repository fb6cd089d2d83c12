/* See dictionary.h. */
	.section .rodata
	.globl	dictionary_start, dictionary_end
dictionary_start:
	.incbin "reports/dictionary.bin"
dictionary_end:
	.section .note.GNU-stack, "", @progbits
