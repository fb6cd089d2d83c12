/*
 * System calls that a BPF program counts: of each thread that it was told of,
 * of no others, in their classes, while they are counted; and what the
 * counters' monitor tells of them, whoever writes that down, from an exec on
 * and but for pauses.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/counters-private.h"
#include "supervisor/probe/tally.h"
#include "t/unit/kept.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

#define IO	pmu_call_class(SYS_read)
#define PROCESS pmu_call_class(SYS_getppid)
#define OTHER	(PMU_CALL_CLASSES - 1)
#define NOBODYS 5000 /* no number of a call's */

#define I386	     (PMU_CALL_CLASSES + 2) /* a column */
#define I386_GETPPID 64

static long calls(long nr, long call)
{
	for (long i = 0; i < nr; i++)
		syscall(call, -1, NULL, 0);
	return 0;
}

/* Calls as a program of 32 bits makes them. */
static long calls_32(long nr, long call)
{
	for (long i = 0; i < nr; i++) {
		long ret = call;
		__asm__ volatile("int $0x80" : "+a"(ret)::"memory", "cc");
	}
	return 0;
}

/* ---------------------------------------------------------- the program --- */

static struct tally *open_tally(struct smco_err *err)
{
	struct tally_columns columns;
	struct tally *t = NULL;
	for (long i = 0; i <= TALLY_CALLS; i++) {
		columns.of[0][i] = (uint8_t)pmu_call_class(i);
		columns.of[1][i] = i == I386_GETPPID ? I386 : OTHER;
	}
	if (tally_open(&t, err) || tally_set_columns(t, &columns, err))
		return NULL;
	return t;
}

/* The thread's counts since the last call of this. */
static struct tally_counts since(struct tally *t, int place,
				 struct tally_counts *last)
{
	struct tally_counts now = tally_read(t, place), ret;
	for (size_t i = 0; i < TALLY_COLUMNS; i++)
		ret.nr[i] = now.nr[i] - last->nr[i];
	*last = now;
	return ret;
}

static uint64_t sum_of(const struct tally_counts *c)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < TALLY_COLUMNS; i++)
		sum += c->nr[i];
	return sum;
}

static void test_classes(struct tally *t)
{
	struct tally_counts last = {0}, c;
	int place = tally_add(t, gettid());
	check(place >= 0);
	check(tally_is_on(t));
	tally_end(t);
	check(!tally_is_on(t));
	since(t, place, &last);
	calls(10, SYS_getppid);
	c = since(t, place, &last);
	check_int(sum_of(&c), 0);
	check_int(tally_begin(t, NULL), 0);
	check_int(tally_begin(t, NULL), 0);
	since(t, place, &last);
	calls(1000, SYS_getppid);
	calls(300, SYS_write);
	calls(20, SYS_getrandom);
	calls(7, NOBODYS);
	calls(3, TALLY_CALLS);
	calls(2, -7);
	calls_32(40, I386_GETPPID);
	calls_32(2, NOBODYS);
	c = since(t, place, &last);
	check_int(c.nr[I386], 40);
	check_int(c.nr[PROCESS], 1000);
	check_int(c.nr[IO], 300);
	check_int(c.nr[OTHER], 20 + 7 + 3 + 2 + 2);
	check_int(sum_of(&c), 1374);
	tally_end(t);
	since(t, place, &last);
	calls(10, SYS_getppid);
	c = since(t, place, &last);
	check_int(sum_of(&c), 0);
	tally_remove(t, gettid(), place);
	check_int(tally_add(t, gettid()), place);
	last = tally_read(t, place);
	check_int(sum_of(&last), 0);
	tally_remove(t, gettid(), place);
}

/* One whose first calls, which are no order's, are over. */
static struct puppet begun(void)
{
	struct puppet p = puppet_start();
	kept_let_sleep(p.pid);
	return p;
}

