/* The agent's image, see agent_abi.h, as the supervisor carries it. */
	.section .rodata
	.globl	agent_image_start, agent_image_end
	.balign	16
agent_image_start:
	.incbin AGENT_IMAGE
agent_image_end:
	.section .note.GNU-stack, "", @progbits
