/* Wait status -> what it means: one row for each kind the kernel can report. */
#include <signal.h>
#include <sys/ptrace.h>

#include "supervisor/tracee/stop.h"
#include "tap.h"

#define STOPPED(sig)	  ((sig) << 8 | 0x7f)
#define EVENT(event, sig) ((event) << 16 | STOPPED(sig))

static const struct {
	const char *what;
	int status;
	enum stop_kind want;
} rows[] = {
	{"exit 0", 0, STOP_EXITED},
	{"exit 255", 0xff00, STOP_EXITED},
	{"SIGKILL", SIGKILL, STOP_KILLED},
	{"SIGSEGV with core", SIGSEGV | 0x80, STOP_KILLED},
	{"delivery of SIGSEGV", STOPPED(SIGSEGV), STOP_SIGNAL},
	{"delivery of SIGTRAP", STOPPED(SIGTRAP), STOP_SIGNAL},
	{"delivery of SIGSTOP", STOPPED(SIGSTOP), STOP_SIGNAL},
	{"delivery of a real-time signal", STOPPED(64), STOP_SIGNAL},
	{"syscall-stop", STOPPED(SIGTRAP | 0x80), STOP_SYSCALL},
	{"group-stop", EVENT(PTRACE_EVENT_STOP, SIGSTOP), STOP_GROUP},
	{"group-stop by ^Z", EVENT(PTRACE_EVENT_STOP, SIGTSTP), STOP_GROUP},
	{"group-stop, tty in", EVENT(PTRACE_EVENT_STOP, SIGTTIN), STOP_GROUP},
	{"group-stop, tty out", EVENT(PTRACE_EVENT_STOP, SIGTTOU), STOP_GROUP},
	{"interrupt", EVENT(PTRACE_EVENT_STOP, SIGTRAP), STOP_INTERRUPT},
	{"clone", EVENT(PTRACE_EVENT_CLONE, SIGTRAP), STOP_CLONE},
	{"fork", EVENT(PTRACE_EVENT_FORK, SIGTRAP), STOP_FORK},
	{"vfork", EVENT(PTRACE_EVENT_VFORK, SIGTRAP), STOP_VFORK},
	{"vfork done", EVENT(PTRACE_EVENT_VFORK_DONE, SIGTRAP),
	 STOP_VFORK_DONE},
	{"exec", EVENT(PTRACE_EVENT_EXEC, SIGTRAP), STOP_EXEC},
	{"about to exit", EVENT(PTRACE_EVENT_EXIT, SIGTRAP), STOP_EXIT},
	{"seccomp", EVENT(PTRACE_EVENT_SECCOMP, SIGTRAP), STOP_OTHER},
};

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_msg(stop_classify(rows[i].status) == rows[i].want,
			  "%s is %s", rows[i].what, stop_name(rows[i].want));
	return tap_done();
}