/* Who is counted, and who is not; each by itself. */
static void test_threads(struct tally *t)
{
	struct puppet p[3] = {begun(), begun(), begun()};
	struct tally_counts last[2] = {0}, c;
	int place[2];
	check_int(tally_begin(t, NULL), 0);
	for (size_t i = 0; i < 2; i++)
		place[i] = tally_add(t, p[i].pid);
	check(place[0] != place[1]);
	for (size_t i = 0; i < 3; i++)
		puppet_begin(&p[i], calls, 10000 * ((long)i + 1), SYS_getppid);
	for (size_t i = 0; i < 3; i++)
		puppet_wait(&p[i]);
	for (size_t i = 0; i < 2; i++) {
		while (puppet_state(p[i].pid) != 'S')
			;
		c = since(t, place[i], &last[i]);
		check_int(c.nr[PROCESS], 10000 * (i + 1));
		check_int(sum_of(&c), 10000 * (i + 1) + 2); /* write, read */
		tally_remove(t, p[i].pid, place[i]);
	}
	puppet_do(&p[0], calls, 100, SYS_getppid);
	c = since(t, place[0], &last[0]);
	check_int(sum_of(&c), 0);
	for (size_t i = 0; i < 3; i++)
		puppet_end(&p[i]);
	tally_end(t);
}

/* Other tracepoints, with calls counted and without. */
static void test_tracepoints(struct tally *t)
{
	struct tally_counts last = {0}, c;
	check_int(tally_put(t, "no_such_one", NULL), SMCO_UNSUPPORTED);
	for (int i = 0; i < TALLY_HITS; i++)
		check_int(tally_put(t, i == 2 ? "sys_exit" : "sys_enter", NULL),
			  TALLY_CALL_COLUMNS + i);
	check_int(tally_put(t, "sys_exit", NULL), SMCO_UNSUPPORTED);
	calls(10, SYS_getppid);
	int place = tally_add(t, gettid());
	check(!tally_is_on(t));
	since(t, place, &last);
	calls(100, SYS_getppid);
	c = since(t, place, &last);
	check_int(sum_of(&c), TALLY_HITS * 100);
	for (int i = 0; i < TALLY_HITS; i++)
		check_int(c.nr[TALLY_CALL_COLUMNS + i], 100);
	check_int(tally_begin(t, NULL), 0);
	since(t, place, &last);
	calls(100, SYS_getppid);
	c = since(t, place, &last);
	check_int(c.nr[TALLY_CALL_COLUMNS + 2], 100);
	check_int(c.nr[PROCESS], 100);
	tally_end(t);
	tally_remove(t, gettid(), place);
}

/* ----------------------------------------------------------- the monitor ---
 */

#define EVENTS "task-clock,raw_syscalls:sys_enter,syscalls-io,syscalls-process"
static const char *const names[] = {"raw_syscalls:sys_enter", "syscalls-io",
				    "syscalls-process"};

static struct counters *c;
static struct ledger *l;
static uint64_t told[ARRAY_SIZE(names)], enabled_ns, missed_ns, nr_records;

static size_t group_of(const char *name, size_t *place_ret)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < counters_nr_shown(c, g); i++) {
			size_t nr = c->plan.group[g].first + i;
			*place_ret = i;
			if (!strcmp(c->plan.event[nr].name, name))
				return g;
		}
	return SIZE_MAX;
}

static void emit(void *ctx, const struct record *r)
{
	const struct ev_counts *ev = r->payload;
	size_t place;
	(void)ctx;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (group_of(names[i], &place) == r->param)
			told[i] += ev->value[place];
	if (group_of(names[0], &place) != r->param)
		return;
	enabled_ns += ev->enabled_ns;
	missed_ns += ev->missed_ns;
	nr_records++;
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx, (void)key, (void)value;
}

static void begin_events(const char *events, uint64_t interval_ns,
			 bool reads_all)
{
	const struct counters_params p = {
		.events = events,
		.interval_ns = interval_ns,
		.reads_all = reads_all,
		.target_overhead_ppb = INT64_MAX,
		.start_ns = smco_now_ns(),
		.emit = emit,
		.put_meta = put_meta,
	};
	memset(told, 0, sizeof(told));
	enabled_ns = missed_ns = nr_records = 0;
	l = ledger_create(INT64_MAX);
	check_int(counters_create(&p, l, &c, NULL), 0);
	check(c->tally != NULL);
}

