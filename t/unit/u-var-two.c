/*
 * A file whose variables are read by two threads, a half each, says what it
 * says to one; where its units refer to each other, one thread reads it.
 */
#include "t/unit/symhelp.h"

#include <dlfcn.h>
#include <pthread.h>

#include "symbols/varbuild.h"

static unsigned nr_threads;

int pthread_create(pthread_t *ret, const pthread_attr_t *attr,
		   void *(*run_it)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
		    void *);
	void *sym = dlsym(RTLD_NEXT, "pthread_create");
	memcpy(&real, &sym, sizeof(real));
	nr_threads++;
	return real(ret, attr, run_it, arg);
}

static struct variables *load(const char *path, uint64_t two_from_bytes)
{
	struct smco_err err = {0};
	struct sym_space *space = sym_space_of_file(path);
	var_two_from_bytes = two_from_bytes;
	struct variables *v = variables_load(space, 1, NULL, NULL, &err);
	check_msg(v != NULL, "variables of %s %s", path, err.msg);
	sym_space_destroy(space);
	return v;
}

static bool same_type(const struct variables *a, const struct var_type *x,
		      const struct variables *b, const struct var_type *y)
{
	struct var_type p = *x, q = *y;
	if (strcmp(x->name, y->name) || x->nr_enumerators != y->nr_enumerators)
		return false;
	for (uint32_t i = 0; i < x->nr_enumerators; i++) {
		const struct var_enumerator *e =
			&a->enumerators[x->first_enumerator + i];
		const struct var_enumerator *f =
			&b->enumerators[y->first_enumerator + i];
		if (strcmp(e->name, f->name) || e->value != f->value)
			return false;
	}
	p.name = q.name = NULL;
	p.first_enumerator = q.first_enumerator = 0;
	p.dim = q.dim = NULL;
	return !memcmp(&p, &q, sizeof(p)) &&
	       (!p.nr_dims ||
		!memcmp(x->dim, y->dim, p.nr_dims * sizeof(*x->dim)));
}

static bool same_place(const struct variables *a, const struct var_place *x,
		       const struct variables *b, const struct var_place *y)
{
	if (x->lo != y->lo || x->hi != y->hi || x->function != y->function ||
	    x->kind != y->kind || x->reg != y->reg || x->shift != y->shift ||
	    x->flags != y->flags || x->offset != y->offset ||
	    x->nr_ops != y->nr_ops)
		return false;
	for (uint32_t i = 0; i < x->nr_ops; i++)
		if (a->ops[x->first_op + i].code !=
			    b->ops[y->first_op + i].code ||
		    a->ops[x->first_op + i].arg != b->ops[y->first_op + i].arg)
			return false;
	return true;
}

static bool same_variable(const struct variables *a, const struct variables *b,
			  size_t i)
{
	const struct variable *x = &a->vars[i], *y = &b->vars[i];
	if (strcmp(x->name, y->name) || strcmp(x->qualified, y->qualified) ||
	    strcmp(x->file, y->file) || x->line != y->line ||
	    strcmp(x->scope, y->scope) || x->missing != y->missing ||
	    x->reason != y->reason || x->flags != y->flags ||
	    x->nr_places != y->nr_places ||
	    !same_type(a, &x->type, b, &y->type))
		return false;
	for (uint32_t k = 0; k < x->nr_places; k++)
		if (!same_place(a, &a->places[x->first_place + k], b,
				&b->places[y->first_place + k]))
			return false;
	return true;
}

static bool same_function(const struct variables *a, const struct variables *b,
			  size_t i)
{
	const struct var_function *x = &a->functions[i], *y = &b->functions[i];
	return !strcmp(x->name, y->name) && !strcmp(x->file, y->file) &&
	       x->line == y->line && x->entry == y->entry &&
	       x->nr_ranges == y->nr_ranges &&
	       !memcmp(a->ranges + x->first_range, b->ranges + y->first_range,
		       x->nr_ranges * sizeof(*a->ranges));
}

static void compare(const struct variables *a, const struct variables *b)
{
	size_t nr_bad = 0;
	check_int(a->nr_vars, b->nr_vars);
	check_int(a->nr_functions, b->nr_functions);
	check_int(a->nr_places, b->nr_places);
	check_int(a->nr_seen, b->nr_seen);
	check_int(a->nr_damaged, b->nr_damaged);
	check(a->cut_short == b->cut_short && a->is_split == b->is_split);
	check_int(a->nr_rows, b->nr_rows);
	check(a->nr_rows == b->nr_rows &&
	      (!a->nr_rows ||
	       !memcmp(a->rows, b->rows, a->nr_rows * sizeof(*a->rows))));
	check_int(a->nr_others, b->nr_others);
	check(a->nr_others == b->nr_others &&
	      (!a->nr_others || !memcmp(a->others, b->others,
					a->nr_others * sizeof(*a->others))));
	for (size_t i = 0; i < a->nr_vars && i < b->nr_vars; i++)
		nr_bad += !same_variable(a, b, i);
	for (size_t i = 0; i < a->nr_functions && i < b->nr_functions; i++)
		nr_bad += !same_function(a, b, i);
	check_int(nr_bad, 0);
}

