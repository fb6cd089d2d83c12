/*
 * Variables from DWARF: what they are, in every way a binary can be built; and
 * what they are worth, against a program that stops where it knows.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "symbols/variable.h"
#include "symhelp.h"

struct want {
	const char *name;
	const char *type;
	uint8_t width;
	bool is_signed;
	enum var_class class_;
	uint8_t bit_size;
	uint64_t count, stride; /* of the array, 0 for none */
	uint32_t line;
};

static const struct want wants[] = {
	{"seed", "int", 4, true, VAR_INT, 0, 0, 0, 29},
	{"counter", "int", 4, true, VAR_INT, 0, 0, 0, 30},
	{"object.tag", "char", 1, true, VAR_CHAR, 0, 0, 0, 31},
	{"object.in[].a", "short", 2, true, VAR_INT, 0, 4, 4, 31},
	{"object.in[].b", "unsigned int", 1, false, VAR_INT, 5, 4, 4, 31},
	{"object.in[].c", "int", 2, true, VAR_INT, 9, 4, 4, 31},
	{"object.u.word", "int", 4, true, VAR_INT, 0, 0, 0, 31},
	{"object.u.bytes[]", "unsigned char", 1, false, VAR_CHAR, 0, 8, 1, 31},
	{"object.col", "enum color", 4, true, VAR_ENUM, 0, 0, 0, 31},
	{"object.yes", "_Bool", 1, false, VAR_BOOL, 0, 0, 0, 31},
	{"object.deep", "uint16_t", 2, false, VAR_INT, 0, 0, 0, 31},
	{"table[]", "my_size", 8, false, VAR_INT, 0, 200, 8, 32},
	{"per_thread", "int", 4, true, VAR_INT, 0, 0, 0, 33},
	{"constant", "int", 4, true, VAR_INT, 0, 0, 0, 34},
	{"square::calls", "int", 4, true, VAR_INT, 0, 0, 0, 44},
	{"square::x", "int", 4, true, VAR_INT, 0, 0, 0, 42},
	{"square::r", "int", 4, true, VAR_INT, 0, 0, 0, 45},
	{"widths::n", "int", 4, true, VAR_INT, 0, 0, 0, 51},
	{"widths::i8", "int8_t", 1, true, VAR_CHAR, 0, 0, 0, 53},
	{"widths::u16", "uint16_t", 2, false, VAR_INT, 0, 0, 0, 56},
	{"widths::u64", "uint64_t", 8, false, VAR_INT, 0, 0, 0, 60},
	{"blocks::sum", "long", 8, true, VAR_INT, 0, 0, 0, 67},
	{"recurse::here", "int", 4, true, VAR_INT, 0, 0, 0, 81},
	{"main::odd", "_Bool", 1, false, VAR_BOOL, 0, 0, 0, 91},
	{"main::color", "enum color", 4, true, VAR_ENUM, 0, 0, 0, 92},
	{"main::s.b", "unsigned int", 1, false, VAR_INT, 5, 0, 0, 93},
};
/* All there are: also i8, u8 and the like, both variables called i. */
#define NR_VARIABLES 36

/* At the int3 with this number, that has this value. */
struct value {
	unsigned stop;
	const char *name;
	int64_t value;
	uint32_t line; /* of several variables so called; 0: any */
};
static const struct value values[] = {
	{0, "main::n", 7, 0},
	{0, "main::odd", 1, 0},
	{0, "main::color", -3, 0},
	{0, "main::s.a", 7, 0},
	{0, "main::s.b", 3, 0},
	{0, "main::s.c", -4, 0},
	{1, "widths::n", 7, 0},
	{1, "widths::i8", -7, 0},
	{1, "widths::u8", 207, 0},
	{1, "seed", 7, 0},
	{1, "counter", 3, 0},
	{1, "object.in[].a", 0, 0},
	{1, "object.col", -3, 0},
	{1, "object.yes", 1, 0},
	{1, "object.u.word", 7000, 0},
	{1, "object.deep", 0xfff0, 0},
	{1, "constant", 42, 0},
	{2, "widths::i16", -293, 0},
	{2, "widths::u16", 60007, 0},
	{3, "widths::i64", 7 - 5000000000, 0},
	{3, "widths::u64", INT64_C(7) << 60, 0},
	{4, "square::x", 7, 0},
	{4, "square::r", 49, 0},
	{4, "square::calls", 1, 0},
	{4, "blocks::n", 7, 0},
	{4, "blocks::i", 0, 0},
	{5, "square::x", 8, 0},
	{5, "square::r", 64, 0},
	{5, "square::calls", 2, 0},
	{5, "blocks::i", 1, 0},
	{6, "blocks::i", 232, 72},
	{6, "blocks::sum", 116, 0},
	{7, "recurse::depth", 0, 0},
	{7, "recurse::here", 0, 0},
	{8, "recurse::depth", 1, 0},
	{8, "recurse::here", 10, 0},
	{9, "main::n", 7, 0},
};

