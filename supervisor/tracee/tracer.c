/* The table of processes and tasks, and the accessors of the public header. */
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/tracee/forker.h"
#include "supervisor/tracee/debugreg.h"
#include "supervisor/tracee/internal.h"

unsigned long trace_options(const struct tracer *tr, bool launched)
{
	/*
	 * Births are always followed: what shares the memory of a process
	 * under supervision must be under supervision too. follow=false lets
	 * new address spaces go at birth, not earlier.
	 */
	unsigned long o = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |
			  PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			  PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC;
	if (launched && tr->opts.kill_on_exit)
		o |= PTRACE_O_EXITKILL;
	return o;
}

/* A few descriptors for each process; a server's children may be many. */
static void raise_nofile(struct tracer *tr)
{
	struct rlimit most;
	if (getrlimit(RLIMIT_NOFILE, &tr->own_nofile))
		return;
	most = tr->own_nofile;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

int tracer_create(struct tracer **ret, const struct tracer_options *opts,
		  struct smco_err *err)
{
	int r = forker_prepare(err);
	if (r < 0)
		return r;
	struct tracer *tr = calloc(1, sizeof(*tr));
	if (!tr)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (opts)
		tr->opts = *opts;
	else
		tr->opts.follow = true;
	tr->tid = (pid_t)syscall(SYS_gettid);
	tr->status_fd = -1;
	tr->queue_tail = &tr->queue;
	tr->events_tail = &tr->events;
	tr->follow.on = true;
	tr->follow.cpu = -1;
	pthread_sigmask(SIG_BLOCK, NULL, &tr->child_mask);
	if (sched_getaffinity(0, sizeof(tr->own_cpus), &tr->own_cpus) < 0)
		tr->follow.on = false;
	else
		tr->nr_cpus = CPU_COUNT(&tr->own_cpus);
	if (tr->nr_cpus < 1)
		tr->nr_cpus = 1;
	r = wait_init(tr, err);
	if (r < 0) {
		free(tr);
		return r;
	}
	tr->stop_cost_ns = calibrate_stop_cost(&tr->stop_own_ns);
	raise_nofile(tr);
	urgent_init(&tr->urgent);
	*ret = tr;
	return 0;
}

void tracer_destroy(struct tracer *tr)
{
	if (!tr) {
		after_end();
		return;
	}
	tracer_detach_all(tr, NULL);
	while (tr->procs)
		tproc_discard(tr->procs);
	after_end();
	for (int i = 0; i < TASK_HASH_SIZE; i++)
		while (tr->hash[i])
			task_unlink(tr->hash[i]);
	while (tr->events) {
		struct event_node *e = tr->events;
		tr->events = e->next;
		free(e);
	}
	tracer_free_dead(tr);
	follow_end(tr);
	wait_deinit(tr);
	smco_close_fd(&tr->status_fd);
	setrlimit(RLIMIT_NOFILE, &tr->own_nofile);
	urgent_deinit(&tr->urgent);
	free(tr);
}

static struct task **hash_slot(struct tracer *tr, pid_t tid)
{
	return &tr->hash[(unsigned)tid % TASK_HASH_SIZE];
}

struct task *task_find(struct tracer *tr, pid_t tid)
{
	struct task *t = *hash_slot(tr, tid);
	while (t && t->tid != tid)
		t = t->hash_next;
	return t;
}

/* After each change of who is traced and who stands. */
static void note_all_stand(struct tracer *tr)
{
	bool all = tr->nr_tasks && tr->nr_in_group_stop == tr->nr_tasks;
	if (all == (tr->all_stand_ns != 0))
		return;
	uint64_t now = smco_now_ns();
	if (!all)
		tr->stood_ns += now - tr->all_stand_ns;
	tr->all_stand_ns = all ? now : 0;
}

void task_set_in_group_stop(struct task *t, bool is)
{
	if (t->in_group_stop == is)
		return;
	t->in_group_stop = is;
	if (is)
		t->tr->nr_in_group_stop++;
	else
		t->tr->nr_in_group_stop--;
	note_all_stand(t->tr);
}

struct task *task_create(struct tracer *tr, pid_t tid)
{
	struct task *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tr = tr;
	t->tid = tid;
	t->is_new = true;
	t->rseq = 1;
	struct task **slot = hash_slot(tr, tid);
	t->hash_next = *slot;
	*slot = t;
	tr->nr_tasks++;
	note_all_stand(tr);
	return t;
}

void task_join(struct task *t, struct tproc *p, pid_t tgid)
{
	t->proc = p;
	t->tgid = tgid;
	t->next = p->tasks;
	p->tasks = t;
	p->nr_tasks++;
}

static void task_leave(struct task *t)
{
	struct tproc *p = t->proc;
	if (!p)
		return;
	struct task **link = &p->tasks;
	while (*link && *link != t)
		link = &(*link)->next;
	if (*link) {
		*link = t->next;
		p->nr_tasks--;
	}
}

static void task_unhash(struct tracer *tr, struct task *t)
{
	struct task **link = hash_slot(tr, t->tid);
	while (*link && *link != t)
		link = &(*link)->hash_next;
	if (*link) {
		*link = t->hash_next;
		tr->nr_tasks--;
		if (t->in_group_stop)
			tr->nr_in_group_stop--;
		note_all_stand(tr);
	}
}

void task_unlink(struct task *t)
{
	struct tracer *tr = t->tr;
	task_dequeue(t);
	birth_over(t);
	debugreg_forget(t);
	if (t->created)
		t->created->creator = NULL;
	t->created = NULL;
	task_unhash(tr, t);
	loan_write_off(t);
	task_leave(t);
	t->next = tr->dead_tasks;
	tr->dead_tasks = t;
}

struct tproc *tproc_create(struct tracer *tr, pid_t pid)
{
	struct tproc *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tr = tr;
	p->pid = pid;
	p->mem_fd = p->maps_fd = -1;
	struct tproc **link = &tr->procs;
	while (*link)
		link = &(*link)->next;
	*link = p;
	return p;
}

void tproc_forget_memory(struct tproc *p)
{
	undo_forget_all(p);
	free(p->patch_index);
	p->patch_index = NULL;
	tproc_forget_maps(p);
	tmaps_deinit(&p->recent);
	tmaps_deinit(&p->occupied);
	smco_close_fd(&p->mem_fd);
	smco_close_fd(&p->maps_fd);
	p->mem_fd = p->maps_fd = -1;
	free(p->trap_ranges);
	p->trap_ranges = NULL;
	p->nr_trap_ranges = 0;
	p->trap_sig = 0;
	p->syscall_insn = 0;
	p->boot_site = 0;
	p->has_boot_undo = false;
	p->vdso_end = 0;
	p->nr_old_stubs = 0;
	p->nr_busy_stubs = 0;
	p->stub = 0;
	p->whole = 0;
	p->stub_refused = false;
	p->has_unseen = false;
	memset(&p->libs, 0, sizeof(p->libs));
	p->r_debug = 0;
	p->trace_syscalls = false;
	p->before_signal = NULL;
	memset(p->watch, 0, sizeof(p->watch));
}

void tproc_unlink(struct tproc *p)
{
	struct tracer *tr = p->tr;
	struct tproc **link = &tr->procs;
	while (*link && *link != p)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = p->next;
	tproc_urgent(p, false);
	for (struct tproc *q = tr->procs; q; q = q->next)
		if (q->parent == p)
			q->parent = NULL;
	p->next = tr->dead_procs;
	tr->dead_procs = p;
	tproc_forget_parent(p);
}

void tracer_free_dead(struct tracer *tr)
{
	while (tr->dead_tasks) {
		struct task *t = tr->dead_tasks;
		tr->dead_tasks = t->next;
		free(t);
	}
	while (tr->dead_procs) {
		struct tproc *p = tr->dead_procs;
		tr->dead_procs = p->next;
		tproc_forget_memory(p);
		free(p);
	}
}

unsigned tracer_nr_foreign(const struct tracer *tr)
{
	return tr->nr_foreign;
}

pid_t tproc_pid(const struct tproc *p)
{
	return p->pid;
}

struct tracer *tproc_tracer(struct tproc *p)
{
	return p->tr;
}

void *tproc_user(const struct tproc *p)
{
	return p->user;
}

void tproc_set_user(struct tproc *p, void *user)
{
	p->user = user;
}

bool tproc_is_whole_copy(const struct tproc *p)
{
	return p->is_whole_copy;
}

unsigned tproc_nr_tasks(const struct tproc *p)
{
	unsigned n = 0;
	for (const struct task *t = p->tasks; t; t = t->next)
		n += t->state != TASK_DEAD;
	return n;
}

static struct tproc *skip_hidden(struct tproc *p)
{
	while (p && (p->leaving || !p->told))
		p = p->next;
	return p;
}

struct tproc *tracer_first_proc(struct tracer *tr)
{
	return skip_hidden(tr->procs);
}

struct tproc *tproc_next(struct tproc *p)
{
	return skip_hidden(p->next);
}

static struct task *skip_dead(struct task *t)
{
	while (t && t->state == TASK_DEAD)
		t = t->next;
	return t;
}

struct task *tproc_first_task(struct tproc *p)
{
	return skip_dead(p->tasks);
}

struct task *task_next(struct task *t)
{
	return skip_dead(t->next);
}

pid_t tproc_live_tid(struct tproc *p)
{
	struct task *t = tproc_first_task(p);
	for (; t; t = task_next(t))
		if (t->state == TASK_STOPPED)
			return t->tid;
	t = tproc_first_task(p);
	return t ? t->tid : p->pid;
}

uint64_t task_nr_stops(const struct task *t)
{
	return t->nr_stops;
}

uint64_t tproc_nr_unwanted(const struct tproc *p)
{
	return p->nr_unwanted;
}

pid_t task_tid(const struct task *t)
{
	return t->tid;
}

struct tproc *task_proc(struct task *t)
{
	return t->proc;
}

struct tproc *tracer_proc_of(struct tracer *tr, pid_t tid)
{
	struct task *t = task_find(tr, tid);
	if (t)
		return t->proc;
	for (struct tproc *p = tr->procs; p; p = p->next)
		if (p->pid == tid && p->tasks)
			return p;
	return NULL;
}

uint64_t tproc_cpu_ns(struct tproc *p)
{
	/* The clock of another process; see clock_getcpuclockid(3). */
	clockid_t clock;
	struct timespec ts;
	if (clock_getcpuclockid(p->pid, &clock) != 0 ||
	    clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t tracer_stood_ns(const struct tracer *tr)
{
	return tr->stood_ns +
	       (tr->all_stand_ns ? smco_now_ns() - tr->all_stand_ns : 0);
}

bool tracer_all_stand(const struct tracer *tr)
{
	return tr->all_stand_ns != 0;
}

uint64_t tracer_stop_ns(const struct tracer *tr)
{
	return tr->stop_sum_ns;
}

uint64_t tracer_nr_stops(const struct tracer *tr)
{
	return tr->nr_stops;
}

uint64_t tracer_nr_asked(const struct tracer *tr)
{
	return tr->nr_asked;
}

uint64_t tracer_nr_signals(const struct tracer *tr)
{
	return tr->nr_signals;
}

uint64_t tracer_longest_stop_ns(const struct tracer *tr)
{
	return tr->longest_stop_ns;
}

void tracer_stops_are(struct tracer *tr, const char *what_for)
{
	tr->stops_are_for = what_for;
}

const char *tracer_longest_was(const struct tracer *tr)
{
	return tr->longest_was_for;
}

uint64_t tracer_stop_cost_ns(const struct tracer *tr)
{
	return tr->stop_cost_ns;
}

uint64_t tracer_stop_own_ns(const struct tracer *tr)
{
	return tr->stop_own_ns;
}

int task_get_regs(struct task *t, struct user_regs_struct *ret)
{
	if (t->state != TASK_STOPPED)
		return SMCO_GONE;
	if (!t->regs_valid) {
		if (ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0)
			return SMCO_GONE;
		t->regs_valid = true;
	}
	*ret = t->regs;
	return 0;
}

int task_set_regs(struct task *t, const struct user_regs_struct *regs)
{
	if (t->state != TASK_STOPPED)
		return SMCO_GONE;
	t->regs_valid = false;
	if (ptrace(PTRACE_SETREGS, t->tid, NULL, regs) < 0)
		return SMCO_GONE;
	t->regs = *regs;
	t->regs_valid = true;
	return 0;
}
