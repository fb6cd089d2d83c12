#include "reports/procfs.h"
#include "symbols/module.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/cfi.h"
#include "symbols/dwarflines.h"
#include "symbols/dynamic.h"
#include "symbols/ehframe.h"
#include "symbols/symtab.h"

#define MAX_SEGMENTS 512
#define MAX_LOADED   (256u << 20)
#define MAX_IMAGE    (1u << 20) /* the vdso has two pages or four */
/* Frame information that is read in about a millisecond. */
#define SMALL_FRAMES (256u << 10)

static int64_t mtime_ns(const struct stat *st)
{
	return st->st_mtim.tv_sec * (int64_t)NSEC_PER_SEC + st->st_mtim.tv_nsec;
}

int module_open_path(int root_fd, const char *path)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	if (root_fd == ROOT_UNKNOWN)
		return -1;
	if (root_fd == ROOT_OURS)
		return open(path, flags);
	struct open_how how = {.flags = flags, .resolve = RESOLVE_IN_ROOT};
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
		path += strspn(path, "/");
		fd = openat(root_fd, path, flags);
	}
	return fd;
}

/* Hand @fd on if it is the regular file @inode (0: any), else close it. */
static int check_inode(int fd, uint64_t inode)
{
	struct stat st;
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (!inode || st.st_ino == inode))
		return fd;
	close(fd);
	return -1;
}

/*
 * The very file that is mapped: by its name while that still leads there,
 * otherwise by what /proc holds of it. map_files needs privilege, exe does
 * not. Inode numbers of overlay filesystems may differ between maps and stat;
 * then the name is right after all, if nothing says it was deleted.
 */
static int open_mapped(const struct sym_mapping *map, pid_t pid, int root_fd)
{
	char name[PROCFS_PATH];
	bool named = !map->deleted && map->path[0] == '/';
	int fd = -1;
	if (named)
		fd = check_inode(module_open_path(root_fd, map->path),
				 map->inode);
	if (fd < 0 && pid > 0) {
		procfs_path(name, sizeof(name), procfs_holder(pid),
			    "map_files/%llx-%llx",
			    (unsigned long long)map->start,
			    (unsigned long long)map->end);
		fd = check_inode(module_open_path(ROOT_OURS, name), 0);
	}
	if (fd < 0 && pid > 0) {
		procfs_path(name, sizeof(name), procfs_holder(pid), "exe");
		fd = check_inode(module_open_path(ROOT_OURS, name), map->inode);
	}
	if (fd < 0 && named)
		fd = check_inode(module_open_path(root_fd, map->path), 0);
	return fd;
}

static void read_image(struct module *m, const struct sym_mapping *map,
		       sym_read_fn read, void *ctx)
{
	size_t len = map->end - map->start;
	if (!read || map->end <= map->start || len > MAX_IMAGE)
		return;
	m->image = calloc(1, len);
	if (!m->image)
		return;
	ssize_t n = read(ctx, map->start, m->image, len);
	m->image_len = n > 0 ? ((size_t)n < len ? (size_t)n : len) : 0;
}

/* Read what can be read, a piece at a time; the rest stays 0. */
static void read_pieces(uint8_t *to, taddr_t from, size_t len, sym_read_fn read,
			void *ctx)
{
	for (size_t at = 0; at < len;) {
		size_t want = len - at < 1 << 20 ? len - at : 1 << 20;
		ssize_t n = read(ctx, from + at, to + at, want);
		if (n <= 0 || (size_t)n > want)
			return;
		at += (size_t)n;
	}
}

/*
 * A file that cannot be opened (deleted, and we lack the privilege for what
 * /proc has of it): put together again from what is loaded of it. @header is
 * where its first page is mapped. That gives frame information and exported
 * names, without which a program could be neither hooked nor unwound.
 */
static void read_loaded(struct module *m, taddr_t header, sym_read_fn read,
			void *ctx)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[64];
	if (!header || !read ||
	    read(ctx, header, &eh, sizeof(eh)) != (ssize_t)sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phnum > ARRAY_SIZE(ph) ||
	    eh.e_phentsize != sizeof(ph[0]) || !eh.e_phnum)
		return;
	size_t ph_len = eh.e_phnum * sizeof(ph[0]), len = ph_len + sizeof(eh);
	if (read(ctx, header + eh.e_phoff, ph, ph_len) != (ssize_t)ph_len)
		return;
	for (size_t i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD)
			continue;
		if (ph[i].p_offset > MAX_LOADED || ph[i].p_filesz > MAX_LOADED)
			return;
		if (!ph[i].p_offset)
			m->image_bias = header - ph[i].p_vaddr;
		if (ph[i].p_offset + ph[i].p_filesz > len)
			len = ph[i].p_offset + ph[i].p_filesz;
	}
	m->image = calloc(1, len);
	if (!m->image)
		return;
	m->image_len = len;
	for (size_t i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD)
			read_pieces(m->image + ph[i].p_offset,
				    m->image_bias + ph[i].p_vaddr,
				    ph[i].p_filesz, read, ctx);
	/* The section headers are not loaded. */
	eh.e_shoff = eh.e_shnum = eh.e_shstrndx = 0;
	memcpy(m->image, &eh, sizeof(eh));
}

