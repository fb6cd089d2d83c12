/* Which module provides a function: as the dynamic linker decides. */
#include "symhelp.h"

static struct maps maps;

/* Start $D/prog (names.c in some build) and bring a space up to date. */
static struct sym_space *start(struct prog *p, taddr_t *malloc_at,
			       taddr_t *memalign_at)
{
	char path[256];
	taddr_t skip;
	snprintf(path, sizeof(path), "%s/prog", scratch);
	prog_start(p, (char *[]){path, NULL});
	prog_ask(p, NULL, "outer", &skip, NULL);
	prog_ask(p, NULL, "middle", &skip, NULL);
	prog_ask(p, NULL, "inner", &skip, NULL);
	check(prog_ask(p, NULL, "malloc", malloc_at, NULL));
	check(prog_ask(p, NULL, "memalign", memalign_at, NULL));
	struct sym_space *s = sym_space_create(p->pid, "", read_pid, &p->pid);
	maps_read(&maps, p->pid);
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
	return s;
}

static const char *module_name(struct sym_space *s, taddr_t at)
{
	struct sym_module_info info;
	sym_module_info(s, sym_pin(s, at).module, &info);
	return base_name(info.path);
}

static taddr_t find(struct sym_space *s, const char *name, const char *anchor)
{
	return sym_find(s, name, anchor, NULL, NULL, NULL);
}

static void test_libc(void)
{
	struct prog p;
	taddr_t want_malloc, want_memalign;
	printf("# --- libc's\n");
	check(!run("cc -o \"$D\"/prog " FIX "/names.c"));
	struct sym_space *s = start(&p, &want_malloc, &want_memalign);
	check_int(find(s, "malloc", "malloc"), want_malloc);
	check_int(find(s, "malloc", NULL), want_malloc);
	check_int(find(s, "memalign", "malloc"), want_memalign);
	check_str(module_name(s, want_malloc), "libc.so.6");
	static const char *const names[] = {
		"calloc", "realloc",	   "reallocarray",
		"free",	  "aligned_alloc", "posix_memalign",
		"valloc", "pvalloc",	   "malloc_usable_size"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		check_str(module_name(s, find(s, names[i], "malloc")),
			  "libc.so.6");
	/* memcpy has an old and a default version, both are IFUNCs. */
	check_int(find(s, "memcpy", NULL), 0);
	/* Defined here only as a local function or not at all. */
	check(find(s, "outer", NULL) != 0);
	check_int(find(s, "outer", "malloc"), 0);
	check_int(find(s, "malloc", "no_such_anchor"), 0);
	/* The dynamic linker's own functions are found, but by name only. */
	taddr_t ld = find(s, "_dl_debug_state", NULL);
	check(ld != 0);
	check_str(module_name(s, ld), "ld-linux-x86-64.so.2");
	check_int(find(s, "_dl_allocate_tls", "_dl_debug_state"), 0);
	prog_end(&p);
	sym_space_destroy(s);
}

/* @low: first in the order of look-up, but lowest in memory. */
static void test_preloaded(bool low)
{
	struct prog p;
	taddr_t want, unused;
	printf("# --- a preloaded allocator's%s\n", low ? ", far below" : "");
	check(!run("cc -shared -fPIC %s -o \"$D\"/own.so " FIX "/ownmalloc.c",
		   low ? "-Wl,-Ttext-segment=0x10000000" : ""));
	char preload[256];
	snprintf(preload, sizeof(preload), "%s/own.so", scratch);
	setenv("LD_PRELOAD", preload, 1);
	struct sym_space *s = start(&p, &want, &unused);
	unsetenv("LD_PRELOAD");
	check_int(find(s, "malloc", "malloc"), want);
	check_str(module_name(s, want), "own.so");
	check_int(want < 0x20000000, low);
	check_str(module_name(s, find(s, "free", "malloc")), "own.so");
	/* It has no memalign; libc's does not belong to its malloc. */
	check_int(find(s, "memalign", "malloc"), 0);
	check_str(module_name(s, find(s, "memalign", NULL)), "libc.so.6");
	prog_end(&p);
	sym_space_destroy(s);
	if (low)
		return;
	/* Without the linker's list, by the order of the mappings. */
	s = sym_space_create(0, "", NULL, NULL);
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
	check_int(find(s, "malloc", "malloc"), want);
	sym_space_destroy(s);
}

static void test_own(const char *what, const char *flags)
{
	struct prog p;
	taddr_t want, unused, start_at = 0, end = 0;
	uint64_t size = 0;
	printf("# --- %s\n", what);
	check(!run("cc %s -o \"$D\"/prog " FIX "/names.c " FIX "/ownmalloc.c",
		   flags));
	struct sym_space *s = start(&p, &want, &unused);
	check_int(sym_find(s, "malloc", "malloc", &start_at, &end, &size),
		  want);
	check_str(module_name(s, want), "prog");
	check(start_at <= want && want < end && size > 16);
	prog_end(&p);
	sym_space_destroy(s);
	/* Without the linker's list and the process. */
	s = sym_space_create(0, "", NULL, NULL);
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
	check_int(find(s, "malloc", "malloc"), want);
	sym_space_destroy(s);
}

/* Hidden in the program: all others still use libc's. */
static void test_hidden(void)
{
	struct prog p;
	taddr_t mine, unused;
	printf("# --- a hidden one\n");
	check(!run("cc -fvisibility=hidden -o \"$D\"/prog " FIX "/names.c " FIX
		   "/ownmalloc.c"));
	struct sym_space *s = start(&p, &mine, &unused);
	check_str(module_name(s, mine), "prog");
	taddr_t got = find(s, "malloc", "malloc");
	check_str(module_name(s, got), "libc.so.6");
	prog_end(&p);
	sym_space_destroy(s);
}

/* A static program that maps libraries makes other code of them (valgrind). */
static void test_translated(void)
{
	static struct maps own;
	struct prog p;
	taddr_t mine, unused, libc_at = 0;
	printf("# --- a library in a static program\n");
	check(!run("cc -static -o \"$D\"/prog " FIX "/names.c"));
	struct sym_space *s = start(&p, &mine, &unused);
	check_int(find(s, "wordexp", NULL), 0);
	maps_read(&own, getpid());
	for (size_t i = 0; i < own.nr; i++) {
		if (strcmp(base_name(own.map[i].path), "libc.so.6") != 0)
			continue;
		maps.map[maps.nr++] = own.map[i];
		if (own.map[i].exec)
			libc_at = own.map[i].start;
	}
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
	check_int(find(s, "wordexp", NULL), 0);
	check_int(find(s, "malloc", "malloc"), mine);
	check(sym_runs(s, sym_pin(s, mine).module));
	check(libc_at && !sym_runs(s, sym_pin(s, libc_at).module));
	prog_end(&p);
	sym_space_destroy(s);
	/* Nobody knows which is the program. */
	s = sym_space_create(0, "", NULL, NULL);
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
	check(find(s, "wordexp", NULL) != 0);
	check(sym_runs(s, sym_pin(s, libc_at).module));
	sym_space_destroy(s);
}

int main(void)
{
	make_scratch();
	test_libc();
	test_preloaded(false);
	test_preloaded(true);
	test_own("the program's own", "");
	test_own("the program's own, no PIE", "-no-pie");
	test_own("a static program's own", "-static -Wl,-z,muldefs");
	test_hidden();
	test_translated();
	return finish();
}
