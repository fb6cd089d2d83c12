/* The list of allocation functions, and one plan made of it. */
#include "supervisor/probe/hook-plan.h"

#include <stdio.h>
#include <string.h>

/* Bytes of a function that are looked at. */
#define CODE_BYTES 1024

enum whose {
	ANY,   /* of every allocator */
	OTHER, /* glibc's own reach malloc or free, whose sensors see them */
	LIBC,  /* of libc, whichever allocator is used */
};

/* Whatever frees is required where it exists: a free that goes unseen would
 * leave blocks in the books for ever. */
static const struct {
	const char *name;
	enum agent_kind kind;
	enum whose whose;
	bool required;
} functions[] = {
	{"malloc", AK_MALLOC, ANY, true},
	{"free", AK_FREE, ANY, true},
	{"cfree", AK_FREE, ANY, true},
	{"calloc", AK_CALLOC, ANY, true},
	{"realloc", AK_REALLOC, ANY, true},
	{"reallocarray", AK_REALLOCARRAY, OTHER, true},
	{"memalign", AK_MEMALIGN, ANY, false},
	{"aligned_alloc", AK_MEMALIGN, ANY, false},
	{"posix_memalign", AK_POSIX_MEMALIGN, ANY, false},
	{"valloc", AK_VALLOC, ANY, false},
	{"pvalloc", AK_PVALLOC, ANY, false},
	{"_Znwm", AK_NEW, OTHER, false},
	{"_Znam", AK_NEW, OTHER, false},
	{"_ZnwmRKSt9nothrow_t", AK_NEW_NOTHROW, OTHER, false},
	{"_ZnamRKSt9nothrow_t", AK_NEW_NOTHROW, OTHER, false},
	{"_ZnwmSt11align_val_t", AK_NEW_ALIGN, OTHER, false},
	{"_ZnamSt11align_val_t", AK_NEW_ALIGN, OTHER, false},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", AK_NEW_ALIGN_NOTHROW, OTHER,
	 false},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", AK_NEW_ALIGN_NOTHROW, OTHER,
	 false},
	{"_ZdlPv", AK_FREE, OTHER, true},
	{"_ZdaPv", AK_FREE, OTHER, true},
	{"_ZdlPvm", AK_FREE, OTHER, true},
	{"_ZdaPvm", AK_FREE, OTHER, true},
	{"_ZdlPvRKSt9nothrow_t", AK_FREE, OTHER, true},
	{"_ZdaPvRKSt9nothrow_t", AK_FREE, OTHER, true},
	{"_ZdlPvSt11align_val_t", AK_FREE, OTHER, true},
	{"_ZdaPvSt11align_val_t", AK_FREE, OTHER, true},
	{"_ZdlPvmSt11align_val_t", AK_FREE, OTHER, true},
	{"_ZdaPvmSt11align_val_t", AK_FREE, OTHER, true},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", AK_FREE, OTHER, true},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", AK_FREE, OTHER, true},
	{"mallocx", AK_NEW_NOTHROW, OTHER, false}, /* jemalloc */
	{"rallocx", AK_REALLOC, OTHER, true},
	{"dallocx", AK_FREE, OTHER, true},
	{"sdallocx", AK_FREE, OTHER, true},
	{"mmap", AK_MMAP, LIBC, false},
	{"mmap64", AK_MMAP, LIBC, false},
	{"prctl", AK_PRCTL, LIBC, false},
	{"syscall", AK_SYSCALL, LIBC, false},
	{"munmap", AK_MUNMAP, LIBC, true},
	{"mremap", AK_MREMAP, LIBC, true},
	{"ioctl", AK_IOCTL, LIBC, false},
};

static struct hook_site *site_at(struct hook_plan *plan, taddr_t addr)
{
	for (unsigned i = 0; i < plan->nr_sites; i++)
		if (plan->sites[i].addr == addr)
			return &plan->sites[i];
	return NULL;
}

static taddr_t find(const struct hook_symbols *syms, const char *name)
{
	taddr_t start, end;
	return syms->find(syms->ctx, name, &start, &end);
}

/*
 * Is malloc glibc's? Others define __libc_malloc too, to be in front of it,
 * but malloc_info comes from glibc's malloc.c alone.
 */
static bool is_glibc(const struct hook_symbols *syms, taddr_t malloc_addr)
{
	return find(syms, "__libc_malloc") == malloc_addr &&
	       find(syms, "malloc_info") != 0;
}

int hook_plan_find(struct hook_plan *plan, const struct hook_symbols *syms,
		   struct smco_err *err)
{
	struct agent_private *priv = &plan->priv;
	memset(plan, 0, sizeof(*plan));

