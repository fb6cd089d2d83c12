/*
 * range-run.h - runs a program that prints what it should be found to do
 * ("RANGE name smallest largest") under range sensors.
 */
#ifndef RANGE_RUN_H
#define RANGE_RUN_H

#include "supervisor/probe/near.h"
#include "supervisor/probe/range.h"
#include "t/unit/hook-run.h"

struct range_run {
	struct run run; /* first: what its functions are called with */
	struct variables *vars;
	struct range_plan *plan;
	struct ranges *r, *child_r;
	uint32_t *all; /* functions */
	size_t nr;
	bool start_out; /* nothing is put in at first */
	bool no_stubs;	/* nor are there any */
	bool late; /* functions are planned when they go in, the last first */
	size_t ahead;	  /* windows whose stubs are made before */
	bool elsewhere;	  /* where sensors usually are, something else is */
	size_t nr_built;  /* functions that were not, when all was in */
	const char *only; /* variables so called, with commas; NULL: all */
	/* Called once everything is where it is at first, all stopped. */
	void (*planted)(struct range_run *x);
	uint64_t set_ns;
	uint64_t set_all_ns; /* the stop that put everything in */
};

static inline bool range_run_want(void *ctx, const struct variable *var)
{
	const struct range_run *x = ctx;
	size_t len = strlen(var->name);
	for (const char *at = x->only; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, var->name, len) &&
		    (!at[len] || at[len] == ','))
			return true;
	}
	return !x->only;
}

static inline int range_run_plant(struct run *run, struct smco_err *err)
{
	struct range_run *x = (struct range_run *)run;
	char exe[64], path[512];
	taddr_t start = 0;
	struct tmaps maps;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", tproc_pid(run->p));
	ssize_t n = readlink(exe, path, sizeof(path) - 1);
	if (n < 0 || tmaps_read(tproc_pid(run->p), &maps, err))
		return SMCO_GONE;
	path[n] = '\0';
	for (size_t i = 0; i < maps.nr && !start; i++)
		if (!strcmp(maps.maps[i].path, path) &&
		    maps.maps[i].prot & PROT_EXEC)
			start = maps.maps[i].start;
	tmaps_deinit(&maps);
	struct sym_place at = sym_pin(run->syms, start);
	x->vars = variables_load(run->syms, at.module, range_run_want, x, err);
	if (!x->vars)
		return SMCO_NOTFOUND;
	int r = range_plan_begin(&x->plan, run->syms, at.module, x->vars,
				 x->late ? 0 : SIZE_MAX, err);
	if (r == 0 && x->ahead)
		r = range_plan_make(x->plan, x->ahead, NULL, NULL, err);
	taddr_t taken;
	if (r == 0 && x->elsewhere)
		r = near_map(run->p, start, start + 1, TPAGE_SIZE, &taken, err);
	if (r == 0)
		r = ranges_install(&x->r, run->p, x->plan, start - at.offset,
				   err);
	if (r)
		return r;
	x->nr = x->vars->nr_functions;
	x->all = calloc(x->nr + 1, sizeof(*x->all));
	for (uint32_t i = 0; i < x->nr; i++)
		x->all[i] = i;
	for (uint32_t i = (uint32_t)x->nr; r == 0 && x->late && i-- > 0;) {
		r = range_plan_more(x->plan, i, err);
		if (r == 0)
			r = ranges_set(x->r, &i, 1, true, NULL, err);
		range_plan_forget(x->plan, i);
		if (i % 5 == 0)
			range_plan_settle(x->plan);
	}
	if (r == 0 && !x->no_stubs)
		r = ranges_prepare(x->r, x->all, x->nr, err);
	if (r == 0 && !x->start_out)
		r = ranges_set(x->r, x->all, x->nr, true, &x->set_all_ns, err);
	x->nr_built = ranges_nr_built(x->r);
	if (r == 0 && x->planted)
		x->planted(x);
	return r;
}

static inline void range_run_free(struct range_run *x)
{
	ranges_destroy(x->r);
	ranges_destroy(x->child_r);
	range_plan_destroy(x->plan);
	variables_destroy(x->vars);
	free(x->all);
}

/* Its output in a file. */
static inline bool range_run_to_end(struct range_run *x, char *const argv[],
				    const char *out)
{
	fflush(stdout);
	int old = dup(1), fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(fd, 1);
	close(fd);
	x->run.plant = range_run_plant;
	bool ok = run_to_end(&x->run, argv);
	fflush(stdout);
	dup2(old, 1);
	close(old);
	return ok;
}

/* Where a compiler gives linkage names there are the arguments' types, too. */
static inline bool range_run_called(const char *qualified, const char *name)
{
	for (; *qualified; qualified++) {
		if (*qualified == '(') {
			qualified = strchr(qualified, ')');
			if (!qualified)
				return false;
		} else if (*qualified != *name++) {
			return false;
		}
	}
	return !*name;
}

/* Variables called @name, taken together; false: nothing was seen. */
static inline bool range_run_range(const struct range_run *x,
				   const struct ranges *r, const char *name,
				   int64_t *lo, int64_t *hi)
{
	bool any = false;
	for (uint32_t i = 0; i < x->vars->nr_vars; i++) {
		int64_t a, b;
		if (!range_run_called(x->vars->vars[i].qualified, name) ||
		    !ranges_read(r, i, &a, &b))
			continue;
		*lo = !any || a < *lo ? a : *lo;
		*hi = !any || b > *hi ? b : *hi;
		any = true;
	}
	return any;
}

struct range_score {
	unsigned exact, narrow, unseen, wide;
};

/* What was found against the RANGE lines in @out. */
static inline struct range_score range_run_score(const struct range_run *x,
						 const struct ranges *r,
						 const char *out)
{
	struct range_score s = {0};
	char line[256], name[128];
	FILE *f = fopen(out, "re");
	while (f && fgets(line, sizeof(line), f)) {
		long long want_lo, want_hi;
		int64_t lo = 0, hi = 0;
		if (sscanf(line, "RANGE %127s %lld %lld", name, &want_lo,
			   &want_hi) != 3)
			continue;
		if (!range_run_range(x, r, name, &lo, &hi))
			s.unseen++;
		else if (lo == want_lo && hi == want_hi)
			s.exact++;
		else if (lo < want_lo || hi > want_hi)
			s.wide++;
		else
			s.narrow++;
		if (lo != want_lo || hi != want_hi)
			printf("# %s: [%jd, %jd], known is [%lld, %lld]\n",
			       name, (intmax_t)lo, (intmax_t)hi, want_lo,
			       want_hi);
	}
	if (f)
		fclose(f);
	return s;
}

#endif
