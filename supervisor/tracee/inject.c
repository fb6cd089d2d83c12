/*
 * System calls and code in the tracee, by a borrowed task (loan.h).
 *
 * The first calls of a process are made from the end of the vdso; they install
 * the stub, two pages, and all others are run there: any number of calls in
 * one stop. Both have a way back for the task should the supervisor die in
 * between. Without a vdso, calls are made at any syscall instruction that the
 * process has, in two stops each and with no way back.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "supervisor/tracee/loan.h"

/* --- where is a syscall instruction --- */

static taddr_t search_range(struct tproc *p, taddr_t start, taddr_t end)
{
	uint8_t buf[4096];
	size_t len = arch.syscall_insn_len;
	while (start + len <= end) {
		size_t n =
			end - start < sizeof(buf) ? end - start : sizeof(buf);
		n = tmem_read_some(p, start, buf, n);
		if (n < len)
			return 0;
		uint8_t *hit = memmem(buf, n, arch.syscall_insn, len);
		if (hit)
			return start + (taddr_t)(hit - buf);
		start += n - len + 1;
	}
	return 0;
}

static taddr_t find_syscall_insn(struct tproc *p)
{
	if (p->syscall_insn)
		return p->syscall_insn;
	/* The vdso is there in every process, at any time. */
	struct tmaps maps;
	taddr_t vdso = proc_auxv(tproc_live_tid(p), AT_SYSINFO_EHDR);
	if (vdso)
		p->syscall_insn = search_range(p, vdso, vdso + 2 * TPAGE_SIZE);
	if (p->syscall_insn || tproc_read_maps(p, &maps, NULL) < 0)
		return p->syscall_insn;
	for (size_t i = 0; i < maps.nr && !p->syscall_insn; i++)
		if (maps.maps[i].prot & PROT_EXEC)
			p->syscall_insn = search_range(p, maps.maps[i].start,
						       maps.maps[i].end);
	tmaps_deinit(&maps);
	return p->syscall_insn;
}

/* --- without a stub --- */

static int call_plain(struct loan *l, struct tsyscall *c)
{
	struct user_regs_struct regs = l->regs;
	taddr_t insn = find_syscall_insn(l->t->proc);

	if (!insn)
		return SMCO_UNSUPPORTED;
	arch.set_syscall(&regs, insn, c->nr, c->args);
	int r = loan_block(l);
	if (r == 0)
		r = loan_set_regs(l, &regs);
	for (int i = 0; r == 0 && i < 2; i++)
		r = loan_to_syscall_stop(l);
	if (r == 0 && ptrace(PTRACE_GETREGS, l->t->tid, NULL, &regs) < 0)
		r = SMCO_GONE;
	c->ret = arch.syscall_ret(&regs);
	return r;
}

/* --- from the end of the vdso --- */

#define BOOT_LEN (ARCH_BOOT_DATA + ARCH_BOOT_SAVED)
#define STUB_LEN (2 * TPAGE_SIZE)
/* Of a stack, above its pointer: where signal frames are. */
#define SCAN_BYTES (64UL << 10)

static bool all_zero(const uint8_t *p, size_t n)
{
	size_t zeros = 0;
	while (zeros < n && !p[zeros])
		zeros++;
	return zeros == n;
}

static bool stands_in(struct tproc *p, taddr_t start, taddr_t end)
{
	struct user_regs_struct regs;
	for (struct task *t = p->tasks; t; t = t->next)
		if (task_get_regs(t, &regs) == 0 && arch.pc(&regs) >= start &&
		    arch.pc(&regs) < end)
			return true;
	return false;
}

/* All stand, and none is in [start, end) or comes back there from a handler of
 * a signal. */
static bool is_deserted(struct tproc *p, taddr_t start, taddr_t end)
{
	static uint64_t words[SCAN_BYTES / 8];
	taddr_t pc, sp;
	for (struct task *t = p->tasks; t; t = t->next) {
		int r = task_get_place(t, &pc, &sp);
		if (r == SMCO_GONE)
			continue;
		if (r < 0 || (pc >= start && pc < end))
			return false;
		size_t nr = tmem_read_readable(p, sp & ~7ULL, words,
					       sizeof(words)) /
			    8;
		for (size_t i = 0; i < nr; i++)
			if (words[i] >= start && words[i] < end)
				return false;
	}
	return true;
}

