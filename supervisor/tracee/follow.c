/*
 * The event loop runs on the CPU of the task it serves: there a stop is two
 * context switches, elsewhere it wakes an idle CPU twice, ten to twenty times
 * dearer. But a supervisor that computes on the tracee's CPU takes its time,
 * so it goes there only while stops are frequent and leaves as soon as they
 * are not.
 *
 * While another CPU is idle, the scheduler takes a task that goes on where we
 * are to that one: it goes to and fro, a stop is as dear as from elsewhere, and
 * what it costs the program's caches and TLBs comes on top.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"

/* The rate is taken over windows of this length. */
#define WINDOW_NS (20 * NSEC_PER_MSEC)
/* Stops a second from which to follow, and below which to leave. */
#define FOLLOW_RATE 500
#define LEAVE_RATE  200
/* How often to look where the tracee runs: it costs a read of its memory, or
 * of /proc where there is no rseq area. */
#define LOOK_RSEQ_NS NSEC_PER_MSEC
#define LOOK_PROC_NS (10 * NSEC_PER_MSEC)

#define LOOK_IDLE_NS NSEC_PER_MSEC

/* Offset of cpu_id_start in struct rseq: the CPU at the last return to user
 * mode. */
#define RSEQ_CPU_OFFSET 0
#define RSEQ_NOT_ASKED	1

static bool stay_on(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

static void leave(struct tracer *tr)
{
	struct follow *f = &tr->follow;
	if (!f->pinned)
		return;
	f->pinned = false;
	f->cpu = -1;
	sched_setaffinity(0, sizeof(tr->own_cpus), &tr->own_cpus);
}

void tracer_follow_cpu(struct tracer *tr, bool on)
{
	tr->follow.on = on;
	if (!on)
		leave(tr);
}

int task_get_rseq(struct task *t, taddr_t *start_ret, uint64_t *len_ret)
{
	struct __ptrace_rseq_configuration conf = {0};
	*len_ret = 0;
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(conf), &conf) <
	    0)
		return errno == ESRCH ? SMCO_GONE : SMCO_UNSUPPORTED;
	*start_ret = conf.rseq_abi_pointer;
	*len_ret = conf.rseq_abi_pointer ? conf.rseq_abi_size : 0;
	return 0;
}

static int cpu_by_rseq(struct task *t)
{
	if (t->rseq == RSEQ_NOT_ASKED) {
		struct __ptrace_rseq_configuration conf = {0};
		if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(conf),
			   &conf) < 0)
			return -1;
		/* 0 before libc registers it; asked again then. */
		if (conf.rseq_abi_pointer)
			t->rseq = conf.rseq_abi_pointer;
		else
			return -1;
	}
	uint32_t cpu;
	if (tmem_read(t->proc, t->rseq + RSEQ_CPU_OFFSET, &cpu, sizeof(cpu)) <
	    0)
		return -1;
	return cpu < CPU_SETSIZE ? (int)cpu : -1;
}

/* Fields 39 to 41 of the stat at @path; *plain_ret: it is scheduled like
 * everybody, not in real time or by a deadline. */
static int cpu_by_stat(const char *path, bool *plain_ret)
{
	char buf[1024];
	int cpu, priority, policy;
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return -1;
	const char *s = proc_stat_field(buf, 39);
	if (!s || sscanf(s, "%d %d %d", &cpu, &priority, &policy) != 3)
		return -1;
	*plain_ret = !priority && policy != SCHED_DEADLINE;
	return cpu;
}

static int cpu_by_proc(const struct task *t, bool *plain_ret)
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), t->tgid, "task/%d/stat", t->tid);
	return cpu_by_stat(path, plain_ret);
}

int task_cpu(const struct task *t)
{
	bool is_plain;
	int cpu = cpu_by_proc(t, &is_plain);
	return cpu >= 0 && is_plain ? cpu : -1;
}

int thread_cpu(pid_t tid)
{
	char path[PROCFS_PATH];
	bool is_plain;
	procfs_path(path, sizeof(path), tid, "stat");
	int cpu = cpu_by_stat(path, &is_plain);
	return cpu >= 0 && is_plain ? cpu : -1;
}

void tracer_tell_where(struct tracer *tr,
		       int (*where)(const void *ctx, pid_t tid),
		       const void *ctx)
{
	tr->where = where;
	tr->where_ctx = ctx;
}

/* Reading its memory makes the kernel take the page for one in use: it goes to
 * another of its lists, and who has that CPU next does it. */
static int where_it_stopped(struct task *t)
{
	const struct tracer *tr = t->tr;
	int cpu = tr->where ? tr->where(tr->where_ctx, t->tid) : -1;
	return cpu < 0 ? cpu_by_rseq(t) : cpu;
}

static void look(struct tracer *tr, struct task *t)
{
	struct follow *f = &tr->follow;
	uint64_t since = tr->now_ns - f->looked_ns;
	bool is_plain;

	if (f->pinned && since < LOOK_RSEQ_NS)
		return;
	int cpu = where_it_stopped(t);
	if (cpu < 0) {
		if (f->pinned && since < LOOK_PROC_NS)
			return;
		cpu = cpu_by_proc(t, &is_plain);
	}
	f->looked_ns = tr->now_ns;
	if (cpu < 0 || (f->pinned && cpu == f->cpu) ||
	    !CPU_ISSET((unsigned)cpu, &tr->own_cpus))
		return;
	if (stay_on(cpu)) {
		f->pinned = true;
		f->cpu = cpu;
	}
}