static struct variables *load(const char *name, struct smco_err *err)
{
	struct sym_space *s = space_of(name);
	struct variables *v = s ? variables_load(s, 1, NULL, NULL, err) : NULL;
	sym_space_destroy(s);
	return v;
}

/* clang does not say which inlined function a static belongs to. */
static bool is_called(const struct variable *var, const char *name)
{
	return !strcmp(var->qualified, name) ||
	       (!strcmp(name, "square::calls") &&
		!strcmp(var->qualified, "calls"));
}

static const struct variable *find(const struct variables *v, const char *name)
{
	static const struct variable none = {.qualified = "", .file = ""};
	for (size_t i = 0; v && i < v->nr_vars; i++)
		if (is_called(&v->vars[i], name))
			return &v->vars[i];
	return &none;
}

/* "long" and "short" are "long int" and "short int" to gcc. */
static bool same_type(const char *got, const char *want)
{
	size_t len = strlen(want);
	return !strncmp(got, want, len) &&
	       (!got[len] || !strcmp(got + len, " int"));
}

static void check_variable(const struct variables *v, const struct want *w)
{
	const struct variable *var = find(v, w->name);
	if (!check_msg(*var->qualified, "there is %s", w->name))
		return;
	const struct var_type *t = &var->type;
	check_msg(same_type(t->name, w->type) && t->width == w->width &&
			  t->is_signed == w->is_signed &&
			  t->class_ == w->class_ && t->bit_size == w->bit_size,
		  "%s is %s: %u bytes, signed %d, class %d, %d bits, \"%s\"",
		  w->name, w->type, t->width, t->is_signed, t->class_,
		  t->bit_size, t->name);
	check_msg(t->nr_dims == (w->stride != 0) &&
			  (!t->nr_dims || (t->dim[0].count == w->count &&
					   t->dim[0].stride == w->stride)),
		  "%s has %ju elements", w->name, (uintmax_t)w->count);
	check_msg(!strcmp(base_name(var->file), "vars.c") &&
			  var->line == w->line,
		  "%s is declared at vars.c:%u (%s:%u)", w->name, w->line,
		  base_name(var->file), var->line);
}

static void check_enumerators(const struct variables *v)
{
	const struct variable *var = find(v, "object.col");
	if (!check(var->type.nr_enumerators == 3))
		return;
	const struct var_enumerator *e =
		&v->enumerators[var->type.first_enumerator];
	check_str(e[0].name, "BLUE");
	check_int(e[0].value, -3);
	check_str(e[1].name, "RED");
	check_str(e[2].name, "GREEN");
	check_int(e[2].value, 5);
}

/* --- values --- */

struct tracee {
	pid_t pid;
	uint64_t bias;
	struct user_regs_struct regs;
};

static uint64_t reg_of(const struct tracee *t, unsigned reg)
{
	const struct user_regs_struct *r = &t->regs;
	const uint64_t all[16] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp,
		r->r8,	r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
	return all[reg];
}

static uint64_t word_at(struct tracee *t, uint64_t addr)
{
	uint64_t word = 0;
	read_pid(&t->pid, addr, &word, sizeof(word));
	return word;
}

static int64_t extend(uint64_t word, unsigned bits, bool is_signed)
{
	word <<= 64 - bits;
	return is_signed ? (int64_t)word >> (64 - bits)
			 : (int64_t)(word >> (64 - bits));
}

