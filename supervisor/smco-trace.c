/*
 * smco-trace.c - start, signals, exit status; nothing else.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/select.h"
#include "reports/summary.h"
#include "supervisor/events-page.h"
#include "supervisor/options.h"
#include "supervisor/own-stack.h"
#include "supervisor/session.h"
#include "supervisor/status.h"

#define MMAP_BYTES (128 << 10)

static struct session *session; /* for the signal handlers */
/* There may be no session yet, and then there is nothing to leave. */
static volatile sig_atomic_t is_starting;

static void on_signal(int sig)
{
	int saved = errno;
	if (session) {
		session_interrupt(session, sig);
	} else if (is_starting) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	errno = saved;
}

/* By a terminal, to all of our process group. */
static const int stop_signals[] = {SIGTSTP, SIGTTIN, SIGTTOU};

static void on_stop_of_job(int sig)
{
	int saved = errno;
	if (session)
		session_suspend(session);
	(void)sig;
	errno = saved;
}

/* What we have attached to would stand with us, at its next signal at the
 * latest. */
static void on_stop_of_us(int sig)
{
	static const char why[] =
		"smco-trace: not suspended: the program would stand still as "
		"well (^C leaves it)\n";
	int saved = errno;
	if (sig == SIGTSTP && write(STDERR_FILENO, why, sizeof(why) - 1) < 0) {
		/* nobody to tell */
	}
	errno = saved;
}

static void catch_unless_ignored(int sig, const struct sigaction *sa)
{
	struct sigaction old;
	/* nohup: what was ignored stays ignored */
	if (sigaction(sig, NULL, &old) || old.sa_handler != SIG_IGN)
		sigaction(sig, sa, NULL);
}

static void catch_signals(bool is_command)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction sa = {.sa_handler = on_signal};
	struct sigaction stop = {.sa_handler = is_command ? on_stop_of_job
							  : on_stop_of_us};
	sigemptyset(&sa.sa_mask);
	sigemptyset(&stop.sa_mask);
	sigaddset(&stop.sa_mask, SIGTTOU); /* it writes */
	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		catch_unless_ignored(sigs[i], &sa);
	for (size_t i = 0; i < ARRAY_SIZE(stop_signals); i++)
		catch_unless_ignored(stop_signals[i], &stop);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/* Nobody stands for us any more. */
static void may_be_suspended(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(stop_signals); i++) {
		struct sigaction now;
		if (!sigaction(stop_signals[i], NULL, &now) &&
		    now.sa_handler != SIG_IGN)
			signal(stop_signals[i], SIG_DFL);
	}
}

static int fail(const struct smco_err *err, int status)
{
	fprintf(stderr, "smco-trace: %s\n", err->msg);
	return status;
}

static int exit_status_of(const struct smco_err *err, bool is_command)
{
	if (is_command && err->code == SMCO_NOTFOUND)
		return EXIT_NOT_FOUND;
	if (is_command && err->code == SMCO_PERM && err->sys_errno == EACCES)
		return EXIT_NOT_EXECUTABLE;
	return EXIT_SMCO_FAILED;
}

static void print_summary(const struct options *o, const char *path)
{
	struct trace_reader *r;
	struct summary *sum;
	struct smco_err err = {0};
	const struct select sums = {.only_sums = true};
	if (trace_reader_open(path, &r, &err)) {
		fail(&err, 0);
		return;
	}
	const struct summary_input input = {.reader = r};
	if (!summary_load_files(&input, 1, &sums, &sum, &err)) {
		struct winsize ws;
		bool tty = isatty(STDERR_FILENO);
		struct summary_style style = {
			.color = options_use_color(o, getenv("NO_COLOR"), tty),
			.max_sites = o->verbose ? 0 : 10,
			.max_frames = o->verbose ? 0 : 8,
		};
		if (tty && !ioctl(STDERR_FILENO, TIOCGWINSZ, &ws))
			style.width = ws.ws_col;
		summary_print(sum, stderr, path, &style);
		summary_free(sum);
	} else {
		fail(&err, 0);
	}
	trace_reader_close(r);
}

/* End as the command ended: same status, or the same signal. */
static int end_like(int wait_status)
{
	if (!WIFSIGNALED(wait_status))
		return WEXITSTATUS(wait_status);
	int sig = WTERMSIG(wait_status);
	struct rlimit no_core = {0, 0};
	setrlimit(RLIMIT_CORE, &no_core);
	signal(sig, SIG_DFL);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

static int trace(const struct options *o)
{
	struct smco_err err = {0};
	struct session_result result = {.end = SESSION_DETACHED};
	struct status *line = NULL;

	/* Who is attached to is left in order from the first moment on. With a
	 * command not before it starts: exec would give it our ignored ones. */
	is_starting = !o->command;
	if (is_starting)
		catch_signals(false);
	int rc = session_create(o, &session, &err);
	is_starting = false;
	if (rc)
		return fail(&err, exit_status_of(&err, o->command != NULL));
	if (o->command)
		catch_signals(true);
	rc = status_create(STDERR_FILENO, o->quiet, &line, &err);
	if (!rc)
		rc = session_run(session, line, &result, &err);
	status_destroy(line);
	may_be_suspended();
	int status =
		o->command && result.end == SESSION_ENDED ? -1 : EXIT_SUCCESS;
	if (rc)
		fail(&err, 0);
	if (result.warning)
		fprintf(stderr, "smco-trace: %s\n", result.warning);
	if (!o->quiet && result.trace_path)
		print_summary(o, result.trace_path);
	struct session *s = session;
	session = NULL;
	session_destroy(s);
	if (status == -1)
		return end_like(result.wait_status);
	return rc ? EXIT_SMCO_FAILED : status;
}

/* What was asked for is on standard output, or it is an error. */
static int said(void)
{
	if (!ferror(stdout) && fflush(stdout) == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "smco-trace: standard output: %s\n", strerror(errno));
	return EXIT_SMCO_FAILED;
}

static int say(const char *text)
{
	fputs(text, stdout);
	return said();
}

static int list_events(const char *glob)
{
	if (events_print(stdout, glob))
		return said();
	fprintf(stderr, "smco-trace: no event matches '%s'\n", glob);
	return EXIT_SMCO_FAILED;
}

static int run(int argc, char **argv)
{
	struct options o;
	struct smco_err err = {0};

	/* The tables of all blocks are large and grow: by mapping more, not by
	 * copying and leaving holes. The default rises with what is freed. */
	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	if (options_parse(argc, argv, &o, &err)) {
		fail(&err, 0);
		fputs("Try 'smco-trace --help'.\n", stderr);
		return EXIT_SMCO_FAILED;
	}
	if (o.action == ACTION_HELP)
		return say(options_help());
	if (o.action == ACTION_VERSION)
		return say("smco-trace " SMCO_VERSION "\n");
	if (o.action == ACTION_LIST_EVENTS)
		return list_events(o.glob);
	int status = trace(&o);
	options_deinit(&o);
	return status;
}

int main(int argc, char **argv)
{
	return own_stack_call(run, argc, argv);
}
