#include "supervisor/probe/tally.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "supervisor/probe/bpfload.h"

extern const char tally_object_start[], tally_object_end[];
extern const char past_object_start[], past_object_end[];

#define COUNTS_BYTES (TALLY_MAX_THREADS * sizeof(struct tally_counts))

struct tally {
	struct bpf_object *obj;
	struct bpf_link *calls; /* NULL = nothing is counted */
	struct bpf_link *hits[TALLY_HITS];
	int nr_hits;
	struct bpf_object *past; /* NULL = the kernel cannot do that */
	int past_fd;
	/* Who attaches and detaches once somebody could not wait for it. */
	pthread_t worker;
	bool has_worker;
	pthread_mutex_t lock;
	pthread_cond_t change; /* of what follows */
	bool is_on, is_turning, wants, ends;
	int sys_errno; /* of the last time that it failed */
	uint64_t took_ns;
	/* Owned by obj. */
	struct bpf_program *prog;
	int threads_fd, columns_fd, counts_fd;
	volatile struct tally_counts *counts; /* NULL = not mapped */
	int free_place[TALLY_MAX_THREADS];
	size_t nr_free;
};

static int begin(struct tally *t, struct smco_err *err)
{
	t->prog = bpf_object__find_program_by_name(t->obj, "tally_call");
	t->threads_fd = bpf_object__find_map_fd_by_name(t->obj, "threads");
	t->counts_fd = bpf_object__find_map_fd_by_name(t->obj, "tallies");
	t->columns_fd = bpf_object__find_map_fd_by_name(t->obj, "columns");
	void *counts = mmap(NULL, COUNTS_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED, t->counts_fd, 0);
	if (counts == MAP_FAILED)
		return smco_fail(err, SMCO_UNSUPPORTED, errno,
				 "system calls by BPF: its maps");
	t->counts = counts;
	return tally_begin(t, err) ? SMCO_UNSUPPORTED : 0;
}

int tally_set_columns(struct tally *t, const struct tally_columns *columns,
		      struct smco_err *err)
{
	__u32 zero = 0;
	return bpf_map_update_elem(t->columns_fd, &zero, columns, BPF_ANY)
		       ? smco_fail(err, SMCO_SYS, errno,
				   "system calls by BPF: their columns")
		       : 0;
}

static void load_past(struct tally *t)
{
	struct smco_err err;
	if (bpfload(past_object_start, past_object_end,
		    "a thread's past by BPF", "bpf_task_from_pid", &t->past,
		    &err)) {
		t->past = NULL;
		smco_debug("pmu", "%s", err.msg);
		return;
	}
	t->past_fd = bpfload_prog(t->past, "past_read");
}

bool tally_past(const struct tally *t, pid_t tid, struct past *ret)
{
	*ret = (struct past){.tid = tid};
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = ret,
		    .ctx_size_in = sizeof(*ret));
	return t->past && !bpf_prog_test_run_opts(t->past_fd, &run) &&
	       !run.retval;
}

int tally_open(struct tally **ret, struct smco_err *err)
{
	if (!bpfload_has_kernels_numbers())
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "system calls by BPF: not in a container");
	struct tally *t = calloc(1, sizeof(*t));
	if (!t)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->change, NULL);
	for (int i = TALLY_MAX_THREADS; i > 0; i--)
		t->free_place[t->nr_free++] = i - 1;
	int rc = bpfload(tally_object_start, tally_object_end,
			 "system calls by BPF", "BPF in sys_enter", &t->obj,
			 err);
	if (!rc)
		rc = begin(t, err);
	if (!rc)
		load_past(t);
	if (rc)
		tally_close(t);
	else
		*ret = t;
	return rc;
}

int tally_put(struct tally *t, const char *tracepoint, struct smco_err *err)
{
	char name[16];
	if (t->nr_hits == TALLY_HITS)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "more than %d tracepoints by BPF", TALLY_HITS);
	snprintf(name, sizeof(name), "tally_hit_%d", t->nr_hits);
	t->hits[t->nr_hits] = bpf_program__attach_raw_tracepoint(
		bpf_object__find_program_by_name(t->obj, name), tracepoint);
	if (!t->hits[t->nr_hits])
		return smco_fail(err, SMCO_UNSUPPORTED, errno, "'%.60s' by BPF",
				 tracepoint);
	return TALLY_CALL_COLUMNS + t->nr_hits++;
}

