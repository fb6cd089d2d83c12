/*
 * Prints the variables of a program file, a line each, and their places:
 *
 *	variables-drive FILE [NAME]
 *
 * with NAME, the places of the variables so qualified.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/symbols.h"
#include "symbols/variable.h"

static void show_place(const struct variables *v, const struct var_place *p)
{
	static const char *const kinds[] = {"reg",   "mem",   "addr",
					    "value", "const", "expr"};
	static const char *const ops[] = {
		"reg", "const", "plus", "add", "sub",  "mul",  "and",  "or",
		"xor", "shl",	"shr",	"sar", "eq",   "ne",   "lt",   "le",
		"gt",  "ge",	"neg",	"not", "load", "zext", "sext", "addr"};
	printf("\t%#jx-%#jx %s reg %u shift %u offset %jd%s%s%s%s%s%s function "
	       "%jd",
	       (uintmax_t)p->lo, (uintmax_t)p->hi, kinds[p->kind], p->reg,
	       p->shift, (intmax_t)p->offset,
	       p->flags & VAR_BEGINS ? " begins" : "",
	       p->flags & VAR_FRAME ? " frame" : "",
	       p->flags & VAR_ENDS ? " ends" : "",
	       p->flags & VAR_LAST ? " last" : "",
	       p->flags & VAR_SCOPE ? " scope" : "",
	       p->flags & VAR_PART ? " part" : "",
	       p->function == VAR_NO_FUNCTION ? -1 : (intmax_t)p->function);
	for (uint32_t i = 0; i < p->nr_ops; i++)
		printf(" %s:%jd", ops[v->ops[p->first_op + i].code],
		       (intmax_t)v->ops[p->first_op + i].arg);
	printf("\n");
}

static void show(const struct variables *v, const struct variable *var,
		 bool places)
{
	static const char *const classes[] = {"int", "char", "bool", "enum"};
	const struct var_type *t = &var->type;
	printf("%s %s %s%u", var->qualified, classes[t->class_],
	       t->is_signed ? "s" : "u", t->width * 8);
	if (t->bit_size)
		printf(" bits %u+%u", t->bit_offset, t->bit_size);
	for (unsigned i = 0; i < t->nr_dims; i++)
		printf(" [%ju by %ju]", (uintmax_t)t->dim[i].count,
		       (uintmax_t)t->dim[i].stride);
	printf(" \"%s\" %s:%u places %u %s flags %#x missing %#x", t->name,
	       strrchr(var->file, '/') ? strrchr(var->file, '/') + 1
				       : var->file,
	       var->line, var->nr_places, var_reason_text(var->reason),
	       var->flags, var->missing);
	for (uint32_t i = 0; i < t->nr_enumerators && i < 8; i++)
		printf(" %s=%jd", v->enumerators[t->first_enumerator + i].name,
		       (intmax_t)v->enumerators[t->first_enumerator + i].value);
	printf("\n");
	for (uint32_t i = 0; places && i < var->nr_places; i++)
		show_place(v, &v->places[var->first_place + i]);
}

int main(int argc, char **argv)
{
	struct smco_err err;
	char *path = argc < 2 ? NULL : realpath(argv[1], NULL);
	struct sym_space *s = path ? sym_space_of_file(path) : NULL;
	if (!s) {
		fprintf(stderr, "usage: %s FILE [NAME]\n", argv[0]);
		free(path);
		return 2;
	}
	struct variables *v = variables_load(s, 1, NULL, NULL, &err);
	if (!v) {
		fprintf(stderr, "%s\n", err.msg);
		sym_space_destroy(s);
		return 1;
	}
	for (size_t i = 0; i < v->nr_vars; i++)
		if (argc < 3 || !strcmp(argv[2], v->vars[i].qualified))
			show(v, &v->vars[i], argc >= 3);
	printf("# %zu variables, %zu places, %zu functions, %zu damaged%s\n",
	       v->nr_vars, v->nr_places, v->nr_functions, v->nr_damaged,
	       v->cut_short ? ", cut short" : "");
	variables_destroy(v);
	sym_space_destroy(s);
	free(path);
	return 0;
}
