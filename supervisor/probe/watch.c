/* Debug registers of threads through perf events: watch.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmu/open.h"
#include "supervisor/control/fixed.h"
#include "supervisor/probe/bpfload.h"
#include "supervisor/probe/watch-private.h"

extern const char watch_object_start[], watch_object_end[];

void watch_close_task(struct watch_task *t)
{
	watch_hits_close(&t->told);
	if (t->link >= 0)
		close(t->link);
	if (t->event >= 0)
		close(t->event);
}

static int explain(int sys_errno, pid_t tid, struct smco_err *err)
{
	switch (sys_errno) {
	case ESRCH:
		return smco_fail(err, SMCO_GONE, 0, "thread %d has ended",
				 (int)tid);
	case ENOSPC:
		return smco_fail(err, SMCO_BUSY, 0,
				 "all debug registers of thread %d are in use "
				 "(perf, a debugger)",
				 (int)tid);
	case EACCES:
	case EPERM:
		return smco_fail(err, SMCO_PERM, 0,
				 "watchpoints: perf_event_paranoid is %d: run "
				 "as root, or setcap "
				 "cap_bpf,cap_perfmon,cap_sys_nice+ep, or set "
				 "it to 1",
				 pmu_paranoid());
	case EMFILE:
	case ENFILE:
		return smco_fail(err, SMCO_SYS, sys_errno,
				 "watchpoints: more descriptors than may be "
				 "open; raise the limit (ulimit -n)");
	case EINVAL:
	case ENOENT:
	case EOPNOTSUPP:
		return smco_fail(err, SMCO_UNSUPPORTED, sys_errno,
				 "watchpoints: this kernel or CPU has no debug "
				 "registers for perf (Linux 5.15)");
	default:
		return smco_fail(err, SMCO_SYS, sys_errno,
				 "watchpoints: perf_event_open");
	}
}

/* The BPF program runs at each hit, and says when it is enough. */
static int attach(const struct watchpoints *ws, uint32_t index, int64_t limit,
		  struct watch_task *t, struct smco_err *err)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	opts.perf_event.bpf_cookie = index;
	int prog = ws->word[index].bytes ? ws->prog : ws->insn_prog;
	t->link = bpf_link_create(prog, t->event, BPF_PERF_EVENT, &opts);
	if (t->link < 0)
		return explain(errno, t->tid, err);
	t->left = ws->counts_all ? limit : 1;
	return 0;
}

/* Thread @tid (0: this one), enabled. */
int watch_open_task(const struct watchpoints *ws, uint32_t index, pid_t tid,
		    int64_t limit, struct watch_task *ret, struct smco_err *err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = ws->word[index].addr,
		.bp_len = ws->word[index].bytes,
		.sample_period = 1,
		.disabled = 1,
		.exclude_kernel = ws->own_only,
		.exclude_hv = 1,
		.remove_on_exec = 1,
	};
	*ret = (struct watch_task){.tid = tid, .event = -1, .link = -1};
	if (!ws->word[index].bytes) {
		attr.bp_type = HW_BREAKPOINT_X;
		attr.bp_len = sizeof(long); /* as the kernel wants it */
	}
	if (!ws->obj)
		watch_hits_attr(&attr);
	ret->event = pmu_open(&attr, tid, -1, -1);
	if (ret->event < 0)
		return explain(errno, tid, err);
	int rc = ws->obj ? attach(ws, index, limit, ret, err)
			 : watch_hits_open(&ret->told, &attr, ret->event, limit,
					   err);
	if (!rc && !ws->obj)
		ret->left = clamp_i64(limit, 0, watch_hits_room(&ret->told));
	/* Only once: one that is spent would be armed by it, but not counted
	 * (Linux 6.18). */
	if (!rc && ioctl(ret->event, PERF_EVENT_IOC_REFRESH,
			 (int)clamp_i64(ret->left, 1, INT_MAX)))
		rc = explain(errno, tid, err);
	if (rc)
		watch_close_task(ret);
	return rc;
}

/* --- without a BPF program: what the kernel tells of hits --- */

static void widen(struct watch_part *p, uint64_t word)
{
	unsigned unused = 64u - p->bits;
	uint64_t up = word >> p->shift << unused;
	int64_t v =
		p->is_signed ? (int64_t)up >> unused : (int64_t)(up >> unused);
	if (p->is_signed ? v < p->smallest
			 : (uint64_t)v < (uint64_t)p->smallest)
		p->smallest = v;
	if (p->is_signed ? v > p->largest : (uint64_t)v > (uint64_t)p->largest)
		p->largest = v;
}

