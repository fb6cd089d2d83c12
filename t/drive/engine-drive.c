/*
 * Runs or attaches to a program with nothing but the tracee engine, and does
 * to it what monitors do, at a pace: stop all threads, run calls in it, patch
 * its text.
 *
 *	engine-drive [OPTIONS] CMD...
 *	engine-drive [OPTIONS] -p PID
 *
 *	-s MS	stop all tasks every MS milliseconds (0: back to back)
 *	-i N	N injected getppid calls in each stop, by one batch
 *	-t A,B	in each stop patch a jump to address B over address A, or take
 *		it out again
 *	-x	stop at every system call
 *	-n	do not follow new processes
 *	-d MS	leave after MS milliseconds
 *	-r N	attach and leave N times
 *	-k US	kill ourselves (SIGKILL) after US microseconds
 *	-D	leave when TEV_PROC_NEW is handled, with the task still held
 *	-X	stop at system calls, leave at the first one's entry
 *	-e FILE	write the events there
 *
 * The exit status is the command's, as a shell would have it; 99 for an error
 * of ours, with a line on stderr.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/tracee.h"

static int opt_stop_ms = -1, opt_calls, opt_repeat = 1, opt_leave_at_once;
static bool opt_syscalls, opt_leave_at_entry;
static uint64_t opt_ms = UINT64_MAX;
static pid_t opt_pid;
static taddr_t patch_at, patch_to;
static FILE *events;
static struct tpatch *patch;
static struct tproc *patched;
static uint64_t attach_ns, detach_ns;
static unsigned long nr_stops, nr_calls, nr_patches;

static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("engine-drive: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputs("\n", stderr);
	va_end(ap);
	exit(99);
}

static void on_alarm(int sig)
{
	(void)sig;
	kill(getpid(), SIGKILL);
}

static void toggle_patch(struct tproc *p)
{
	struct smco_err err = {0};
	uint8_t jmp[5] = {0xe9};
	int32_t rel = (int32_t)(patch_to - patch_at - sizeof(jmp));

	memcpy(jmp + 1, &rel, sizeof(rel));
	if (patch && patched == p) {
		int r = tproc_unpatch(p, patch, NULL, NULL, &err);
		if (r == 0)
			patch = NULL;
		else if (r == SMCO_GONE)
			patch = NULL; /* the process ends */
		else if (r != SMCO_BUSY)
			fail("unpatch: %s", err.msg);
		return;
	}
	int r = tproc_patch(p, patch_at, jmp, sizeof(jmp), NULL, NULL, &patch,
			    &err);
	if (r == 0) {
		patched = p;
		nr_patches++;
	} else if (r != SMCO_BUSY && r != SMCO_GONE) {
		fail("patch: %s", err.msg);
	}
}

static void work(struct tproc *p)
{
	struct smco_err err = {0};
	int r = tproc_stop(p, &err);
	if (r == SMCO_BUSY)
		return;
	if (r < 0)
		fail("stop: %s", err.msg);
	nr_stops++;
	if (opt_calls) {
		struct tsyscall calls[100] = {0};
		int n = opt_calls < 100 ? opt_calls : 100;
		for (int i = 0; i < n; i++)
			calls[i].nr = SYS_getpid;
		r = tproc_syscalls(p, calls, (size_t)n, &err);
		if (r < 0 && r != SMCO_GONE && r != SMCO_BUSY)
			fail("syscalls: %s", err.msg);
		for (int i = 0; r == 0 && i < n; i++) {
			nr_calls++;
			if (calls[i].ret <= 0)
				fail("getpid in %d gave %" PRId64, tproc_pid(p),
				     calls[i].ret);
		}
	}
	if (patch_at)
		toggle_patch(p);
	tproc_cont(p);
}

static void log_event(const struct tevent *ev)
{
	static const char *const names[] = {
		[TEV_NONE] = "none",
		[TEV_PROC_NEW] = "proc-new",
		[TEV_PROC_GONE] = "proc-gone",
		[TEV_TASK_NEW] = "task-new",
		[TEV_TASK_GONE] = "task-gone",
		[TEV_LIBS] = "libs",
		[TEV_TRAP] = "trap",
		[TEV_FAULT] = "fault",
		[TEV_SYSCALL_IN] = "syscall-in",
		[TEV_SYSCALL_OUT] = "syscall-out",
		[TEV_LEFT_ENDED] = "left-ended",
		[TEV_DONE] = "done",
	};
	static const char *const whys[] = {"launched", "attached", "forked",
					   "execed"};
	if (!events || ev->kind == TEV_NONE)
		return;
	fprintf(events, "%s %d %d", names[ev->kind],
		ev->proc ? tproc_pid(ev->proc) : 0,
		ev->task ? task_tid(ev->task) : 0);
	if (ev->kind == TEV_PROC_NEW)
		fprintf(events, " %s", whys[ev->why]);
	if (ev->kind == TEV_PROC_GONE)
		fprintf(events, " status %#x", ev->exit_status);
	fprintf(events, "\n");
	fflush(events);
}