/*
 * Stubs of those of us who were killed: two anonymous pages, code and data. A
 * thread that is still in one finds its way back alone; until then it stays.
 */
static bool is_old_stub(struct tproc *p, const struct tmap *m,
			const struct tmap *data)
{
	uint8_t page[TPAGE_SIZE];
	const uint8_t *code;
	size_t done, len = arch.stub_code(&code, &done);

	return m->prot == (PROT_READ | PROT_EXEC) && !m->path[0] &&
	       !m->shared && data->start == m->end &&
	       data->prot == (PROT_READ | PROT_WRITE) && !data->path[0] &&
	       !data->shared &&
	       tmem_read(p, m->end - TPAGE_SIZE, page, sizeof(page)) == 0 &&
	       !memcmp(page, code, len) &&
	       all_zero(page + len, sizeof(page) - len);
}

void inject_look(struct tproc *p)
{
	struct tmaps maps;
	if (p->vdso_end || tproc_read_maps(p, &maps, NULL) < 0)
		return;
	for (size_t i = 0; i < maps.nr; i++) {
		const struct tmap *m = &maps.maps[i];
		if (!strcmp(m->path, "[vdso]"))
			p->vdso_end = m->end;
		if (p->why == TPROC_ATTACHED && i + 1 < maps.nr &&
		    p->nr_old_stubs < ARRAY_SIZE(p->old_stubs) &&
		    is_old_stub(p, m, m + 1))
			p->old_stubs[p->nr_old_stubs++] = m->end - TPAGE_SIZE;
	}
	tmaps_deinit(&maps);
}

static bool stub_is_deserted(struct tproc *p, taddr_t at)
{
	return is_deserted(p, at, at + STUB_LEN);
}

/* Those that may be used; the others are looked at again when we leave. */
static void keep_deserted_stubs(struct tproc *p)
{
	unsigned nr = 0;
	for (unsigned i = 0; i < p->nr_old_stubs; i++) {
		taddr_t at = p->old_stubs[i];
		if (stub_is_deserted(p, at))
			p->old_stubs[nr++] = at;
		else if (p->nr_busy_stubs < ARRAY_SIZE(p->busy_stubs))
			p->busy_stubs[p->nr_busy_stubs++] = at;
	}
	p->nr_old_stubs = nr;
}

/* But for the place of libs.c. */
static int write_boot(struct tproc *p, taddr_t site, const uint8_t *image)
{
	int r = tmem_write(p, site, image, ARCH_BOOT_LIBS);
	return r ? r
		 : tmem_write(p, site + ARCH_BOOT_DATA, image + ARCH_BOOT_DATA,
			      ARCH_BOOT_SAVED);
}

static taddr_t boot_below(taddr_t end)
{
	return (end - BOOT_LEN) & ~15ULL;
}

static taddr_t spare_below(taddr_t boot, size_t len)
{
	return (boot - len - 64) & ~15ULL;
}

/*
 * The vdso's last page is filled up with zeros: executable memory that nobody
 * uses. 0 if there is not enough of it. What one of us left there who was
 * killed is no hindrance, once no thread is in it: without this place calls
 * are made where our own death would do harm.
 */
static taddr_t find_boot_site(struct tproc *p)
{
	uint8_t page[TPAGE_SIZE];
	const uint8_t *code;
	size_t done, len = arch.boot_code(&code, &done);

	if (p->boot_site)
		return p->boot_site == 1 ? 0 : p->boot_site;
	p->boot_site = 1;
	inject_look(p);
	keep_deserted_stubs(p);
	taddr_t end = p->vdso_end;
	if (!end || tmem_read(p, end - sizeof(page), page, sizeof(page)) < 0)
		return 0;
	/* Some distance from what is used, and on a boundary. */
	taddr_t site = boot_below(end);
	const uint8_t *at = page + sizeof(page) - (end - site);
	if (!all_zero(at - 32, 32))
		return 0;
	if ((all_zero(at, ARCH_BOOT_LIBS) &&
	     all_zero(at + ARCH_BOOT_DATA, ARCH_BOOT_SAVED)) ||
	    (!memcmp(at, code, len) && !stands_in(p, site, site + len)))
		p->boot_site = site;
	return p->boot_site == 1 ? 0 : p->boot_site;
}

