/*
 * What happens in stops of ours is left out of tracepoints' counts. A thread
 * that stops wakes us up, perhaps by an interrupt to another CPU, and leaves
 * its own: that is the tracer's, not the program's. A program on a tracepoint
 * decides whether what is counted there, by perf's events, counts.
 *
 * Counters of a thread that runs elsewhere are read by an interrupt of its CPU,
 * and what we unmap is told there by one. It is ours, and what happens in it.
 *
 * A timer of ours may end in the program's time, in an interrupt of its CPU:
 * that signals us, and wakes us up.
 *
 * Two things come only on the way back to the program: what a switch has to
 * tell rseq, and registers that others have used meanwhile. Their first ones
 * after a stop are left out.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "supervisor/probe/sieve-bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct fpu {
	unsigned int last_cpu; /* whose registers they were; -1: nobody's */
} __attribute__((preserve_access_index));

struct kernel_siginfo {
	int si_code;
} __attribute__((preserve_access_index));

struct task_struct {
	void *rseq;
	unsigned int ptrace;
	unsigned int __state; /* 0: it would go on running */
	int pid;
	int tgid;
	struct task_struct *parent; /* the tracer, of a traced task */
	/* Why it is in a stop; NULL = it is not. */
	struct kernel_siginfo *last_siginfo;
} __attribute__((preserve_access_index));

/* Of x86_fpu's tracepoints. */
struct fpu_record {
	__u64 common;
	struct fpu *fpu;
	__u8 load_fpu; /* they have to be loaded, for they were not there */
};

/* Of sched:sched_waking and its like, and of signal:signal_generate. */
struct waking_record {
	__u64 common;
	char comm[16];
	int pid;
};
struct signal_record {
	__u64 common;
	int sig, error, code;
	char comm[16];
	int pid;
};

/* The tracer's process. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, int);
} own SEC(".maps");

/* Those that have stopped, by number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SIEVE_MAX_THREADS);
	__type(key, int);
	__type(value, struct sieve_thread);
} threads SEC(".maps");

/* Told where x86_fpu's tracepoint is counted: there alone it matters. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sieve_loaded);
} loaded SEC(".maps");

/* enum sieve_call of each CPU. Where nobody heeds them: SIEVE_NO_CALL. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SIEVE_MAX_CPUS);
	__type(key, __u32);
	__type(value, __u32);
} calls SEC(".maps");

static __always_inline __u32 *call_at(__u32 cpu)
{
	return bpf_map_lookup_elem(&calls, &cpu);
}

static __always_inline int is_in_call(void)
{
	__u32 *call = call_at(bpf_get_smp_processor_id());
	return call && *call == SIEVE_IN_CALL;
}

static __always_inline int is_tracer(const struct task_struct *t)
{
	__u32 zero = 0;
	int *tgid = bpf_map_lookup_elem(&own, &zero);
	return tgid && t->tgid == *tgid;
}

static __always_inline int is_in_stop(const struct task_struct *t)
{
	return t->ptrace && t->last_siginfo && is_tracer(t->parent);
}

static __always_inline struct sieve_thread *find(int pid)
{
	return bpf_map_lookup_elem(&threads, &pid);
}

/* Is it the stop's? Once for each; not where it would have come without. */
static __always_inline int meets(const struct task_struct *t, __u32 what)
{
	struct sieve_thread *s = t->ptrace ? find(t->pid) : 0;
	if (!s)
		return 0;
	int is_stops = (s->left & what) && !(s->own & what);
	s->left &= ~what;
	s->own &= ~what;
	return is_stops;
}

/* Those of a new program or thread have to be loaded in any case. */
static __always_inline int are_new(struct fpu *fpu)
{
	return BPF_CORE_READ(fpu, last_cpu) == (__u32)-1;
}

/* 0: it does not count. */
SEC("tracepoint")
int sieve_any(void *ctx)
{
	return !is_in_stop(bpf_get_current_task_btf()) && !is_in_call();
}

/* @pid is the tracer's thread, and what happens to it does so in the time of
 * one that it traces. */
