/* Faults and system calls while guards are armed, or were a moment ago. */
#include "supervisor/probe/guard.h"

#include <Zydis/Zydis.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* No new guards for so long after a SIGSEGV of the program's own: until the
 * thread has entered the program's handler, that must be the one in place. */
#define DELIVERY_NS (2 * NSEC_PER_MSEC)
/* Syscall-stops with nothing armed before tracing ends. */
#define IDLE_STOPS 32

/* --- faults --- */

static bool reg_value(ZydisRegister reg, const struct user_regs_struct *r,
		      uint64_t *ret)
{
	const uint64_t gpr[] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp,
				r->rsi, r->rdi, r->r8,	r->r9,	r->r10, r->r11,
				r->r12, r->r13, r->r14, r->r15};
	if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
		*ret = gpr[reg - ZYDIS_REGISTER_RAX];
	else if (reg >= ZYDIS_REGISTER_EAX && reg <= ZYDIS_REGISTER_R15D)
		*ret = (uint32_t)gpr[reg - ZYDIS_REGISTER_EAX];
	else if (reg == ZYDIS_REGISTER_RIP)
		*ret = r->rip;
	else if (reg == ZYDIS_REGISTER_NONE)
		*ret = 0;
	else
		return false; /* a vector index: gather and scatter */
	return true;
}

/* ptrace does not show the page fault's error code: decode the instruction
 * and see whether the operand that faulted is written. */
static bool is_write_at(struct guard *g, const struct user_regs_struct *r,
			taddr_t addr)
{
	uint8_t code[15];
	ZydisDecoder dec;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	bool any_write = false;
	size_t n = guard_read(g, r->rip, code, sizeof(code));
	ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&dec, code, n, &insn, op)))
		return false;
	for (unsigned i = 0; i < insn.operand_count; i++) {
		uint64_t base, index;
		if (op[i].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    op[i].mem.type == ZYDIS_MEMOP_TYPE_AGEN)
			continue;
		bool writes = op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		any_write |= writes;
		if (!reg_value(op[i].mem.base, r, &base) ||
		    !reg_value(op[i].mem.index, r, &index))
			continue;
		if (op[i].mem.base == ZYDIS_REGISTER_RIP)
			base += insn.length;
		uint64_t ea = base + index * op[i].mem.scale +
			      (uint64_t)op[i].mem.disp.value;
		if (op[i].mem.segment == ZYDIS_REGISTER_FS)
			ea += r->fs_base;
		if (op[i].mem.segment == ZYDIS_REGISTER_GS)
			ea += r->gs_base;
		/* push: the address before it is decremented */
		uint64_t size = op[i].size / 8;
		if (addr + size >= ea && addr < ea + size)
			return writes;
	}
	return any_write;
}

/* The kernel has unblocked it to deliver the fault. */
static void mend_mask(struct guard *g, struct task *t, bool was_reset)
{
	uint64_t mask;
	if (guard_call_blocks(g, t, was_reset) &&
	    task_get_sigmask(t, &mask) == 0)
		task_set_sigmask(t, mask | 1ULL << (SIGSEGV - 1));
}

/* Of what is not so large that to open it is most of it. */
static void average(struct guard *g, const struct guard_entry *e,
		    uint64_t cost_ns)
{
	if (e->end - e->start <= GUARD_SMALL)
		g->hit_ns = (uint64_t)((int64_t)g->hit_ns +
				       (int64_t)(cost_ns - g->hit_ns) / 8);
}

static bool guard_fault(struct guard *g, struct tevent *ev, size_t index,
			struct access_hit *hit)
{
	const struct guard_entry e = g->tab.v[index];
	taddr_t addr = (taddr_t)(uintptr_t)ev->siginfo.si_addr;
	struct user_regs_struct r;
	bool was_reset = false;
	hit->range = (struct page_range){
		.start = e.start, .end = e.end, .user = e.user};
	hit->addr = addr;
	if (task_get_regs(ev->task, &r) == 0)
		hit->is_write = is_write_at(g, &r, addr);
	guard_take(g, index, NULL);
	guard_flush(g, &was_reset);
	mend_mask(g, ev->task, was_reset);
	g->nr_hits++;
	hit->cost_ns = smco_now_ns() - ev->stop_ns +
		       tracer_stop_cost_ns(tproc_tracer(g->base.proc));
	average(g, &e, hit->cost_ns);
	return true;
}

/* Was this memory a guard's when the thread faulted? Then the access works
 * now, or the fault comes again for a reason of the program's own. */
