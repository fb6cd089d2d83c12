/* Where the phases are in files, and what they are called there. */
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/array.h"
#include "supervisor/monitor/phases-private.h"
#include "symbols/sdt.h"

bool phases_is_name(const char *name)
{
	struct phase_name unused;
	return phase_name_split(name, &unused);
}

/* --- one file --- */

struct finder {
	struct phases *ph;
	struct phase_file *file;
	struct mark_code *code;
	uint64_t *part; /* starts of parts of functions elsewhere */
	size_t nr_parts, cap_parts;
	/* Functions that are phases, each once. */
	struct found {
		uint64_t addr, size;
		uint32_t phase;
	} * found;
	size_t nr_found, cap_found;
	bool failed;
};

_Static_assert(PHASES_MAX * 4 <= UINT8_MAX + 1, "what a record has");

static struct mark_spot spot_of(uint32_t phase, enum mark_kind kind)
{
	return (struct mark_spot){
		.channel = phase,
		.counter = phase * 2 + (kind == MARK_END),
		.what = (uint8_t)(phase * 4 + kind),
	};
}

static bool is_function(void *ctx, const struct sym_function *f)
{
	struct finder *x = ctx;
	struct phases *ph = x->ph;
	if (phase_name_is_part(f->name)) {
		if (!ARRAY_ROOM(x->part, x->nr_parts, x->cap_parts))
			x->failed = true;
		else
			x->part[x->nr_parts++] = f->addr;
	}
	for (uint32_t k = 0; k < ph->p.nr && !x->failed; k++) {
		bool known = false;
		if (!phase_name_is_function(&ph->phase[k].name, f->name))
			continue;
		ph->phase[k].is_found = true;
		for (size_t i = 0; i < x->nr_found; i++)
			known |= x->found[i].phase == k &&
				 x->found[i].addr == f->addr;
		if (known)
			continue;
		if (!ARRAY_ROOM(x->found, x->nr_found, x->cap_found))
			x->failed = true;
		else
			x->found[x->nr_found++] =
				(struct found){f->addr, f->size, k};
	}
	return !x->failed;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void functions(struct finder *x, Elf *elf, struct sym_space *space,
		      uint32_t module)
{
	struct mark_plan *plan = &x->file->plan;
	sym_each_function(space, module, is_function, x);
	if (x->nr_parts)
		qsort(x->part, x->nr_parts, sizeof(*x->part), by_value);
	x->code = mark_code_create(elf, x->part, x->nr_parts);
	x->failed |= !x->code;
	for (size_t i = 0; i < x->nr_found && !x->failed; i++) {
		const struct found *f = &x->found[i];
		struct mark_spot begin = spot_of(f->phase, MARK_BEGIN),
				 end = spot_of(f->phase, MARK_END);
		x->failed =
			mark_plan_function(plan, x->code, f->addr, f->size,
					   &begin, &end, NULL) == SMCO_NOMEM;
	}
}

static void probes(struct finder *x, Elf *elf)
{
	struct phases *ph = x->ph;
	struct sdt_list list;
	if (sdt_read(elf, &list, NULL)) {
		x->failed = true;
		return;
	}
	for (size_t i = 0; i < list.nr; i++)
		for (uint32_t k = 0; k < ph->p.nr && !x->failed; k++) {
			const struct sdt_probe *probe = &list.probe[i];
			enum mark_kind kind =
				phase_name_matches(&ph->phase[k].name, probe);
			if (kind == MARK_NONE)
				continue;
			struct mark_spot s = spot_of(k, kind);
			if (kind == MARK_POINT)
				ph->phase[k].has_points = true;
			else
				ph->phase[k].has_pairs = true;
			s.addr = probe->addr;
			s.semaphore = probe->semaphore;
			ph->phase[k].is_found = true;
			x->failed = mark_plan_spot(&x->file->plan, &s, NULL);
		}
	sdt_deinit(&list);
}

const struct phase_file *phase_file_get(struct phases *ph, uint64_t inode,
					Elf *elf, struct sym_space *space,
					uint32_t module)
{
	struct finder x = {.ph = ph};
	GElf_Ehdr eh = {.e_entry = 0};
	gelf_getehdr(elf, &eh);
	for (struct phase_file *f = ph->file; f; f = f->next)
		if (f->inode == inode && f->entry == eh.e_entry &&
		    f->sections == eh.e_shoff)
			return f;
	x.file = calloc(1, sizeof(*x.file));
	if (!x.file)
		return NULL;
	*x.file = (struct phase_file){
		ph->file, inode, eh.e_entry, eh.e_shoff, {0}};
	mark_plan_init(&x.file->plan);
	ph->file = x.file;
	if (ph->any_function && space)
		functions(&x, elf, space, module);
	else
		x.code = mark_code_create(elf, NULL, 0);
	if (!x.failed && x.code)
		probes(&x, elf);
	if (!x.failed && x.code)
		x.failed = mark_plan_place(&x.file->plan, x.code, NULL) ==
			   SMCO_NOMEM;
	mark_code_destroy(x.code);
	free(x.part);
	free(x.found);
	return x.failed ? NULL : x.file;
}

void phase_files_free(struct phases *ph)
{
	while (ph->file) {
		struct phase_file *f = ph->file;
		ph->file = f->next;
		mark_plan_deinit(&f->plan);
		free(f);
	}
	for (size_t i = 0; i < ph->nr_expected; i++)
		free(ph->expected[i]);
	free(ph->expected);
}

/* --- before anything runs --- */

static Elf *open_elf(const char *path, int *fd_ret, uint64_t *inode_ret)
{
	struct stat st;
	*fd_ret = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd_ret < 0 || fstat(*fd_ret, &st))
		return NULL;
	*inode_ret = st.st_ino;
	elf_version(EV_CURRENT);
	return elf_begin(*fd_ret, ELF_C_READ_MMAP, NULL);
}

