/* Names of functions and lines, in every way a binary can be built. */
#include "symhelp.h"

static struct maps maps;

/* The last @nr frames of ret are @names, the first has @line of names.c. */
static void check_frames(struct sym_space *s, struct sym_place at, int line,
			 const char *const names[], size_t nr, bool lines)
{
	struct sym_name got[SYM_MAX_INLINE];
	size_t n = sym_name(s, at, false, got);
	check_int(n, nr);
	for (size_t i = 0; i < nr && i < n; i++)
		check_str(got[i].function, names[i]);
	if (lines) {
		check_str(base_name(got[0].file), "names.c");
		check_int(got[0].line, line);
	} else {
		check_str(got[0].file, "");
		check_int(got[0].line, 0);
	}
}

struct variant {
	const char *what;
	const char *build;     /* makes $D/prog */
	bool lines;	       /* and inlined functions */
	const char *root;      /* below $D; NULL: none */
	const char *meanwhile; /* done while it runs, before we look */
};

#define CC_FIX "cc -O2 -g -o \"$D\"/prog " FIX "/names.c "
#define SPLIT                                                                  \
	"objcopy --only-keep-debug \"$D\"/prog \"$D\"/prog.debug && "          \
	"strip \"$D\"/prog && "

/* Into a root directory of its own, under its build-id. */
#define PLACE(make)                                                            \
	make "id=$(readelf -n \"$D\"/prog | sed -n 's/.*Build ID: //p') && "   \
	     "d=\"$D\"/root/usr/lib/debug/.build-id/$(echo $id | cut -c1-2) "  \
	     "&& mkdir -p $d \"$D\"/root\"$D\" && "                            \
	     "mv \"$D\"/prog.debug $d/$(echo $id | cut -c3-).debug && "        \
	     "ln \"$D\"/prog \"$D\"/root\"$D\"/prog"

static const struct variant variants[] = {
	{"PIE", CC_FIX, true, NULL, NULL},
	{"no PIE", CC_FIX "-no-pie", true, NULL, NULL},
	{"static", CC_FIX "-static", true, NULL, NULL},
	{"static PIE", CC_FIX "-static-pie", true, NULL, NULL},
	{"DWARF 4", CC_FIX "-gdwarf-4", true, NULL, NULL},
	{"compressed debug sections", CC_FIX "-gz=zlib", true, NULL, NULL},
	{"without .debug_aranges",
	 CC_FIX "&& objcopy -R .debug_aranges \"$D\"/prog", true, NULL, NULL},
	{"split DWARF",
	 "cc -O2 -g -gsplit-dwarf -c -o \"$D\"/names.o " FIX
	 "/names.c && cc -o \"$D\"/prog \"$D\"/names.o",
	 true, NULL, NULL},
	{"symbol table only", CC_FIX "&& strip -g \"$D\"/prog", false, NULL,
	 NULL},
	{"exported names only", CC_FIX "-rdynamic && strip \"$D\"/prog", false,
	 NULL, NULL},
	{"debug file by build-id", CC_FIX "&& " SPLIT PLACE(""), true, "/root",
	 NULL},
	{"debug file by link",
	 CC_FIX "-Wl,--build-id=none && " SPLIT "mkdir -p \"$D\"/.debug && "
		"objcopy --add-gnu-debuglink=\"$D\"/prog.debug \"$D\"/prog && "
		"mv \"$D\"/prog.debug \"$D\"/.debug/",
	 true, NULL, NULL},
	{"deleted", CC_FIX, true, NULL, "rm \"$D\"/prog"},
	{"replaced", CC_FIX, true, NULL,
	 "rm \"$D\"/prog && cp /bin/true \"$D\"/prog"},
};

