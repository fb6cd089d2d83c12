/*
 * symbols.h - names for addresses: modules, functions, lines, stacks. Knows
 * nothing of ptrace; tracee memory comes through a callback, the list of
 * mappings from the caller.
 *
 * Threads: a space has two sides, each for one thread at a time. Naming:
 * sym_name, slow, may run long after. Unwinding: all other
 * calls. The two may run at the same time. Spaces are independent of each
 * other; what they know of a file that several processes map is kept once.
 */
#ifndef SMCO_SYMBOLS_H
#define SMCO_SYMBOLS_H

#include <libelf.h>
#include <sys/types.h>

#include "reports/base.h"

struct sym_space; /* the modules of one address space */

/* One file mapping, as /proc/PID/maps has it. */
struct sym_mapping {
	taddr_t start;
	taddr_t end;	 /* exclusive */
	uint64_t offset; /* file offset of start */
	uint64_t inode;
	bool exec;
	bool deleted;
	const char *path; /* absolute path or "[vdso]" */
};

/* Read @len bytes at @addr of the tracee: bytes read, or negative. */
typedef ssize_t (*sym_read_fn)(void *ctx, taddr_t addr, void *buf, size_t len);

/* @root: prefix for opening files, e.g. "/proc/123/root"; "" for none. @pid
 * for map_files of deleted binaries; 0 if it is gone. */
struct sym_space *sym_space_create(pid_t pid, const char *root,
				   sym_read_fn read, void *read_ctx);
/* A space of no process with the file @path, absolute, as its only module, 1:
 * to read what the file says. NULL: no regular file, or memory is out. */
struct sym_space *sym_space_of_file(const char *path);
void sym_space_destroy(struct sym_space *s);
/*
 * The process is gone. What was pinned stays nameable; all else is given back,
 * nothing is found, pinned or unwound any more, @read is not called again.
 */
void sym_space_retire(struct sym_space *s);
/* Bring the module list up to date. Old modules stay nameable: an address is
 * looked up by (module, offset), which sym_pin returns. */
int sym_space_update(struct sym_space *s, const struct sym_mapping *maps,
		     size_t nr, struct smco_err *err);

/* A place that stays valid after dlclose and process end. */
struct sym_place {
	uint32_t module; /* 1-based index; 0 = no module known */
	uint64_t
		offset; /* address in the file's own address space (st_value) */
};
struct sym_place sym_pin(struct sym_space *s, taddr_t pc);
/* @map came since, in place of what was there; to be used where all mappings
 * cannot be read: a file that cannot be opened either stays unknown. */
int sym_space_add(struct sym_space *s, const struct sym_mapping *map,
		  struct smco_err *err);

struct sym_module_info {
	const char *path;
	const char *build_id; /* hex, "" if none */
	bool has_symtab, has_dwarf;
};
/* Quick, and from any thread: opens files, but does not read their symbols. */
void sym_module_info(struct sym_space *s, uint32_t module,
		     struct sym_module_info *ret);
uint32_t sym_nr_modules(const struct sym_space *s);
/*
 * A handle of its own on the module's file, not on separate debug information;
 * the caller ends it (elf_end), before the space. NULL if the file cannot be
 * read. From any thread.
 */
Elf *sym_module_elf(struct sym_space *s, uint32_t module);
/* The module's file, the space's; -1: it cannot be read, or is none. */
int sym_module_fd(struct sym_space *s, uint32_t module);

/*
 * Does the processor run the code of @module as it is in memory? Not that of
 * libraries in a static program: it was not loaded by a linker but by somebody
 * who makes other code of it (valgrind, emulators), and what is written to it
 * leads where he knows nothing. The unwinding side.
 */
bool sym_runs(struct sym_space *s, uint32_t module);

/*
 * Name a place. One physical frame can be several inlined functions,
 * innermost first. Strings belong to the space. @is_return_address: look up
 * one byte before.
 */
struct sym_name {
	const char *function; /* demangled; "" if unknown */
	const char *file;     /* "" if unknown */
	uint32_t line;	      /* 0 if unknown */
	uint64_t func_offset; /* bytes into the function */
};
#define SYM_MAX_INLINE 8
size_t sym_name(struct sym_space *s, struct sym_place place,
		bool is_return_address, struct sym_name ret[SYM_MAX_INLINE]);

