/*
 * What calls in a program take while it stands: how often its thread is let go
 * to make them, and what is read meanwhile. What is read for a signal.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/probe/near.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define BYTES (16 * TPAGE_SIZE)

static uint64_t number_in(const char *path, const char *field)
{
	char buf[4096];
	smco_slurp(path, buf, sizeof(buf));
	char *at = strstr(buf, field);
	return at ? strtoull(at + strlen(field), NULL, 10) : 0;
}

/* Calls of read and its kin that we made. */
static uint64_t nr_reads(void)
{
	return number_in("/proc/self/io", "syscr:");
}

/* Times that it went off its CPU by itself: once for each stop. */
static uint64_t nr_stops(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return number_in(path, "\nvoluntary_ctxt_switches:");
}

static uint64_t reads_of_call(struct tproc *p)
{
	int64_t ret;
	uint64_t before = nr_reads();
	check_int(tproc_syscall(p, SYS_getpid, (uint64_t[6]){0}, &ret, NULL),
		  0);
	uint64_t between = nr_reads();
	/* Asking is a part of it, too. */
	return between - before - (nr_reads() - between);
}

#define NR_SIGNALS 20

struct seen {
	unsigned handled, ignored_at;
};
static volatile struct seen *seen;

static void on_signal(int sig)
{
	(void)sig;
	seen->handled++;
}

static void compute(void)
{
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, SIG_IGN);
	for (;;)
		seen->ignored_at++;
}

/* Who computes has @sig: what we read for that. */
static uint64_t reads_of_signal(struct tracer *tr, pid_t pid, int sig)
{
	struct tevent ev;
	unsigned handled = seen->handled;
	uint64_t before = nr_reads();
	uint64_t deadline = smco_now_ns() + 120 * NSEC_PER_SEC;
	kill(pid, sig);
	if (sig != SIGUSR1)
		tracer_next(tr, smco_now_ns() + 20 * NSEC_PER_MSEC, &ev);
	while (sig == SIGUSR1 && seen->handled == handled &&
	       smco_now_ns() < deadline)
		tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev);
	uint64_t between = nr_reads();
	return between - before - (nr_reads() - between);
}

/* A scheduler in the program sends signals all the time to those who compute;
 * whether they are handled need not be known, for they end no wait. */
static void test_signals(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	uint64_t handled = 0, ignored = 0;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();
	if (pid == 0)
		compute();
	while (!seen->ignored_at)
		usleep(1000);
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_must_attach(tr, pid);
	tproc_resume_new(p);
	for (int i = 0; i < NR_SIGNALS; i++) {
		handled += reads_of_signal(tr, pid, SIGUSR1);
		ignored += reads_of_signal(tr, pid, SIGUSR2);
	}
	check_int(handled, 0);
	check_int(ignored, 0);
	check_int(seen->handled, NR_SIGNALS);
	unsigned at = seen->ignored_at;
	uint64_t end_ns = smco_now_ns() + 60 * NSEC_PER_SEC;
	while (seen->ignored_at == at && smco_now_ns() < end_ns)
		usleep(1000);
	check(seen->ignored_at != at);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	struct puppet pup = puppet_start();
	taddr_t base = 0;

	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return tap_done();
	const struct tmaps *maps;
	check_int(tproc_get_maps(p, &maps, &err), 0);
	taddr_t start = maps->maps[0].start, end = maps->maps[0].end;
	/* The page for calls, its protection, the memory. */
	uint64_t stops = nr_stops(pup.pid);
	check_int(near_map(p, start, end, BYTES, &base, &err), 0);
	check_int(nr_stops(pup.pid) - stops, 3);
	/* No more than the result. */
	check_int(reads_of_call(p), 1);
	check_int(reads_of_call(p), 1);
	check_int(near_unmap(p, base, BYTES, &err), 0);
	tproc_resume_new(p);
	/* It may have a filter by now. */
	check_int(tproc_stop(p, &err), 0);
	check(reads_of_call(p) > 1);
	check_int(reads_of_call(p), 1);
	tproc_cont(p);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	test_signals();
	return tap_done();
}