static void test_variant(const struct variant *v)
{
	printf("# --- %s\n", v->what);
	run("rm -rf \"$D\"/*  \"$D\"/.debug");
	if (!check(!run("%s", v->build)))
		return;
	char path[256], root[256];
	snprintf(path, sizeof(path), "%s/prog", scratch);
	snprintf(root, sizeof(root), "%s%s", v->root ? scratch : "",
		 v->root ? v->root : "");
	struct prog p;
	prog_start(&p, (char *[]){path, NULL});
	taddr_t inner, middle, outer, malloc_at, memalign_at;
	int l_inner, l_middle, l_outer;
	check(prog_ask(&p, NULL, "outer", &outer, &l_outer));
	check(prog_ask(&p, NULL, "middle", &middle, &l_middle));
	check(prog_ask(&p, NULL, "inner", &inner, &l_inner));
	check(prog_ask(&p, NULL, "malloc", &malloc_at, NULL));
	check(prog_ask(&p, NULL, "memalign", &memalign_at, NULL));
	if (v->meanwhile)
		check(!run("%s", v->meanwhile));

	struct sym_space *s = sym_space_create(p.pid, root, read_pid, &p.pid);
	maps_read(&maps, p.pid);
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
	struct sym_place at_inner = sym_pin(s, inner);
	struct sym_place at_middle = sym_pin(s, middle);
	struct sym_place at_outer = sym_pin(s, outer);
	check(at_inner.module != 0);
	/* Allocators, while it runs; a non-PIE's address of a function of a
	 * library is its own PLT entry. */
	taddr_t start = 0, end = 0;
	uint64_t size = 0;
	taddr_t got = sym_find(s, "malloc", "malloc", &start, &end, &size);
	if (strcmp(v->what, "no PIE")) {
		check_int(got, malloc_at);
		check_int(sym_find(s, "memalign", "malloc", NULL, NULL, NULL),
			  memalign_at);
	}
	check(start <= got && got < end && size > 16);
	check_int(sym_find(s, "no_such_function", "malloc", NULL, NULL, NULL),
		  0);
	prog_end(&p);

	/* The process is gone. */
	const char *const all[] = {"inner", "middle", "outer"};
	size_t nr = v->lines;
	check_frames(s, at_inner, l_inner, all + 2 * !nr, nr ? 3 : 1, v->lines);
	check_frames(s, at_middle, l_middle, all + 1 + !nr, nr ? 2 : 1,
		     v->lines);
	check_frames(s, at_outer, l_outer, all + 2, 1, v->lines);
	if (v->lines) {
		struct sym_name n[SYM_MAX_INLINE];
		sym_name(s, at_inner, false, n);
		/* Where outer calls middle: the line after its own HERE. */
		check_int(n[2].line, l_outer + 1);
		check_str(base_name(n[2].file), "names.c");
		check(n[2].func_offset > 0 && n[2].func_offset < 4096);
	}
	struct sym_module_info info;
	sym_module_info(s, at_inner.module, &info);
	check_str(info.path, path);
	check_int(info.has_dwarf, v->lines);
	check_int(*info.build_id != 0, !strstr(v->build, "build-id=none"));
	sym_space_destroy(s);
}

/* A debug file of another build must not be used. */
static void test_wrong_debug_file(const char *build)
{
	printf("# --- a debug file that is not its own\n");
	run("rm -rf \"$D\"/* \"$D\"/.debug");
	check(!run("%s", build));
	char path[256], root[256];
	snprintf(path, sizeof(path), "%s/prog", scratch);
	snprintf(root, sizeof(root), "%s/root", scratch);
	if (access(root, F_OK))
		root[0] = 0;
	struct prog p;
	prog_start(&p, (char *[]){path, NULL});
	taddr_t outer;
	check(prog_ask(&p, NULL, "outer", &outer, NULL));
	struct sym_space *s = sym_space_create(p.pid, root, read_pid, &p.pid);
	maps_read(&maps, p.pid);
	sym_space_update(s, maps.map, maps.nr, NULL);
	struct sym_name n[SYM_MAX_INLINE];
	check_int(sym_name(s, sym_pin(s, outer), false, n), 1);
	check_str(n[0].function, "outer");
	check_int(n[0].line, 0);
	prog_end(&p);
	sym_space_destroy(s);
}

