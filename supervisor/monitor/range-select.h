/*
 * range-select.h - which variables are watched: globs for their names, their
 * functions and their files, as --var, --function and --file have them. Pure.
 */
#ifndef SMCO_RANGE_SELECT_H
#define SMCO_RANGE_SELECT_H

#include "symbols/variable.h"

#define RANGE_MAX_GLOBS 64

struct range_globs {
	const char *glob[RANGE_MAX_GLOBS]; /* the caller's */
	size_t nr;
};

/* Of each kind that there is one of, one must match. */
struct range_select {
	struct range_globs vars;      /* "i", "main::i", "table.*" */
	struct range_globs functions; /* "BZ2_*" */
	struct range_globs files;     /* "huffman.c", or a longer path */
	struct range_globs libraries; /* "libz.so*", "none"; not of the above */
	struct range_globs elements;  /* arrays: "table"; beside the others */
	/* No globs, and beside the others: "conf->limit". */
	struct range_globs paths;
};

bool range_select_any(const struct range_select *s);
/* A variable by its name alone or with what it is in; a function without its
 * parameters, or with them; a file by any tail of its path. */
bool range_selected(const struct range_select *s, const struct variable *var);
/* Is the array of this name, without brackets, to be told by elements, too? */
bool range_elements_selected(const struct range_select *s,
			     const struct variable *array);
/*
 * Are the variables of the library @path candidates? Those that match, by any
 * tail of the path; without globs for it, all but the system's, of which there
 * may be debug information of a hundred. Never the dynamic linker, which runs
 * while there is nothing to rely on yet.
 */
bool range_library_selected(const struct range_select *s, const char *path);

/*
 * Finds out why nothing matches: ask it of every variable (as a var_want_fn,
 * ctx is the struct), then let it explain. Zero but for the selection.
 */
struct range_nearest {
	const struct range_select *select;
	/* private: */
	struct near_name {
		char name[80];
		unsigned distance;
	} near[4][3]; /* vars, functions, files, arrays: the nearest first */
	bool matched[3];
};
bool range_nearest_see(void *nearest, const struct variable *var);
/* "--var 'cuont': no such variable; the nearest are count, counter"; fills
 * @err with SMCO_FORMAT and returns that. */
int range_nearest_explain(const struct range_nearest *n, const char *path,
			  struct smco_err *err);
/* The same of --elements: show it the variables that there are. */
void range_nearest_see_array(struct range_nearest *n,
			     const struct variable *var);
int range_nearest_explain_elements(const struct range_nearest *n,
				   struct smco_err *err);

#endif
