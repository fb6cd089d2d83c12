/*
 * Run at each hit of a debug register that watches writes to a variable, in the
 * thread that wrote: reads the variable and widens its smallest and largest
 * value. Or of one that waits for an instruction, before that runs: reads the
 * variables that have a value there, most of them in registers. Nothing is told
 * to anybody; the supervisor reads the shared map.
 *
 * Which word it is comes with the event (the link's cookie). Returns 1 when the
 * word's hits are used up: the kernel then counts the overflow against the
 * event's limit of one (PERF_EVENT_IOC_REFRESH) and switches it off for that
 * thread.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "supervisor/probe/watch-bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WATCH_WORDS);
	__type(key, __u32);
	__type(value, struct watch_word);
} words SEC(".maps");

#define TRIES 16 /* for a value that other CPUs widen at the same time */

static __always_inline int less(const struct watch_part *p, __s64 a, __s64 b)
{
	return p->is_signed ? a < b : (__u64)a < (__u64)b;
}

static __always_inline __s64 part_of(const struct watch_part *p, __u64 word)
{
	__u64 up = word >> (p->shift & 63) << (-p->bits & 63);
	return p->is_signed ? (__s64)up >> (-p->bits & 63)
			    : (__s64)(up >> (-p->bits & 63));
}

/* Part @i of word @k had @word in it. Global, so that the verifier looks at it
 * once instead of for each part, which was half of the time that loading took.
 */
__noinline int widen(__u32 k, __u32 i, __u64 word)
{
	struct watch_word *w = bpf_map_lookup_elem(&words, &k);
	if (!w || i >= WATCH_FIELDS)
		return 0;
	struct watch_part *p = &w->part[i];
	__s64 v = part_of(p, word);
	for (int t = 0; t < TRIES; t++) {
		__s64 was = p->smallest;
		if (!less(p, v, was) ||
		    __sync_val_compare_and_swap(&p->smallest, was, v) == was)
			break;
	}
	for (int t = 0; t < TRIES; t++) {
		__s64 was = p->largest;
		if (!less(p, was, v) ||
		    __sync_val_compare_and_swap(&p->largest, was, v) == was)
			break;
	}
	return 0;
}

static __always_inline long read_memory(__u64 addr, __u32 bytes, __u64 *ret)
{
	const void *at = (const void *)addr;
	__u32 v4 = 0;
	__u16 v2 = 0;
	__u8 v1 = 0;
	long bad;
	switch (bytes) {
	case 8:
		return bpf_probe_read_user(ret, 8, at);
	case 4:
		bad = bpf_probe_read_user(&v4, 4, at);
		*ret = v4;
		return bad;
	case 2:
		bad = bpf_probe_read_user(&v2, 2, at);
		*ret = v2;
		return bad;
	default:
		bad = bpf_probe_read_user(&v1, 1, at);
		*ret = v1;
		return bad;
	}
}

/* Do all pointers to word @k still lead there? As long as they do so behind the
 * read, too, it was of what they lead to. Global for the verifier, as above. */
__noinline int is_reached(__u32 k)
{
	struct watch_word *w = bpf_map_lookup_elem(&words, &k);
	if (!w)
		return 0;
	for (__u32 i = 0; i < WATCH_GUARDS && i < w->nr_guards; i++) {
		__u64 now = 0;
		if (bpf_probe_read_user(&now, 8,
					(const void *)w->guard[i].addr) ||
		    now != w->guard[i].value)
			return 0;
	}
	return 1;
}

/* One more; 1: it was the last. */
static __always_inline int count(struct watch_word *w)
{
	__sync_fetch_and_add(&w->nr_hits, 1);
	__s64 left = __sync_fetch_and_add(&w->left, -1);
	if (left == 1)
		w->spent_ns = bpf_ktime_get_ns();
	if (left > 1)
		return 0;
	__sync_fetch_and_add(&w->nr_off, 1);
	return 1;
}

SEC("perf_event") int watch_hit(struct bpf_perf_event_data *ctx)
{
	__u32 k = (__u32)bpf_get_attach_cookie(ctx);
	struct watch_word *w = bpf_map_lookup_elem(&words, &k);
	__u64 v = 0;
	if (!w)
		return 1;
	if (!is_reached(k) || read_memory(w->addr, w->bytes, &v) ||
	    !is_reached(k)) {
		__sync_fetch_and_add(&w->nr_unread, 1);
	} else {
		for (__u32 i = 0; i < WATCH_FIELDS && i < w->nr_parts; i++)
			widen(k, i, v);
	}
	return count(w);
}

struct registers {
	__u64 at[16]; /* as the processor counts them */
};

/* The top of an expression's stack, and what is below. */
struct stack {
	__u64 a, b, c;
};

static __always_inline __u64 extend(__u64 a, __u64 bytes, int is_signed)
{
	__u32 unused = (64 - 8 * (__u32)bytes) & 63;
	return is_signed ? (__u64)((__s64)(a << unused) >> unused)
			 : a << unused >> unused;
}

/* One operation that leaves as much on the stack; false: nothing to be read. */
static __always_inline int change(struct stack *s, __u8 code, __s64 arg)
{
	switch (code) {
	case WATCH_PLUS:
		s->a += (__u64)arg;
		return 1;
	case WATCH_LOAD: {
		__u64 v = 0;
		long bad = read_memory(s->a, (__u32)arg, &v);
		s->a = v;
		return !bad;
	}
	case WATCH_ZEXT:
	case WATCH_SEXT:
		s->a = extend(s->a, (__u64)arg, code == WATCH_SEXT);
		return 1;
	case WATCH_NEG:
		s->a = -s->a;
		return 1;
	default:
		s->a = ~s->a;
		return 1;
	}
}

