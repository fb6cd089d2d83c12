/* A program file: its variables, and where sensors can be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

static bool wanted(void *ctx, const struct variable *var)
{
	const struct range_select *s = ctx;
	return !(var->flags & VAR_ARTIFICIAL) && range_selected(s, var);
}

static bool split(void *ctx, const struct variable *array)
{
	return range_elements_selected(ctx, array);
}

/* Where there is no debug information, what is asked for by name alone is
 * looked for among the symbols. */
static struct variables *load_variables(struct range_unit *u,
					const struct range_select *select,
					struct sym_space *space,
					var_want_fn want, var_want_fn classes,
					void *ctx, struct smco_err *err)
{
	struct smco_err no_symbols;
	struct variables *v =
		variables_load_split(space, 1, want, classes, ctx, err);
	if (v || err->code != SMCO_NOTFOUND || !select->vars.nr ||
	    select->functions.nr || select->files.nr)
		return v;
	v = variables_of_symbols(space, 1, want, ctx, &no_symbols);
	u->has_symbols = v;
	return v;
}

static int explain(const struct range_monitor *m, struct range_unit *u,
		   struct sym_space *space, struct smco_err *err)
{
	struct range_nearest *n = calloc(1, sizeof(*n));
	if (!n)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	n->select = &m->p.select;
	struct smco_err same;
	variables_destroy(load_variables(u, &m->p.select, space,
					 range_nearest_see, NULL, n, &same));
	int rc = range_nearest_explain(n, u->path, err);
	free(n);
	return rc;
}

/* Variables and plan, from the file. */
static int read_file(const struct range_monitor *m, struct range_unit *u,
		     struct sym_space *space, struct smco_err *err)
{
	/* It is only read, whatever the type says. */
	struct range_select select = m->p.select;
	u->vars =
		load_variables(u, &select, space, wanted,
			       select.elements.nr ? split : NULL, &select, err);
	if (!u->vars)
		return err->code;
	if (!u->vars->nr_vars && u->vars->nr_seen &&
	    range_select_any(&m->p.select)) {
		u->no_match = true;
		/* What --watch names may be here all the same. */
		if (m->p.select.paths.nr)
			return 0;
		return u->is_library ? smco_fail(err, SMCO_FORMAT, 0,
						 "%s has none of them", u->path)
				     : explain(m, u, space, err);
	}
	if (!u->vars->nr_vars && u->vars->nr_damaged)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s has no integer variables: its debug "
				 "information is damaged",
				 u->path);
	if (!u->vars->nr_vars)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "%s has no integer variables", u->path);
	int rc = range_plan_begin(&u->plan, space, 1, u->vars,
				  target_is_unlimited(m->p.target_overhead_ppb)
					  ? SIZE_MAX
					  : RANGE_FIRST_WINDOWS,
				  err);
	if (rc == SMCO_NOMEM)
		return rc;
	if (rc) {
		smco_debug("range", "%s: %s", u->path, err->msg);
		u->plan = NULL;
	}
	return 0;
}

static int load(const struct range_monitor *m, struct range_unit *u,
		struct sym_space *space, struct smco_err *err)
{
	struct sym_module_info info;
	int rc = 0;
	sym_module_info(space, 1, &info);
	/* Most libraries: nothing else is read of them. */
	if (u->is_library && !info.has_dwarf)
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "%s has no debug information", u->path);
	if (m->cache_dir >= 0)
		range_cache_key(&u->key, space, &m->p.select);
	u->from_cache = m->cache_dir >= 0 &&
			range_cache_load(m->cache_dir, &u->key, space, &u->vars,
					 &u->plan);
	if (!u->from_cache)
		rc = read_file(m, u, space, err);
	if (rc)
		return rc;
	smco_debug("range", "%s: %s", u->path,
		   u->from_cache ? "from the cache" : "read");
	if (u->plan) {
		u->most_windows = range_plan_most_windows(u->plan);
		u->most_subscripts = range_plan_most_subscripts(u->plan);
		u->subscripts =
			range_plan_subscripts(u->plan, &u->nr_subscripts);
	}
	return range_pointees_find(u, &m->p.select, space, err);
}

struct range_unit *range_unit_find(const struct range_monitor *m,
				   const char *path)
{
	struct range_unit *u = m->units;
	while (u && strcmp(u->path, path) != 0)
		u = u->next;
	return u;
}

struct range_unit *range_unit_new(struct range_monitor *m, const char *path,
				  bool is_library)
{
	struct range_unit *u = calloc(1, sizeof(*u));
	if (!u || !(u->path = strdup(path))) {
		free(u);
		return NULL;
	}
	u->is_library = is_library;
	u->next = m->units;
	m->units = u;
	return u;
}

static void fail(struct range_unit *u, const struct smco_err *err)
{
	range_plan_destroy(u->plan);
	variables_destroy(u->vars);
	u->plan = NULL;
	u->vars = NULL;
	snprintf(u->why, sizeof(u->why), "%s", err->msg);
}

