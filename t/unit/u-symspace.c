/* Modules that come and go, the vdso, two threads, and memory that is not. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>

#include "symhelp.h"

static struct maps maps;

static void update(struct sym_space *s, pid_t pid)
{
	maps_read(&maps, pid);
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
}

static void test_dlopen(void)
{
	printf("# --- dlopen, dlclose\n");
	check(!run("cc -g -shared -fPIC -o \"$D\"/plugin.so " FIX
		   "/plugin.c && "
		   "cc -o \"$D\"/dl " FIX "/dl.c"));
	char path[256], plugin[256];
	snprintf(path, sizeof(path), "%s/dl", scratch);
	snprintf(plugin, sizeof(plugin), "%s/plugin.so", scratch);
	struct prog p;
	prog_start(&p, (char *[]){path, plugin, NULL});
	taddr_t first, second, gone;
	int line, line2;
	check(prog_ask(&p, "load", "plugin", &first, &line));
	struct sym_space *s = sym_space_create(p.pid, "", read_pid, &p.pid);
	update(s, p.pid);
	struct sym_place place = sym_pin(s, first);
	uint32_t nr = sym_nr_modules(s);
	check(sym_find(s, "plugin_here", NULL, NULL, NULL, NULL) != 0);

	check(prog_ask(&p, "unload", "unloaded", &gone, NULL));
	update(s, p.pid);
	check_int(sym_pin(s, first).module, 0);
	check_int(sym_find(s, "plugin_here", NULL, NULL, NULL, NULL), 0);

	/* The same file again is the same module, wherever it lies. */
	check(prog_ask(&p, "load", "plugin", &second, &line2));
	update(s, p.pid);
	check_int(sym_pin(s, second).module, place.module);
	check_int(sym_pin(s, second).offset, place.offset);
	check_int(sym_nr_modules(s), nr);
	check(prog_ask(&p, "unload", "unloaded", &gone, NULL));
	update(s, p.pid);

	/* Another file of that name is another module. */
	check(!run(
		"rm \"$D\"/plugin.so && sed 's/plugin_here/&_too/; "
		"s/^void \\*plugin_here_too(int \\*line);/void *plugin_here"
		"(int *line); void *plugin_here(int *l) { return l; }&/' " FIX
		"/plugin.c >\"$D\"/other.c && cc -g -shared -fPIC -w -o "
		"\"$D\"/plugin.so \"$D\"/other.c"));
	check(prog_ask(&p, "load", "plugin", &gone, NULL));
	update(s, p.pid);
	taddr_t too = sym_find(s, "plugin_here", NULL, NULL, NULL, NULL);
	check(too && sym_pin(s, too).module != place.module);
	check_int(sym_nr_modules(s), nr + 1);
	prog_end(&p);

	/* Named when neither the process nor the file is there any more. */
	struct sym_name n[SYM_MAX_INLINE];
	check_int(sym_name(s, place, false, n), 1);
	check_str(n[0].function, "plugin_here");
	check_str(base_name(n[0].file), "plugin.c");
	check_int(n[0].line, line);
	sym_space_destroy(s);
}

static void test_vdso(void)
{
	printf("# --- vdso\n");
	pid_t pid = getpid();
	struct sym_space *s = sym_space_create(pid, "", read_pid, &pid);
	update(s, pid);
	taddr_t base = getauxval(AT_SYSINFO_EHDR);
	taddr_t at =
		sym_find(s, "__vdso_clock_gettime", NULL, NULL, NULL, NULL);
	check(at > base && at < base + 0x10000);
	struct sym_place place = sym_pin(s, at);
	struct sym_module_info info;
	sym_module_info(s, place.module, &info);
	check_str(info.path, "[vdso]");
	check(*info.build_id);
	struct sym_name n[SYM_MAX_INLINE];
	check_int(sym_name(s, place, false, n), 1);
	check(strstr(n[0].function, "clock_gettime"));
	check_int(n[0].func_offset, 0);
	sym_space_destroy(s);
}