/*
 * Every function that the symbols of @module tell of, those of separate debug
 * information included; one that has several names comes with each. The naming
 * side. Until @fn returns false.
 */
struct sym_function {
	const char *name; /* as the file has it, without a version; only now */
	uint64_t addr;	  /* in the file's own address space */
	uint64_t size;	  /* 0 if the file does not say */
};
void sym_each_function(struct sym_space *s, uint32_t module,
		       bool (*fn)(void *ctx, const struct sym_function *f),
		       void *ctx);
/* The readable form of @name, the caller's to free; NULL if that is @name
 * itself. */
char *sym_readable(const char *name);

/*
 * Address of function @name (exact, undemangled) in the first module that
 * also defines @anchor (NULL = the first that defines @name), in link order.
 * With an anchor glibc's dynamic linker does not count: it defines a malloc of
 * its own. In a static program every symbol counts, elsewhere the anchor must
 * be exported.
 * 0 if none. start_ret and end_ret get the module's executable range. An IFUNC
 * gives 0: which implementation its resolver chose is not known here.
 */
taddr_t sym_find(struct sym_space *s, const char *name, const char *anchor,
		 taddr_t *start_ret, taddr_t *end_ret, uint64_t *size_ret);

/* ------------------------------------------------------------ unwinding --- */

struct sym_regs {	  /* x86-64, DWARF numbering */
	uint64_t reg[17]; /* rax rdx rcx rbx rsi rdi rbp rsp r8..r15 pc(16) */
};

/*
 * Unwind by the table (DESIGN.md, decision 10). frames[0] is regs' pc, the
 * rest return addresses; slots[i] the stack address frames[i] was read from
 * (slots[0] = 0). Returns the number of frames, >= 1. *complete says whether
 * the outermost frame was reached; otherwise CFI or memory ended early. Of code
 * without CFI, as generated code, only callers that have a frame pointer are
 * among the frames.
 */
size_t sym_unwind(struct sym_space *s, const struct sym_regs *regs,
		  taddr_t *frames, taddr_t *slots, size_t max, bool *complete);
/* A thread's stack as it was: @len bytes from @start, its stack pointer, on. */
struct sym_stack {
	taddr_t start;
	const void *data;
	size_t len;
};
/* The same of a copy, while the thread has long run on: no memory of it is
 * read but code. What the copy does not hold ends the stack. */
size_t sym_unwind_copy(struct sym_space *s, const struct sym_regs *regs,
		       const struct sym_stack *copy, taddr_t *frames,
		       taddr_t *slots, size_t max, bool *complete);
/*
 * Did the last sym_unwind meet a program counter outside all executable memory
 * it was told of? Then a module came since the last update (dlopen), and the
 * stack is short or has frames missing: update and unwind again. Generated code
 * is not unknown if its mappings were handed in (with an empty path).
 */
bool sym_unwind_stale(const struct sym_space *s);
/*
 * For those whose stacks are taken in a stop: unwinding waits no longer than
 * @ns, in all, for much frame information that sym_prepare_unwind is to read
 * (another thread calls it), and ends a stack where some is still missing; that
 * which the linker has left a table of is never. At first UINT64_MAX: what is
 * needed is read.
 */
void sym_space_set_patience(struct sym_space *s, uint64_t ns);
/* Did the last sym_unwind end where a table is not ready yet? */
bool sym_unwind_late(const struct sym_space *s);
/* The reference: the same by libdwfl, slow. For tests and as a fallback. A slot
 * it cannot tell (of a frame that a signal interrupted) is 0. */
size_t sym_unwind_dwfl(struct sym_space *s, const struct sym_regs *regs,
		       taddr_t *frames, taddr_t *slots, size_t max,
		       bool *complete);
/* Find the frame information of modules not yet done (off the hot path), and
 * read it where that has to be. From any thread; a stack that needs one in the
 * making waits for it. What is asked for in it is compiled then. */
void sym_prepare_unwind(struct sym_space *s);

#endif