taddr_t inject_spare_code(struct tproc *p, size_t len)
{
	uint8_t page[TPAGE_SIZE];
	taddr_t boot = find_boot_site(p);
	taddr_t at = spare_below(boot, len);

	/* The boot code must find its own zeros again, hence the distance. */
	if (!boot || len > sizeof(page) / 2 ||
	    at / TPAGE_SIZE != boot / TPAGE_SIZE ||
	    tmem_read(p, at - 32, page, boot - at + 32) < 0)
		return 0;
	return at;
}

taddr_t inject_libs_place(struct tproc *p)
{
	inject_look(p);
	return p->vdso_end ? boot_below(p->vdso_end) + ARCH_BOOT_LIBS : 0;
}

taddr_t inject_spare_was(struct tproc *p, size_t len)
{
	inject_look(p);
	return p->vdso_end ? spare_below(boot_below(p->vdso_end), len) : 0;
}

/* A task that did not come back from there (frozen) has its own registers again
 * when it is left, unless it is still owed them. */
static int undo_boot(struct tproc *p, void *arg)
{
	static const uint8_t zeros[BOOT_LEN];
	taddr_t site = p->boot_site;
	(void)arg;

	p->has_boot_undo = false;
	if (site <= 1 || p->nr_owed ||
	    stands_in(p, site, site + ARCH_BOOT_LIBS))
		return 0;
	return write_boot(p, site, zeros);
}