Elf *module_elf(const struct module *m)
{
	elf_version(EV_CURRENT);
	if (m->image_len)
		return elf_memory((char *)m->image, m->image_len);
	return m->fd >= 0 ? elf_begin(m->fd, ELF_C_READ, NULL) : NULL;
}

static void read_segments(struct module *m, Elf *elf)
{
	size_t nr;
	if (elf_getphdrnum(elf, &nr) || nr > MAX_SEGMENTS)
		return;
	m->segments = calloc(nr ? nr : 1, sizeof(*m->segments));
	if (!m->segments)
		return;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr mem, *ph = gelf_getphdr(elf, (int)i, &mem);
		if (!ph)
			break;
		if (ph->p_type == PT_INTERP)
			m->has_interp = true;
		if (ph->p_type == PT_DYNAMIC)
			m->dynamic_vaddr = ph->p_vaddr;
		if (ph->p_type != PT_LOAD)
			continue;
		m->segments[m->nr_segments++] = (struct module_segment){
			.vaddr = ph->p_vaddr,
			.memsz = ph->p_memsz,
			.offset = ph->p_offset,
			.filesz = ph->p_filesz,
			.exec = ph->p_flags & PF_X,
		};
	}
}

static void read_build_id(struct module *m, Elf *elf)
{
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &id);
	if (len <= 0 || (size_t)len > sizeof(m->build_id) / 2)
		return;
	for (ssize_t i = 0; i < len; i++)
		snprintf(m->build_id + 2 * i, 3, "%02x",
			 ((const uint8_t *)id)[i]);
}

/* glibc's ld.so; musl's is its libc as well. */
static bool is_loader_name(const char *soname)
{
	return soname && (!strncmp(soname, "ld-linux", 8) ||
			  !strncmp(soname, "ld.so", 5));
}

/* The dynamic section: what name this library goes by. */
static void read_dynamic(struct module *m, Elf *elf)
{
	bool has_needed = false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr mem, *sh = gelf_getshdr(scn, &mem);
		if (!sh || sh->sh_type != SHT_DYNAMIC ||
		    sh->sh_entsize != sizeof(Elf64_Dyn))
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		size_t nr = data ? data->d_size / sizeof(Elf64_Dyn) : 0;
		for (size_t i = 0; i < nr; i++) {
			GElf_Dyn dmem, *d = gelf_getdyn(data, (int)i, &dmem);
			if (!d || d->d_tag == DT_NULL)
				break;
			if (d->d_tag == DT_NEEDED)
				has_needed = true;
			if (d->d_tag != DT_SONAME)
				continue;
			const char *name =
				elf_strptr(elf, sh->sh_link, d->d_un.d_val);
			m->is_loader = is_loader_name(name);
		}
	}
	struct dynamic d;
	size_t nr;
	if (!elf_getshdrnum(elf, &nr) && !nr &&
	    dynamic_read(elf, m->image_bias, &d)) {
		has_needed = d.has_needed;
		m->is_loader = is_loader_name(d.soname);
	}
	m->needs_linker = m->has_interp || has_needed;
}

void module_elf_contents(Elf *elf, bool *symtab_ret, bool *dwarf_ret)
{
	size_t strings;
	*symtab_ret = *dwarf_ret = false;
	if (elf_getshdrstrndx(elf, &strings))
		return;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr mem, *sh = gelf_getshdr(scn, &mem);
		if (!sh || sh->sh_type == SHT_NOBITS)
			continue;
		if (sh->sh_type == SHT_SYMTAB)
			*symtab_ret = true;
		const char *name = elf_strptr(elf, strings, sh->sh_name);
		if (name && (!strcmp(name, ".debug_info") ||
			     !strcmp(name, ".zdebug_info")))
			*dwarf_ret = true;
	}
}