void range_unit_read(const struct range_monitor *m, struct range_unit *u,
		     const char *open_path)
{
	struct smco_err err = {0};
	struct sym_space *space = sym_space_of_file(open_path);
	if (!space) {
		smco_fail(&err, SMCO_NOTFOUND, 0, "%s cannot be read", u->path);
		fail(u, &err);
		return;
	}
	struct sym_module_info info;
	Elf *elf = sym_module_elf(space, 1);
	if (elf && data_slots_read(&u->slots, elf))
		smco_debug("range", "%s: out of memory", u->path);
	elf_end(elf);
	sym_module_info(space, 1, &info);
	u->build_id = strdup(info.build_id);
	u->module_path = strdup(info.path);
	if (load(m, u, space, &err))
		fail(u, &err);
	sym_space_destroy(space);
}

/* What else is watched, of the variables and the plan, which stay as they are.
 * False: no memory. */
static bool find_others(struct range_unit *u)
{
	u->told = calloc(range_unit_nr(u) / 8 + 1, 1);
	return u->told && !range_polls_find(u) && !range_firsts_find(u) &&
	       !range_words_find(u);
}

/* What is planned later may have some. */
static bool wants_watch(const struct range_unit *u)
{
	return u->nr_words || (u->plan && !range_plan_is_whole(u->plan));
}

static void ready(struct range_monitor *m, struct range_unit *u, bool found)
{
	struct smco_err err = {0};
	if (!found) {
		smco_fail(&err, SMCO_NOMEM, 0, "out of memory");
		fail(u, &err);
		return;
	}
	u->first_id = m->next_id;
	m->next_id += (uint32_t)range_unit_nr(u);
	if (wants_watch(u))
		range_watch_open(m);
}

void range_unit_ready(struct range_monitor *m, struct range_unit *u)
{
	u->is_being_read = false;
	if (u->vars)
		ready(m, u, find_others(u));
}

struct finding {
	struct range_monitor *m;
	struct range_unit *u;
	bool found;
};

/* The kernel takes its time to look at programs, too. */
static void run_find_others(void *arg)
{
	struct finding *f = arg;
	f->found = find_others(f->u);
	/* By ptrace it is tried on a child, which is to have a CPU. */
	if (f->found && wants_watch(f->u) && !f->m->p.ptrace_watch)
		range_watch_open(f->m);
}

/* What its processes' stubs have in common: at least one is about to begin, or
 * stands for it. Of libraries it is not known where they will be. */
static void make_stubs(struct finding *f)
{
	struct smco_err err = {0};
	size_t most = target_is_unlimited(f->m->p.target_overhead_ppb)
			      ? SIZE_MAX
			      : RANGE_FIRST_WINDOWS;
	if (!f->u->plan || f->u->is_library)
		run_find_others(f);
	else if (range_plan_make(f->u->plan, most, run_find_others, f, &err))
		smco_debug("range", "%s: %s", f->u->path, err.msg);
}

struct range_unit *range_unit_get(struct range_monitor *m, const char *path,
				  const char *open_path, bool is_library)
{
	struct range_unit *u = range_unit_find(m, path);
	if (u || !(u = range_unit_new(m, path, is_library)))
		return u;
	range_unit_read(m, u, open_path);
	if (!u->vars)
		return u;
	struct finding f = {.m = m, .u = u};
	make_stubs(&f);
	ready(m, u, f.found);
	return u;
}

bool range_unit_plan(struct range_unit *u, uint32_t f)
{
	struct smco_err err = {0};
	if (range_plan_is_planned(u->plan, f))
		return true;
	if (range_plan_more(u->plan, f, &err)) {
		smco_debug("range", "%s: %s", u->path, err.msg);
		return false;
	}
	u->nr_late++;
	u->subscripts = range_plan_subscripts(u->plan, &u->nr_subscripts);
	if (range_words_more(u, f))
		smco_debug("range", "%s: no memory for breakpoints", u->path);
	return true;
}

void range_units_keep(struct range_monitor *m)
{
	for (struct range_unit *u = m->units; u; u = u->next) {
		/* There may be debug information the next time. */
		if (m->cache_dir < 0 || !u->vars || u->has_symbols ||
		    (u->from_cache && !u->nr_late))
			continue;
		if (u->plan)
			range_plan_settle(u->plan);
		bool kept = range_cache_store(m->cache_dir, &u->key, u->vars,
					      u->plan, CACHEDIR_MOST_BYTES);
		smco_debug("range", "%s: %s", u->path,
			   kept ? "kept in the cache" : "not kept");
		u->from_cache = true;
		u->nr_late = 0;
	}
}

void range_unit_destroy(struct range_unit *u)
{
	range_plan_destroy(u->plan);
	variables_destroy(u->vars);
	data_slots_deinit(&u->slots);
	free(u->polls);
	free(u->kept);
	free(u->firsts);
	free(u->is_polled);
	range_pointees_free(u);
	free(u->beside);
	range_words_free(u);
	free(u->told);
	free(u->path);
	free(u->module_path);
	free(u->build_id);
	free(u);
}