static int call_by_boot(struct loan *l, struct tsyscall *c)
{
	static const uint8_t zeros[BOOT_LEN];
	struct task *t = l->t;
	struct tproc *p = t->proc;
	taddr_t site = find_boot_site(p);
	struct arch_stub_data back;
	struct user_regs_struct regs = l->regs;
	uint8_t image[BOOT_LEN] = {0};
	const uint8_t *code;
	size_t done, len = arch.boot_code(&code, &done);

	if (!site || len > ARCH_BOOT_LIBS)
		return call_plain(l, c);
	if (l->in_entry)
		arch.rewind_syscall(&regs, arch.syscall_nr(&l->regs));
	arch.stub_save(&back, &regs, l->mask);
	memcpy(image, code, len);
	memcpy(image + ARCH_BOOT_DATA, &back, ARCH_BOOT_SAVED);
	if (!p->has_boot_undo)
		p->has_boot_undo = tproc_undo_push(p, undo_boot, NULL) != NULL;
	if (write_boot(p, site, image) < 0)
		return call_plain(l, c);

	uint64_t call[7] = {(uint64_t)c->nr};
	memcpy(call + 1, c->args, sizeof(c->args));
	int sig = loan_carrier(l);
	regs = l->regs;
	arch.set_boot(&regs, site, call, task_own_tgid(t), task_own_tid(t),
		      sig);
	int r = loan_set_regs(l, &regs);
	if (r == 0)
		r = loan_run_to_signal(l, sig, site + done);
	if (r == 0 && ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
		r = SMCO_GONE;
	if (r == 0)
		c->ret = arch.boot_ret(&regs);
	/* Registers first: until then they lead through this code. */
	if (r == 0)
		r = loan_leave_code(l);
	if (r != SMCO_BUSY)
		write_boot(p, site, zeros);
	return r;
}

/* --- the stub --- */

static struct tsyscall unmap_stub(taddr_t at)
{
	return (struct tsyscall){.nr = SYS_munmap, .args = {at, STUB_LEN}};
}

/* Threads that we have left already are not asked, so not while we leave. */
static size_t unmap_deserted_stubs(struct tproc *p, struct tsyscall *ret)
{
	size_t nr = 0;
	unsigned busy = 0;
	for (unsigned i = 0; i < p->nr_busy_stubs; i++) {
		taddr_t at = p->busy_stubs[i];
		if (!p->leaving && stub_is_deserted(p, at))
			ret[nr++] = unmap_stub(at);
		else
			p->busy_stubs[busy++] = at;
	}
	p->nr_busy_stubs = busy;
	return nr;
}

int stub_remove(struct tproc *p)
{
	struct tsyscall calls[1 + ARRAY_SIZE(p->busy_stubs)];

	/* Without a thread to run in it has to wait for one. */
	if (!loan_choose(p) || p->nr_owed)
		return 0;
	size_t nr = unmap_deserted_stubs(p, calls);
	if (p->stub)
		calls[nr++] = unmap_stub(p->stub);
	if (!nr)
		return 0;
	p->stub = 0;
	p->stub_refused = true; /* by us: it would be the next change */
	return tproc_syscalls(p, calls, nr, NULL);
}

static bool busy_stubs_are_deserted(void *ctx)
{
	struct tproc *p = ctx;
	for (unsigned i = 0; i < p->nr_busy_stubs; i++)
		if (!stub_is_deserted(p, p->busy_stubs[i]))
			return false;
	return true;
}

static int undo_stub(struct tproc *p, void *arg)
{
	(void)arg;
	if (p->stop_depth)
		tproc_vacate(p, busy_stubs_are_deserted, p);
	return stub_remove(p);
}

void stub_inherit(struct tproc *child, struct tproc *parent)
{
	if (!parent->stub || !tproc_undo_push(child, undo_stub, NULL))
		return;
	child->stub = parent->stub;
}

static int call_by_stub(struct loan *l, struct tsyscall *calls, size_t n);

/* One is enough. */
static int use_old_stub(struct loan *l)
{
	struct tproc *p = l->t->proc;
	struct tsyscall unmap[ARRAY_SIZE(p->old_stubs)];
	size_t n = 0;

	p->stub = p->old_stubs[0];
	while (--p->nr_old_stubs)
		unmap[n++] = unmap_stub(p->old_stubs[p->nr_old_stubs]);
	return n ? call_by_stub(l, unmap, n) : 0;
}

static int install_stub(struct loan *l)
{
	struct tproc *p = l->t->proc;
	const uint8_t *code;
	size_t done, len = arch.stub_code(&code, &done);
	/* Executable and never writable, for those that forbid both. */
	struct tsyscall map = {
		.nr = SYS_mmap,
		.args = {0, STUB_LEN, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0},
	};
	struct tundo *undo = tproc_undo_push(p, undo_stub, NULL);
	if (!undo)
		return SMCO_NOMEM;
	find_boot_site(p);
	if (p->nr_old_stubs)
		return use_old_stub(l);
	p->stub_refused = true;
	int r = call_by_boot(l, &map);
	if (r == 0 && map.ret > 0 && !(map.ret & (int64_t)(TPAGE_SIZE - 1))) {
		taddr_t at = (taddr_t)map.ret;
		struct tsyscall prot = {
			.nr = SYS_mprotect,
			.args = {at + ARCH_STUB_DATA, TPAGE_SIZE,
				 PROT_READ | PROT_WRITE},
		};
		r = call_by_boot(l, &prot);
		if (r == 0 && prot.ret == 0 &&
		    tmem_write(p, at, code, len) == 0) {
			p->stub = at;
			p->stub_refused = false;
			return 0;
		}
		struct tsyscall unmap = unmap_stub(at);
		if (r == 0)
			r = call_by_boot(l, &unmap);
	}
	tproc_undo_drop(p, undo);
	return r;
}

static int call_by_stub(struct loan *l, struct tsyscall *calls, size_t n)
{
	_Static_assert(sizeof(struct tsyscall) == 64, "the stub's stride");
	struct {
		struct arch_stub_data back;
		struct tsyscall calls[ARCH_STUB_MAX_CALLS];
	} page;
	struct task *t = l->t;
	struct tproc *p = t->proc;
	struct user_regs_struct regs = l->regs;
	taddr_t data = p->stub + ARCH_STUB_DATA;
	size_t bytes = n * sizeof(*calls), done;
	const uint8_t *code;

	/* Given back by the stub itself, a call that was left is made anew. */
	if (l->in_entry)
		arch.rewind_syscall(&regs, arch.syscall_nr(&l->regs));
	arch.stub_save(&page.back, &regs, l->mask);
	memcpy(page.calls, calls, bytes);
	if (tmem_write(p, data, &page, sizeof(page.back) + bytes) < 0)
		return SMCO_FAULT;
	arch.stub_code(&code, &done);
	regs = l->regs;
	int sig = loan_carrier(l);
	arch.set_stub(&regs, p->stub, n, task_own_tgid(t), task_own_tid(t),
		      sig);
	int r = loan_set_regs(l, &regs);
	if (r == 0)
		r = loan_run_to_signal(l, sig, p->stub + done);
	if (r == 0 && tmem_read(p, data + ARCH_STUB_CALLS, calls, bytes) < 0)
		r = SMCO_FAULT;
	return r;
}

/* --- the public calls --- */

static int explain(const struct task *t, int code, const char *where,
		   struct smco_err *err)
{
	if (code == SMCO_BUSY)
		return smco_fail(err, SMCO_BUSY, 0,
				 "thread %d does not come back from %s: it is "
				 "frozen (by a cgroup) or waits for a disk; it "
				 "goes on when that is over",
				 t->tid, where);
	return smco_fail(err, (enum smco_code)code, 0, "thread %d failed in %s",
			 t->tid, where);
}

/* A sandbox may kill it for calls that it never makes itself. */
static int refuse_sandbox(struct task *t, struct smco_err *err)
{
	struct tproc *p = t->proc;
	if (t->has_no_filter)
		return 0;
	if (task_diverts_calls(t))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "process %d: " DIVERTS_CALLS, p->pid);
	if (!proc_has_own_filter(t->tid)) {
		/* Only it or another thread could give it one. */
		t->has_no_filter =
			p->stop_depth || p->is_new || p->nr_tasks == 1;
		return 0;
	}
	return smco_fail(err, SMCO_UNSUPPORTED, 0,
			 "process %d has a seccomp filter of its own, which "
			 "might kill it for calls of ours",
			 t->proc->pid);
}