static void test_same(const char *compiler, const char *flags)
{
	if (run("command -v %s >/dev/null", compiler)) {
		printf("ok %d # SKIP no %s\n", ++tap_nr, compiler);
		return;
	}
	check_int(run("cd $D && %s %s 1.cc 2.cc 3.cc 4.cc -o prog", compiler,
		      flags),
		  0);
	const char *path = scratch_path("prog");
	struct variables *one = load(path, UINT64_MAX);
	unsigned before = nr_threads;
	struct variables *two = load(path, 1);
	check_int(nr_threads - before, 1);
	if (one && two) {
		printf("# %s %s: %zu variables, %zu functions\n", compiler,
		       flags, one->nr_vars, one->nr_functions);
		check(one->nr_vars > 30);
		compare(one, two);
	}
	variables_destroy(one);
	variables_destroy(two);
}

/* Rows of the line table are counted by function. */
static void test_rows(void)
{
	check_int(run("cd $D && for i in 1 2 3 4; do echo \"int f$i(int n)\n"
		      "{ register int sum = 0;\n while (n--)\n  sum += n;\n"
		      " return sum; }\n\" >r$i.c; done && echo 'int main(void) "
		      "{ return 0; }' >>r4.c && gcc -O0 -g r[1-4].c -o rows"),
		  0);
	const char *path = scratch_path("rows");
	struct variables *one = load(path, UINT64_MAX);
	struct variables *two = load(path, 1);
	if (one && two) {
		size_t nr, with_rows = 0;
		for (uint32_t i = 0; i < two->nr_functions; i++)
			with_rows += variables_rows(two, i, &nr) != NULL;
		check_int(with_rows, 4);
		compare(one, two);
	}
	variables_destroy(one);
	variables_destroy(two);
}

static void write_sources(void)
{
	check(!run("cd $D && cat >all.h <<'END'\n"
		   "enum colour { RED, GREEN = 5, BLUE };\n"
		   "struct pair { int a; unsigned b : 3; enum colour c; };\n"
		   "namespace deep { struct counts { static long all; }; }\n"
		   "int one(int), two(int), three(int);\n"
		   "template <class T> static inline T twice(T x)\n"
		   "{ T sum = x; for (T i = 0; i < x; i++) sum += i & 3;\n"
		   " return sum + x; }\n"
		   "END\n"
		   "for i in 1 2 3; do cat >$i.cc <<END\n"
		   "#include \"all.h\"\n"
		   "static struct pair mine$i = {1, 2, BLUE};\n"
		   "int table$i[7]; enum colour last$i = GREEN;\n"
		   "namespace here { static int nr; }\n"
		   "int $(echo none one two three | cut -d ' ' -f $((i + 1)))"
		   "(int n)\n"
		   "{ int sum = twice(n) + (int)twice((long)n + $i);\n"
		   " for (int k = 0; k < n; k++) { mine$i.a += k;\n"
		   "  table$i[k %% 7] += sum; here::nr++; }\n"
		   " last$i = sum & 1 ? RED : GREEN;\n"
		   " return sum + mine$i.a + here::nr; }\n"
		   "END\n"
		   "done\n"
		   "cat >4.cc <<'END'\n"
		   "#include \"all.h\"\n"
		   "long deep::counts::all;\n"
		   "int main(int argc, char **)\n"
		   "{ for (int i = 0; i < argc; i++)\n"
		   "  deep::counts::all += one(i) + two(i) + three(i);\n"
		   " return deep::counts::all & 1; }\n"
		   "END\n"));
}

int main(void)
{
	cpu_set_t set;
	make_scratch();
	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2) {
		tap_skip("one CPU only");
		return finish();
	}
	write_sources();
	test_rows();
	test_same("g++", "-g -O2");
	test_same("g++", "-g -O0");
	test_same("g++", "-gdwarf-4 -O2 -fdebug-types-section");
	test_same("g++", "-g -O2 -gsplit-dwarf");
	test_same("g++", "-g -O2 -gz");
	test_same("g++", "-g -O2 -flto");
	test_same("g++", "-g -O2 -flto -flto-partition=none");
	test_same("clang++", "-g -O2");
	test_same("clang++", "-gdwarf-4 -O1");
	test_same("clang++", "-g -O2 -flto -fuse-ld=lld");
	return finish();
}
