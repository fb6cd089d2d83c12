/*
 * When has the dynamic linker mapped the program's libraries? An address leads
 * on from there, and is on the stack when the program is exec'ed, or about to
 * be: where the linker's one call returns to, before any constructor (glibc),
 * or the program's entry, which the kernel tells the linker (others; musl's
 * constructors run after that). In its place goes the address of some
 * instructions at the end of the vdso that raise a signal which is ignored by
 * default, put the address back, and go on there. The signal stops a traced
 * task. Should we have died nothing comes of it, and as they are run once, and
 * nothing else is changed, nothing can come of them later.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"

/* Bounds on what a broken or hostile linker image can make us read. */
#define MAX_PHDRS   64
#define MAX_DYNAMIC 256
#define MAX_SYMBOLS 65536

/* Words between the stack pointer of a new program and what the kernel tells
 * its linker: so many arguments and variables at most (6 MiB by default). */
#define MAX_WORDS (1 << 20)

struct dynamic {
	taddr_t symtab;
	taddr_t strtab;
	uint64_t strsz;
	taddr_t hash;
	taddr_t gnu_hash;
};

static bool read_dynamic(struct tproc *p, taddr_t base, struct dynamic *d)
{
	Elf64_Ehdr eh;
	if (tmem_read(p, base, &eh, sizeof(eh)) < 0 ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_phentsize != sizeof(Elf64_Phdr) || eh.e_phnum > MAX_PHDRS)
		return false;
	taddr_t at = 0;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;
		if (tmem_read(p, base + eh.e_phoff + i * sizeof(ph), &ph,
			      sizeof(ph)) < 0)
			return false;
		if (ph.p_type == PT_DYNAMIC)
			at = base + ph.p_vaddr;
	}
	memset(d, 0, sizeof(*d));
	for (unsigned i = 0; at && i < MAX_DYNAMIC; i++) {
		Elf64_Dyn dyn;
		if (tmem_read(p, at + i * sizeof(dyn), &dyn, sizeof(dyn)) < 0)
			return false;
		/* Not relocated yet: offsets from the base. A linker that runs
		 * already has made addresses of them. */
		uint64_t v = dyn.d_un.d_ptr;
		taddr_t addr = v < base ? base + v : v;
		switch (dyn.d_tag) {
		case DT_NULL:
			return d->symtab && d->strtab && d->strsz;
		case DT_SYMTAB:
			d->symtab = addr;
			break;
		case DT_STRTAB:
			d->strtab = addr;
			break;
		case DT_STRSZ:
			d->strsz = v;
			break;
		case DT_HASH:
			d->hash = addr;
			break;
		case DT_GNU_HASH:
			d->gnu_hash = addr;
			break;
		}
	}
	return false;
}

static size_t count_symbols(struct tproc *p, const struct dynamic *d)
{
	uint32_t head[2];
	if (d->hash && tmem_read(p, d->hash, head, sizeof(head)) == 0)
		return head[1] < MAX_SYMBOLS ? head[1] : MAX_SYMBOLS;
	/* The string table follows the symbols wherever linkers are sane;
	 * where it does not, names will not match and nothing is found. */
	if (d->strtab > d->symtab &&
	    d->strtab - d->symtab < MAX_SYMBOLS * sizeof(Elf64_Sym))
		return (d->strtab - d->symtab) / sizeof(Elf64_Sym);
	return 0;
}

static taddr_t find_symbol(struct tproc *p, taddr_t base,
			   const struct dynamic *d, const char *name)
{
	size_t nr = count_symbols(p, d), len = strlen(name) + 1;
	size_t size = nr * sizeof(Elf64_Sym);
	_cleanup_free_ Elf64_Sym *syms = malloc(size ? size : 1);
	if (!syms)
		return 0;
	nr = tmem_read_some(p, d->symtab, syms, size) / sizeof(*syms);
	for (size_t i = 0; i < nr; i++) {
		char buf[32];
		if (syms[i].st_shndx == SHN_UNDEF ||
		    syms[i].st_name >= d->strsz || len > sizeof(buf))
			continue;
		if (tmem_read(p, d->strtab + syms[i].st_name, buf, len) == 0 &&
		    !memcmp(buf, name, len))
			return base + syms[i].st_value;
	}
	return 0;
}