static bool try_again(struct guard *g, struct tevent *ev)
{
	struct guard_call *c = guard_call_of(g, ev->task);
	taddr_t addr = (taddr_t)(uintptr_t)ev->siginfo.si_addr;
	struct user_regs_struct r;
	if (!c || task_get_regs(ev->task, &r))
		return false;
	if (c->retry_pc == r.rip && c->retry_addr == addr &&
	    c->retry_seq == g->arm_seq) {
		c->retry_pc = 0;
		return false;
	}
	c->retry_pc = r.rip;
	c->retry_addr = addr;
	c->retry_seq = g->arm_seq;
	return true;
}

static bool on_fault(struct guard *g, struct tevent *ev, struct access_hit *hit)
{
	if (ev->siginfo.si_signo != SIGSEGV)
		return false;
	if (ev->siginfo.si_code == SEGV_ACCERR) {
		taddr_t addr = (taddr_t)(uintptr_t)ev->siginfo.si_addr;
		size_t i = guardtab_first(&g->tab, addr);
		if (i < g->tab.nr && g->tab.v[i].start <= addr)
			return guard_fault(g, ev, i, hit);
		if ((g->arm_seq || g->had_older) && try_again(g, ev)) {
			if (g->on)
				mend_mask(g, ev->task, guard_mend_action(g));
			return true;
		}
	}
	/* The program's own: it must find its own handler. */
	guard_off(g);
	g->not_before_ns = smco_now_ns() + DELIVERY_NS;
	return false;
}

/* --- system calls --- */

static taddr_t string_end(struct guard *g, taddr_t start, taddr_t end)
{
	char buf[256];
	while (start < end) {
		size_t n =
			end - start < sizeof(buf) ? end - start : sizeof(buf);
		n = guard_read(g, start, buf, n);
		if (!n)
			break;
		const char *nul = memchr(buf, 0, n);
		if (nul)
			return start + (taddr_t)(nul - buf) + 1;
		start += n;
	}
	return start;
}

static void take_range(struct guard *g, const struct sysrange *r,
		       struct access_hit *hit)
{
	taddr_t end = r->end;
	if (r->what & SYSARG_STACK) {
		guard_stack_add(g, r->start);
		return;
	}
	if (r->what & SYSARG_KEEP)
		addr_ranges_add(&g->kept, r->start, r->end);
	size_t i = guardtab_first(&g->tab, r->start);
	if (i == g->tab.nr || g->tab.v[i].start >= end)
		return;
	if (r->what & SYSARG_STRING)
		end = string_end(g, r->start, end);
	hit->is_write = r->what & SYSARG_WRITE;
	hit->is_gap = r->what & SYSARG_MAP;
	for (;;) {
		i = guardtab_first(&g->tab, r->start);
		if (i == g->tab.nr || g->tab.v[i].start >= end)
			return;
		hit->addr = g->tab.v[i].start > r->start ? g->tab.v[i].start
							 : r->start;
		guard_take(g, i, hit);
	}
}

static void take_ranges(struct guard *g, const struct guard_call *c,
			struct task *t, long nr)
{
	struct access_hit hit = {
		.time_ns = smco_now_ns(),
		.task = t,
		.in_kernel = true,
		.syscall_nr = nr,
	};
	for (size_t i = 0; i < c->ranges.nr; i++)
		take_range(g, &c->ranges.v[i], &hit);
	guard_flush(g, NULL);
}

#define RED_ZONE 128

/*
 * A stack that the thread had not when tracing began, of a coroutine perhaps:
 * the frame is not seen before it is written, and what cannot be written kills.
 * It is not guarded again before the thread has got there, nor later.
 */
void guard_before_signal(struct task *t, void *arg)
{
	struct guard *g = arg;
	struct user_regs_struct r;
	struct access_hit hit = {.time_ns = smco_now_ns()};
	guard_call_handler(g, t);
	if (task_get_regs(t, &r)) {
		guard_off(g);
		return;
	}
	struct addr_range around = guard_stack_around(r.rsp);
	const struct sysrange frame = {r.rsp - RED_ZONE - 8, r.rsp - RED_ZONE,
				       SYSARG_WRITE},
			      rest = {around.start, around.end, SYSARG_MAP};
	take_range(g, &frame, &hit);
	take_range(g, &rest, &hit);
	addr_ranges_add(&g->stacks, around.start, around.end);
	guard_flush(g, NULL);
}