/* C++ says itself what its functions should be called. */
static void test_cxx(const char *what, const char *build, bool lines)
{
	printf("# --- C++, %s\n", what);
	if (run("command -v %.*s >/dev/null", (int)strcspn(build, " "),
		build)) {
		tap_skip("no such compiler here");
		return;
	}
	run("rm -rf \"$D\"/* \"$D\"/.debug");
	check(!run("%s", build));
	char path[256], line[512];
	snprintf(path, sizeof(path), "%s/prog", scratch);
	struct prog p;
	prog_start(&p, (char *[]){path, NULL});
	struct sym_space *s = sym_space_create(p.pid, "", read_pid, &p.pid);
	size_t nr = 0;
	while (fgets(line, sizeof(line), p.out)) {
		unsigned long pc;
		int no, at = 0;
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx %d %n", &pc, &no, &at) < 2)
			break;
		if (!nr++) {
			maps_read(&maps, p.pid);
			sym_space_update(s, maps.map, maps.nr, NULL);
		}
		struct sym_name n[SYM_MAX_INLINE];
		size_t k = sym_name(s, sym_pin(s, pc), false, n), i = 0;
		char *want = strtok(line + at, ";");
		for (; want && lines; want = strtok(NULL, ";"))
			check_str(i < k ? n[i++].function : "none", want);
		if (lines) {
			check_int(k, i);
			check_int(n[0].line, no);
			check_str(base_name(n[0].file), "cxxnames.cc");
			continue;
		}
		/* No inlined ones without lines: the last is the symbol. */
		for (char *next; (next = strtok(NULL, ";"));)
			want = next;
		check_int(k, 1);
		check_str(n[0].function, want);
	}
	check_int(nr, 8);
	prog_end(&p);
	sym_space_destroy(s);
}

/* The name leads to another file, as it does from another root directory. */
static void test_misleading_name(void)
{
	printf("# --- a name that leads elsewhere\n");
	run("rm -rf \"$D\"/* \"$D\"/.debug");
	check(!run("%s", variants[0].build));
	char path[256];
	snprintf(path, sizeof(path), "%s/prog", scratch);
	struct prog p;
	prog_start(&p, (char *[]){path, NULL});
	taddr_t outer;
	int line;
	check(prog_ask(&p, NULL, "outer", &outer, &line));
	struct sym_space *s = sym_space_create(p.pid, "", read_pid, &p.pid);
	maps_read(&maps, p.pid);
	for (size_t i = 0; i < maps.nr; i++)
		if (!strcmp(maps.map[i].path, path))
			maps.map[i].path = "/bin/true";
	sym_space_update(s, maps.map, maps.nr, NULL);
	struct sym_name n[SYM_MAX_INLINE];
	check_int(sym_name(s, sym_pin(s, outer), false, n), 1);
	check_str(n[0].function, "outer");
	check_int(n[0].line, line);
	prog_end(&p);
	sym_space_destroy(s);
}

int main(void)
{
	make_scratch();
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		test_variant(&variants[i]);
	test_wrong_debug_file(
		CC_FIX "-rdynamic -Wl,--build-id=none && " SPLIT
		       "mkdir \"$D\"/.debug && objcopy "
		       "--add-gnu-debuglink=\"$D\"/prog.debug \"$D\"/prog && "
		       "echo >>\"$D\"/prog.debug && "
		       "mv \"$D\"/prog.debug \"$D\"/.debug/");
	/* The right name for it, but another program's. */
	test_wrong_debug_file(CC_FIX "-rdynamic && strip \"$D\"/prog && " PLACE(
		"cc -g -O1 -o \"$D\"/prog.debug " FIX "/names.c && "));
	test_misleading_name();
	test_cxx("DWARF", "c++ -O2 -g -o \"$D\"/prog " FIX "/cxxnames.cc",
		 true);
	/* It puts functions into their namespaces, GCC beside them. */
	test_cxx("DWARF of clang",
		 "clang++ -O2 -g -w -o \"$D\"/prog " FIX "/cxxnames.cc", true);
	test_cxx("symbols", "c++ -O2 -o \"$D\"/prog " FIX "/cxxnames.cc",
		 false);
	return finish();
}
