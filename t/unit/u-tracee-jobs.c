/*
 * Calls run in a thread that stands at a signal's stop: that signal and those
 * that come meanwhile have the effect, in number and order, that they have
 * without us. Stop signals and SIGCONT take each other back when they are sent.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct tracer *tr;
static int values[8]; /* in the puppet */
static int nr_values;

static void note(int sig, siginfo_t *si, void *context)
{
	(void)sig;
	(void)context;
	values[nr_values++ % 8] = si->si_value.sival_int;
}

/* In a group of its own, which is no orphaned one: SIGTSTP stops it. */
static long prepare(long sig, long unused)
{
	struct sigaction sa = {.sa_sigaction = note,
			       .sa_flags = SA_SIGINFO | SA_RESTART};
	(void)unused;
	signal(SIGTSTP, SIG_DFL);
	if (sig)
		sigaction((int)sig, &sa, NULL);
	return setpgid(0, 0);
}

static long seen(long i, long unused)
{
	(void)unused;
	return i < 0 ? nr_values : values[i];
}

static void send_value(pid_t pid, int sig, int value)
{
	check_int(sigqueue(pid, sig, (union sigval){.sival_int = value}), 0);
}

static void await_state(pid_t pid, char state)
{
	for (int ms = 0; ms < 60000 && puppet_state(pid) != state; ms++)
		usleep(1000);
	check_int(puppet_state(pid), state);
}

/* Standing at the stop of @sig with @value, of which nobody has been told. */
static struct tproc *stand_at(struct puppet *pup, int sig, int value)
{
	struct smco_err err = {0};
	*pup = puppet_start();
	check_int(puppet_do(pup, prepare,
			    sig == SIGUSR1 || sig == SIGRTMIN ? sig : 0, 0),
		  0);
	struct tproc *p = traced_attach(tr, pup->pid, &err);
	if (!p) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
	tproc_resume_new(p);
	if (sig) {
		send_value(pup->pid, sig, value);
		await_state(pup->pid, 't');
		tracer_drain(tr); /* SIGCONT's comes after another stop */
		await_state(pup->pid, 't');
	}
	check_int(traced_stop(p, NULL), 0);
	return p;
}

static void call(struct tproc *p, long nr, uint64_t a, uint64_t b, int64_t want)
{
	struct smco_err err = {0};
	const uint64_t args[6] = {a, b};
	int64_t ret = -1;
	check_int(tproc_syscall(p, nr, args, &ret, &err), 0);
	check_int(ret, want);
}

/* All that is on its way to it arrives. */
static void go_on(struct tproc *p)
{
	struct tevent ev;
	tproc_cont(p);
	while (tracer_next(tr, smco_now_ns() + 100 * NSEC_PER_MSEC, &ev) > 0 &&
	       ev.kind != TEV_NONE)
		;
	check_int(tproc_detach(p, NULL), 0);
}

static void ends_stopped(struct puppet *pup, struct tproc *p)
{
	go_on(p);
	await_state(pup->pid, 'T');
	kill(pup->pid, SIGCONT);
	check_int(puppet_do(pup, seen, -1, 0), 0);
	puppet_end(pup);
}

static void ends_running(struct puppet *pup, struct tproc *p)
{
	go_on(p);
	await_state(pup->pid, 'S');
	kill(pup->pid, SIGCONT); /* or a failure would wait for ever */
	check_int(puppet_do(pup, seen, -1, 0), 0);
	puppet_end(pup);
}

static void test_stops(void)
{
	struct puppet pup;
	struct tproc *p = stand_at(&pup, SIGCONT, 0);
	kill(pup.pid, SIGTSTP);
	call(p, SYS_getpid, 0, 0, pup.pid);
	ends_stopped(&pup, p);

	p = stand_at(&pup, SIGTSTP, 0);
	kill(pup.pid, SIGCONT);
	call(p, SYS_getpid, 0, 0, pup.pid);
	ends_running(&pup, p);

	p = stand_at(&pup, SIGSTOP, 0);
	kill(pup.pid, SIGCONT);
	call(p, SYS_getpid, 0, 0, pup.pid);
	ends_running(&pup, p);

	p = stand_at(&pup, SIGTSTP, 0);
	kill(pup.pid, SIGCONT);
	kill(pup.pid, SIGTSTP);
	call(p, SYS_getpid, 0, 0, pup.pid);
	ends_stopped(&pup, p);

	p = stand_at(&pup, SIGTSTP, 0);
	call(p, SYS_getpid, 0, 0, pup.pid);
	ends_stopped(&pup, p);

	/* While it runs the call, whatever it has blocked. */
	p = stand_at(&pup, 0, 0);
	call(p, SYS_kill, (uint64_t)pup.pid, SIGSTOP, 0);
	ends_stopped(&pup, p);

	p = stand_at(&pup, 0, 0);
	call(p, SYS_kill, (uint64_t)pup.pid, SIGSTOP, 0);
	kill(pup.pid, SIGCONT);
	call(p, SYS_getpid, 0, 0, pup.pid);
	ends_running(&pup, p);
}

/* One that is held, one that waits behind it. */
static void test_queue(int sig)
{
	struct puppet pup;
	struct tproc *p = stand_at(&pup, sig, 1);
	send_value(pup.pid, sig, 2);
	call(p, SYS_getpid, 0, 0, pup.pid);
	go_on(p);
	check_int(puppet_do(&pup, seen, -1, 0), 2);
	check_int(puppet_do(&pup, seen, 0, 0), 1);
	check_int(puppet_do(&pup, seen, 1, 0), 2);
	puppet_end(&pup);
}

int main(void)
{
	struct smco_err err = {0};
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	test_stops();
	test_queue(SIGUSR1);
	test_queue(SIGRTMIN);
	tracer_destroy(tr);
	return tap_done();
}