static uint64_t binary(uint8_t code, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	switch (code) {
	case VAR_OP_ADD:
		return a + b;
	case VAR_OP_SUB:
		return a - b;
	case VAR_OP_MUL:
		return a * b;
	case VAR_OP_AND:
		return a & b;
	case VAR_OP_OR:
		return a | b;
	case VAR_OP_XOR:
		return a ^ b;
	case VAR_OP_SHL:
		return a << b;
	case VAR_OP_SHR:
		return a >> b;
	case VAR_OP_SAR:
		return (uint64_t)(sa >> b);
	case VAR_OP_EQ:
		return a == b;
	case VAR_OP_NE:
		return a != b;
	case VAR_OP_LT:
		return sa < sb;
	case VAR_OP_LE:
		return sa <= sb;
	case VAR_OP_GT:
		return sa > sb;
	case VAR_OP_GE:
		return sa >= sb;
	default:
		check_msg(false, "operation %u", code);
		return 0;
	}
}

/* The result of a place's operations. */
static uint64_t compute(struct tracee *t, const struct variables *v,
			const struct var_place *p)
{
	uint64_t stack[VAR_MAX_OPS + 1] = {0};
	size_t n = 0;
	for (uint32_t i = 0; i < p->nr_ops; i++) {
		const struct var_op *op = &v->ops[p->first_op + i];
		uint64_t arg = (uint64_t)op->arg;
		uint64_t *top = n ? &stack[n - 1] : stack;
		uint64_t *under = n > 1 ? &stack[n - 2] : stack;
		switch (op->code) {
		case VAR_OP_REG:
			stack[n++] = reg_of(t, (unsigned)arg);
			continue;
		case VAR_OP_CONST:
			stack[n++] = arg;
			continue;
		case VAR_OP_PLUS_CONST:
			*top += arg;
			continue;
		case VAR_OP_ZEXT:
		case VAR_OP_SEXT:
			*top = (uint64_t)extend(*top, 8 * (unsigned)arg,
						op->code == VAR_OP_SEXT);
			continue;
		case VAR_OP_NEG:
			*top = 0 - *top;
			continue;
		case VAR_OP_NOT:
			*top = ~*top;
			continue;
		case VAR_OP_LOAD:
			*top = (uint64_t)extend(word_at(t, *top),
						8 * (unsigned)arg, false);
			continue;
		default:
			*under = binary(op->code, *under, *top);
			n--;
			continue;
		}
	}
	return stack[0];
}

static int64_t value_at(struct tracee *t, const struct variables *v,
			const struct variable *var, const struct var_place *p)
{
	const struct var_type *type = &var->type;
	uint64_t word = 0;
	switch (p->kind) {
	case VAR_REG:
		word = reg_of(t, p->reg) >> p->shift;
		break;
	case VAR_MEM:
		word = word_at(t, reg_of(t, p->reg) + (uint64_t)p->offset);
		break;
	case VAR_ADDR:
		word = word_at(t, t->bias + (uint64_t)p->offset);
		break;
	case VAR_VALUE:
		word = reg_of(t, p->reg) + (uint64_t)p->offset;
		break;
	case VAR_CONST:
		word = (uint64_t)p->offset;
		break;
	default:
		word = compute(t, v, p);
		break;
	}
	if (type->bit_size)
		return extend(word >> type->bit_offset, type->bit_size,
			      type->is_signed);
	return extend(word, 8u * type->width, type->is_signed);
}

/* Of several variables so called, the one that is here now. */
static void check_value(struct tracee *t, const struct variables *v,
			const struct value *want, bool all, unsigned *found)
{
	uint64_t pc = t->regs.rip - 1 - t->bias;
	for (size_t i = 0; i < v->nr_vars; i++) {
		const struct var_place *places[4];
		if (!is_called(&v->vars[i], want->name) ||
		    (want->line && v->vars[i].line != want->line))
			continue;
		size_t n = variables_at(v, &v->vars[i], pc, places, 4);
		for (size_t k = 0; k < n; k++) {
			int64_t got = value_at(t, v, &v->vars[i], places[k]);
			check_msg(got == want->value,
				  "stop %u: %s is %jd (%jd, kind %u)",
				  want->stop, want->name, (intmax_t)want->value,
				  (intmax_t)got, places[k]->kind);
		}
		*found += n != 0;
		if (n)
			return;
	}
	if (all)
		check_msg(false, "stop %u: %s has a place", want->stop,
			  want->name);
}

static uint64_t bias_of(pid_t pid, const char *path)
{
	static struct maps maps;
	maps_read(&maps, pid);
	for (size_t i = 0; i < maps.nr; i++)
		if (!strcmp(maps.map[i].path, path) && !maps.map[i].offset)
			/* Without PIE, addresses are those of the file. */
			return maps.map[i].start == 0x400000
				       ? 0
				       : maps.map[i].start;
	return 0;
}

