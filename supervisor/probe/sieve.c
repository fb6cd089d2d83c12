#include "supervisor/probe/sieve.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/probe/bpfload.h"
#include "supervisor/probe/sieve-bpf.h"

extern const char sieve_object_start[], sieve_object_end[];

struct sieve {
	struct bpf_object *obj;
	struct bpf_link *switches, *calls[3], *saved;
	int threads_fd; /* owned by obj */
	int moves_fd;	/* see hold_moves() */
};

/*
 * A thread that is moved has a flag until it is on a CPU again, by which perf
 * counts the move; but set and taken back it is only while somebody counts
 * moves. Where all others have ended in between, the flag would wait for our
 * counters, and be one move too many there.
 */
static int hold_moves(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_MIGRATIONS,
				       .disabled = 1};
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

static int begin(struct sieve *s, struct smco_err *err)
{
	__u32 zero = 0;
	pid_t own = getpid();
	int own_fd = bpf_object__find_map_fd_by_name(s->obj, "own");
	if (bpf_map_update_elem(own_fd, &zero, &own, BPF_ANY))
		return smco_fail(err, SMCO_UNSUPPORTED, errno,
				 "counts without stops: its map");
	s->threads_fd = bpf_object__find_map_fd_by_name(s->obj, "threads");
	s->switches = bpf_program__attach(
		bpf_object__find_program_by_name(s->obj, "sieve_switch"));
	return s->switches ? 0
			   : smco_fail(err, SMCO_UNSUPPORTED, errno,
				       "counts without stops: attaching to "
				       "sched_switch");
}

static void end_calls(struct sieve *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->calls); i++) {
		bpf_link__destroy(s->calls[i]);
		s->calls[i] = NULL;
	}
}

int sieve_heed_calls(struct sieve *s, struct smco_err *err)
{
	/* Nobody is said to have sent one before its end is heeded. */
	static const char *const name[ARRAY_SIZE(s->calls)] = {
		"sieve_call_ends", "sieve_call_begins", "sieve_call_sent"};
	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		s->calls[i] = bpf_program__attach(
			bpf_object__find_program_by_name(s->obj, name[i]));
		if (!s->calls[i]) {
			int e = errno;
			end_calls(s);
			return smco_fail(err, SMCO_UNSUPPORTED, e,
					 "counts without readings: %s",
					 name[i]);
		}
	}
	return 0;
}

int sieve_open(struct sieve **ret, struct smco_err *err)
{
	if (!bpfload_has_kernels_numbers())
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "counts without stops: not in a container");
	struct sieve *s = calloc(1, sizeof(*s));
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	s->moves_fd = hold_moves();
	int rc = bpfload(sieve_object_start, sieve_object_end,
			 "counts without stops", "BPF in sched_switch", &s->obj,
			 err);
	if (!rc)
		rc = begin(s, err);
	if (rc)
		sieve_close(s);
	else
		*ret = s;
	return rc;
}

void sieve_close(struct sieve *s)
{
	if (!s)
		return;
	end_calls(s);
	bpf_link__destroy(s->saved);
	bpf_link__destroy(s->switches);
	bpf_object__close(s->obj);
	if (s->moves_fd >= 0)
		close(s->moves_fd);
	free(s);
}

/* What sieve_fpu has to know. */
static int heed_saved(struct sieve *s, struct smco_err *err)
{
	if (!s->saved)
		s->saved = bpf_program__attach(bpf_object__find_program_by_name(
			s->obj, "sieve_saved"));
	return s->saved ? 0
			: smco_fail(err, SMCO_SYS, errno,
				    "counts without stops: registers");
}

int sieve_put(struct sieve *s, uint64_t id, enum sieve_kind kind,
	      struct smco_err *err)
{
	static const char *const name[] = {
		[SIEVE_ANY] = "sieve_any",
		[SIEVE_AFTER_RSEQ] = "sieve_rseq",
		[SIEVE_AFTER_FPU] = "sieve_fpu",
		[SIEVE_WAKING] = "sieve_waking",
		[SIEVE_SIGNAL] = "sieve_signal",
		[SIEVE_ENTRY] = "sieve_entry",
		[SIEVE_EXIT] = "sieve_exit",
	};
	if (kind == SIEVE_AFTER_FPU && heed_saved(s, err))
		return SMCO_SYS;
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
				       .size = sizeof(attr),
				       .config = id,
				       .disabled = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			      PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0 && !ioctl(fd, PERF_EVENT_IOC_SET_BPF,
			      bpfload_prog(s->obj, name[kind])))
		return fd;
	int e = errno;
	if (fd >= 0)
		close(fd);
	return smco_fail(err, SMCO_SYS, e, "counts without stops");
}

void sieve_forget(const struct sieve *s, pid_t tid)
{
	bpf_map_delete_elem(s->threads_fd, &tid);
}

uint64_t sieve_nr_taken(const struct sieve *s, pid_t tid)
{
	struct sieve_thread t;
	return bpf_map_lookup_elem(s->threads_fd, &tid, &t) ? 0 : t.nr_taken;
}

uint64_t sieve_nr_moves(const struct sieve *s, pid_t tid)
{
	struct sieve_thread t;
	return bpf_map_lookup_elem(s->threads_fd, &tid, &t) ? 0 : t.nr_moves;
}
