/*
 * stop.h - what a wait status means. Pure, see t/unit/u-tracee-stop.c.
 */
#ifndef SMCO_TRACEE_STOP_H
#define SMCO_TRACEE_STOP_H

enum stop_kind {
	STOP_EXITED,	/* the task ended by itself; nothing to restart */
	STOP_KILLED,	/* the task was ended by a signal; same */
	STOP_SIGNAL,	/* signal-delivery-stop: restart with the signal */
	STOP_GROUP,	/* group-stop: PTRACE_LISTEN until SIGCONT */
	STOP_INTERRUPT, /* PTRACE_EVENT_STOP not in a group-stop: first stop,
			 * PTRACE_INTERRUPT, end of a group-stop. Restart. */
	STOP_SYSCALL,	/* syscall-enter-stop or syscall-exit-stop */
	STOP_CLONE,	/* the next five: restart with signal 0 */
	STOP_FORK,
	STOP_VFORK,
	STOP_VFORK_DONE,
	STOP_EXEC,
	STOP_EXIT,  /* about to end, registers still readable */
	STOP_OTHER, /* none of ours (seccomp): restart with signal 0 */
};

enum stop_kind stop_classify(int status);
const char *stop_name(enum stop_kind kind);

#endif
