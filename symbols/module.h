/*
 * module.h - one ELF file that the tracee has (or had) mapped. Internal to
 * symbols/. A module is a file, not a place: mapped twice or again after
 * dlclose, it is the same module, and sym_place offsets are addresses of the
 * file's own address space. Modules live as long as the spaces that have seen
 * them, so what was pinned stays nameable; processes that map the same file
 * share its module.
 *
 * The file is kept open from the first sight on; each user makes an Elf
 * handle of its own over that descriptor, therefore threads need no lock for
 * libelf. Files are read, never mapped: truncation of a mapped library would
 * kill the supervisor by SIGBUS.
 */
#ifndef SYMBOLS_MODULE_H
#define SYMBOLS_MODULE_H

#include <gelf.h>
#include <pthread.h>

#include "symbols/gnuhash.h"
#include "symbols/symbols.h"

struct symtab;
struct cfi_table;
struct dwarf_lines;

/* A PT_LOAD segment, in the file's own addresses. */
struct module_segment {
	uint64_t vaddr;
	uint64_t memsz;
	uint64_t offset; /* in the file */
	uint64_t filesz;
	bool exec;
};

struct module {
	struct module *next; /* private: of all modules */
	unsigned nr_refs;    /* private */
	char *path;	     /* as in the maps, without the root */
	uint64_t inode;	     /* 0 for the vdso */
	int fd;		     /* -1: could not be opened, or image is set */
	uint64_t dev;
	int64_t mtime_ns, size; /* of the file when it was opened */

	/* The vdso, or a file that cannot be opened, copied from memory. */
	uint8_t *image;
	size_t image_len;
	uint64_t image_bias; /* added to addresses in it by the linker */

	bool is_elf; /* x86-64 ELF; nothing below is set otherwise */
	bool has_interp;
	bool has_symtab, has_dwarf; /* in this file, not in a separate one */
	bool needs_linker; /* names are looked up in .dynsym; false if static */
	bool is_loader;	   /* ld.so of glibc: never provides the allocator */
	uint64_t dynamic_vaddr; /* PT_DYNAMIC, 0 if none */
	uint64_t entry;		/* where it begins if it is run, 0 if nowhere */
	struct module_segment *segments;
	size_t nr_segments;
	char build_id[2 * 64 + 1]; /* hex */

	uint64_t frame_bytes; /* of frame information, to be read at once */

	/* private: built on first use, under lock, and constant from then on.
	 */
	pthread_mutex_t find_lock;
	struct gnuhash gnuhash;
	struct symtab *symtab; /* the module's own, for finding; not sorted */
	bool gnuhash_tried, symtab_tried;
	pthread_mutex_t cfi_lock;
	struct cfi_table *cfi;
	bool cfi_tried; /* atomic: with it, cfi is there for everybody */

	/* private: separate debug file, looked for once, under debug_lock. */
	pthread_mutex_t debug_lock;
	Elf *debug_elf; /* NULL if none; for the naming side only */
	int debug_fd;
	bool debug_tried;
	bool debug_has_symtab, debug_has_dwarf;

	/* The naming side's; hold name_lock, libdw changes what it looks at. */
	pthread_mutex_t name_lock;
	struct symtab *name_symtab; /* incl. the debug file's */
	bool name_symtab_tried;
	struct dwarf_lines *lines;
	Elf *lines_elf; /* NULL if the lines are the debug file's */
	bool lines_tried;
};

/* root_fd is a directory or one of these. */
#define ROOT_OURS    (-1) /* the supervisor's own root */
#define ROOT_UNKNOWN (-2) /* could not be opened: no path leads anywhere */

/* Open @path (absolute) for reading as a process with that root would. */
int module_open_path(int root_fd, const char *path);

/*
 * The module of the file that @map maps, opened or, if some space has it
 * already, shared. Never fails but for lack of memory (NULL): a file that
 * cannot be opened is read from memory, if its first page is mapped at @header
 * (0: unknown); what is no ELF file gives a module with its path only.
 */
struct module *module_get(const struct sym_mapping *map, taddr_t header,
			  pid_t pid, int root_fd, sym_read_fn read,
			  void *read_ctx);
void module_put(struct module *m);

/* Was the file's content replaced since it was opened? */
bool module_changed(const struct module *m);

/* A new handle on the module's file, NULL if there is none. elf_end() it. */
Elf *module_elf(const struct module *m);

/* What to subtract from an address in @map to get the file's own address. */
uint64_t module_bias(const struct module *m, const struct sym_mapping *map);

/* Which kinds of information @elf has; does not read them. */
void module_elf_contents(Elf *elf, bool *symtab_ret, bool *dwarf_ret);

/* Own symbols of the module, built on first use, to be looked up by name only;
 * NULL if there are none. */
struct symtab *module_symtab(struct module *m);
/* Quick: false only if the module certainly exports no @name. */
bool module_may_export(struct module *m, const char *name);
/* Its frame information, found on first use. */
struct cfi_table *module_cfi(struct module *m);
/*
 * Who makes a table for others may rest in between (ehframe_set_pause), from
 * the one to the other, so that nobody waits for it in vain: false if somebody
 * waits for a table now. Whoever comes while it rests does not wait, but for
 * module_cfi.
 */
bool module_cfi_begin_rest(void);
void module_cfi_end_rest(void);
/*
 * The same for those who cannot wait: where little has to be read it is; much,
 * that another thread is reading, is waited for until @deadline_ns
 * (CLOCK_MONOTONIC), unless that one rests. *late_ret says that the table is
 * not there yet.
 */
struct cfi_table *module_cfi_by(struct module *m, uint64_t deadline_ns,
				bool *late_ret);

#endif