static void begin(uint64_t interval_ns, bool reads_all)
{
	begin_events(EVENTS, interval_ns, reads_all);
}

static void end(void)
{
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
	ledger_destroy(l);
}

static void let_sleep(const struct puppet *p)
{
	kept_let_sleep(p->pid);
}

static void check_told(uint64_t io, uint64_t process)
{
	check_int(told[0], io + process);
	check_int(told[1], io);
	check_int(told[2], process);
}

/* Does this tell of calls that nobody has read? */
static bool tick_tells(void)
{
	uint64_t nr_readings = c->nr_readings, before = told[0];
	counters_tick(c, smco_now_ns());
	return c->nr_readings == nr_readings && told[0] > before;
}

/* As many as there were, whether threads are read or the kernel writes it
 * down; each event of them costs its group the same time. */
static void test_monitor(bool reads_all)
{
	struct puppet p = begun();
	int nr_unread = 0;
	begin(10 * NSEC_PER_MSEC, reads_all);
	counters_add(c, p.pid, p.pid, NULL, COUNTER_NOW);
	check_int(counters_jots_all(c), !reads_all);
	let_sleep(&p);
	for (int i = 0; i < 20; i++) {
		puppet_do(&p, calls, 2000, SYS_getppid);
		puppet_do(&p, calls, 1000, SYS_write);
		nr_unread += tick_tells();
		usleep(5000);
	}
	check_int(nr_unread > 0, !reads_all);
	let_sleep(&p);
	usleep(30000);
	c->due_ns = 0;
	counters_tick(c, smco_now_ns());
	/* All of it was in records of intervals. */
	check_told(20 * (1000 + 4), 20 * 2000);
	check(nr_records > 5);
	end();
	check_told(20 * (1000 + 4), 20 * 2000);
	check(enabled_ns > 0);
	check_int(missed_ns, 0);
	puppet_end(&p);
}

static void set_level(enum counter_level level)
{
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next)
			counter_thread_set_level(t->counters, level);
	c->level = level;
}

/* What is called in a pause is nobody's, also while it is still tallied. */
static void test_pauses(void)
{
	struct puppet p = begun();
	begin(NSEC_PER_SEC, true);
	counters_add(c, p.pid, p.pid, NULL, COUNTER_NOW);
	let_sleep(&p);
	puppet_do(&p, calls, 100, SYS_getppid);
	let_sleep(&p);
	for (int i = 0; i < 3; i++) {
		set_level(i == 1 ? COUNTER_NONE : COUNTER_CLOCKS);
		puppet_do(&p, calls, 1000, SYS_getppid);
		let_sleep(&p);
		check(counters_tally_at(c, COUNTER_CLOCKS));
		puppet_do(&p, calls, 1000, SYS_getppid);
		let_sleep(&p);
		check(counters_tally_at(c, COUNTER_ALL));
		puppet_do(&p, calls, 1000, SYS_getppid);
		let_sleep(&p);
		set_level(COUNTER_ALL);
		puppet_do(&p, calls, 10, SYS_getppid);
		let_sleep(&p);
	}
	set_level(COUNTER_CLOCKS);
	puppet_do(&p, calls, 1000, SYS_getppid);
	end();
	check_told(4 * 2, 100 + 3 * 10);
	check(missed_ns > 0);
	puppet_end(&p);
}

/* What comes before the exec is not the command's. */
static void test_exec(void)
{
	struct puppet p = begun();
	begin(NSEC_PER_SEC, true);
	counters_add(c, p.pid, p.pid, NULL, COUNTER_EXEC);
	let_sleep(&p);
	puppet_do(&p, calls, 1000, SYS_getppid);
	let_sleep(&p);
	struct thread *t = c->hash[(unsigned)p.pid % COUNTERS_HASH];
	counters_take_all(c, t);
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < c->plan.group[g].nr; i++)
			check_int(t->pending[g].sum.value[i], 0);
	counters_exec(c, p.pid, p.pid, NULL, smco_now_ns());
	puppet_do(&p, calls, 50, SYS_getppid);
	let_sleep(&p);
	/* No other exec begins anew. */
	counters_exec(c, p.pid, p.pid, NULL, smco_now_ns());
	puppet_do(&p, calls, 50, SYS_getppid);
	let_sleep(&p);
	end();
	check_told(4, 100);
	puppet_end(&p);
}