static void take_value(struct watch_word *word, uint64_t value)
{
	for (uint32_t i = 0; i < word->nr_parts; i++)
		widen(&word->part[i], value);
}

static bool is_told(struct watchpoint *w, const struct watch_word *word,
		    const struct watch_hit *hit, uint64_t *value_ret)
{
	if (!hit->has_state || !w->insn)
		return false;
	if (w->last_ip != hit->state.ip) {
		w->last_ip = hit->state.ip;
		w->last_insn = w->insn(w->insn_ctx, w->last_ip, &w->last_len);
	}
	return w->last_insn &&
	       watch_store_value(w->last_insn, w->last_len, &hit->state,
				 word->addr, word->bytes, value_ret);
}

/* What came since the last time; @w is NULL for nobody's values. */
void watch_take_told(struct watch_word *word, struct watch_task *t,
		     struct watchpoint *w)
{
	struct watch_hit hit;
	uint64_t value;
	while (watch_hits_next(&t->told, &hit)) {
		word->nr_hits++;
		if (w && is_told(w, word, &hit, &value))
			take_value(word, value);
		else
			word->nr_unread++;
		if (--t->left)
			continue;
		word->nr_off++;
		if (!word->spent_ns || hit.time_ns < word->spent_ns)
			word->spent_ns = hit.time_ns;
	}
}

/* What is there now. Twice: a read is not always one of all bytes at once. */
static bool look_at(const struct watchpoint *w, const struct watch_word *word,
		    uint64_t *ret)
{
	uint64_t again = *ret = 0;
	return !tmem_read(w->proc, word->addr, ret, word->bytes) &&
	       !tmem_read(w->proc, word->addr, &again, word->bytes) &&
	       *ret == again;
}

bool watch_take_hit(struct watchpoint *w, const struct watch_hit *hit)
{
	struct watch_word *word = &w->ws->word[w->index];
	uint64_t value;
	if (!is_told(w, word, hit, &value) && !look_at(w, word, &value))
		return false;
	take_value(word, value);
	return true;
}

/* Of all threads. What a hit's instruction does not tell is still there now,
 * or something that came later: a value that it has had. */
static void take_all(struct watchpoint *w, bool look)
{
	struct watch_word *word = &w->ws->word[w->index];
	uint64_t value, untold = word->nr_unread;
	if (w->ws->obj)
		return;
	for (size_t i = 0; i < w->nr_tasks; i++)
		watch_take_told(word, &w->task[i], w);
	if (look && word->nr_unread != untold && look_at(w, word, &value))
		take_value(word, value);
}

uint32_t watch_find_word(struct watchpoints *ws)
{
	uint32_t i = 0;
	while (i < WATCH_WORDS && ws->is_used[i])
		i++;
	return i;
}

static int share_words(struct watchpoints *ws, struct smco_err *err)
{
	int fd = bpf_object__find_map_fd_by_name(ws->obj, "words");
	long page = sysconf(_SC_PAGESIZE);
	size_t bytes = WATCH_WORDS * sizeof(struct watch_word);
	bytes = (bytes + (size_t)page - 1) / (size_t)page * (size_t)page;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return smco_fail(err, SMCO_SYS, errno,
				 "watchpoints: mapping a BPF map");
	ws->word = at;
	ws->word_bytes = bytes;
	return 0;
}

/* What is permitted, from the best on. */
enum how {
	BY_BPF,
	BY_RECORDS,	    /* of all hits */
	BY_RECORDS_OF_USER, /* of those that are not in the kernel */
};

