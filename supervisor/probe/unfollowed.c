/* See unfollowed.h. */
#include "supervisor/probe/unfollowed.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "supervisor/probe/bpfload.h"
#include "supervisor/probe/unfollowed-bpf.h"
#include "supervisor/tracee/tracee.h"

extern const char unfollowed_object_start[], unfollowed_object_end[];

static const char *const programs[] = {
	"unfollowed_fork", "unfollowed_exec", "unfollowed_exit",
	"unfollowed_switch", /* where they are to be counted */
};

struct unfollowed {
	struct bpf_object *obj;
	struct bpf_link *links[ARRAY_SIZE(programs)];
	int all_fd, thread_fd; /* owned by obj */
	const struct unfollowed_sums *sums;
	const struct unfollowed_counted *counted; /* each slot's */
};

_Static_assert(UNFOLLOWED_LET_GO == UNFOLLOWED_SLOTS - 1,
	       "the first is no one's");
_Static_assert(UNFOLLOWED_SLOTS * sizeof(struct unfollowed_counted) <=
		       TPAGE_SIZE,
	       "one page has all");

static const void *map_page(const struct unfollowed *u, const char *map)
{
	void *at = mmap(NULL, TPAGE_SIZE, PROT_READ, MAP_SHARED,
			bpf_object__find_map_fd_by_name(u->obj, map), 0);
	return at == MAP_FAILED ? NULL : at;
}

static void unmap_page(const void *at)
{
	if (at)
		munmap((void *)(uintptr_t)at, TPAGE_SIZE);
}

static int attach(struct unfollowed *u, bool counts, struct smco_err *err)
{
	struct unfollowed_setup setup = {.counts = counts};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &setup,
		    .ctx_size_in = sizeof(setup));
	int r = bpf_prog_test_run_opts(bpfload_prog(u->obj, "unfollowed_mine"),
				       &opts);
	if (r < 0)
		return smco_fail(err, SMCO_UNSUPPORTED, -r,
				 "unfollowed births: running a BPF program");
	u->all_fd = bpf_object__find_map_fd_by_name(u->obj, "all");
	u->thread_fd = bpfload_prog(u->obj, "unfollowed_thread");
	u->sums = map_page(u, "sums");
	u->counted = map_page(u, "counted");
	if (!u->sums || !u->counted)
		return smco_fail(err, SMCO_UNSUPPORTED, errno,
				 "unfollowed births: mapping their sums");
	/* Ends first: who is there by the others goes by them. */
	for (size_t i = ARRAY_SIZE(programs) - !counts; i-- > 0;) {
		u->links[i] = bpf_program__attach(
			bpf_object__find_program_by_name(u->obj, programs[i]));
		if (!u->links[i])
			return smco_fail(err, SMCO_UNSUPPORTED, errno,
					 "unfollowed births: attaching %s",
					 programs[i]);
	}
	return 0;
}

int unfollowed_open(bool counts, struct unfollowed **ret, struct smco_err *err)
{
	if (!bpfload_has_kernels_numbers())
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "unfollowed births: the kernel has other "
				 "numbers for processes than we have here");
	struct unfollowed *u = calloc(1, sizeof(*u));
	if (!u)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	int r = bpfload(unfollowed_object_start, unfollowed_object_end,
			"unfollowed births",
			"BPF in sched_process_fork, Linux 5.5", &u->obj, err);
	if (!r)
		r = attach(u, counts, err);
	if (r) {
		unfollowed_close(u);
		return r;
	}
	*ret = u;
	return 0;
}

void unfollowed_close(struct unfollowed *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		bpf_link__destroy(u->links[i]);
	unmap_page(u->sums);
	unmap_page(u->counted);
	bpf_object__close(u->obj);
	free(u);
}

static uint64_t get(const __u64 *sum)
{
	return __atomic_load_n(sum, __ATOMIC_ACQUIRE);
}

