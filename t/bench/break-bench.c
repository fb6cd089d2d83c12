/*
 * What a breakpoint event costs a program, eight values read from memory in it,
 * beside a stop by ptrace: a signal that it ignores, told to a tracer on the
 * same CPU, and handed on. Both by the program's clock, with all that it waits
 * for.
 * Prints a line; asserts nothing. Usage: break-bench [ROUNDS]
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "supervisor/probe/watch.h"
#include "t/unit/hog.h"
#include "t/unit/traced.h"

#define PASSES 5000

static struct tracer *tr;
static struct watchpoints *ws;
static struct puppet pup;
static struct tproc *proc;

static volatile int64_t word[WATCH_FIELDS];

void come_by(volatile int64_t *at);
extern const uint8_t come_by_site[];
__asm__(".text\n"
	"come_by: mov (%rdi), %rax\n"
	"come_by_site: inc %rax\n"
	"ret\n");

static long act_pass(long passes, long unused)
{
	uint64_t start_ns = smco_now_ns();
	(void)unused;
	for (long i = 0; i < passes; i++)
		come_by(word);
	return (long)(smco_now_ns() - start_ns);
}

/* Signals that it ignores, to itself; what each takes, us. */
static double raise_us(int signo)
{
	pid_t pid = getpid();
	signal(SIGUSR1, SIG_IGN);
	uint64_t start_ns = smco_now_ns();
	for (long i = 0; i < PASSES; i++)
		kill(pid, signo);
	return (double)(smco_now_ns() - start_ns) / 1e3 / PASSES;
}

/* Waited for and let go, on the same CPU, and nothing else. */
static double stop_us(void)
{
	double *us = mmap(NULL, sizeof(*us), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	if (us == MAP_FAILED)
		exit(1);
	pid_t pid = fork();
	if (!pid) {
		bind_to(sched_getcpu()); /* as its tracer is */
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		*us = raise_us(SIGUSR1) - raise_us(0);
		_exit(0);
	}
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, pid, NULL, (long)WSTOPSIG(status));
	double ret = *us;
	munmap(us, sizeof(*us));
	return ret;
}

static double pass_us(void)
{
	puppet_begin(&pup, act_pass, PASSES, 0);
	return (double)traced_wait(tr, &pup) / 1e3 / PASSES;
}

static double event_us(void)
{
	struct watch_what what = {.addr = (taddr_t)(uintptr_t)come_by_site,
				  .is_insn = true,
				  .nr_fields = WATCH_FIELDS};
	for (size_t i = 0; i < WATCH_FIELDS; i++)
		what.field[i] = (struct watch_field){
			.bits = 64,
			.is_signed = true,
			.source = WATCH_AT_REG,
			.reg = 7, /* rdi */
			.offset = (int64_t)(i * sizeof(word[0])),
			.bytes = 8,
		};
	double without = pass_us();
	struct watchpoint *w = NULL;
	if (watchpoint_arm(&w, ws, proc, &what, INT64_MAX, NULL))
		exit(1);
	double with = pass_us();
	uint64_t hits = watchpoint_hits(w);
	int64_t lo, hi;
	for (size_t i = 0; i < WATCH_FIELDS; i++)
		if (!watchpoint_read(w, i, &lo, &hi))
			hits = 0;
	watchpoint_disarm(w);
	if (hits != PASSES)
		exit(1);
	return with - without;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	size_t nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 11;
	double *event = calloc(2 * nr + 2, sizeof(*event));
	double *stop = event ? event + nr + 1 : NULL;
	struct smco_err err = {0};
	const struct tracer_options opts = {.follow = true};
	if (!event || watchpoints_open(&ws, &err) ||
	    tracer_create(&tr, &opts, &err)) {
		fprintf(stderr, "break-bench: %s\n", err.msg);
		return 1;
	}
	pup = puppet_start();
	proc = traced_attach(tr, pup.pid, &err);
	if (!proc) {
		fprintf(stderr, "break-bench: %s\n", err.msg);
		return 1;
	}
	tproc_resume_new(proc);
	bind_to(sched_getcpu());
	for (size_t i = 0; i < nr; i++) {
		event[i] = event_us();
		stop[i] = stop_us();
	}
	qsort(event, nr, sizeof(*event), by_value);
	qsort(stop, nr, sizeof(*stop), by_value);
	printf("a breakpoint event that reads %d values in memory %.1f us "
	       "(%.1f to %.1f), a ptrace stop %.1f us (%.1f to %.1f), median "
	       "(least "
	       "to most) of %zu\n",
	       WATCH_FIELDS, event[nr / 2], event[0], event[nr - 1],
	       stop[nr / 2], stop[0], stop[nr - 1], nr);
	tracer_destroy(tr);
	watchpoints_close(ws);
	puppet_end(&pup);
	free(event);
	return 0;
}