/* All of it with the program, or without it: else nothing is there. */
static int try_open(struct watchpoints **ret, enum how how,
		    struct smco_err *err)
{
	struct watchpoints *ws = calloc(1, sizeof(*ws));
	int rc = 0;
	if (!ws)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	ws->own_only = how == BY_RECORDS_OF_USER;
	if (how == BY_BPF) {
		rc = bpfload(watch_object_start, watch_object_end,
			     "watchpoints", "bpf_get_attach_cookie, Linux 5.15",
			     &ws->obj, err);
		if (!rc) {
			ws->prog = bpfload_prog(ws->obj, "watch_hit");
			ws->insn_prog = bpfload_prog(ws->obj, "insn_hit");
			rc = share_words(ws, err);
		}
	} else {
		ws->word = calloc(WATCH_WORDS, sizeof(*ws->word));
		if (!ws->word)
			rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	if (!rc)
		rc = watch_calibrate(ws, err);
	if (rc)
		watchpoints_close(ws);
	else
		*ret = ws;
	return rc;
}

int watchpoints_open(struct watchpoints **ret, struct smco_err *err)
{
	struct smco_err own = {0};
	if (!try_open(ret, BY_BPF, &own))
		return 0;
	return watchpoints_open_without_bpf(ret, err);
}

int watchpoints_open_without_bpf(struct watchpoints **ret, struct smco_err *err)
{
	struct smco_err own = {0}, user = {0};
	int rc = try_open(ret, BY_RECORDS, &own);
	if (rc == SMCO_PERM) {
		rc = try_open(ret, BY_RECORDS_OF_USER, &user);
		/* Nothing is gained by a permission for what does not work. */
		if (rc != SMCO_PERM)
			own = user;
	}
	if (rc && err)
		*err = own;
	return rc;
}

int watchpoints_open_by_ptrace(struct watchpoints **ret, struct smco_err *err)
{
	struct watchpoints *ws = calloc(1, sizeof(*ws));
	int rc;
	if (!ws)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	ws->by_ptrace = ws->own_only = true;
	ws->word = calloc(WATCH_WORDS, sizeof(*ws->word));
	rc = ws->word ? twatch_try(&ws->tried_ns, &ws->own_ns, err)
		      : smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	ws->tried_ns += ws->tried_ns / WATCH_COLD_SHARE;
	ws->own_ns += ws->own_ns / WATCH_COLD_SHARE;
	ws->hit_ns = ws->tried_ns;
	if (rc)
		watchpoints_close(ws);
	else
		*ret = ws;
	return rc;
}

bool watchpoints_have_bpf(const struct watchpoints *ws)
{
	return ws->obj;
}

bool watchpoints_stop_threads(const struct watchpoints *ws)
{
	return ws->by_ptrace;
}

bool watchpoints_know_pointers(const struct watchpoints *ws)
{
	return ws->obj || ws->by_ptrace;
}

bool watchpoints_see_kernel(const struct watchpoints *ws)
{
	return !ws->own_only;
}

void watchpoints_close(struct watchpoints *ws)
{
	if (!ws)
		return;
	if (ws->word_bytes)
		munmap(ws->word, ws->word_bytes);
	else
		free(ws->word);
	bpf_object__close(ws->obj);
	free(ws->walk);
	free(ws);
}

/* --- one word --- */

int watchpoint_add_task(struct watchpoint *w, pid_t tid, struct smco_err *err)
{
	if (w->ws->by_ptrace) /* it has it when it goes on */
		return 0;
	if (w->nr_tasks == w->cap_tasks) {
		size_t cap = w->cap_tasks ? 2 * w->cap_tasks : 4;
		struct watch_task *task =
			reallocarray(w->task, cap, sizeof(*task));
		if (!task)
			return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
		w->task = task;
		w->cap_tasks = cap;
	}
	int64_t limit =
		w->ws->obj ? w->limit : clamp_i64(w->share, INT64_MIN, w->left);
	if (limit < 1)
		return smco_fail(err, SMCO_SYS, 0,
				 "the hits that a word may have are fewer than "
				 "threads");
	int rc = watch_open_task(w->ws, w->index, tid, limit,
				 &w->task[w->nr_tasks], err);
	if (!rc)
		w->nr_tasks++;
	if (!rc && w->left != INT64_MAX)
		w->left -= limit;
	return rc;
}

/* Of those that all of them may have together, with some for one that comes. */
static int64_t share_of(struct tproc *p, int64_t most_hits)
{
	int64_t nr = 1;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t))
		nr++;
	return clamp_i64(most_hits / nr, 1, INT64_MAX);
}

static bool is_of_thread(const struct watch_what *what)
{
	for (size_t i = 0; i < what->nr_fields; i++)
		if (what->field[i].source == WATCH_AT_THREAD)
			return true;
	return false;
}

/* Few programs ask. */
static bool need_thread_at(struct watchpoints *ws)
{
	if (!ws->thread_at)
		ws->thread_at = watch_thread_at();
	return ws->thread_at;
}