/* Packets to oneself. */
static long sends(long nr, long to)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	long sent = 0;
	(void)to;
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) ||
	    getsockname(fd, (struct sockaddr *)&a, &size))
		return 0;
	for (long i = 0; i < nr; i++)
		sent += sendto(fd, "x", 1, 0, (struct sockaddr *)&a, size) == 1;
	close(fd);
	return sent;
}

/* Rare tracepoints are counted by the same, with calls, which they pause
 * without; no thread has an event for them that it would pass on. */
static void test_hits(void)
{
	static const char name[] = "net:net_dev_queue";
	struct puppet p = begun();
	size_t place;
	if (!puppet_do(&p, sends, 1, 0)) {
		tap_skip("no packet can be sent to oneself");
		puppet_end(&p);
		return;
	}
	begin_events("task-clock,net:net_dev_queue,syscalls-network",
		     NSEC_PER_SEC, true);
	size_t g = group_of(name, &place);
	check(c->plan.event[c->plan.group[g].first + place].is_tallied);
	check(!c->plan.group[g].is_traced);
	check(!c->inherits);
	counters_add(c, p.pid, p.pid, NULL, COUNTER_NOW);
	let_sleep(&p);
	check_int(puppet_do(&p, sends, 100, 0), 100);
	let_sleep(&p);
	set_level(COUNTER_CLOCKS);
	check(counters_tally_at(c, COUNTER_CLOCKS));
	check_int(puppet_do(&p, sends, 30, 0), 30);
	let_sleep(&p);
	struct thread *t = c->hash[(unsigned)p.pid % COUNTERS_HASH];
	counters_take_all(c, t);
	check_int(t->pending[g].sum.value[place], 130);
	check_int(t->pending[g].sum.enabled_ns, t->pending[g].sum.running_ns);
	g = group_of("syscalls-network", &place);
	check_int(t->pending[g].sum.value[place], 100 + 3);
	check(t->pending[g].sum.enabled_ns > t->pending[g].sum.running_ns);
	/* By itself it is perf's: calls cost nothing then. */
	end();
	const struct counters_params one = {
		.events = name,
		.interval_ns = NSEC_PER_SEC,
		.start_ns = smco_now_ns(),
		.target_overhead_ppb = INT64_MAX,
		.emit = emit,
		.put_meta = put_meta,
	};
	l = ledger_create(INT64_MAX);
	check_int(counters_create(&one, l, &c, NULL), 0);
	check(!c->tally);
	check(!c->has_calls);
	end();
	puppet_end(&p);
}

/* What the kernel knows of a thread is told by the program as by /proc; and
 * counted of one from its birth on. */
static void test_past(void)
{
	struct puppet p = begun();
	struct past past;
	size_t place;
	begin_events("task-clock,context-switches,minor-faults,major-faults,"
		     "syscalls-io",
		     NSEC_PER_SEC, true);
	for (int i = 0; i < 50; i++)
		puppet_do(&p, calls, 1, SYS_getppid);
	let_sleep(&p);
	check(tally_past(c->tally, p.pid, &past));
	const struct kept_faults faults = kept_faults(p.pid);
	check(past.switches >= 50);
	check(past.minor_faults > 0);
	check(past.run_ns > 0);
	check_int(past.switches, kept_switches(p.pid));
	check_int(past.minor_faults, faults.minor);
	check_int(past.major_faults, faults.major);
	counters_add(c, p.pid, p.pid, NULL, COUNTER_BIRTH);
	struct thread *t = c->hash[(unsigned)p.pid % COUNTERS_HASH];
	counters_take_all(c, t);
	size_t g = group_of("context-switches", &place);
	check_int(t->pending[g].sum.value[place], past.switches);
	g = group_of("minor-faults", &place);
	check_int(t->pending[g].sum.value[place], past.minor_faults);
	g = group_of("task-clock", &place);
	check_int(t->pending[g].sum.value[place], past.run_ns);
	puppet_end(&p);
	check(!tally_past(c->tally, p.pid, &past));
	end();
}