/* One that it does not block; 0: there is none, or it may make no calls. */
static int choose_signal(pid_t tid)
{
	static const int signals[] = {SIGURG, SIGWINCH, SIGCHLD};
	char path[PROCFS_PATH], buf[4096];
	uint64_t blocked, filtered;
	procfs_path(path, sizeof(path), tid, "status");
	if (smco_slurp(path, buf, sizeof(buf)) <= 0 ||
	    !proc_field_u64(buf, "SigBlk", 16, &blocked))
		return 0;
	if (proc_field_u64(buf, "Seccomp", 10, &filtered) && filtered &&
	    proc_has_own_filter(tid))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!(blocked >> (signals[i] - 1) & 1))
			return signals[i];
	return 0;
}

static taddr_t find_linker(const struct tproc *p)
{
	taddr_t base = proc_auxv(p->pid, AT_BASE);

	/* The linker run as a program: ld.so ./prog. */
	return base ? base : proc_auxv(p->pid, AT_PHDR) & ~(TPAGE_SIZE - 1);
}

/* Where the kernel has put the program's entry, for the linker to read. */
static taddr_t find_entry(struct tproc *p, taddr_t sp, taddr_t *entry_ret)
{
	uint64_t words[512];
	unsigned nr_nulls = 0; /* the ends of arguments and environment */
	sp += sizeof(*words);  /* how many arguments there are */
	for (size_t done = 0; done < MAX_WORDS;) {
		size_t n = tmem_read_some(p, sp, words, sizeof(words)) /
			   sizeof(*words);
		size_t i = 0;
		while (i < n && nr_nulls < 2)
			nr_nulls += !words[i++];
		for (; i + 1 < n; i += 2) {
			if (words[i] == AT_ENTRY) {
				*entry_ret = words[i + 1];
				return sp + (i + 1) * sizeof(*words);
			}
			if (words[i] == AT_NULL)
				return 0;
		}
		if (!i)
			return 0;
		sp += i * sizeof(*words);
		done += i;
	}
	return 0;
}

/* What leads on from the linker, and where that is; @regs as they are to be
 * then. False: there is no linker, or none that is known. */
static bool find_way(struct tproc *p, struct user_regs_struct *regs,
		     struct arch_raise *raise)
{
	struct dynamic d;
	uint8_t code[ARCH_LINKER_CODE];
	bool is_alone =
		!proc_auxv(p->pid, AT_BASE); /* static, or "ld.so PROG" */
	if (is_alone && read_dynamic(p, find_linker(p), &d))
		p->r_debug = find_symbol(p, find_linker(p), &d, "_r_debug");
	if (is_alone && !p->r_debug)
		return false;
	if (tmem_read(p, arch.pc(regs), code, sizeof(code)) == 0 &&
	    arch.enter_linker(regs, code, &raise->home)) {
		raise->slot = arch.sp(regs);
		return true;
	}
	raise->slot = find_entry(p, arch.sp(regs), &raise->home);
	return raise->slot && !is_alone;
}

/* A task of @p's, in its code: home from there, where that can be done. */
static bool lead_out(struct task *t, const struct libs *l)
{
	taddr_t pc, sp;
	struct user_regs_struct regs;
	int r = task_get_place(t, &pc, &sp);
	if (r < 0 || pc < l->at || pc >= l->at + l->len)
		return r == 0 || r == SMCO_GONE;
	if (task_get_regs(t, &regs) < 0)
		return false;
	bool is_raised = pc == l->done && task_kind(t) == STOP_SIGNAL &&
			 WSTOPSIG(t->status) == l->raise.sig;
	if (pc == l->at)
		arch.set_pc(&regs, l->raise.home);
	else if (is_raised)
		arch.leave_raise(&regs, l->raise.home);
	else
		return false;
	t->no_signal = is_raised && l->undo;
	return task_set_regs(t, &regs) == 0;
}

/* The address goes back, and the code, unless a task is in it: that finds its
 * way alone. */