int watchpoint_arm(struct watchpoint **ret, struct watchpoints *ws,
		   struct tproc *p, const struct watch_what *what,
		   int64_t most_hits, struct smco_err *err)
{
	uint32_t index = watch_find_word(ws);
	if (!watch_is_sound(what) ||
	    (!watchpoints_know_pointers(ws) && what->nr_pointers) ||
	    (!ws->obj && what->is_insn))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "%u bytes at %" PRIx64
				 " fit no debug register",
				 what->bytes, what->addr);
	if (index == WATCH_WORDS)
		return smco_fail(err, SMCO_BUSY, 0,
				 "%d watchpoints are armed already",
				 WATCH_WORDS);
	if (is_of_thread(what) && !need_thread_at(ws))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "where the kernel has a thread's pointer is "
				 "not in /sys/kernel/btf/vmlinux");
	struct watchpoint *w = calloc(1, sizeof(*w));
	if (!w)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	*w = (struct watchpoint){
		.ws = ws,
		.index = index,
		.limit = most_hits,
		.share = share_of(p, most_hits),
		.left = most_hits,
		.proc = p,
		.insn = what->insn,
		.insn_ctx = what->insn_ctx,
	};
	ws->is_used[index] = true;
	watch_fill(&ws->word[index], what, most_hits);
	ws->word[index].thread_at = ws->thread_at;
	if (ws->by_ptrace) {
		int rc = watch_stopping(w, err);
		if (rc)
			watchpoint_disarm(w);
		else
			*ret = w;
		return rc;
	}
	for (struct task *t = tproc_first_task(p); t; t = task_next(t)) {
		/* One that is about to end is none that is missing. */
		int rc = watchpoint_add_task(w, task_tid(t), err);
		if (rc && rc != SMCO_GONE) {
			watchpoint_disarm(w);
			return rc;
		}
	}
	if (!w->nr_tasks) {
		watchpoint_disarm(w);
		return smco_fail(err, SMCO_GONE, 0, "process %d has ended",
				 (int)tproc_pid(p));
	}
	*ret = w;
	return 0;
}

void watchpoint_drop_task(struct watchpoint *w, pid_t tid)
{
	for (size_t i = 0; i < w->nr_tasks; i++)
		if (w->task[i].tid == tid) {
			take_all(w, false);
			watch_close_task(&w->task[i]);
			w->task[i] = w->task[--w->nr_tasks];
			return;
		}
}

static const struct watch_word *word_of(const struct watchpoint *w)
{
	return &w->ws->word[w->index];
}

bool watchpoint_read(struct watchpoint *w, size_t i, int64_t *smallest_ret,
		     int64_t *largest_ret)
{
	take_all(w, true);
	const struct watch_part *p = &word_of(w)->part[i];
	/* Each is a value that it had, or the opposite end: while the first is
	 * taken in, one may be there and not the other. */
	int64_t lo = __atomic_load_n(&p->smallest, __ATOMIC_ACQUIRE);
	int64_t hi = __atomic_load_n(&p->largest, __ATOMIC_ACQUIRE);
	*smallest_ret = lo;
	*largest_ret = hi;
	return p->is_signed ? lo <= hi : (uint64_t)lo <= (uint64_t)hi;
}

uint64_t watchpoint_hits(struct watchpoint *w)
{
	take_all(w, true);
	return __atomic_load_n(&word_of(w)->nr_hits, __ATOMIC_RELAXED);
}

uint64_t watchpoint_take_cost_ns(struct watchpoint *w, uint64_t *hits_ret)
{
	uint64_t hits = watchpoint_hits(w);
	*hits_ret = sat_sub_u64(hits, w->hits);
	/* An interrupt to switch it off, which takes no longer than a hit. */
	uint64_t off = __atomic_load_n(&word_of(w)->nr_off, __ATOMIC_RELAXED);
	uint64_t times = *hits_ret + sat_sub_u64(off, w->off);
	w->hits = hits;
	w->off = off;
	return times * w->ws->hit_ns;
}

uint64_t watchpoint_spent_ns(struct watchpoint *w)
{
	take_all(w, true);
	watch_stopping_look(w);
	uint64_t ns = __atomic_load_n(&word_of(w)->spent_ns, __ATOMIC_ACQUIRE);
	return ns ? ns : UINT64_MAX;
}

bool watchpoint_refill(struct watchpoint *w, int64_t most_hits)
{
	if (w->ws->by_ptrace) {
		if (w->left > 0)
			w->left = most_hits;
		return w->left > 0;
	}
	int64_t *left = (int64_t *)&w->ws->word[w->index].left;
	int64_t was = __atomic_load_n(left, __ATOMIC_RELAXED);
	if (w->ws->counts_all || !w->ws->obj)
		return false;
	/* Once it was 0 some thread is switched off. */
	while (was > 0)
		if (__atomic_compare_exchange_n(left, &was, most_hits, false,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

void watchpoint_stop(struct watchpoint *w)
{
	watch_stopping_end(w);
	take_all(w, false);
	while (w->nr_tasks)
		watch_close_task(&w->task[--w->nr_tasks]);
}

void watchpoint_disarm(struct watchpoint *w)
{
	if (!w)
		return;
	watchpoint_stop(w);
	w->ws->is_used[w->index] = false;
	free(w->task);
	free(w);
}