	taddr_t malloc_addr = syms->find(syms->ctx, "malloc", &plan->mod_start,
					 &plan->mod_end);
	if (!malloc_addr || !find(syms, "free"))
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "no malloc and free in this program (yet)");
	priv->magic = AGENT_MAGIC;
	priv->is_glibc = is_glibc(syms, malloc_addr);
	taddr_t libc_start = 0, libc_end = 0;
	if (syms->find_libc)
		syms->find_libc(syms->ctx, "mmap", &libc_start, &libc_end);
	else if (priv->is_glibc && !find(syms, "_start")) /* a library */
		syms->find(syms->ctx, "mmap", &libc_start, &libc_end);
	priv->libc_start = libc_start;
	priv->libc_end = libc_end;
	/* An allocator inside libc, or inside the program itself, cannot be
	 * told from its callers by the module. */
	if (libc_start && !priv->is_glibc) {
		priv->heap_start = plan->mod_start;
		priv->heap_end = plan->mod_end;
	}
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		taddr_t addr = 0, start, end;
		if (functions[i].whose == OTHER && priv->is_glibc)
			continue;
		if (functions[i].whose != LIBC)
			addr = find(syms, functions[i].name);
		else if (libc_start)
			addr = (syms->find_libc ? syms->find_libc : syms->find)(
				syms->ctx, functions[i].name, &start, &end);
		if (!addr || site_at(plan, addr))
			continue;
		if (plan->nr_sites == AGENT_MAX_SITES)
			return smco_fail(err, SMCO_UNSUPPORTED, 0,
					 "too many allocation functions");
		plan->sites[plan->nr_sites++] = (struct hook_site){
			.name = functions[i].name,
			.kind = functions[i].kind,
			.required = functions[i].required,
			.addr = addr,
		};
	}
	return 0;
}

/* What the agent calls for a function: past the sensor, or the function
 * itself where there is none. */
static uint64_t callable(struct hook_plan *plan, enum agent_kind kind)
{
	for (unsigned i = 0; i < plan->nr_sites; i++)
		if (plan->sites[i].kind == kind)
			return plan->priv.sites[i].orig;
	return 0;
}

static void describe(struct hook_plan *plan)
{
	size_t at = 0;
	unsigned nr = 0;
	for (unsigned i = 0; i < plan->nr_sites; i++)
		nr += plan->sites[i].planted;
	at += snprintf(plan->text, sizeof(plan->text), "%s, %u functions",
		       plan->priv.is_glibc ? "glibc malloc" : "own malloc", nr);
	if (!plan->priv.libc_start)
		at += snprintf(plan->text + at, sizeof(plan->text) - at,
			       ", mappings not recorded (libc is linked in)");
	for (unsigned i = 0; i < plan->nr_sites; i++)
		if (!plan->sites[i].planted && at < sizeof(plan->text))
			at += snprintf(plan->text + at, sizeof(plan->text) - at,
				       ", without %s", plan->sites[i].name);
}

int hook_plan_build(struct hook_plan *plan, taddr_t base, hook_read_fn read,
		    void *ctx, struct smco_err *err)
{
	size_t used = 0;

	plan->base = base;
	memset(plan->stubs, 0xcc, sizeof(plan->stubs));
	for (unsigned i = 0; i < plan->nr_sites; i++) {
		struct hook_site *site = &plan->sites[i];
		uint8_t code[CODE_BYTES];
		struct smco_err why = {0};
		struct stub_site s = {
			.kind = site->kind,
			.number = i,
			.addr = site->addr,
			.code = code,
			.code_len = read(ctx, site->addr, code, sizeof(code)),
			.area = base,
			.stub = base + AGENT_STUB_OFF + used,
		};
		int r = stub_build(&s, &site->stub, &why);
		if (r == 0 && used + STUB_MAX_BYTES > AGENT_STUB_BYTES)
			r = smco_fail(&why, SMCO_UNSUPPORTED, 0,
				      "no room for the stub of %s", site->name);
		site->planted = r == 0;
		plan->priv.sites[i].kind = site->kind;
		plan->priv.sites[i].orig = site->addr;
		if (r) {
			smco_debug("hook", "%s: %s", site->name, why.msg);
			if (!site->required)
				continue;
			return smco_fail(err, r, 0, "%s: %s", site->name,
					 why.msg);
		}
		plan->priv.sites[i].orig = site->stub.orig;
		memcpy(plan->stubs + used, site->stub.code, site->stub.len);
		used += (site->stub.len + 15) & ~15UL;
	}
	plan->priv.orig_malloc = callable(plan, AK_MALLOC);
	plan->priv.orig_free = callable(plan, AK_FREE);
	plan->priv.orig_realloc = callable(plan, AK_REALLOC);
	plan->priv.orig_memalign = callable(plan, AK_MEMALIGN);
	if (plan->priv.is_glibc && !plan->priv.orig_memalign)
		plan->priv.is_glibc = 0; /* blocks as they come, then */
	describe(plan);
	return 0;
}

uint32_t hook_tid_offset(taddr_t fs_base, uint32_t tid, hook_read_fn read,
			 void *ctx)
{
	uint32_t words[0x200]; /* more than any libc's thread descriptor */
	uint32_t found = 0;
	if (!fs_base)
		return 0;
	size_t nr = read(ctx, fs_base, words, sizeof(words)) / 4;
	for (size_t i = 0; i < nr; i++) {
		if (words[i] != tid)
			continue;
		if (found)
			return 0;
		found = i * 4;
	}
	return found;
}
