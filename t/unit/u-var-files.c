/*
 * Names of files that declarations name by number: what we read of line tables
 * is what libdw says, for all compilers and versions; and damage in them.
 */
#include "t/unit/symhelp.h"

#include <fcntl.h>

#include <dwarf.h>

#include "symbols/dwarfdie.h"
#include "symbols/varbuild.h"

struct seen {
	unsigned nr, wrong, ours;
};

static void compare(struct var_build *b, Dwarf_Die *parent, struct seen *s)
{
	Dwarf_Die die;
	if (dwarf_child(parent, &die))
		return;
	do {
		const char *file = die_decl_file(&die);
		const char *got = var_decl_file(b, &die);
		s->nr += file != NULL;
		s->wrong += strcmp(got, file ? file : "") != 0;
		compare(b, &die, s);
	} while (die_next(&die));
}

static struct seen look_at(const char *path)
{
	struct seen s = {0};
	struct variables v = {.nr_vars = 0};
	struct var_build b = {.v = &v};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Dwarf *d = dwarf_begin(fd, DWARF_C_READ);
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, sub;
	uint8_t type;
	check_msg(d && variables_borrow(&v), "%s", path);
	while (d && !dwarf_get_units(d, cu, &cu, NULL, &type, &die, &sub)) {
		if (type != DW_UT_compile && type != DW_UT_skeleton &&
		    type != DW_UT_partial)
			continue;
		compare(&b, &die, &s);
		if (sub.addr)
			compare(&b, &sub, &s);
	}
	for (size_t i = 0; i < b.nr_files; i++)
		s.ours += b.files[i].name != NULL;
	var_files_free(&b);
	var_strings_free(&v);
	free(v.state);
	dwarf_end(d);
	close(fd);
	return s;
}

static void test_same(const char *compiler, const char *flags)
{
	if (run("command -v %s >/dev/null", compiler)) {
		printf("ok %d # SKIP no %s\n", ++tap_nr, compiler);
		return;
	}
	check_int(run("cd $D && %s %s sub/main.c sub/other.c -o prog", compiler,
		      flags),
		  0);
	struct seen s = look_at(scratch_path("prog"));
	printf("# %s %s: %u names, %u tables\n", compiler, flags, s.nr, s.ours);
	check(s.nr > 8);
	check_int(s.wrong, 0);
	if (!strstr(flags, "split"))
		check(s.ours >= 1);
}

/* Any byte of the table: other names, or libdw's, or none; no harm. */
static void test_damage(const char *flags)
{
	Elf_Scn *scn = NULL;
	uint64_t at = 0, len = 0;
	size_t names, nr = 0, unread = 0;
	check_int(run("cd $D && cc %s -c sub/main.c -o one.o && "
		      "cc -nostdlib -Wl,-e,main one.o -o one",
		      flags),
		  0);
	int fd = open(scratch_path("one"), O_RDWR | O_CLOEXEC);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	check(!elf_getshdrstrndx(elf, &names));
	while ((scn = elf_nextscn(elf, scn))) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		if (!strcmp(elf_strptr(elf, names, sh->sh_name),
			    ".debug_line")) {
			at = sh->sh_offset;
			len = sh->sh_size;
		}
	}
	elf_end(elf);
	check(len > 40);
	for (uint64_t i = at; i < at + len; i++) {
		static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
		uint8_t was = 0;
		unread += pread(fd, &was, 1, (off_t)i) != 1;
		for (size_t k = 0; k < sizeof(values); k++) {
			struct sym_space *s;
			struct variables *v;
			if (pwrite(fd, &values[k], 1, (off_t)i) != 1)
				break;
			s = sym_space_of_file(scratch_path("one"));
			v = variables_load(s, 1, NULL, NULL, NULL);
			nr += v != NULL;
			variables_destroy(v);
			sym_space_destroy(s);
		}
		if (pwrite(fd, &was, 1, (off_t)i) != 1)
			break;
	}
	close(fd);
	printf("# %" PRIu64 " bytes of lines\n", len);
	check_int(unread, 0);
	check_int(nr, (intmax_t)(5 * len));
}

int main(void)
{
	static const char *const flags[] = {
		"-O2 -gdwarf-5",    "-O2 -gdwarf-4", "-O0 -gdwarf-3",
		"-O0 -gdwarf-2",    "-O2 -g -gz",    "-O2 -g -flto",
		"-g -gsplit-dwarf",
	};
	make_scratch();
	check_int(
		run("mkdir $D/sub $D/inc && cd $D && "
		    "echo 'struct far { int x, y; }; static inline int f"
		    "(int a) { int b = a * 3; return b; }' >inc/far.h && "
		    "echo 'extern int o; static int near = 3;' >sub/near.h && "
		    "printf '#include \"near.h\"\\n#include \"../inc/far.h\"\\n"
		    "int g(int n); struct far s; int main(void) { int l = "
		    "f(near); return l + s.x; }\\n' >sub/main.c && "
		    "printf '#include \"near.h\"\\n#include \"%%s/inc/far.h\""
		    "\\nint o; int g(int n) { int k = f(n) + near; return "
		    "k + o; }\\n' $PWD >sub/other.c"),
		0);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		test_same("gcc", flags[i]);
		test_same("clang", flags[i]);
	}
	test_damage("-O0 -gdwarf-5");
	test_damage("-O0 -gdwarf-4");
	return finish();
}
