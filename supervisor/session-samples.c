/* Which threads are sampled from when on, and whose stacks samples are. */
#include <string.h>

#include "supervisor/session-private.h"

#define MAX_KERNEL 64

static void put_meta(void *ctx, const char *key, const char *value)
{
	struct session *s = ctx;
	trace_put_meta(s->trace, key, value);
}

/* By its thread, which after vfork runs in its parent's memory; one that has
 * ended, by its process. */
static struct watched *find(const struct session *s, uint32_t pid, uint32_t tid)
{
	struct tproc *p = tracer_proc_of(s->tracer, (pid_t)tid);
	if (p && tproc_user(p))
		return tproc_user(p);
	for (size_t i = 0; i < s->nr_ws; i++)
		if ((uint32_t)s->ws[i]->pid == pid)
			return s->ws[i];
	return NULL;
}

/* The kernel's part of a call chain, without perf's marks. */
static size_t kernel_frames(const struct ring_record *r, taddr_t *ret)
{
	size_t nr = 0;
	bool in_kernel = false;
	for (size_t i = 0; i < r->sample.callchain.nr; i++) {
		uint64_t ip = ring_u64(r->sample.callchain, i);
		if (ip >= PERF_CONTEXT_MAX)
			in_kernel = ip == PERF_CONTEXT_KERNEL;
		else if (in_kernel && nr < MAX_KERNEL)
			ret[nr++] = ip;
	}
	return nr;
}

static bool user_regs(const struct ring_record *r, struct user_regs_struct *ret)
{
	const struct ring_regs *u = &r->sample.user;
	if (u->abi != PERF_SAMPLE_REGS_ABI_64 || u->value.nr < SAMPLER_NR_REGS)
		return false;
	*ret = (struct user_regs_struct){
		.rax = ring_u64(u->value, SAMPLER_AX),
		.rbx = ring_u64(u->value, SAMPLER_BX),
		.rcx = ring_u64(u->value, SAMPLER_CX),
		.rdx = ring_u64(u->value, SAMPLER_DX),
		.rsi = ring_u64(u->value, SAMPLER_SI),
		.rdi = ring_u64(u->value, SAMPLER_DI),
		.rbp = ring_u64(u->value, SAMPLER_BP),
		.rsp = ring_u64(u->value, SAMPLER_SP),
		.rip = ring_u64(u->value, SAMPLER_IP),
		.r8 = ring_u64(u->value, SAMPLER_R8),
		.r9 = ring_u64(u->value, SAMPLER_R8 + 1),
		.r10 = ring_u64(u->value, SAMPLER_R8 + 2),
		.r11 = ring_u64(u->value, SAMPLER_R8 + 3),
		.r12 = ring_u64(u->value, SAMPLER_R8 + 4),
		.r13 = ring_u64(u->value, SAMPLER_R8 + 5),
		.r14 = ring_u64(u->value, SAMPLER_R8 + 6),
		.r15 = ring_u64(u->value, SAMPLER_R8 + 7),
		.orig_rax = UINT64_MAX,
	};
	return true;
}

static uint32_t stack_of(void *ctx, const struct ring_record *r, bool may_wait,
			 enum samples_stack *how_ret)
{
	struct session *s = ctx;
	struct watched *w = find(s, r->pid, r->tid);
	struct user_regs_struct regs;
	taddr_t kernel[MAX_KERNEL];
	if (!w)
		return 0;
	struct watched_sample sample = {
		.kernel = kernel,
		.nr_kernel = kernel_frames(r, kernel),
		.stack.data = r->sample.stack.data,
		.stack.len = r->sample.stack.nr,
		.may_wait = may_wait,
	};
	if (user_regs(r, &regs)) {
		sample.regs = &regs;
		sample.stack.start = regs.rsp;
		if (w->nap && r->sample.stack.nr)
			nap_sampled(w->nap, regs.rsp,
				    regs.rsp + r->sample.stack.nr, r->time);
	}
	return watched_sample_stack(w, &sample, s->stacks, how_ret);
}

static void mapped(void *ctx, const struct ring_record *r)
{
	struct watched *w = find(ctx, r->pid, r->tid);
	if (w)
		watched_mapped(w, r);
}

/* Of who was there before the pause only what came in it is not known, and the
 * mappings can be read when it is met; who came in it may not live for so long.
 */
static void resumed(void *ctx, uint64_t since_ns)
{
	struct session *s = ctx;
	for (size_t i = 0; i < s->nr_ws; i++)
		if (s->ws[i]->maps_read_ns >= since_ns)
			watched_update_modules(s->ws[i], NULL);
}

int session_samples_create(struct session *s, struct smco_err *err)
{
	const struct options *o = s->opt;
	const struct samples_params p = {
		.frequency_hz = o->sample_hz,
		.target_overhead_ppb = o->target_ppb,
		.is_alone = !(o->monitors & ~MONITOR_SAMPLES),
		.threads_only = !o->follow,
		.exact_times = o->monitors & MONITOR_PHASES,
		.start_ns = s->start_ns,
		.stack = stack_of,
		.mapped = mapped,
		.resumed = resumed,
		.emit = session_emit,
		.put_meta = put_meta,
		.ctx = s,
	};
	if (!(o->monitors & MONITOR_SAMPLES))
		return 0;
	int rc = samples_create(&p, s->ledger, &s->samples, err);
	if (rc && err) /* not "the command is not found" */
		err->code = SMCO_UNSUPPORTED;
	return rc;
}

void session_samples_read(void *ctx)
{
	struct session *s = ctx;
	if (s->samples)
		samples_drain(s->samples);
}

void session_samples_left(struct session *s, const struct tevent *ev)
{
	struct watched *before = ev->parent ? tproc_user(ev->parent) : NULL;
	if (!s->samples || !before || ev->why != TPROC_EXECED)
		return;
	tproc_set_user(ev->proc, before);
	samples_drain(s->samples);
	tproc_set_user(ev->proc, NULL);
}

/* What is started or forked is sampled by what the kernel inherits. */
void session_samples_attached(struct session *s, struct tproc *p)
{
	if (!s->samples)
		return;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t))
		samples_add(s->samples, task_tid(t), false);
}

/* What it maps from now on the kernel tells. */
void session_samples_running(struct session *s, struct tproc *p)
{
	struct watched *w = tproc_user(p);
	if (s->samples && w)
		watched_update_modules(w, NULL);
}

uint64_t session_samples_due_ns(const struct session *s)
{
	return s->samples ? samples_due_ns(s->samples) : UINT64_MAX;
}
