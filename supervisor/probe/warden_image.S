/* The resident helper's image, carried to the program as bytes. */
	.section .rodata
	.balign 16
	.globl warden_image
warden_image:
	.incbin "supervisor/probe/warden/warden.bin"
	.globl warden_image_end
warden_image_end:
	.section .note.GNU-stack, "", @progbits
