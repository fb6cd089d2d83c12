#include "reports/procfs.h"
#include "supervisor/meter.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/kept.h"
#include "supervisor/probe/stopclock.h"
#include "supervisor/probe/wakecost.h"

#define DELAY_INTERVAL_NS (100 * NSEC_PER_MSEC)
#define DELAY_MAX_TASKS	  32
#define MAX_SURVIVORS	  8 /* 0.5 us each */
/* Of a stop that nobody saw the end of; most are shorter. */
#define UNSEEN_STOP_NS (100 * NSEC_PER_USEC)

static struct stopclock *stopclock; /* NULL = not to be had */
static struct wakecost wakecost;

static bool is_measured; /* by this process */

static void measure_wakecost(struct wakecost *ret)
{
	if (wakecost_measure(ret))
		kept_add(KEPT_WAKE, (const uint64_t[KEPT_FIGURES]){
					    ret->wake_ns, ret->cold_ns});
	is_measured = true;
	smco_debug("meter", "measured: what it costs to wake up");
}

static void know_wakecost(void)
{
	uint64_t v[KEPT_FIGURES];
	is_measured = false;
	if (kept_get(KEPT_WAKE, v) || kept_latest(KEPT_WAKE, v))
		wakecost = (struct wakecost){v[0], v[1]};
	else
		measure_wakecost(&wakecost);
}

/* It takes 25 ms, for which no program stands now. */
static void measure_for_the_next(void)
{
	struct wakecost now;
	if (stopclock && !is_measured && kept_wants(KEPT_WAKE))
		measure_wakecost(&now);
}

static struct loading {
	pthread_t thread;
	bool is_running, is_done;
	struct stopclock *clock; /* NULL: err says why */
	struct smco_err err;
} loading;

static void *load(void *arg)
{
	(void)arg;
	stopclock_load(&loading.clock, &loading.err);
	return NULL;
}

void meter_load(void)
{
	sigset_t all, before;
	/* Signals are the other threads' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	loading = (struct loading){.clock = NULL};
	loading.is_running = !pthread_create(&loading.thread, NULL, load, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void meter_loaded(void)
{
	if (!loading.is_running)
		return;
	pthread_join(loading.thread, NULL);
	loading.is_running = false;
	loading.is_done = true;
}

static int open_clock(struct smco_err *err)
{
	meter_loaded();
	if (!loading.is_done)
		return stopclock_open(&stopclock, err);
	struct stopclock *c = loading.clock;
	int rc = c ? stopclock_begin(c, err) : loading.err.code;
	*err = c ? *err : loading.err;
	stopclock = rc ? NULL : c;
	loading = (struct loading){.clock = NULL};
	return rc;
}

void meter_prepare(void)
{
	struct smco_err err = {0};
	if (open_clock(&err)) {
		smco_debug("meter", "%s", err.msg);
		return;
	}
	know_wakecost();
	smco_debug("meter",
		   "to wake up costs %" PRIu64 " ns, to stay %" PRIu64 " more",
		   wakecost.wake_ns, wakecost.cold_ns);
}

void meter_unprepare(void)
{
	meter_loaded();
	measure_for_the_next();
	stopclock_close(stopclock);
	stopclock_close(loading.clock); /* nobody began it */
	stopclock = NULL;
	loading.clock = NULL;
}

/* Time the program spent in stops so far, and waiting for us. */
static uint64_t read_clock(struct meter *m)
{
	m->has_clock = stopclock && !stopclock_read(stopclock, &m->clock);
	if (m->has_clock)
		return m->clock.stop_ns + m->clock.nr_unseen * UNSEEN_STOP_NS;
	return tracer_stop_ns(m->tracer) +
	       tracer_nr_stops(m->tracer) * tracer_stop_cost_ns(m->tracer);
}

