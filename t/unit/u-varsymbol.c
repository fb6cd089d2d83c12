/*
 * Variables of programs without debug information: what the symbol table has
 * sizes for, and where debug information says that they are.
 */
#include "symbols/variable.h"
#include "symhelp.h"

static struct variables *load(const char *name, struct smco_err *err)
{
	struct sym_space *s = space_of(name);
	struct variables *v = s ? variables_load(s, 1, NULL, NULL, err) : NULL;
	sym_space_destroy(s);
	return v;
}

static const struct variable *find(const struct variables *v, const char *name)
{
	static const struct variable none = {.qualified = "", .file = ""};
	for (size_t i = 0; v && i < v->nr_vars; i++)
		if (!strcmp(v->vars[i].qualified, name))
			return &v->vars[i];
	return &none;
}

static void check_symbol(const struct variables *v, const char *name,
			 unsigned width, bool is_const)
{
	const struct variable *var = find(v, name);
	check_int(var->type.width, width);
	check_int(var->type.is_const, is_const);
	check_int(var->nr_places, width ? 1 : 0);
	if (!width || !var->nr_places)
		return;
	const struct var_place *p = &v->places[var->first_place];
	check_int(p->kind, VAR_ADDR);
	check(var->type.is_signed);
	check_int(var->type.name[0] - '0', width);
}

static void test_c(void)
{
	struct smco_err err = {0};
	check(!run("gcc -O0 -g -o \"$D\"/with " FIX "/vars.c && "
		   "objcopy -g \"$D\"/with \"$D\"/prog"));
	struct sym_space *s = space_of("prog");
	struct variables *v = variables_of_symbols(s, 1, NULL, NULL, &err);
	check_symbol(v, "seed", 4, false);
	check_symbol(v, "counter", 4, false);
	check_symbol(v, "constant", 4, true);
	check_symbol(v, "table", 0, false);
	check_symbol(v, "per_thread", 0, false);
	check_symbol(v, "main", 0, false);
	struct variables *with = load("with", &err);
	const struct variable *a = find(v, "seed"), *b = find(with, "seed");
	check(a->nr_places && b->nr_places &&
	      v->places[a->first_place].offset ==
		      with->places[b->first_place].offset);
	variables_destroy(with);
	variables_destroy(v);
	sym_space_destroy(s);
}

static void test_cxx(void)
{
	struct smco_err err;
	check(!run("g++ -O0 -o \"$D\"/prog " FIX "/varscxx.cc"));
	struct sym_space *s = space_of("prog");
	struct variables *v = variables_of_symbols(s, 1, NULL, NULL, &err);
	check_symbol(v, "ns::state", 1, false);
	variables_destroy(v);
	sym_space_destroy(s);

	check(!run("strip \"$D\"/prog"));
	s = space_of("prog");
	check(!variables_of_symbols(s, 1, NULL, NULL, &err));
	check_int(err.code, SMCO_NOTFOUND);
	sym_space_destroy(s);
}

int main(void)
{
	make_scratch();
	test_c();
	test_cxx();
	return finish();
}