static void lock_is_kept(struct guard *g, long nr, const uint64_t args[6])
{
	if (nr == SYS_mlockall)
		guard_refuse(g, "it locks all its memory");
	if ((nr == SYS_mlock || nr == SYS_mlock2) &&
	    args[0] + args[1] > args[0])
		addr_ranges_add(&g->kept, args[0] & ~(TPAGE_SIZE - 1),
				args[0] + args[1]);
}

/* Threads end: the kernel walks their robust lists. */
static void threads_exit(struct guard *g, struct task *t, long nr)
{
	struct addr_ranges list = {0};
	struct access_hit hit = {
		.time_ns = smco_now_ns(),
		.in_kernel = true,
		.is_write = true,
		.syscall_nr = nr,
	};
	if (nr == SYS_exit)
		robust_list_add(g->base.proc, task_tid(t), &list);
	else
		for (t = tproc_first_task(g->base.proc); t; t = task_next(t))
			robust_list_add(g->base.proc, task_tid(t), &list);
	for (size_t i = 0; i < list.nr; i++) {
		const struct sysrange r = {list.v[i].start, list.v[i].end,
					   SYSARG_READ | SYSARG_WRITE};
		take_range(g, &r, &hit);
	}
	addr_ranges_free(&list);
	guard_flush(g, NULL);
}

static void act_on_class(struct guard *g, enum sysargs_class class,
			 struct guard_call *c, struct task *t, long nr)
{
	switch (class) {
	case SYSARGS_KNOWN:
		take_ranges(g, c, t, nr);
		break;
	case SYSARGS_UNKNOWN:
		guard_take_all(g, t, nr);
		break;
	case SYSARGS_EXIT:
		threads_exit(g, t, nr);
		c->active = false;
		break;
	case SYSARGS_ASYNC:
		guard_refuse(g, "it uses io_uring or kernel AIO, which touch "
				"memory with no system call");
		guard_off(g);
		break;
	case SYSARGS_SHOWN:
		guard_refuse(g, "it lets another process look into its memory "
				"(PR_SET_PTRACER)");
		guard_off(g);
		break;
	case SYSARGS_DIVERT:
		/* Were we killed, so would be the calls of our handler. */
		guard_refuse(g, DIVERTS_CALLS);
		guard_off(g);
		break;
	case SYSARGS_COPY:
	case SYSARGS_SIGNAL:
		guard_off(g);
		break;
	case SYSARGS_ALONE:
		guard_off(g);
		warden_quit(g->w);
		guard_untrace(g);
		break;
	}
}

static void on_syscall_in(struct guard *g, struct task *t)
{
	struct user_regs_struct r;
	struct guard_call *c = guard_call_of(g, t);
	if (!c || task_get_regs(t, &r)) {
		guard_off(g);
		return;
	}
	const uint64_t args[6] = {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9};
	long nr = (long)r.orig_rax;
	guard_call_mask(c, t, nr);
	if (task_calls_compat(t)) {
		/* Nothing is known of it: it may fork, or touch anything. */
		c->active = c->all = true;
		c->mask = GUARD_MASK_UNKNOWN;
		guard_off(g);
		return;
	}
	enum sysargs_class class =
		sysargs_get(nr, args, r.rsp, guard_read, g, &c->ranges);
	c->active = true;
	c->all = class != SYSARGS_KNOWN && class != SYSARGS_EXIT;
	lock_is_kept(g, nr, args);
	guard_others_look(g, nr, args);
	act_on_class(g, class, c, t, nr);
}

static void on_syscall_out(struct guard *g, struct task *t)
{
	struct guard_call *c = guard_call_of(g, t);
	if (c) {
		c->active = false;
		guard_call_mask(c, t, -1);
	}
	if (g->tab.nr || !g->traced)
		return;
	if (++g->idle_stops < IDLE_STOPS)
		return;
	guard_untrace(g);
}

bool guard_on_event(struct access *a, struct tevent *ev, struct access_hit *hit)
{
	struct guard *g = (struct guard *)a;
	memset(hit, 0, sizeof(*hit));
	hit->task = ev->task;
	hit->stopped = true;
	hit->time_ns = ev->stop_ns;
	switch (ev->kind) {
	case TEV_FAULT:
		return on_fault(g, ev, hit);
	case TEV_SYSCALL_IN:
		if (!g->traced)
			return false;
		g->nr_syscall_stops += 2;
		on_syscall_in(g, ev->task);
		/* Told from the queue, with the thread still stopped. */
		if (!guard_next_hit(a, hit))
			return false;
		hit->task = ev->task;
		hit->stopped = true;
		return true;
	case TEV_SYSCALL_OUT:
		if (g->traced)
			on_syscall_out(g, ev->task);
		return false;
	default:
		return false;
	}
}