/* With the lock, which is not held meanwhile: the kernel may have to wait until
 * no CPU can be in what was attached before. */
static void turn(struct tally *t)
{
	bool on = t->wants;
	t->is_turning = true;
	t->is_on = false;
	pthread_mutex_unlock(&t->lock);
	uint64_t began_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int e = 0;
	if (on) {
		t->calls = bpf_program__attach(t->prog);
		e = t->calls ? 0 : errno;
	} else {
		bpf_link__destroy(t->calls);
		t->calls = NULL;
	}
	uint64_t took_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	pthread_mutex_lock(&t->lock);
	t->is_turning = false;
	t->took_ns += took_ns;
	t->is_on = t->calls != NULL;
	if (e) {
		t->sys_errno = e;
		t->wants = false;
	}
	pthread_cond_broadcast(&t->change);
}

static void *work(void *arg)
{
	struct tally *t = arg;
	pthread_mutex_lock(&t->lock);
	while (!t->ends)
		if (t->wants != t->is_on)
			turn(t);
		else
			pthread_cond_wait(&t->change, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void start_worker(struct tally *t)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	t->has_worker = !pthread_create(&t->worker, NULL, work, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tally_turn(struct tally *t, bool on)
{
	pthread_mutex_lock(&t->lock);
	bool is_new = t->wants != on;
	t->wants = on;
	if (is_new && !t->has_worker)
		start_worker(t);
	if (is_new && t->has_worker)
		pthread_cond_broadcast(&t->change);
	else if (is_new)
		turn(t);
	pthread_mutex_unlock(&t->lock);
}

static void turn_now(struct tally *t, bool on)
{
	pthread_mutex_lock(&t->lock);
	t->wants = on;
	pthread_cond_broadcast(&t->change);
	while (t->is_turning || t->is_on != t->wants)
		if (t->has_worker)
			pthread_cond_wait(&t->change, &t->lock);
		else
			turn(t);
	pthread_mutex_unlock(&t->lock);
}

int tally_begin(struct tally *t, struct smco_err *err)
{
	turn_now(t, true);
	return tally_is_on(t) ? 0
			      : smco_fail(err, SMCO_SYS, t->sys_errno,
					  "system calls by BPF: attaching to "
					  "sys_enter");
}

void tally_end(struct tally *t)
{
	turn_now(t, false);
}

bool tally_is_on(struct tally *t)
{
	pthread_mutex_lock(&t->lock);
	bool ret = t->is_on;
	pthread_mutex_unlock(&t->lock);
	return ret;
}

uint64_t tally_took_ns(struct tally *t)
{
	pthread_mutex_lock(&t->lock);
	uint64_t ret = t->took_ns;
	pthread_mutex_unlock(&t->lock);
	return ret;
}

int tally_add(struct tally *t, pid_t tid)
{
	if (!t->nr_free)
		return -1;
	__u32 place = (__u32)t->free_place[t->nr_free - 1];
	for (size_t i = 0; i < TALLY_COLUMNS; i++)
		t->counts[place].nr[i] = 0;
	if (bpf_map_update_elem(t->threads_fd, &tid, &place, BPF_ANY))
		return -1;
	t->nr_free--;
	return (int)place;
}

void tally_remove(struct tally *t, pid_t tid, int place)
{
	bpf_map_delete_elem(t->threads_fd, &tid);
	t->free_place[t->nr_free++] = place;
}

struct tally_counts tally_read(const struct tally *t, int place)
{
	struct tally_counts ret;
	for (size_t i = 0; i < TALLY_COLUMNS; i++)
		ret.nr[i] = t->counts[place].nr[i];
	return ret;
}

int tally_map(const struct tally *t)
{
	return t->counts_fd;
}

void tally_close(struct tally *t)
{
	if (!t)
		return;
	tally_end(t);
	pthread_mutex_lock(&t->lock);
	t->ends = true;
	pthread_cond_broadcast(&t->change);
	pthread_mutex_unlock(&t->lock);
	if (t->has_worker)
		pthread_join(t->worker, NULL);
	while (t->nr_hits)
		bpf_link__destroy(t->hits[--t->nr_hits]);
	if (t->counts)
		munmap((void *)(uintptr_t)t->counts, COUNTS_BYTES);
	bpf_object__close(t->obj);
	bpf_object__close(t->past);
	pthread_cond_destroy(&t->change);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