static size_t nr_open(void)
{
	size_t nr = 0;
	for (int fd = 0; fd < 1000; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* What BPF counts needs no event of a thread's, but one that keeps the time of
 * calls. */
static void test_events(void)
{
	struct puppet p = begun();
	size_t place;
	begin_events("task-clock,minor-faults,net:net_dev_queue,"
		     "raw_syscalls:sys_enter,syscalls-io,syscalls-process",
		     NSEC_PER_SEC, true);
	size_t before = nr_open();
	counters_add(c, p.pid, p.pid, NULL, COUNTER_NOW);
	/* Also switches, for the ledger. */
	check_int(nr_open() - before, 3 + 1);
	let_sleep(&p);
	puppet_do(&p, calls, 100, SYS_getppid);
	let_sleep(&p);
	struct thread *t = c->hash[(unsigned)p.pid % COUNTERS_HASH];
	counters_take_all(c, t);
	size_t g = group_of("syscalls-process", &place);
	check_int(t->pending[g].sum.value[place], 100);
	g = group_of("task-clock", &place);
	check(t->pending[g].sum.value[place] > 0);
	end();
	puppet_end(&p);
}

/* Calls by their names: those that there is no room for are counted by perf,
 * and nobody sees a difference. */
static void test_names(void)
{
	static const struct {
		const char *name;
		long call;
	} named[] = {
		{"newstat", SYS_stat},	    {"newfstat", SYS_fstat},
		{"newlstat", SYS_lstat},    {"newuname", SYS_uname},
		{"umount", SYS_umount2},    {"sendfile64", SYS_sendfile},
		{"getppid", SYS_getppid},   {"close", SYS_close},
		{"pread64", SYS_pread64},   {"chdir", SYS_chdir},
		{"mkdir", SYS_mkdir},	    {"rmdir", SYS_rmdir},
		{"link", SYS_link},	    {"unlink", SYS_unlink},
		{"truncate", SYS_truncate}, {"readlink", SYS_readlink},
		{"chmod", SYS_chmod},	    {"statfs", SYS_statfs},
	};
	struct puppet p = begun();
	char events[1000] = "task-clock";
	size_t len = strlen(events), nr_tallied = 0, place;
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		len += (size_t)snprintf(events + len, sizeof(events) - len,
					",syscalls:sys_enter_%s",
					named[i].name);
	begin_events(events, NSEC_PER_SEC, true);
	counters_add(c, p.pid, p.pid, NULL, COUNTER_NOW);
	let_sleep(&p);
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		puppet_do(&p, calls, 10 + (long)i, named[i].call);
		puppet_do(&p, calls_32, 3, I386_GETPPID);
	}
	let_sleep(&p);
	struct thread *t = c->hash[(unsigned)p.pid % COUNTERS_HASH];
	counters_take_all(c, t);
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		char name[64];
		snprintf(name, sizeof(name), "syscalls:sys_enter_%s",
			 named[i].name);
		size_t g = group_of(name, &place);
		check_int(t->pending[g].sum.value[place], 10 + i);
		nr_tallied += c->plan.event[c->plan.group[g].first + place]
				      .is_tallied;
	}
	/* One column is of all others. */
	check_int(nr_tallied, CALL_COLUMNS - 1);
	check(c->has_calls);
	end();
	puppet_end(&p);
}

/* The ledger knows what a call costs, and that it costs nothing in a pause. */
static void test_prices(void)
{
	begin(NSEC_PER_SEC, true);
	check(c->has_calls);
	check(c->call_ns >= 1);
	check_int(c->call_ns, c->cheap_ns);
	check_int(c->idle_ns, 0);
	check(!counters_has_cheap(c));
	end();
}

int main(void)
{
	struct smco_err err = {0};
	struct tally *t = open_tally(&err);
	if (!t) {
		tap_skip(err.msg);
		return tap_done();
	}
	test_classes(t);
	test_threads(t);
	test_tracepoints(t);
	tally_close(t);
	test_monitor(true);
	test_monitor(false);
	test_pauses();
	test_exec();
	test_hits();
	test_events();
	test_past();
	test_names();
	test_prices();
	return tap_done();
}