static int act(struct tracer *tr, struct tevent *ev)
{
	switch (ev->kind) {
	case TEV_PROC_NEW:
		/* From here on its number means more than any other's. */
		tproc_trap_signal(ev->proc);
		if (opt_stop_ms >= 0)
			work(ev->proc);
		if (opt_syscalls)
			tproc_trace_syscalls(ev->proc, true);
		if (opt_leave_at_once)
			return 1;
		tproc_resume_new(ev->proc);
		break;
	case TEV_PROC_GONE:
		if (patched == ev->proc)
			patch = NULL;
		break;
	case TEV_SYSCALL_IN:
		if (opt_leave_at_entry)
			return 1;
		__attribute__((fallthrough));
	case TEV_LIBS:
	case TEV_TRAP:
	case TEV_SYSCALL_OUT:
		if (opt_syscalls && opt_calls && ev->kind != TEV_LIBS)
			work(ev->proc);
		tracer_resume(tr, ev->task, 0);
		break;
	case TEV_FAULT:
		if (opt_stop_ms >= 0)
			work(ev->proc);
		tracer_resume(tr, ev->task, ev->siginfo.si_signo);
		break;
	default:
		break;
	}
	return 0;
}

static int run(struct tracer *tr, pid_t main_pid)
{
	uint64_t start = smco_now_ns(), next_work = start;
	uint64_t end = opt_ms == UINT64_MAX ? UINT64_MAX
					    : start + opt_ms * NSEC_PER_MSEC;
	int status = 0, r;
	struct tevent ev;

	for (;;) {
		uint64_t deadline = end;
		if (opt_stop_ms >= 0 && next_work < deadline)
			deadline = next_work;
		r = tracer_next(tr, deadline, &ev);
		if (r <= 0)
			break;
		log_event(&ev);
		if (ev.kind == TEV_PROC_GONE && tproc_pid(ev.proc) == main_pid)
			status = ev.exit_status;
		if (act(tr, &ev))
			break;
		uint64_t now = smco_now_ns();
		if (now >= end)
			break;
		if (opt_stop_ms >= 0 && now >= next_work) {
			next_work = now + (uint64_t)opt_stop_ms * NSEC_PER_MSEC;
			struct tproc *p = tracer_first_proc(tr);
			for (; p; p = tproc_next(p))
				work(p);
		}
	}
	if (r < 0)
		fail("tracer_next: %d", r);
	return status;
}

static void parse(int argc, char **argv, struct tracer_options *o)
{
	int c;
	while ((c = getopt(argc, argv, "+p:s:i:t:xXnd:r:k:De:")) != -1) {
		switch (c) {
		case 'p':
			opt_pid = atoi(optarg);
			break;
		case 's':
			opt_stop_ms = atoi(optarg);
			break;
		case 'i':
			opt_calls = atoi(optarg);
			break;
		case 't':
			if (sscanf(optarg, "%" SCNx64 ",%" SCNx64, &patch_at,
				   &patch_to) != 2)
				fail("-t A,B");
			break;
		case 'x':
			opt_syscalls = true;
			break;
		case 'X':
			opt_syscalls = opt_leave_at_entry = true;
			break;
		case 'n':
			o->follow = false;
			break;
		case 'd':
			opt_ms = (uint64_t)atoi(optarg);
			break;
		case 'r':
			opt_repeat = atoi(optarg);
			break;
		case 'k':
			signal(SIGALRM, on_alarm);
			ualarm((useconds_t)atoi(optarg), 0);
			break;
		case 'D':
			opt_leave_at_once = 1;
			break;
		case 'e':
			events = fopen(optarg, "w");
			break;
		default:
			fail("bad option");
		}
	}
}

int main(int argc, char **argv)
{
	struct tracer_options o = {.follow = true};
	struct smco_err err = {0};
	struct tracer *tr;
	int status = 0;

	parse(argc, argv, &o);
	if (tracer_create(&tr, &o, &err) < 0)
		fail("%s", err.msg);
	for (int i = 0; i < opt_repeat; i++) {
		pid_t pid = opt_pid;
		uint64_t before = smco_now_ns();
		int r = opt_pid ? tracer_attach(tr, pid, &err)
				: tracer_launch(tr, argv + optind, &pid, &err);
		if (r < 0) {
			fprintf(stderr, "engine-drive: %s\n", err.msg);
			return r == SMCO_NOTFOUND ? 127
			       : r == SMCO_PERM	  ? 126
						  : 99;
		}
		attach_ns = smco_now_ns() - before;
		status = run(tr, pid);
		patch = NULL;
		before = smco_now_ns();
		if (tracer_detach_all(tr, &err) < 0)
			fprintf(stderr, "engine-drive: detach: %s\n", err.msg);
		detach_ns = smco_now_ns() - before;
	}
	fprintf(stderr, "stops %lu calls %lu patches %lu\n", nr_stops, nr_calls,
		nr_patches);
	fprintf(stderr,
		"attach %.1f ms, detach %.1f ms, longest stop %.1f ms\n",
		(double)attach_ns / 1e6, (double)detach_ns / 1e6,
		(double)tracer_longest_stop_ns(tr) / 1e6);
	tracer_destroy(tr);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}
