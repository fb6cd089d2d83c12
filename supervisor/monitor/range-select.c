#include "supervisor/monitor/range-select.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool range_select_any(const struct range_select *s)
{
	return s->vars.nr || s->functions.nr || s->files.nr;
}

static bool matches_var(const char *glob, const struct variable *var)
{
	return !fnmatch(glob, var->name, 0) ||
	       !fnmatch(glob, var->qualified, 0);
}

/* The name of a function without its parameters. */
static void short_scope(const struct variable *var, char *buf, size_t size)
{
	snprintf(buf, size, "%s", var->scope);
	char *open = strchr(buf, '(');
	/* "(anonymous namespace)::f(int)" begins with one. */
	while (open && !strncmp(open, "(anonymous namespace)", 21))
		open = strchr(open + 21, '(');
	if (open)
		*open = '\0';
}

static bool matches_function(const char *glob, const struct variable *var)
{
	char name[512];
	if (!*var->scope || var->flags & VAR_GLOBAL)
		return false;
	short_scope(var, name, sizeof(name));
	return !fnmatch(glob, name, 0) || !fnmatch(glob, var->scope, 0);
}

static bool matches_tail(const char *glob, const char *path)
{
	for (const char *tail = path; *tail;) {
		if (!fnmatch(glob, tail, 0))
			return true;
		const char *slash = strchr(tail, '/');
		if (!slash)
			break;
		tail = slash + 1;
	}
	return false;
}

static bool matches_file(const char *glob, const struct variable *var)
{
	return matches_tail(glob, var->file);
}

typedef bool (*match_fn)(const char *glob, const struct variable *var);

static bool any(const struct range_globs *g, match_fn match,
		const struct variable *var)
{
	for (size_t i = 0; i < g->nr; i++)
		if (match(g->glob[i], var))
			return true;
	return false;
}

bool range_selected(const struct range_select *s, const struct variable *var)
{
	return (!s->vars.nr || any(&s->vars, matches_var, var)) &&
	       (!s->functions.nr ||
		any(&s->functions, matches_function, var)) &&
	       (!s->files.nr || any(&s->files, matches_file, var));
}

bool range_elements_selected(const struct range_select *s,
			     const struct variable *array)
{
	return any(&s->elements, matches_var, array);
}

static bool starts(const char *path, const char *with)
{
	return !strncmp(path, with, strlen(with));
}

bool range_library_selected(const struct range_select *s, const char *path)
{
	static const char *const systems[] = {"/lib/", "/lib64/", "/usr/lib/",
					      "/usr/lib64/"};
	const char *slash = strrchr(path, '/');
	if (path[0] != '/' || starts(slash, "/ld-linux") ||
	    starts(slash, "/ld-2."))
		return false;
	for (size_t i = 0; i < s->libraries.nr; i++)
		if (matches_tail(s->libraries.glob[i], path))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(systems); i++)
		if (starts(path, systems[i]))
			return false;
	return !s->libraries.nr;
}

/* --- what was meant --- */

#define MAX_COMPARED 63

/* Letters to change, of at most MAX_COMPARED; wildcards cost nothing. */
static unsigned distance(const char *glob, const char *name)
{
	unsigned row[MAX_COMPARED + 1];
	size_t n = strnlen(name, MAX_COMPARED);
	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; i < MAX_COMPARED && glob[i]; i++) {
		bool wild = glob[i] == '*' || glob[i] == '?';
		unsigned diagonal = row[0];
		row[0] += !wild;
		for (size_t j = 1; j <= n; j++) {
			unsigned left = row[j - 1] + (glob[i] != '*');
			unsigned up = row[j] + !wild;
			unsigned both =
				diagonal + (!wild && glob[i] != name[j - 1]);
			diagonal = row[j];
			row[j] = left < up ? left : up;
			if (both < row[j])
				row[j] = both;
		}
	}
	return row[n];
}