/*
 * Run the program from int3 to int3. Returns how many of the values had a
 * place; @all: they all must.
 */
static unsigned check_values(const struct variables *v, bool all)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/prog", scratch);
	struct tracee t = {.pid = fork()};
	unsigned found = 0, stop = 0;
	int st;
	if (!t.pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	waitpid(t.pid, &st, 0);
	t.bias = bias_of(t.pid, path);
	for (;;) {
		ptrace(PTRACE_CONT, t.pid, 0, 0);
		if (waitpid(t.pid, &st, 0) != t.pid || !WIFSTOPPED(st))
			break;
		ptrace(PTRACE_GETREGS, t.pid, 0, &t.regs);
		for (size_t i = 0; i < ARRAY_SIZE(values); i++)
			if (values[i].stop == stop)
				check_value(&t, v, &values[i], all, &found);
		stop++;
	}
	check_int(WIFEXITED(st) && !WEXITSTATUS(st), 1);
	check_int(stop, 10);
	return found;
}

/* --- every way to build --- */

/* Only gcc says it, of code that it optimises. */
static void check_moved(const struct variables *v, bool said)
{
	unsigned begins = 0, moved = 0;
	for (size_t i = 0; i < v->nr_places; i++) {
		unsigned flags = v->places[i].flags;
		begins += (flags & VAR_BEGINS) != 0;
		moved += (flags & VAR_MOVED) != 0;
	}
	check_int(moved > 0, said);
	check(moved < begins || !begins);
}

static void test_build(const char *cc, unsigned opt, unsigned dwarf)
{
	struct smco_err err = {0};
	printf("# --- %s -O%u -gdwarf-%u\n", cc, opt, dwarf);
	if (!check(!run("%s -O%u -g -gdwarf-%u -o \"$D\"/prog " FIX "/vars.c",
			cc, opt, dwarf)))
		return;
	struct variables *v = load("prog", &err);
	if (!check_msg(v != NULL, "read: %s", err.msg))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++)
		check_variable(v, &wants[i]);
	check_int(v->nr_vars, NR_VARIABLES);
	check_int(v->nr_seen, NR_VARIABLES);
	check_int(v->nr_damaged, 0);
	check(!v->cut_short);
	check_enumerators(v);
	const struct variable *own = find(v, "per_thread");
	check_int(own->nr_places, 1);
	check_int(v->places[own->first_place].kind, VAR_TLS);
	check_int(v->places[own->first_place].offset, -4);
	check_int(find(v, "square::calls")->flags, VAR_STATIC);
	check_int(find(v, "widths::n")->flags, VAR_PARAMETER);
	check_int(find(v, "object.u.word")->flags,
		  VAR_GLOBAL | VAR_STATIC | VAR_IN_UNION);
	check_moved(v, opt && !strcmp(cc, "gcc"));
	unsigned found = check_values(v, !opt);
	/* clang keeps less of what it optimises. */
	unsigned least = opt && !strcmp(cc, "clang") ? 65 : 90;
	check_msg(found * 100 >= ARRAY_SIZE(values) * least,
		  "%u of %zu values have a place", found, ARRAY_SIZE(values));
	variables_destroy(v);
}

/* --- and to keep the information elsewhere --- */

static void check_all_there(const struct variables *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++)
		check_msg(*find(v, wants[i].name)->qualified, "there is %s",
			  wants[i].name);
	check_int(v ? v->nr_vars : 0, NR_VARIABLES);
}

static void test_elsewhere(const char *what, const char *build)
{
	struct smco_err err = {0};
	printf("# --- %s\n", what);
	check(!run("%s", build));
	struct variables *v = load("prog", &err);
	check_msg(v != NULL, "read: %s", err.msg);
	check_all_there(v);
	if (v)
		check(check_values(v, false) >= 20);
	variables_destroy(v);
}