int phases_expect(struct phases *ph, const char *path, struct smco_err *err)
{
	uint64_t inode;
	_cleanup_close_ int fd = -1;
	Elf *elf = open_elf(path, &fd, &inode);
	if (!elf)
		return 0; /* who cannot be run is told of by others */
	struct sym_space *space =
		ph->any_function ? sym_space_of_file(path) : NULL;
	const struct phase_file *file =
		phase_file_get(ph, inode, elf, space, 1);
	sym_space_destroy(space);
	elf_end(elf);
	char *copy = strdup(path);
	if (!file || !copy ||
	    !ARRAY_ROOM(ph->expected, ph->nr_expected, ph->cap_expected)) {
		free(copy);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	ph->expected[ph->nr_expected++] = copy;
	return 0;
}

static bool offer(void *ctx, const struct sym_function *f)
{
	if (!phase_name_is_part(f->name))
		phase_name_offer_function(ctx, f->name);
	return true;
}

static void offer_file(const struct phase_name *name, struct nearest *n,
		       const char *path)
{
	struct sdt_list list;
	uint64_t inode;
	if (name->function) {
		struct sym_space *space = sym_space_of_file(path);
		if (space)
			sym_each_function(space, 1, offer, n);
		sym_space_destroy(space);
		return;
	}
	_cleanup_close_ int fd = -1;
	Elf *elf = open_elf(path, &fd, &inode);
	if (elf && !sdt_read(elf, &list, NULL)) {
		for (size_t i = 0; i < list.nr; i++)
			phase_name_offer(n, &list.probe[i]);
		sdt_deinit(&list);
	}
	elf_end(elf);
}

void phases_wait(struct phases *ph)
{
	ph->may_come = true;
}

int phases_check(struct phases *ph, struct smco_err *err)
{
	char near[400];
	for (size_t i = 0; i < ph->p.nr; i++) {
		const struct phase_name *name = &ph->phase[i].name;
		struct nearest n;
		if (ph->phase[i].is_found)
			continue;
		nearest_init(&n, ph->p.name[i]);
		for (size_t k = 0; k < ph->nr_expected; k++)
			offer_file(name, &n, ph->expected[k]);
		nearest_list(&n, near, sizeof(near));
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "--phase: no %s '%.80s' in the program and "
				 "its libraries%s%.300s (--if-available waits "
				 "for libraries that are loaded later)",
				 name->function ? "function" : "probe",
				 ph->p.name[i], *near ? "; near to it: " : "",
				 near);
	}
	return 0;
}