static __always_inline int is_for_tracer(int pid)
{
	const struct task_struct *t = bpf_get_current_task_btf();
	__u32 zero = 0;
	int *tgid = bpf_map_lookup_elem(&own, &zero);
	return tgid && pid == *tgid && t->ptrace && is_tracer(t->parent);
}

SEC("tracepoint")
int sieve_waking(struct waking_record *r)
{
	return sieve_any(r) && !is_for_tracer(r->pid);
}

SEC("tracepoint")
int sieve_signal(struct signal_record *r)
{
	return sieve_any(r) && !is_for_tracer(r->pid);
}

/* An interrupt's first and last events come before or after sieve_call_begins
 * and sieve_call_ends have seen them. */
static __always_inline int is_call(__u32 other)
{
	__u32 *call = call_at(bpf_get_smp_processor_id());
	return call && (*call == SIEVE_IN_CALL || *call == other);
}

SEC("tracepoint")
int sieve_entry(void *ctx)
{
	return !is_call(SIEVE_SENT);
}

SEC("tracepoint")
int sieve_exit(void *ctx)
{
	return !is_call(SIEVE_CALLED);
}

/* (cpu, callsite, callback): without the last somebody is to be scheduled. */
SEC("raw_tp/ipi_send_cpu")
int sieve_call_sent(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 *call = call_at((__u32)ctx->args[0]);
	if (call && ctx->args[2] && is_tracer(bpf_get_current_task_btf()))
		*call = SIEVE_SENT;
	return 0;
}

SEC("raw_tp/call_function_single_entry")
int sieve_call_begins(void *ctx)
{
	__u32 *call = call_at(bpf_get_smp_processor_id());
	if (call)
		*call = *call == SIEVE_SENT ? SIEVE_IN_CALL : SIEVE_NO_CALL;
	return 0;
}

SEC("raw_tp/call_function_single_exit")
int sieve_call_ends(void *ctx)
{
	__u32 *call = call_at(bpf_get_smp_processor_id());
	if (call && *call == SIEVE_IN_CALL)
		*call = SIEVE_CALLED;
	return 0;
}

SEC("tracepoint")
int sieve_rseq(void *ctx)
{
	const struct task_struct *t = bpf_get_current_task_btf();
	return !is_in_stop(t) && !meets(t, SIEVE_RSEQ);
}

static __always_inline void note_loaded(const struct task_struct *t, __u64 fpu)
{
	__u32 zero = 0;
	struct sieve_loaded *last = bpf_map_lookup_elem(&loaded, &zero);
	struct sieve_thread *s = t->ptrace ? find(t->pid) : 0;
	if (last) {
		last->any = fpu;
		if (!is_tracer(t))
			last->theirs = fpu;
	}
	if (s) {
		s->fpu = fpu;
		s->fpu_cpu = bpf_get_smp_processor_id();
		s->has_kept = 0;
	}
}

SEC("tracepoint")
int sieve_fpu(struct fpu_record *r)
{
	const struct task_struct *t = bpf_get_current_task_btf();
	note_loaded(t, (__u64)r->fpu);
	return !is_in_stop(t) &&
	       !(r->load_fpu && meets(t, SIEVE_FPU) && !are_new(r->fpu));
}

/* SIGTRAP and PTRACE_EVENT_FORK, _VFORK, _CLONE, _EXEC */
#define SI_FORK	 (5 | 1 << 8)
#define SI_VFORK (5 | 2 << 8)
#define SI_CLONE (5 | 3 << 8)
#define SI_EXEC	 (5 | 4 << 8)

/* What a switch of @t leaves to be done; after an exec everything has to be. */
static __always_inline __u32 leaves(const struct task_struct *t)
{
	if (is_in_stop(t) && t->last_siginfo->si_code == SI_EXEC)
		return 0;
	int has_rseq = !bpf_core_field_exists(t->rseq) || t->rseq;
	return SIEVE_FPU | (has_rseq ? SIEVE_RSEQ : 0);
}

static __always_inline int is_birth(const struct task_struct *t)
{
	int code = t->last_siginfo->si_code;
	return code == SI_FORK || code == SI_VFORK || code == SI_CLONE;
}

/* It leaves its CPU, which it would not have done without us. */
static __always_inline void is_put_off(struct sieve_thread *s,
				       const struct task_struct *t)
{
	s->left = leaves(t);
	if (s->has_kept)
		s->own &= ~SIEVE_FPU; /* there was none to meet */
}