static int take_out(struct tproc *p)
{
	static const uint8_t zeros[ARCH_RAISE_MAX];
	struct libs l = p->libs;
	taddr_t to = 0;
	memset(&p->libs, 0, sizeof(p->libs));
	if (tmem_read(p, l.raise.slot, &to, sizeof(to)) == 0 && to == l.at)
		tmem_write(p, l.raise.slot, &l.raise.home, sizeof(to));
	for (struct task *t = tproc_first_task(p); t; t = task_next(t))
		if (!lead_out(t, &l))
			return SMCO_BUSY;
	return tmem_write(p, l.at, zeros, l.len);
}

static int undo_libs(struct tproc *p, void *arg)
{
	(void)arg;
	take_out(p);
	return 0;
}

void libs_start(struct tproc *p)
{
	uint8_t code[ARCH_RAISE_MAX] = {0}, there[ARCH_RAISE_MAX];
	struct task *t = tproc_first_task(p);
	struct user_regs_struct regs, was;
	struct libs l = {.at = inject_libs_place(p)};
	if (!l.at || !t || task_get_regs(t, &regs) < 0)
		return;
	was = regs;
	l.raise.sig = choose_signal(t->tid);
	if (!l.raise.sig || !find_way(p, &regs, &l.raise) ||
	    tmem_read(p, l.at, there, sizeof(there)) < 0 ||
	    memcmp(there, code, sizeof(code)) != 0)
		return;
	l.len = arch.raise_code(code, &l.raise, &l.done);
	l.done += l.at;
	l.undo = tproc_undo_push(p, undo_libs, NULL);
	if (!l.undo)
		return;
	p->libs = l;
	/* In this order, for we may die in between. */
	if (tmem_write(p, l.at, code, l.len) == 0 &&
	    tmem_write(p, l.raise.slot, &l.at, sizeof(l.at)) == 0 &&
	    task_set_regs(t, &regs) == 0)
		return;
	task_set_regs(t, &was);
	tproc_undo_drop(p, l.undo);
	take_out(p);
}

void libs_inherit(struct tproc *child, const struct tproc *parent)
{
	child->libs = parent->libs;
	if (parent->libs.at)
		child->libs.undo = tproc_undo_push(child, undo_libs, NULL);
}

bool tproc_linker_way(const struct tproc *p, taddr_t *at_ret, taddr_t *home_ret)
{
	*at_ret = p->libs.at;
	*home_ret = p->libs.raise.home;
	return p->libs.at != 0;
}

bool libs_on_signal(struct task *t, int sig)
{
	struct tproc *p = t->proc;
	struct user_regs_struct regs;
	if (!p->libs.at || sig != p->libs.raise.sig ||
	    task_get_regs(t, &regs) < 0 || arch.pc(&regs) != p->libs.done)
		return false;
	arch.leave_raise(&regs, p->libs.raise.home);
	task_set_regs(t, &regs);
	tproc_undo_drop(p, p->libs.undo);
	take_out(p);
	return true;
}

/* --- what a killed supervisor has left --- */

static bool find_left(struct tproc *p, struct libs *ret)
{
	uint8_t code[ARCH_RAISE_MAX];
	*ret = (struct libs){.at = inject_libs_place(p)};
	if (!ret->at || tmem_read(p, ret->at, code, sizeof(code)) < 0 ||
	    !arch.is_raise_code(code, &ret->raise))
		return false;
	ret->len = arch.raise_code(code, &ret->raise, &ret->done);
	ret->done += ret->at;
	return true;
}

bool tproc_has_left_call(struct tproc *p)
{
	struct libs l;
	return find_left(p, &l);
}

int tproc_drop_left_call(struct tproc *p)
{
	struct libs l;
	if (!find_left(p, &l))
		return 0;
	p->libs = l;
	return take_out(p);
}

taddr_t tproc_r_debug(struct tproc *p)
{
	struct dynamic d;
	taddr_t base = proc_auxv(p->pid, AT_BASE);
	if (!p->r_debug && base && read_dynamic(p, base, &d))
		p->r_debug = find_symbol(p, base, &d, "_r_debug");
	return p->r_debug;
}
