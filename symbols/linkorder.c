/*
 * In which order the dynamic linker looks names up: the program, what was
 * preloaded, the libraries breadth first. It keeps that order in the list that
 * debuggers read (DT_DEBUG -> r_debug -> link_map), in the tracee's memory.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reports/procfs.h"
#include "symbols/space.h"

#define MAX_DYN	      512
#define MAX_LINK_MAPS 16384

static bool is_exe_of(const struct module *m, pid_t pid)
{
	char name[PROCFS_PATH];
	struct stat exe, mine;
	if (pid <= 0 || m->fd < 0)
		return false;
	procfs_path(name, sizeof(name), procfs_holder(pid), "exe");
	return !stat(name, &exe) && !fstat(m->fd, &mine) &&
	       exe.st_dev == mine.st_dev && exe.st_ino == mine.st_ino;
}

/*
 * The range of the program itself. Ask /proc; if the process is gone or was
 * started by naming the dynamic linker, the lowest module with an interpreter
 * (some libraries have one, but lie higher), else the lowest module.
 */
static const struct space_range *find_exe(const struct sym_space *s)
{
	const struct space_range *lowest = NULL, *interp = NULL;
	for (size_t i = 0; i < s->nr_ranges; i++) {
		const struct space_range *r = &s->ranges[i];
		if (!r->mod || !r->mod->is_elf || r->mod->is_loader)
			continue;
		if (is_exe_of(r->mod, s->pid))
			return r;
		if (!lowest)
			lowest = r;
		if (!interp && r->mod->has_interp)
			interp = r;
	}
	return interp ? interp : lowest;
}

static void append(struct sym_space *s, uint32_t module)
{
	for (size_t i = 0; i < s->nr_link_order; i++)
		if (s->link_order[i] == module)
			return;
	s->link_order[s->nr_link_order++] = module;
}

/* Where the linker keeps its list; 0 if it has not put it there yet. */
static taddr_t find_r_debug(const struct sym_space *s,
			    const struct space_range *exe)
{
	taddr_t at = exe->bias + exe->mod->dynamic_vaddr;
	if (!exe->mod->dynamic_vaddr)
		return 0;
	for (size_t i = 0; i < MAX_DYN; i++, at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		if (!space_read(s, at, &d, sizeof(d)) || d.d_tag == DT_NULL)
			return 0;
		if (d.d_tag == DT_DEBUG)
			return d.d_un.d_ptr;
	}
	return 0;
}

static uint32_t module_by_dynamic(const struct sym_space *s, taddr_t dynamic)
{
	for (size_t i = 0; i < s->nr_ranges; i++) {
		const struct space_range *r = &s->ranges[i];
		if (r->mod && r->mod->dynamic_vaddr &&
		    r->bias + r->mod->dynamic_vaddr == dynamic)
			return r->module;
	}
	return 0;
}

static void append_link_maps(struct sym_space *s, taddr_t r_debug)
{
	struct r_debug d;
	if (!r_debug || !space_read(s, r_debug, &d, sizeof(d)))
		return;
	taddr_t at = (uintptr_t)d.r_map;
	for (size_t i = 0; at && i < MAX_LINK_MAPS; i++) {
		struct link_map lm;
		if (!space_read(s, at, &lm, sizeof(lm)))
			return;
		uint32_t module = module_by_dynamic(s, (uintptr_t)lm.l_ld);
		if (module)
			append(s, module);
		at = (uintptr_t)lm.l_next;
	}
}

void space_link_order(struct sym_space *s)
{
	if (s->link_order_known)
		return;
	free(s->link_order);
	s->nr_link_order = 0;
	s->link_order = calloc(s->nr_modules + 1, sizeof(*s->link_order));
	if (!s->link_order)
		return;
	const struct space_range *exe = find_exe(s);
	if (exe) {
		append(s, exe->module);
		append_link_maps(s, find_r_debug(s, exe));
	}
	s->alone = exe && !exe->mod->needs_linker && is_exe_of(exe->mod, s->pid)
			   ? exe->module
			   : 0;
	/*
	 * What the list does not have, or all if there is no list: the kernel
	 * maps downwards, so the first library loaded lies highest.
	 */
	for (size_t i = s->nr_ranges; i-- > 0 && !s->alone;)
		if (s->ranges[i].module)
			append(s, s->ranges[i].module);
	s->link_order_known = true;
}

bool sym_runs(struct sym_space *s, uint32_t module)
{
	space_link_order(s);
	return !s->alone || s->alone == module;
}
