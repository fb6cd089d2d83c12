/*
 * When has the dynamic linker mapped the program's libraries? It calls an
 * empty function, _dl_debug_state, each time its list of modules changes, for
 * debuggers to put a breakpoint on. Ours stays from exec to the first time the
 * list is complete, before any constructor has run, a millisecond as a rule. It
 * raises a signal that is ignored by default, which stops a traced task and
 * does nothing to any other, should the supervisor die.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "supervisor/tracee/internal.h"

/* Bounds on what a broken or hostile linker image can make us read. */
#define MAX_PHDRS   64
#define MAX_DYNAMIC 256
#define MAX_SYMBOLS 65536

/* Offset of r_state in struct r_debug, and its value when all is mapped. */
#define R_STATE_OFFSET	   24
#define R_STATE_CONSISTENT 0

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

static bool is_in_set(pid_t tid, const char *field, int sig)
{
	uint64_t set = 0;
	return !proc_status_u64(tid, field, 16, &set) || (set >> (sig - 1) & 1);
}

/*
 * Raising a signal that is ignored by default does no harm should we die; that
 * needs some room, a signal that is not blocked, and that the call is allowed.
 * Otherwise it is a breakpoint, which kills then; also its trap must be neither
 * ignored nor blocked, or the program's disposition would be lost.
 */
static size_t choose_code(struct tproc *p, struct task *t, taddr_t at,
			  uint8_t *code, size_t *done_ret)
{
	static const int signals[] = {SIGURG, SIGWINCH, SIGCHLD};
	uint8_t old[ARCH_RAISE_MAX];
	bool has_filter = proc_has_filter(p->pid);
	pid_t pid = proc_own_pid(p->pid);

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		if (!pid || has_filter ||
		    is_in_set(t->tid, "SigBlk", signals[i]))
			continue;
		size_t n = arch.raise_code(code, pid, signals[i], done_ret);
		p->libs_sig = signals[i];
		if (tmem_read(p, at, old, n) == 0 &&
		    arch.is_empty_function(old, n))
			return n;
	}
	if (is_in_set(t->tid, "SigBlk", SIGTRAP) ||
	    is_in_set(t->tid, "SigIgn", SIGTRAP))
		return 0;
	p->libs_sig = SIGTRAP;
	memcpy(code, arch.breakpoint, arch.breakpoint_len);
	*done_ret = arch.breakpoint_pc_bias;
	return arch.breakpoint_len;
}

static taddr_t find_linker(const struct tproc *p)
{
	taddr_t base = proc_auxv(p->pid, AT_BASE);

	/* The linker run as a program: ld.so ./prog. */
	return base ? base : proc_auxv(p->pid, AT_PHDR) & ~(TPAGE_SIZE - 1);
}

void libs_start(struct tproc *p)
{
	struct dynamic d;
	uint8_t code[ARCH_RAISE_MAX];
	struct task *t = tproc_first_task(p);
	taddr_t base = find_linker(p);
	if (!base || !t || !read_dynamic(p, base, &d))
		return;
	taddr_t at = find_symbol(p, base, &d, "_dl_debug_state");
	size_t done, len = at ? choose_code(p, t, at, code, &done) : 0;
	if (!len)
		return;
	p->r_debug = find_symbol(p, base, &d, "_r_debug");
	p->libs_done = at + done;
	if (tproc_patch(p, at, code, len, NULL, NULL, &p->libs_patch, NULL) ==
	    0)
		p->libs = LIBS_WAITING;
}

taddr_t tproc_r_debug(struct tproc *p)
{
	struct dynamic d;
	taddr_t base = proc_auxv(p->pid, AT_BASE);
	if (!p->r_debug && base && read_dynamic(p, base, &d))
		p->r_debug = find_symbol(p, base, &d, "_r_debug");
	return p->r_debug;
}

/* To the start of the function, which does nothing but return: whatever of the
 * patch the task has run. */
static taddr_t to_start(void *ctx, taddr_t pc)
{
	const struct tpatch *patch = ctx;
	(void)pc;
	return patch->addr;
}

taddr_t tproc_left_call(struct tproc *p, size_t *len_ret)
{
	struct dynamic d;
	uint8_t code[ARCH_RAISE_MAX];
	taddr_t base = find_linker(p), at = 0;
	if (base && read_dynamic(p, base, &d))
		at = find_symbol(p, base, &d, "_dl_debug_state");
	if (!at || tmem_read(p, at, code, sizeof(code)) < 0)
		return 0;
	*len_ret = arch.raise_code_len(code);
	return *len_ret ? at : 0;
}

bool libs_on_signal(struct task *t, int sig, bool *complete_ret)
{
	struct tproc *p = t->proc;
	struct user_regs_struct regs;

	if (p->libs != LIBS_WAITING || sig != p->libs_sig ||
	    task_get_regs(t, &regs) < 0 || arch.pc(&regs) != p->libs_done)
		return false;

	int32_t state = R_STATE_CONSISTENT;
	if (p->r_debug)
		tmem_read(p, p->r_debug + R_STATE_OFFSET, &state,
			  sizeof(state));
	*complete_ret = state == R_STATE_CONSISTENT;
	if (!*complete_ret) {
		/* The function is empty: it has returned. */
		taddr_t to;
		if (tmem_read(p, arch.sp(&regs), &to, sizeof(to)) == 0) {
			arch.leave_function(&regs, to);
			task_set_regs(t, &regs);
			return true;
		}
		*complete_ret = true;
	}
	arch.set_pc(&regs, p->libs_patch->addr);
	task_set_regs(t, &regs);
	tproc_unpatch(p, p->libs_patch, to_start, p->libs_patch, NULL);
	p->libs_patch = NULL;
	p->libs = LIBS_NONE;
	return true;
}

void libs_stop(struct tproc *p)
{
	/* A thread that has run into the patch goes back before it. */
	for (struct task *t = p->tasks; t && p->libs == LIBS_WAITING;
	     t = t->next) {
		const struct tpatch *patch = p->libs_patch;
		struct user_regs_struct regs;
		if (t->state != TASK_STOPPED || task_get_regs(t, &regs) < 0 ||
		    arch.pc(&regs) <= patch->addr ||
		    arch.pc(&regs) > patch->addr + patch->len)
			continue;
		t->no_signal = task_kind(t) == STOP_SIGNAL &&
			       WSTOPSIG(t->status) == p->libs_sig &&
			       arch.pc(&regs) == p->libs_done;
		arch.set_pc(&regs, patch->addr);
		task_set_regs(t, &regs);
	}
}