void meter_init(struct meter *m, struct ledger *l, struct tracer *tr)
{
	*m = (struct meter){
		.ledger = l,
		.tracer = tr,
	};
	if (stopclock) {
		tracer_tell_lent(tr, stopclock_lending(stopclock));
		tracer_tell_where(tr, stopclock_where, stopclock);
		stopclock_set_own(stopclock, tracer_stop_own_ns(tr));
	}
	m->stop_ns = read_clock(m);
	m->displaced_ns = m->clock.displaced_ns;
	m->nr_displaced = m->clock.nr_displaced;
	meter_waits(m);
	meter_stood(m);
	m->strange_ns = m->clock.strange_ns;
	m->share_ns = smco_now_ns();
	m->delay_own_cpu_ns = smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Growth of an account since the last reading; none if it was corrected
 * downwards. */
static uint64_t growth(uint64_t now, uint64_t *last)
{
	uint64_t d = now > *last ? now - *last : 0;
	*last = now;
	return d;
}

int meter_idle_cpu(struct meter *m, const cpu_set_t *may)
{
	if (!stopclock || stopclock_read(stopclock, &m->clock))
		return -1;
	return stopclock_idle_cpu(stopclock, sched_getcpu(), may);
}

int meter_computes(const struct meter *m, pid_t tid)
{
	if (!stopclock || !m->has_clock)
		return -1;
	return stopclock_computes(stopclock, sched_getcpu(), tid);
}

void meter_get_stops(const struct meter *m, uint64_t *nr, uint64_t *longest_ns)
{
	*nr = tracer_nr_stops(m->tracer);
	*longest_ns = tracer_longest_stop_ns(m->tracer);
	if (!m->has_clock)
		return;
	*nr = m->clock.nr_stops;
	/* The kernel sees the stops' true ends, but waits for others in none,
	 * and perhaps one that a thread was lent from as several. */
	if (m->clock.longest_ns > *longest_ns)
		*longest_ns = m->clock.longest_ns;
}

const char *meter_longest_was(const struct meter *m)
{
	/* Most of it was before the tracer saw it: of what the tracer calls its
	 * longest it knows what it was for, but that was another one. */
	if (m->has_clock &&
	    m->clock.longest_ns / 2 > tracer_longest_stop_ns(m->tracer))
		return "which smco-trace saw late";
	return tracer_longest_was(m->tracer);
}

uint64_t meter_stops(struct meter *m)
{
	uint64_t p = growth(read_clock(m), &m->stop_ns);
	ledger_charge(m->ledger, LEDGER_STOP, NAP_MONITOR, p);
	return p;
}

static uint64_t side_delta(const struct access *a, uint64_t *last)
{
	return a ? growth(a->ops->side_cost_ns(a), last) : 0;
}

uint64_t meter_process(struct meter *m, struct watched *w)
{
	if (w->hooks) {
		struct hooks_stats st;
		hooks_get_stats(w->hooks, &st);
		ledger_charge(m->ledger, LEDGER_AGENT, NAP_MONITOR,
			      growth(st.agent_ns, &w->agent_ns));
	}
	ledger_charge(m->ledger, LEDGER_ARM, NAP_MONITOR,
		      side_delta(w->primary, &w->side_ns) +
			      side_delta(w->guard, &w->guard_side_ns));
	uint64_t cpu_ns = tproc_cpu_ns(w->proc);
	return cpu_ns ? growth(cpu_ns, &w->cpu_ns) : 0; /* 0: it has ended */
}

void meter_ended(struct meter *m, struct watched *w, uint64_t cpu_ns)
{
	if (cpu_ns)
		m->ended_ns += growth(cpu_ns, &w->cpu_ns);
}

void meter_survivors(struct meter *m, struct watched *const *ws, size_t nr)
{
	for (size_t i = 0; i < nr && i < MAX_SURVIVORS; i++)
		meter_ended(m, ws[i], tproc_cpu_ns(ws[i]->proc));
}

uint64_t meter_last_words(struct meter *m)
{
	uint64_t ns = m->ended_ns;
	m->ended_ns = 0;
	return ns;
}

int64_t meter_waits(struct meter *m)
{
	int64_t now = m->clock.waited_ns - (int64_t)m->clock.displaced_ns;
	int64_t ns = now - m->waited_ns;
	m->waited_ns = now;
	return ns;
}

uint64_t meter_stood(struct meter *m)
{
	return growth(tracer_stood_ns(m->tracer), &m->stood_ns);
}

void meter_share(struct meter *m, uint64_t now_ns, uint64_t run_ns,
		 int64_t wait_ns)
{
	uint64_t wall_ns = growth(now_ns, &m->share_ns);
	share_learn(&m->share, wall_ns, run_ns, wait_ns,
		    growth(m->clock.strange_ns, &m->strange_ns));
}

/* Second number of /proc/PID/task/TID/schedstat: time spent runnable but not
 * running, ns. Summed over the first tasks of a process. */
static uint64_t run_delay_ns(pid_t pid)
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), pid, "task");
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	uint64_t sum = 0;
	unsigned nr = 0;
	struct dirent *e;
	while ((e = readdir(dir)) && nr < DELAY_MAX_TASKS) {
		char buf[128], file[300];
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/schedstat", e->d_name);
		_cleanup_close_ int fd =
			openat(dirfd(dir), file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ssize_t n = read(fd, buf, sizeof(buf) - 1);
		if (n <= 0)
			continue;
		buf[n] = '\0';
		char *end;
		strtoull(buf, &end, 10);
		sum += strtoull(end, NULL, 10);
		nr++;
	}
	closedir(dir);
	return sum;
}

uint64_t meter_cpu(struct meter *m, struct watched *const *ws, size_t nr,
		   uint64_t now_ns)
{
	if (m->has_clock) {
		uint64_t ns = growth(m->clock.displaced_ns, &m->displaced_ns);
		uint64_t times =
			growth(m->clock.nr_displaced, &m->nr_displaced);
		ns = wakecost_displaced(ns, times, &wakecost);
		m->taken_ns += ns;
		ns = share_of(&m->share, ns);
		ledger_charge(m->ledger, LEDGER_CPU, NAP_MONITOR, ns);
		return ns;
	}
	if (now_ns - m->delay_read_ns < DELAY_INTERVAL_NS)
		return 0;
	bool first = !m->delay_read_ns;
	m->delay_read_ns = now_ns;
	uint64_t delay = 0;
	for (size_t i = 0; i < nr; i++)
		delay += run_delay_ns(ws[i]->pid);
	uint64_t cpu = smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t used = cpu - m->delay_own_cpu_ns;
	uint64_t waited = delay > m->delay_ns ? delay - m->delay_ns : 0;
	m->delay_ns = delay;
	m->delay_own_cpu_ns = cpu;
	if (first)
		return 0;
	uint64_t ns = used < waited ? used : waited;
	m->taken_ns += ns;
	ledger_charge(m->ledger, LEDGER_CPU, NAP_MONITOR, ns);
	return ns;
}