uint64_t unfollowed_nr_born(const struct unfollowed *u)
{
	return get(&u->sums->nr_born) + get(&u->sums->nr_lost);
}

bool unfollowed_is_full(const struct unfollowed *u)
{
	return get(&u->sums->nr_lost) != 0;
}

/* The one behind *@pid, into both; of 0 the first. Where *@pid has gone
 * meanwhile it begins anew: so @left bounds it. */
static bool next(const struct unfollowed *u, int *pid,
		 struct unfollowed_one *ret, unsigned *left)
{
	while (*left && (*left)--) {
		int key = *pid;
		if (bpf_map_get_next_key(u->all_fd, key ? &key : NULL, pid))
			return false;
		if (!bpf_map_lookup_elem(u->all_fd, pid, ret))
			return true;
	}
	return false;
}

#define MAX_LOOKS (4 * UNFOLLOWED_MAX)

bool unfollowed_shares(const struct unfollowed *u, pid_t pid)
{
	struct unfollowed_one one;
	unsigned left = MAX_LOOKS;
	int at = 0;
	if (unfollowed_is_full(u))
		return true;
	if (!get(&u->sums->nr_sharing))
		return false;
	while (next(u, &at, &one, &left))
		if (one.owner == (uint32_t)pid)
			return true;
	return !left; /* not all were seen */
}

size_t unfollowed_list(const struct unfollowed *u, uint64_t before_ns,
		       pid_t *ret, size_t max)
{
	struct unfollowed_one one;
	unsigned left = MAX_LOOKS;
	size_t nr = 0;
	int at = 0;
	while (nr < max && next(u, &at, &one, &left))
		if (!one.owner && !one.slot && one.born_ns < before_ns)
			ret[nr++] = at;
	return nr;
}

int unfollowed_let_go(struct unfollowed *u, pid_t pid, unsigned slot,
		      struct smco_err *err)
{
	const struct unfollowed_one one = {.slot = slot};
	return bpf_map_update_elem(u->all_fd, &pid, &one, BPF_ANY)
		       ? smco_fail(err, SMCO_BUSY, errno,
				   "unfollowed births: no room on the list")
		       : 0;
}

bool unfollowed_lives(const struct unfollowed *u, pid_t pid, unsigned *nr_execs,
		      int *exit_status)
{
	struct unfollowed_one one;
	*exit_status = -1;
	if (bpf_map_lookup_elem(u->all_fd, &pid, &one))
		return false;
	*nr_execs = one.nr_execs;
	if (one.has_ended)
		*exit_status = (int)one.exit_status;
	return !one.has_ended;
}

static void tell_thread(const struct unfollowed *u, pid_t tid, bool is_back,
			unsigned slot)
{
	struct unfollowed_thread t = {
		.tid = tid, .is_back = is_back, .slot = slot};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &t,
		    .ctx_size_in = sizeof(t));
	bpf_prog_test_run_opts(u->thread_fd, &opts);
}

void unfollowed_count_from(struct unfollowed *u, pid_t tid)
{
	tell_thread(u, tid, false, 0);
}

void unfollowed_count_to(struct unfollowed *u, pid_t tid, unsigned slot)
{
	tell_thread(u, tid, true, slot);
}

bool unfollowed_forget(struct unfollowed *u, pid_t pid)
{
	return !bpf_map_delete_elem(u->all_fd, &pid);
}

struct unfollowed_counts unfollowed_counts(const struct unfollowed *u,
					   unsigned slot)
{
	const struct unfollowed_counted *s = &u->counted[slot];
	return (struct unfollowed_counts){
		.minor_faults = get(&s->minor_faults),
		.major_faults = get(&s->major_faults),
		.switches = get(&s->switches),
		.migrations = get(&s->migrations),
		.run_ns = get(&s->run_ns),
	};
}

bool unfollowed_some_end(const struct unfollowed *u)
{
	return get(&u->sums->nr_ending) != 0;
}
