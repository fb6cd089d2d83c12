/* The BPF programs as built, for bpf_object__open_mem(): NAME.bpf.c lies
 * between NAME_object_start and NAME_object_end, empty if built without clang.
 * The build says where they are. */
	.section .rodata

	.balign 16
	.globl ptread_object_start, ptread_object_end
ptread_object_start:
#ifdef PTREAD_OBJECT
	.incbin PTREAD_OBJECT
#endif
ptread_object_end:
	.byte 0

	.balign 16
	.globl stopclock_object_start, stopclock_object_end
stopclock_object_start:
#ifdef STOPCLOCK_OBJECT
	.incbin STOPCLOCK_OBJECT
#endif
stopclock_object_end:
	.byte 0

	.balign 16
	.globl watch_object_start, watch_object_end
watch_object_start:
#ifdef WATCH_OBJECT
	.incbin WATCH_OBJECT
#endif
watch_object_end:
	.byte 0

	.balign 16
	.globl jot_object_start, jot_object_end
jot_object_start:
#ifdef JOT_OBJECT
	.incbin JOT_OBJECT
#endif
jot_object_end:
	.byte 0

	.balign 16
	.globl sieve_object_start, sieve_object_end
sieve_object_start:
#ifdef SIEVE_OBJECT
	.incbin SIEVE_OBJECT
#endif
sieve_object_end:
	.byte 0

	.balign 16
	.globl past_object_start, past_object_end
past_object_start:
#ifdef PAST_OBJECT
	.incbin PAST_OBJECT
#endif
past_object_end:
	.byte 0

	.balign 16
	.globl tally_object_start, tally_object_end
tally_object_start:
#ifdef TALLY_OBJECT
	.incbin TALLY_OBJECT
#endif
tally_object_end:
	.byte 0

	.balign 16
	.globl unfollowed_object_start, unfollowed_object_end
unfollowed_object_start:
#ifdef UNFOLLOWED_OBJECT
	.incbin UNFOLLOWED_OBJECT
#endif
unfollowed_object_end:
	.byte 0

	.section .note.GNU-stack, "", @progbits