static void read_elf(struct module *m)
{
	Elf *elf = module_elf(m);
	if (!elf)
		return;
	GElf_Ehdr mem, *eh = gelf_getehdr(elf, &mem);
	if (eh && elf_kind(elf) == ELF_K_ELF &&
	    eh->e_ident[EI_CLASS] == ELFCLASS64 && eh->e_machine == EM_X86_64) {
		m->is_elf = true;
		m->entry = eh->e_entry;
		read_segments(m, elf);
		read_build_id(m, elf);
		read_dynamic(m, elf);
		module_elf_contents(elf, &m->has_symtab, &m->has_dwarf);
		m->frame_bytes = cfi_work_bytes(elf, m->image_len ? -1 : m->fd);
	}
	elf_end(elf);
}

static void module_destroy(struct module *m)
{
	if (!m)
		return;
	gnuhash_deinit(&m->gnuhash);
	symtab_destroy(m->symtab);
	symtab_destroy(m->name_symtab);
	dwarf_lines_destroy(m->lines);
	cfi_destroy(m->cfi);
	if (m->lines_elf)
		elf_end(m->lines_elf);
	if (m->debug_elf)
		elf_end(m->debug_elf);
	smco_close_fd(&m->debug_fd);
	smco_close_fd(&m->fd);
	free(m->segments);
	free(m->image);
	free(m->path);
	pthread_mutex_destroy(&m->find_lock);
	pthread_mutex_destroy(&m->cfi_lock);
	pthread_mutex_destroy(&m->name_lock);
	pthread_mutex_destroy(&m->debug_lock);
	free(m);
}

/* Open the file of @map, but do not look into it. */
static struct module *module_create(const struct sym_mapping *map,
				    taddr_t header, pid_t pid, int root_fd,
				    sym_read_fn read, void *read_ctx)
{
	struct module *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->fd = m->debug_fd = -1;
	m->nr_refs = 1;
	pthread_mutex_init(&m->find_lock, NULL);
	pthread_mutex_init(&m->cfi_lock, NULL);
	pthread_mutex_init(&m->name_lock, NULL);
	pthread_mutex_init(&m->debug_lock, NULL);
	m->inode = map->inode;
	m->path = strdup(map->path);
	if (!m->path) {
		module_destroy(m);
		return NULL;
	}
	if (!strcmp(map->path, "[vdso]"))
		read_image(m, map, read, read_ctx);
	else
		m->fd = open_mapped(map, pid, root_fd);
	if (m->fd < 0 && !m->image)
		read_loaded(m, header, read, read_ctx);
	struct stat st;
	if (m->fd >= 0 && !fstat(m->fd, &st)) {
		m->dev = st.st_dev;
		m->mtime_ns = mtime_ns(&st);
		m->size = st.st_size;
	}
	return m;
}

/* --- each file once, however many processes map it --- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *all; /* under all_lock, linked by next */

static bool same_file(const struct module *a, const struct module *b)
{
	if (a->inode != b->inode || a->dev != b->dev || a->size != b->size ||
	    a->mtime_ns != b->mtime_ns || (a->fd < 0) != (b->fd < 0) ||
	    a->image_len != b->image_len || strcmp(a->path, b->path))
		return false;
	return !a->image_len || !memcmp(a->image, b->image, a->image_len);
}

struct module *module_get(const struct sym_mapping *map, taddr_t header,
			  pid_t pid, int root_fd, sym_read_fn read,
			  void *read_ctx)
{
	struct module *m =
		module_create(map, header, pid, root_fd, read, read_ctx);
	if (!m)
		return NULL;
	pthread_mutex_lock(&all_lock);
	struct module *known = all;
	while (known && !same_file(known, m))
		known = known->next;
	if (known) {
		known->nr_refs++;
	} else {
		read_elf(m);
		m->next = all;
		all = m;
	}
	pthread_mutex_unlock(&all_lock);
	if (!known)
		return m;
	module_destroy(m);
	return known;
}

void module_put(struct module *m)
{
	pthread_mutex_lock(&all_lock);
	bool last = !--m->nr_refs;
	for (struct module **p = &all; last && *p; p = &(*p)->next) {
		if (*p == m) {
			*p = m->next;
			break;
		}
	}
	pthread_mutex_unlock(&all_lock);
	if (last)
		module_destroy(m);
}

bool module_changed(const struct module *m)
{
	struct stat st;
	if (m->fd < 0 || fstat(m->fd, &st))
		return false;
	return mtime_ns(&st) != m->mtime_ns || st.st_size != m->size;
}

