/*
 * space.h - what is behind struct sym_space. Internal to symbols/.
 *
 * Two sides use a space: the unwinding side (update, pin, find, unwind) and
 * the naming side (name). They share only the array of modules,
 * which grows and never shrinks, under lock.
 */
#ifndef SYMBOLS_SPACE_H
#define SYMBOLS_SPACE_H

#include <pthread.h>

#include "symbols/module.h"
#include "symbols/symbols.h"

/* Executable memory of the tracee as it is now. */
struct space_range {
	taddr_t start;
	taddr_t end;	    /* exclusive */
	uint64_t bias;	    /* pc - bias is the file's own address */
	uint32_t module;    /* 1-based; 0: no file behind it */
	struct module *mod; /* NULL with module 0 */
};

struct unwind_state;
struct reference;
struct name_state;

struct sym_space {
	pid_t pid;
	char *root; /* where that is to be opened, once it is wanted; or NULL */
	int root_fd; /* of the tracee, stays valid when it is gone; ROOT_* */
	sym_read_fn read;
	void *read_ctx;

	pthread_mutex_t lock; /* modules and nr_modules */
	struct module **modules;
	size_t nr_modules, cap_modules;

	/* private: the unwinding side. */
	struct space_range *ranges; /* sorted, disjoint */
	size_t nr_ranges;
	uint32_t *link_order; /* modules, 1-based, in order of symbol lookup */
	size_t nr_link_order;
	bool link_order_known;
	uint32_t alone; /* what is not of this module is not the program's; 0:
			 * there is a linker */
	uint64_t patience_ns; /* UINT64_MAX: unwinding builds what it needs */
	struct unwind_state *unwind;
	struct reference *reference; /* libdwfl's, made on first use */

	/* private: the naming side. */
	struct name_state *names;
};

const struct space_range *space_range_at(const struct sym_space *s, taddr_t pc);
/* Module @index (1-based) or NULL; from any thread. */
struct module *space_module(const struct sym_space *s, uint32_t index);
/* Read all of @len bytes of the tracee. */
bool space_read(const struct sym_space *s, taddr_t addr, void *buf, size_t len);

/* linkorder.c: fill link_order if it is not known. */
void space_link_order(struct sym_space *s);
/* unwind.c */
void unwind_state_destroy(struct unwind_state *u);
/* Mappings have changed: forget what was derived from them. */
void unwind_state_flush(struct unwind_state *u);
/* unwind-dwfl.c */
void reference_destroy(struct reference *ref);
/* name.c */
void name_state_destroy(struct name_state *n);

#endif