/* What comes on top, piece by piece, without the rest being said again. */
static void test_add(void)
{
	printf("# --- added\n");
	const struct sym_mapping base = {.start = 0x10000,
					 .end = 0x20000,
					 .exec = true,
					 .path = "/bin/true"};
	struct sym_mapping more = base;
	struct sym_space *s = sym_space_create(0, "", NULL, NULL);
	check_int(sym_space_add(s, &base, NULL), 0);
	struct sym_place first = sym_pin(s, 0x10008);
	check(first.module != 0);
	/* In the middle of it; both ends stay what they were. */
	more.start = 0x14000;
	more.end = 0x16000;
	more.path = "/bin/false";
	check_int(sym_space_add(s, &more, NULL), 0);
	struct sym_place in = sym_pin(s, 0x14000);
	check(in.module != 0 && in.module != first.module);
	check_int(sym_pin(s, 0x15fff).module, in.module);
	const taddr_t left[] = {0x10008, 0x13fff, 0x16000, 0x1ffff};
	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		struct sym_place at = sym_pin(s, left[i]);
		check_int(at.module, first.module);
		check_int(at.offset - first.offset, left[i] - 0x10008);
	}
	check_int(sym_pin(s, 0x20000).module, 0);
	/* Generated code in place of ends of two; beside all of it another. */
	more.start = 0x13000;
	more.end = 0x15000;
	more.path = "";
	check_int(sym_space_add(s, &more, NULL), 0);
	more.start = 0x20000;
	more.end = 0x21000;
	more.path = "/bin/true";
	check_int(sym_space_add(s, &more, NULL), 0);
	check_int(sym_pin(s, 0x13000).module, 0);
	check_int(sym_pin(s, 0x14fff).module, 0);
	check_int(sym_pin(s, 0x12fff).module, first.module);
	check_int(sym_pin(s, 0x15000).module, in.module);
	check_int(sym_pin(s, 0x20010).module, first.module);
	/* No code, and all of it at once. */
	more.exec = false;
	check_int(sym_space_add(s, &more, NULL), 0);
	check_int(sym_pin(s, 0x20010).module, first.module);
	more = base;
	more.end = 0x30000;
	more.path = "/bin/false";
	check_int(sym_space_add(s, &more, NULL), 0);
	check_int(sym_pin(s, 0x13000).module, in.module);
	check_int(sym_pin(s, 0x2ffff).module, in.module);
	sym_space_destroy(s);
}

/* Addresses that belong to nothing, and mappings that are no ELF files. */
static void test_nowhere(void)
{
	printf("# --- nowhere\n");
	check(!run("echo text >\"$D\"/text && : >\"$D\"/empty && "
		   "head -c 100 /bin/true >\"$D\"/short && mkdir \"$D\"/dir"));
	static const char *const names[] = {"text", "empty", "short", "dir",
					    "missing"};
	char path[5][256];
	struct sym_mapping map[7] = {0};
	for (size_t i = 0; i < 5; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%s", scratch, names[i]);
		map[i] = (struct sym_mapping){
			.start = 0x10000 * (i + 1),
			.end = 0x10000 * (i + 1) + 0x2000,
			.offset = 0x1000,
			.inode = i == 4,
			.exec = true,
			.path = path[i],
		};
	}
	map[5] = (struct sym_mapping){
		.start = 0x90000, .end = 0x91000, .exec = true, .path = ""};
	map[6] = (struct sym_mapping){.start = 0xa0000,
				      .end = 0xa0000,
				      .exec = true,
				      .path = "/bin/true"};
	struct sym_space *s = sym_space_create(0, "/nonexistent", NULL, NULL);
	check_int(sym_space_update(s, map, ARRAY_SIZE(map), NULL), 0);
	for (int with_root = 0; with_root < 2; with_root++) {
		for (size_t i = 0; i < 5; i++) {
			struct sym_name n[SYM_MAX_INLINE];
			struct sym_place at = sym_pin(s, map[i].start + 16);
			check(at.module != 0);
			check_int(at.offset, 0x1010);
			check_int(sym_name(s, at, true, n), 1);
			check_str(n[0].function, "");
			struct sym_module_info info;
			sym_module_info(s, at.module, &info);
			check_str(info.path, path[i]);
			check(!info.has_symtab && !info.has_dwarf);
		}
		sym_space_destroy(s);
		s = sym_space_create(0, "", NULL, NULL);
		sym_space_update(s, map, ARRAY_SIZE(map), NULL);
	}
	check_int(sym_pin(s, 0x90010).module, 0);
	check_int(sym_pin(s, 0xa0000).module, 0);
	check_int(sym_pin(s, 0x123).offset, 0x123);
	struct sym_name n[SYM_MAX_INLINE];
	check_int(sym_name(s, (struct sym_place){0, 5}, false, n), 1);
	check_int(sym_name(s, (struct sym_place){99, 5}, false, n), 1);
	check_str(n[0].function, "");
	struct sym_module_info info;
	sym_module_info(s, 99, &info);
	check_str(info.path, "");
	sym_prepare_unwind(s);
	check_int(sym_space_update(s, NULL, 0, NULL), 0);
	check_int(sym_find(s, "malloc", "malloc", NULL, NULL, NULL), 0);
	sym_space_destroy(s);
	sym_space_destroy(NULL);
}

