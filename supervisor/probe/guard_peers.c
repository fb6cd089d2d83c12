/*
 * Processes that may look into the memory of others: those whose code imports
 * process_vm_readv or process_vm_writev (MPI's libraries). What they look into
 * is not guarded while they are watched, for a look is seen only if their own
 * system calls are caught, and to catch all of those costs too much.
 */
#include "supervisor/probe/guard.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reports/procfs.h"

/* So often it is asked what a process has loaded since. */
#define LOOK_AGAIN_NS NSEC_PER_SEC

/* Files that were read, of all processes. Never given back. */
static struct seen {
	char *path;
	uint64_t inode;
	bool looks;
} * seen;
static size_t nr_seen;

static bool section_imports(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	for (size_t i = 0; i < nr; i++) {
		GElf_Sym mem, *sym = gelf_getsym(data, (int)i, &mem);
		if (!sym || sym->st_shndx != SHN_UNDEF)
			continue;
		const char *name = elf_strptr(elf, sh->sh_link, sym->st_name);
		if (name && (!strcmp(name, "process_vm_readv") ||
			     !strcmp(name, "process_vm_writev")))
			return true;
	}
	return false;
}

static bool file_imports(int fd)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	bool ret = false;
	for (Elf_Scn *scn = NULL; elf && (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr mem, *sh = gelf_getshdr(scn, &mem);
		if (sh && sh->sh_type == SHT_DYNSYM)
			ret |= section_imports(elf, scn, sh);
	}
	elf_end(elf);
	return ret;
}

static bool mapping_imports(pid_t pid, const struct tmap *m)
{
	char root[PROCFS_PATH], path[PROCFS_PATH + PATH_MAX];
	for (size_t i = 0; i < nr_seen; i++)
		if (seen[i].inode == m->inode && !strcmp(seen[i].path, m->path))
			return seen[i].looks;
	procfs_path(root, sizeof(root), procfs_holder(pid), "root");
	snprintf(path, sizeof(path), "%s%s", root, m->path);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	bool looks = fd >= 0 && file_imports(fd);
	struct seen *v = reallocarray(seen, nr_seen + 1, sizeof(*v));
	if (!v)
		return looks;
	seen = v;
	v[nr_seen] = (struct seen){strdup(m->path), m->inode, looks};
	nr_seen += v[nr_seen].path != NULL;
	return looks;
}

bool guard_peer_looks(struct guard *g)
{
	struct tmaps maps;
	uint64_t now = smco_now_ns();
	if (g->looks || now < g->look_again_ns)
		return g->looks;
	g->look_again_ns = now + LOOK_AGAIN_NS;
	if (tproc_code_maps(g->base.proc, &maps, NULL))
		return false;
	for (size_t i = 0; i < maps.nr && !g->looks; i++) {
		const struct tmap *m = &maps.maps[i];
		if ((m->prot & PROT_EXEC) && m->inode && m->path[0] == '/')
			g->looks = mapping_imports(tproc_pid(g->base.proc), m);
	}
	tmaps_deinit(&maps);
	return g->looks;
}