/* Of all tasks so many are running or about to: "0.10 0.20 0.30 NR/ALL LAST".
 */
static bool has_idle_cpu(struct tracer *tr)
{
	struct spare *s = &tr->follow.spare;
	char buf[128];
	uint64_t nr_running;
	if (tr->now_ns - s->looked_ns >= LOOK_IDLE_NS &&
	    smco_slurp("/proc/loadavg", buf, sizeof(buf)) > 0 &&
	    sscanf(buf, "%*f %*f %*f %" SCNu64 "/", &nr_running) == 1)
		spare_look(s, tr->now_ns, nr_running, (uint64_t)tr->nr_cpus);
	return s->looked_ns && spare_is_there(s, tr->now_ns);
}

/* To one of @set, and not to stay there. */
static bool go_to(const struct tracer *tr, const cpu_set_t *set)
{
	bool went = !sched_setaffinity(0, sizeof(*set), set);
	sched_setaffinity(0, sizeof(tr->own_cpus), &tr->own_cpus);
	return went;
}

static bool go_off(const struct tracer *tr, int cpu)
{
	cpu_set_t set = tr->own_cpus;
	CPU_CLR((unsigned)cpu, &set);
	return CPU_COUNT(&set) && go_to(tr, &set);
}

/* Where interrupts that end its sleeps bring @t back to this CPU, it would be
 * taken away at each stop. */
static void stay_off(struct tracer *tr, struct task *t)
{
	struct follow *f = &tr->follow;
	leave(tr);
	f->looked_ns = tr->now_ns;
	int cpu = where_it_stopped(t);
	if (cpu >= 0 && cpu == sched_getcpu())
		go_off(tr, cpu);
}

static void go_after(struct tracer *tr, struct task *t)
{
	if (tr->opts.leaves_cpus && has_idle_cpu(tr))
		stay_off(tr, t);
	else
		look(tr, t);
}

void follow_stop(struct task *t)
{
	if (!t || !t->proc || t->state != TASK_STOPPED)
		return;
	/* What its memory says is where its creator was, or nothing yet. */
	bool knows_cpu = !t->is_new && task_kind(t) != STOP_EXEC;
	struct tracer *tr = t->tr;
	struct follow *f = &tr->follow;
	if (!f->on || tr->nr_cpus < 2)
		return;

	f->window_stops++;
	uint64_t dur = tr->now_ns - f->window_ns;
	if (dur < WINDOW_NS) {
		/* Enough already? Then not only in the next window. */
		if (knows_cpu && (f->pinned || f->window_stops * NSEC_PER_SEC >=
						       FOLLOW_RATE * WINDOW_NS))
			go_after(tr, t);
		return;
	}
	uint64_t rate = f->window_stops * NSEC_PER_SEC / dur;
	f->window_ns = tr->now_ns;
	f->window_stops = 0;
	if (rate >= FOLLOW_RATE && knows_cpu)
		go_after(tr, t);
	else if (rate < LEAVE_RATE)
		leave(tr);
}

void follow_rest(struct tracer *tr)
{
	struct follow *f = &tr->follow;
	if (!f->pinned)
		return;
	uint64_t dur = smco_now_ns() - f->window_ns;
	if (dur >= WINDOW_NS &&
	    f->window_stops * NSEC_PER_SEC / dur < LEAVE_RATE)
		leave(tr);
}

/*
 * In real time this thread wakes up where it slept, be the others idle. It is
 * where the program runs since that woke up there, after a stop, and goes when
 * that has cost something.
 */
void tracer_step_aside(struct tracer *tr, uint64_t waited_ns)
{
	struct follow *f = &tr->follow;
	int cpu = sched_getcpu();
	bool is_better = aside_is_better(&f->aside, smco_now_ns(), waited_ns);
	if (f->pinned || cpu < 0 || !is_better)
		return;
	if (!go_off(tr, cpu))
		return;
	/* It may have waited there for its turn, and for long. */
	aside_went(&f->aside, smco_now_ns());
}

bool tracer_go_aside(struct tracer *tr, int cpu)
{
	cpu_set_t set;
	if (tr->follow.pinned || cpu < 0)
		return false;
	if (cpu == sched_getcpu())
		return true;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return go_to(tr, &set);
}

const cpu_set_t *tracer_cpus(const struct tracer *tr)
{
	return &tr->own_cpus;
}

bool follow_visit(struct tracer *tr, int cpu)
{
	return cpu >= 0 && cpu < CPU_SETSIZE &&
	       CPU_ISSET((unsigned)cpu, &tr->own_cpus) && stay_on(cpu);
}

void follow_return(struct tracer *tr)
{
	if (tr->follow.pinned)
		stay_on(tr->follow.cpu);
	else
		sched_setaffinity(0, sizeof(tr->own_cpus), &tr->own_cpus);
}

void follow_end(struct tracer *tr)
{
	leave(tr);
}
