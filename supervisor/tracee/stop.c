#include "supervisor/tracee/stop.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "reports/base.h"

enum stop_kind stop_classify(int status)
{
	if (WIFEXITED(status))
		return STOP_EXITED;
	if (WIFSIGNALED(status))
		return STOP_KILLED;

	int sig = WSTOPSIG(status);
	switch (status >> 16) {
	case 0:
		/* PTRACE_O_TRACESYSGOOD marks syscall-stops by bit 7. */
		return sig == (SIGTRAP | 0x80) ? STOP_SYSCALL : STOP_SIGNAL;
	case PTRACE_EVENT_STOP:
		switch (sig) {
		case SIGSTOP:
		case SIGTSTP:
		case SIGTTIN:
		case SIGTTOU:
			return STOP_GROUP;
		default:
			return STOP_INTERRUPT;
		}
	case PTRACE_EVENT_CLONE:
		return STOP_CLONE;
	case PTRACE_EVENT_FORK:
		return STOP_FORK;
	case PTRACE_EVENT_VFORK:
		return STOP_VFORK;
	case PTRACE_EVENT_VFORK_DONE:
		return STOP_VFORK_DONE;
	case PTRACE_EVENT_EXEC:
		return STOP_EXEC;
	case PTRACE_EVENT_EXIT:
		return STOP_EXIT;
	default:
		return STOP_OTHER;
	}
}

const char *stop_name(enum stop_kind kind)
{
	static const char *const names[] = {
		[STOP_EXITED] = "exited",
		[STOP_KILLED] = "killed",
		[STOP_SIGNAL] = "signal",
		[STOP_GROUP] = "group",
		[STOP_INTERRUPT] = "interrupt",
		[STOP_SYSCALL] = "syscall",
		[STOP_CLONE] = "clone",
		[STOP_FORK] = "fork",
		[STOP_VFORK] = "vfork",
		[STOP_VFORK_DONE] = "vfork-done",
		[STOP_EXEC] = "exec",
		[STOP_EXIT] = "exit",
		[STOP_OTHER] = "other",
	};
	return (size_t)kind < ARRAY_SIZE(names) ? names[kind] : "?";
}