int tproc_syscalls(struct tproc *p, struct tsyscall *calls, size_t n,
		   struct smco_err *err)
{
	struct task *t = loan_choose(p);
	struct loan l;

	/* What it stands in must stay as it is. */
	if (p->nr_owed)
		return smco_fail(err, SMCO_BUSY, 0,
				 "process %d: a thread has not come back from "
				 "the last call in it",
				 p->pid);

	if (!t)
		return smco_fail(err,
				 tproc_first_task(p) && !p->execed ? SMCO_BUSY
								   : SMCO_GONE,
				 0, "process %d: no stopped thread to borrow",
				 p->pid);
	int r = refuse_sandbox(t, err);
	if (r < 0)
		return r;
	r = loan_take(&l, t);
	if (r == 0 && !p->stub && !p->stub_refused)
		r = install_stub(&l);
	for (size_t i = 0; r == 0 && i < n;) {
		size_t some = n - i;
		if (some > ARCH_STUB_MAX_CALLS)
			some = ARCH_STUB_MAX_CALLS;
		if (!p->stub)
			some = 1;
		r = p->stub ? call_by_stub(&l, &calls[i], some)
			    : call_by_boot(&l, &calls[i]);
		i += some;
	}
	/* Also after a failure: the task must not be left with our registers.*/
	r = loan_end(&l, r);
	return r < 0 ? explain(t, r, "an injected call", err) : 0;
}

int tproc_syscall(struct tproc *p, long nr, const uint64_t args[6],
		  int64_t *ret, struct smco_err *err)
{
	struct tsyscall c = {.nr = nr};
	memcpy(c.args, args, sizeof(c.args));
	int r = tproc_syscalls(p, &c, 1, err);
	if (r == 0)
		*ret = c.ret;
	return r;
}

int task_run(struct task *t, const struct task_run *run, struct smco_err *err)
{
	struct user_regs_struct regs;
	struct loan l;

	if (!loan_possible(t))
		return smco_fail(err, SMCO_BUSY, 0,
				 "thread %d cannot be borrowed now", t->tid);
	int sig = tproc_trap_signal(t->proc);
	int r = refuse_sandbox(t, err);
	if (r < 0)
		return r;
	r = loan_take(&l, t);
	if (r < 0)
		return explain(t, loan_end(&l, r), "our code", err);
	if (run->before) {
		/* Where it would go on by itself. */
		regs = l.regs;
		if (l.in_entry)
			arch.rewind_syscall(&regs, arch.syscall_nr(&regs));
		else
			arch.restart_by_hand(&regs);
		run->before(run->ctx, &regs, l.mask);
	}
	regs = l.regs;
	const uint64_t args[6] = {(uint64_t)sig};
	arch.set_syscall(&regs, run->pc, -1, args);
	arch.set_sp(&regs, run->sp);
	r = loan_set_regs(&l, &regs);
	if (r == 0)
		r = loan_run_to_signal(&l, sig, 0);
	r = loan_end(&l, r);
	return r < 0 ? explain(t, r, "our code", err) : 0;
}