/* As many as the compiler wrote down, by another reader of DWARF. */
static void test_count(void)
{
	struct smco_err err;
	char line[64] = "";
	printf("# --- counted by readelf\n");
	check(!run("gcc -O0 -g -o \"$D\"/prog " FIX "/vars.c && "
		   "readelf --debug-dump=info \"$D\"/prog | awk '"
		   "/Abbrev Number/ "
		   "{ v = /DW_TAG_(variable|formal_parameter)/ } "
		   "v && /DW_AT_name/ { n++ } END { print n }' "
		   ">\"$D\"/count"));
	char path[256];
	snprintf(path, sizeof(path), "%s/count", scratch);
	FILE *f = fopen(path, "r");
	check(f && fgets(line, sizeof(line), f));
	if (f)
		fclose(f);
	struct variables *v = load("prog", &err);
	/* No double; for two structs their nine and three members. */
	check_int(v ? v->nr_vars : 0, atoi(line) - 1 - 2 + 9 + 3);
	variables_destroy(v);
}

static bool want_blocks(void *ctx, const struct variable *var)
{
	++*(unsigned *)ctx;
	return !strcmp(var->scope, "blocks") && var->type.width == 8;
}

static void test_wanted(void)
{
	unsigned asked = 0;
	printf("# --- some\n");
	struct sym_space *s = space_of("prog");
	if (!check(s != NULL))
		return;
	struct variables *v = variables_load(s, 1, want_blocks, &asked, NULL);
	if (check(v && v->nr_vars == 2)) {
		check_str(v->vars[0].name, "sum");
		check_str(v->vars[1].name, "i");
		check_int(v->nr_seen, NR_VARIABLES);
		check_int(asked, NR_VARIABLES);
		check_int(v->nr_places,
			  v->vars[0].nr_places + v->vars[1].nr_places);
	}
	variables_destroy(v);
	sym_space_destroy(s);
}

static void test_none(void)
{
	struct smco_err err = {0};
	printf("# --- none\n");
	check(!run("gcc -O2 -s -o \"$D\"/prog " FIX "/vars.c"));
	check(!load("prog", &err));
	check_int(err.code, SMCO_NOTFOUND);
	check_msg(strstr(err.msg, "-g") && strstr(err.msg, "dbgsym"),
		  "says what to do: %s", err.msg);
}

/* Of parameters said to be in one register all the time, those that come in it
 * are there at least where the function begins. */
static void check_arrivals(const struct variables *v, bool trusted)
{
	static const char *const not_there[] = {
		"plain::elsewhere", "struct::unknown", "room::unknown"};
	static const char *const there[] = {"plain::there1", "plain::there2"};
	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		const struct variable *var = find(v, there[i]);
		if (!check_int(var->nr_places, 1) || trusted)
			continue;
		const struct var_place *p = &v->places[var->first_place];
		check_int(p->flags, VAR_BEGINS | VAR_PART);
		check_int(p->lo, v->functions[p->function].entry);
	}
	for (size_t i = 0; i < ARRAY_SIZE(not_there); i++) {
		check_int(find(v, not_there[i])->nr_places, trusted);
		check_int(find(v, not_there[i])->reason,
			  trusted ? VAR_FINE : VAR_SHARED);
	}
}

/* A piece as long as nothing is leaves no place for those behind it. */
static void check_pieces(const struct variables *v)
{
	const struct variable *var = find(v, "f::pieces[]");
	if (!check_int(var->nr_places, 1))
		return;
	const struct var_place *p = &v->places[var->first_place];
	check_int(p->kind, VAR_REG);
	check_int(p->reg, 2);
	check(p->flags & VAR_ONE);
}

/*
 * Where gcc names one register for a whole scope, others are in it, too. @form
 * is how that is said: as an expression (0x18), or, as Go does, as a block.
 */
static void test_scope(const char *producer, bool trusted, unsigned form)
{
	struct smco_err err = {0};
	printf("# --- a register for a whole scope, by %s, form %#x\n",
	       producer, form);
	check(!run("gcc -DPRODUCER='\"%s\"' -DEXPRESSION_FORM=%#x -o "
		   "\"$D\"/prog " FIX "/scope.S",
		   producer, form));
	struct variables *v = load("prog", &err);
	check_msg(v != NULL, "read: %s", err.msg);
	const struct variable *whole = find(v, "f::whole");
	check_str(whole->qualified, "f::whole");
	check_int(whole->nr_places, trusted);
	if (whole->nr_places)
		check_int(v->places[whole->first_place].flags,
			  strstr(producer, "clang") ? VAR_BEGINS : VAR_SCOPE);
	check_int(whole->reason, trusted ? VAR_FINE : VAR_SHARED);
	check_int(find(v, "f::part")->nr_places, 1);
	check_arrivals(v, trusted);
	check_pieces(v);
	check_int(v->nr_damaged, 0);
	variables_destroy(v);
}