static void offer(struct near_name near[3], const char *name, unsigned d)
{
	size_t at = 3;
	for (size_t i = 0; i < 3; i++)
		if (!strncmp(near[i].name, name, sizeof(near[i].name) - 1))
			return;
	while (at && (!near[at - 1].name[0] || d < near[at - 1].distance))
		at--;
	if (at == 3)
		return;
	memmove(&near[at + 1], &near[at], (2 - at) * sizeof(near[0]));
	near[at].distance = d;
	snprintf(near[at].name, sizeof(near[at].name), "%s", name);
}

static void see(struct range_nearest *n, size_t kind,
		const struct range_globs *globs, match_fn match,
		const struct variable *var, const char *const names[2])
{
	if (any(globs, match, var))
		n->matched[kind] = true;
	for (size_t i = 0; i < globs->nr; i++)
		for (size_t k = 0; k < 2; k++)
			if (names[k] && *names[k])
				offer(n->near[kind], names[k],
				      distance(globs->glob[i], names[k]));
}

bool range_nearest_see(void *nearest, const struct variable *var)
{
	struct range_nearest *n = nearest;
	const struct range_select *s = n->select;
	const char *slash = strrchr(var->file, '/');
	char function[512];
	short_scope(var, function, sizeof(function));
	bool local = !(var->flags & VAR_GLOBAL);
	see(n, 0, &s->vars, matches_var, var,
	    (const char *const[]){var->name, var->qualified});
	see(n, 1, &s->functions, matches_function, var,
	    (const char *const[]){local ? function : NULL, NULL});
	see(n, 2, &s->files, matches_file, var,
	    (const char *const[]){slash ? slash + 1 : var->file, NULL});
	return false;
}

/* "table" of "table[].len", to @buf. */
static const char *array_name(const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%.*s", (int)strcspn(name, "["), name);
	return buf;
}

void range_nearest_see_array(struct range_nearest *n,
			     const struct variable *var)
{
	const struct range_globs *globs = &n->select->elements;
	char name[256], qualified[256];
	if (!var->type.nr_dims || var->type.dim[0].count < 2 ||
	    var->flags & (VAR_IN_UNION | VAR_ELEMENT))
		return;
	array_name(var->name, name, sizeof(name));
	array_name(var->qualified, qualified, sizeof(qualified));
	for (size_t i = 0; i < globs->nr; i++) {
		unsigned d = distance(globs->glob[i], name);
		unsigned whole = distance(globs->glob[i], qualified);
		offer(n->near[3], whole < d ? qualified : name,
		      whole < d ? whole : d);
	}
}

int range_nearest_explain_elements(const struct range_nearest *n,
				   struct smco_err *err)
{
	const struct near_name *near = n->near[3];
	return smco_fail(err, SMCO_FORMAT, 0,
			 "--elements '%.40s': no array of integers has this "
			 "name and a length that is known%s%.50s%s%.50s",
			 n->select->elements.glob[0],
			 near[0].name[0] ? "; nearest: " : "", near[0].name,
			 near[1].name[0] ? ", " : "", near[1].name);
}

int range_nearest_explain(const struct range_nearest *n, const char *path,
			  struct smco_err *err)
{
	static const char *const options[] = {"--var", "--function", "--file"};
	static const char *const what[] = {"variable", "function", "file"};
	const struct range_globs *globs[] = {
		&n->select->vars, &n->select->functions, &n->select->files};
	const char *base = strrchr(path, '/');
	base = base ? base + 1 : path;
	for (size_t k = 0; k < 3; k++) {
		const struct near_name *near = n->near[k];
		if (!globs[k]->nr || n->matched[k])
			continue;
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s '%.40s': %.60s has no such %s with "
				 "integers%s%.50s%s%.50s",
				 options[k], globs[k]->glob[0], base, what[k],
				 near[0].name[0] ? "; nearest: " : "",
				 near[0].name, near[1].name[0] ? ", " : "",
				 near[1].name);
	}
	return smco_fail(err, SMCO_FORMAT, 0,
			 "--var, --function and --file together match no "
			 "integer variable of %.80s",
			 base);
}