/* It leaves @cpu in a stop. A new thread's first is before it was ever in the
 * program: it comes there with everything to be done. */
static __always_inline void stops(const struct task_struct *t, __u32 cpu)
{
	struct sieve_thread *s = find(t->pid);
	if (s) {
		if (!s->has_kept && is_birth(t))
			s->own |= SIEVE_FPU; /* if sieve_saved does not come */
		is_put_off(s, t);
		return;
	}
	struct sieve_thread first = {.cpu = cpu, .home = cpu, .is_held = 1};
	int pid = t->pid;
	bpf_map_update_elem(&threads, &pid, &first, BPF_NOEXIST);
}

static __always_inline void leaves_by_itself(struct sieve_thread *s,
					     const struct task_struct *t)
{
	s->own = leaves(t);
	s->has_kept = 0;
}

/* @next takes the CPU of @prev, who was not about to sleep. */
static __always_inline int takes(const struct task_struct *prev,
				 const struct task_struct *next, int preempts)
{
	return is_tracer(next) && bpf_core_field_exists(prev->__state) &&
	       (preempts || !prev->__state);
}

/* It comes back by itself, to @cpu. Its registers may be there; or they are not
 * for us, who used the CPU, or because it had been moved in a stop. */
static __always_inline void find_registers(struct sieve_thread *s, __u32 cpu)
{
	__u32 zero = 0;
	struct sieve_loaded *last = bpf_map_lookup_elem(&loaded, &zero);
	if (!last || !s->fpu)
		return;
	if (last->any == s->fpu && s->fpu_cpu == cpu) {
		s->has_kept = 1;
	} else if (last->theirs == s->fpu && s->home == cpu) {
		s->own &= ~SIEVE_FPU;
		s->left |= SIEVE_FPU;
	}
}

/* It goes on on @cpu, after a stop or by itself. */
static __always_inline void goes_on(struct sieve_thread *s, int was_stop,
				    __u32 cpu)
{
	if (!was_stop)
		find_registers(s, cpu);
	if (s->cpu == cpu)
		return;
	s->nr_moves += was_stop || s->home == cpu;
	s->cpu = cpu;
	if (!was_stop)
		s->home = cpu;
}

/*
 * Registers are saved when their thread leaves its CPU, if they are there. Then
 * none were to be loaded but for the stop. Where one creates another it has
 * come from the program; if they are not there by then, the kernel has used
 * registers of its own meanwhile, and they are to be loaded in any case.
 */
SEC("raw_tp/x86_fpu_regs_deactivated")
int sieve_saved(void *ctx)
{
	const struct task_struct *t = bpf_get_current_task_btf();
	struct sieve_thread *s;
	if (t->ptrace && (s = find(t->pid)) && (s->is_taken || is_in_stop(t)))
		s->own &= ~SIEVE_FPU;
	return 0;
}

static __always_inline void leaves_cpu(const struct task_struct *t,
				       const struct task_struct *next,
				       int preempts, __u32 cpu)
{
	struct sieve_thread *s = find(t->pid);
	/* Nobody is told of switches from some threads, where the kernel keeps
	 * those from being traced. */
	if (s && s->cpu != cpu)
		goes_on(s, s->is_held, cpu);
	int stands = is_in_stop(t);
	if (stands) {
		stops(t, cpu);
	} else if (s) {
		s->is_taken = takes(t, next, preempts);
		s->nr_taken += s->is_taken;
		if (s->is_taken)
			is_put_off(s, t);
		else
			leaves_by_itself(s, t);
	}
	if (s)
		s->is_held = stands || s->is_taken;
}

SEC("tp_btf/sched_switch")
int sieve_switch(unsigned long long *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	struct sieve_thread *s;
	__u32 cpu = bpf_get_smp_processor_id();
	if (prev->ptrace)
		leaves_cpu(prev, next, ctx[0] & 1, cpu);
	if (next->ptrace && (s = find(next->pid))) {
		goes_on(s, s->is_taken || is_in_stop(next), cpu);
		s->is_taken = s->is_held = 0;
	}
	return 0;
}