static size_t nr_descriptors(void)
{
	size_t nr = 0;
	for (int fd = 0; fd < 4096; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* Many processes map the same files: one descriptor, one table each. */
static void test_shared_modules(void)
{
	printf("# --- shared\n");
	enum { NR = 100 };
	static struct sym_space *s[NR];
	pid_t pid = getpid();
	taddr_t here = (uintptr_t)test_shared_modules;
	struct sym_name n[SYM_MAX_INLINE];
	size_t before = nr_descriptors(), first = 0, wrong = 0;
	maps_read(&maps, pid);
	for (size_t i = 0; i < NR; i++) {
		s[i] = sym_space_create(pid, i % 2 ? "/proc/self/root" : "",
					read_pid, &pid);
		sym_space_update(s[i], maps.map, maps.nr, NULL);
		if (!i)
			first = nr_descriptors();
	}
	check(first > before);
	check_int(nr_descriptors(), first);
	/* The others must not miss one that goes. */
	struct sym_place place = sym_pin(s[NR - 1], here);
	for (size_t i = 0; i < NR - 1; i++) {
		sym_name(s[i], sym_pin(s[i], here), false, n);
		wrong += strcmp(n[0].function, "test_shared_modules") != 0;
		sym_space_destroy(s[i]);
	}
	check_int(wrong, 0);
	/* Retired, it still names, and does nothing else. */
	sym_space_retire(s[NR - 1]);
	check_int(sym_pin(s[NR - 1], here).module, 0);
	check_int(sym_find(s[NR - 1], "malloc", NULL, NULL, NULL, NULL), 0);
	struct sym_regs regs = {.reg = {[16] = here}};
	taddr_t frame, slot;
	bool complete;
	check_int(sym_unwind(s[NR - 1], &regs, &frame, &slot, 1, &complete), 1);
	sym_name(s[NR - 1], place, false, n);
	check_str(n[0].function, "test_shared_modules");
	sym_space_destroy(s[NR - 1]);
	check_int(nr_descriptors(), before);
}

/* The same inode with other content, as cp over a library makes it. */
static void test_overwritten(void)
{
	printf("# --- overwritten in place\n");
	check(!run("cc -shared -fPIC -o \"$D\"/over.so " FIX "/plugin.c && "
		   "cc -shared -fPIC -o \"$D\"/over2.so " FIX "/ownmalloc.c"));
	char path[256];
	snprintf(path, sizeof(path), "%s/over.so", scratch);
	struct stat st;
	check(!stat(path, &st));
	struct sym_mapping map = {.start = 0x7000000,
				  .end = 0x7010000,
				  .inode = st.st_ino,
				  .exec = true,
				  .path = path};
	struct sym_space *s = sym_space_create(0, "", NULL, NULL);
	sym_space_update(s, &map, 1, NULL);
	check(sym_find(s, "plugin_here", NULL, NULL, NULL, NULL) != 0);
	check_int(sym_pin(s, 0x7000000).module, 1);
	/* While it stays mapped it stays the same. */
	check(!run("sleep 0.01; touch \"$D\"/over.so"));
	sym_space_update(s, &map, 1, NULL);
	check_int(sym_pin(s, 0x7000000).module, 1);
	sym_space_update(s, NULL, 0, NULL);
	check(!run("sleep 0.01; cat \"$D\"/over2.so >\"$D\"/over.so"));
	sym_space_update(s, &map, 1, NULL);
	check_int(sym_pin(s, 0x7000000).module, 2);
	check_int(sym_find(s, "plugin_here", NULL, NULL, NULL, NULL), 0);
	check(sym_find(s, "malloc", NULL, NULL, NULL, NULL) != 0);
	sym_space_update(s, &map, 1, NULL);
	check_int(sym_nr_modules(s), 2);
	sym_space_destroy(s);
}

/* One thread unwinds and updates while another names. */
static struct sym_space *shared;
static _Atomic bool stop_naming;
static size_t nr_named, nr_wrong;
static struct sym_place known;

static void *name_all(void *arg)
{
	(void)arg;
	while (!stop_naming) {
		struct sym_name n[SYM_MAX_INLINE];
		size_t k = sym_name(shared, known, false, n);
		nr_wrong += strcmp(n[k - 1].function, "test_threads") != 0;
		struct sym_module_info info;
		for (uint32_t i = 1; i <= sym_nr_modules(shared); i++)
			sym_module_info(shared, i, &info);
		nr_named++;
	}
	return NULL;
}

static __attribute__((noinline)) void test_threads(void)
{
	printf("# --- threads\n");
	pid_t pid = getpid();
	shared = sym_space_create(pid, "", read_pid, &pid);
	update(shared, pid);
	taddr_t here = (uintptr_t)test_threads;
	known = sym_pin(shared, here);
	pthread_t t;
	pthread_create(&t, NULL, name_all, NULL);
	size_t same = 0;
	for (int i = 0; i < 200; i++) {
		maps_read(&maps, pid);
		sym_space_update(shared, maps.map, (size_t)(i % 2) * maps.nr,
				 NULL);
		if (i % 2 == 0)
			continue;
		taddr_t frames[64], slots[64];
		bool complete;
		struct sym_regs regs = {
			.reg = {[6] = (uintptr_t)__builtin_frame_address(0),
				[7] = (uintptr_t)__builtin_frame_address(0),
				[16] = here}};
		sym_unwind(shared, &regs, frames, slots, 64, &complete);
		taddr_t at =
			sym_find(shared, "malloc", "malloc", NULL, NULL, NULL);
		same += sym_pin(shared, here).offset == known.offset && at;
	}
	stop_naming = true;
	pthread_join(t, NULL);
	check_int(same, 100);
	check(nr_named > 0);
	check_int(nr_wrong, 0);
	sym_space_destroy(shared);
}

int main(void)
{
	make_scratch();
	test_dlopen();
	test_vdso();
	test_add();
	test_nowhere();
	test_shared_modules();
	test_overwritten();
	test_threads();
	return finish();
}