/* Where gcc does not optimise C, variables are among others in the register. */
static void test_among(const char *producer, bool among)
{
	struct smco_err err = {0};
	printf("# --- among others, by %s\n", producer);
	check(!run("gcc -DPRODUCER='\"%s\"' -o \"$D\"/prog " FIX "/scope.S",
		   producer));
	struct variables *v = load("prog", &err);
	const struct variable *whole = find(v, "f::whole");
	check_int(whole->nr_places, among);
	if (whole->nr_places)
		check_int(v->places[whole->first_place].flags,
			  VAR_SCOPE | VAR_AMONG);
	check_int(find(v, "plain::elsewhere")->nr_places, 0);
	check_int(find(v, "plain::there1")->nr_places, 1);
	variables_destroy(v);
}

static void test_cxx(const char *cc)
{
	static const char *const names[] = {
		"ns::limits::max",
		"ns::one.inherited",
		"ns::one.low",
		"ns::(anonymous namespace)::hidden",
		"ns::state",
		"ns::twice<long>(long)::doubled",
		"ns::twice<int>(int)::v",
		"ns::limits::clamp(int)::kept",
		"main::outer",
	};
	struct smco_err err;
	printf("# --- C++ by %s\n", cc);
	check(!run("%s -std=c++17 -O0 -g -o \"$D\"/prog " FIX "/varscxx.cc",
		   cc));
	struct variables *v = load("prog", &err);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		check_msg(find(v, names[i])->nr_places, "there is %s",
			  names[i]);
	const struct variable *state = find(v, "ns::state");
	check_int(state->type.width, 1);
	check(state->type.is_signed);
	if (check_int(state->type.nr_enumerators, 2))
		check_int(v->enumerators[state->type.first_enumerator].value,
			  -1);
	variables_destroy(v);
}

int main(void)
{
	make_scratch();
	for (unsigned opt = 0; opt <= 3; opt++)
		for (unsigned dwarf = 4; dwarf <= 5; dwarf++) {
			test_build("gcc", opt, dwarf);
			test_build("clang", opt, dwarf);
		}
	test_elsewhere("a separate debug file",
		       "gcc -O2 -g -o \"$D\"/prog " FIX "/vars.c && objcopy "
		       "--only-keep-debug \"$D\"/prog \"$D\"/prog.debug && "
		       "strip \"$D\"/prog && objcopy "
		       "--add-gnu-debuglink=\"$D\"/prog.debug \"$D\"/prog");
	test_elsewhere("split DWARF", "gcc -O2 -g -gsplit-dwarf -c -o "
				      "\"$D\"/vars.o " FIX "/vars.c && "
				      "gcc -o \"$D\"/prog \"$D\"/vars.o");
	test_elsewhere("link-time optimisation",
		       "gcc -O2 -g -flto -o \"$D\"/prog " FIX "/vars.c");
	test_elsewhere("link-time optimisation by clang",
		       "clang -O2 -g -flto -fuse-ld=lld -o \"$D\"/prog " FIX
		       "/vars.c");
	test_elsewhere("no PIE, compressed",
		       "gcc -O2 -g -gz -no-pie -o \"$D\"/prog " FIX "/vars.c");
	test_count();
	test_wanted();
	test_none();
	test_scope("GNU C17 12.2.0 -O2", false, 0x18);
	test_scope("clang version 14.0.6", true, 0x18);
	test_scope("Go cmd/compile go1.19.8; regabi", true, 0x0a);
	test_scope("Go cmd/compile go1.19.8; regabi", true, 0x09);
	test_among("GNU C17 12.2.0 -mtune=generic -march=x86-64 -g", true);
	test_among("GNU C17 12.2.0 -mtune=generic -g -O1 -O0 -fPIC", false);
	test_among("GNU C17 12.2.0 -mtune=generic -g -O0", true);
	test_among("GNU C17 12.2.0 -mtune=generic -g -O0 -O2", false);
	test_among("GNU C17 12.2.0 -mtune=generic -g -Og", false);
	test_among("GNU C17 12.2.0 -g", false); /* it does not say */
	test_among("GNU C++14 12.2.0 -mtune=generic -g", false);
	test_among("GNU GIMPLE 12.2.0 -mtune=generic -g", false);
	test_cxx("g++");
	test_cxx("clang++");
	return finish();
}