uint64_t module_bias(const struct module *m, const struct sym_mapping *map)
{
	const struct module_segment *best = NULL;
	for (size_t i = 0; i < m->nr_segments; i++) {
		const struct module_segment *s = &m->segments[i];
		uint64_t from = s->offset & ~(TPAGE_SIZE - 1);
		if (map->offset < from || map->offset >= s->offset + s->filesz)
			continue;
		if (!best || (s->exec && !best->exec))
			best = s;
	}
	/* Not ELF, or nothing that fits: file offsets serve as addresses. */
	if (!best)
		return map->start - map->offset;
	return map->start - map->offset + best->offset - best->vaddr;
}

struct symtab *module_symtab(struct module *m)
{
	pthread_mutex_lock(&m->find_lock);
	if (!m->symtab_tried && m->is_elf) {
		Elf *elf = module_elf(m);
		m->symtab = elf ? symtab_create() : NULL;
		if (m->symtab)
			symtab_add(m->symtab, elf, m->image_bias);
		if (elf)
			elf_end(elf);
	}
	m->symtab_tried = true;
	pthread_mutex_unlock(&m->find_lock);
	return m->symtab;
}

bool module_may_export(struct module *m, const char *name)
{
	pthread_mutex_lock(&m->find_lock);
	if (!m->gnuhash_tried && m->is_elf) {
		Elf *elf = module_elf(m);
		if (elf) {
			gnuhash_read(&m->gnuhash, elf);
			elf_end(elf);
		}
	}
	m->gnuhash_tried = true;
	pthread_mutex_unlock(&m->find_lock);
	return gnuhash_may_have(&m->gnuhash, name);
}

/* Under cfi_lock. */
static void build_cfi(struct module *m)
{
	if (m->cfi_tried)
		return;
	Elf *elf = m->is_elf ? module_elf(m) : NULL;
	if (elf) {
		m->cfi = cfi_create(elf, m->image_len ? -1 : m->fd);
		elf_end(elf);
	}
	if (!m->cfi && ehframe_has_given_up())
		return; /* for who comes next */
	__atomic_store_n(&m->cfi_tried, true, __ATOMIC_RELEASE);
}

static unsigned nr_awaiting_cfi; /* threads that another one keeps waiting */
static unsigned nr_resting;	 /* of those that make tables */

/* In this order here, and the other way round where somebody waits: of the two
 * at least one sees the other. */
bool module_cfi_begin_rest(void)
{
	__atomic_add_fetch(&nr_resting, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&nr_awaiting_cfi, __ATOMIC_SEQ_CST))
		return true;
	module_cfi_end_rest();
	return false;
}

void module_cfi_end_rest(void)
{
	__atomic_sub_fetch(&nr_resting, 1, __ATOMIC_SEQ_CST);
}

/* Take @m's lock, waiting until @until (NULL: as long as it takes) for somebody
 * who works at a table meanwhile; where that one rests, only if it takes as
 * long as it takes. */
static int lock_cfi(struct module *m, const struct timespec *until)
{
	int rc = pthread_mutex_trylock(&m->cfi_lock);
	if (!rc)
		return 0;
	__atomic_add_fetch(&nr_awaiting_cfi, 1, __ATOMIC_SEQ_CST);
	if (!until)
		rc = pthread_mutex_lock(&m->cfi_lock);
	else if (!__atomic_load_n(&nr_resting, __ATOMIC_SEQ_CST))
		rc = pthread_mutex_clocklock(&m->cfi_lock, CLOCK_MONOTONIC,
					     until);
	__atomic_sub_fetch(&nr_awaiting_cfi, 1, __ATOMIC_SEQ_CST);
	return rc;
}

struct cfi_table *module_cfi(struct module *m)
{
	if (!__atomic_load_n(&m->cfi_tried, __ATOMIC_ACQUIRE)) {
		lock_cfi(m, NULL);
		build_cfi(m);
		pthread_mutex_unlock(&m->cfi_lock);
	}
	return m->cfi;
}

struct cfi_table *module_cfi_by(struct module *m, uint64_t deadline_ns,
				bool *late_ret)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(deadline_ns % NSEC_PER_SEC),
	};
	*late_ret = false;
	if (__atomic_load_n(&m->cfi_tried, __ATOMIC_ACQUIRE))
		return m->cfi;
	*late_ret = true;
	if (lock_cfi(m, &ts))
		return NULL;
	if (m->frame_bytes <= SMALL_FRAMES)
		build_cfi(m);
	*late_ret = !m->cfi_tried;
	pthread_mutex_unlock(&m->cfi_lock);
	return m->cfi;
}