/* One that takes the top away. */
static __always_inline void join(struct stack *s, __u8 code)
{
	__u64 a = s->b, b = s->a;
	s->b = s->c;
	if (code == WATCH_ADD)
		s->a = a + b;
	else if (code == WATCH_SUB)
		s->a = a - b;
	else if (code == WATCH_MUL)
		s->a = a * b;
	else if (code == WATCH_AND)
		s->a = a & b;
	else if (code == WATCH_OR)
		s->a = a | b;
	else if (code == WATCH_XOR)
		s->a = a ^ b;
	else if (code == WATCH_SHL)
		s->a = a << (b & 63);
	else if (code == WATCH_SHR)
		s->a = a >> (b & 63);
	else if (code == WATCH_SAR)
		s->a = (__u64)((__s64)a >> (b & 63));
	else if (code == WATCH_EQ || code == WATCH_NE)
		s->a = (a == b) == (code == WATCH_EQ);
	else if (code == WATCH_LT || code == WATCH_GE)
		s->a = ((__s64)a < (__s64)b) == (code == WATCH_LT);
	else
		s->a = ((__s64)a <= (__s64)b) == (code == WATCH_LE);
}

/* Operation @at of word @k; 0: its operand cannot be read. Global for the
 * verifier, which would look at each of all ways through it anew. */
__noinline int operate(__u32 k, __u32 at, const struct registers *reg,
		       struct stack *s)
{
	struct watch_word *w = bpf_map_lookup_elem(&words, &k);
	if (!w || !reg || !s || at >= WATCH_OPS)
		return 0;
	__u8 code = w->op_code[at];
	__s64 arg = w->op_arg[at];
	if (code > WATCH_PUSH && code < WATCH_ADD)
		return change(s, code, arg);
	if (code >= WATCH_ADD) {
		join(s, code);
		return 1;
	}
	s->c = s->b;
	s->b = s->a;
	s->a = code == WATCH_PUSH_REG ? reg->at[arg & 15] : (__u64)arg;
	return 1;
}

/* The thread's pointer, which is at itself, too: so where it was changed
 * without the kernel's help what is read was some thread's all the same. */
static __always_inline int thread_pointer(const struct watch_word *w,
					  __u64 *ret)
{
	__u64 task = bpf_get_current_task(), itself = 0;
	return !bpf_probe_read_kernel(ret, 8, (void *)(task + w->thread_at)) &&
	       !bpf_probe_read_user(&itself, 8, (void *)*ret) && itself == *ret;
}

/* What part @i of word @k finds; 0: it cannot be read now. Global, as above. */
__noinline int find(__u32 k, __u32 i, const struct registers *reg, __u64 *ret)
{
	struct watch_word *w = bpf_map_lookup_elem(&words, &k);
	if (!w || !reg || !ret || i >= WATCH_FIELDS)
		return 0;
	const struct watch_part *p = &w->part[i];
	struct stack s = {0};
	__u64 sum = reg->at[p->reg & 15] + (__u64)p->offset;
	switch (p->source) {
	case WATCH_REG:
		*ret = reg->at[p->reg & 15];
		return 1;
	case WATCH_AT_REG:
		return !read_memory(sum, p->bytes, ret);
	case WATCH_AT:
		return !read_memory((__u64)p->offset, p->bytes, ret);
	case WATCH_SUM:
		*ret = sum;
		return 1;
	case WATCH_AT_THREAD:
		return thread_pointer(w, &s.a) &&
		       !read_memory(s.a + (__u64)p->offset, p->bytes, ret);
	case WATCH_EXPR:
		for (__u32 n = 0; n < WATCH_OPS && n < p->nr_ops; n++)
			if (!operate(k, p->first_op + n, reg, &s))
				return 0;
		*ret = s.a;
		return 1;
	default:
		*ret = (__u64)p->offset;
		return 1;
	}
}

SEC("perf_event") int insn_hit(struct bpf_perf_event_data *ctx)
{
	__u32 k = (__u32)bpf_get_attach_cookie(ctx);
	struct watch_word *w = bpf_map_lookup_elem(&words, &k);
	const struct registers reg = {{
		ctx->regs.rax,
		ctx->regs.rcx,
		ctx->regs.rdx,
		ctx->regs.rbx,
		ctx->regs.rsp,
		ctx->regs.rbp,
		ctx->regs.rsi,
		ctx->regs.rdi,
		ctx->regs.r8,
		ctx->regs.r9,
		ctx->regs.r10,
		ctx->regs.r11,
		ctx->regs.r12,
		ctx->regs.r13,
		ctx->regs.r14,
		ctx->regs.r15,
	}};
	int all = 1;
	if (!w)
		return 1;
	if (!is_reached(k)) {
		__sync_fetch_and_add(&w->nr_unread, 1);
		return count(w);
	}
	for (__u32 i = 0; i < WATCH_FIELDS && i < w->nr_parts; i++) {
		__u64 v = 0;
		if (find(k, i, &reg, &v))
			widen(k, i, v);
		else
			all = 0;
	}
	if (!all)
		__sync_fetch_and_add(&w->nr_unread, 1);
	return count(w);
}
