/*
 * What location attributes say: what is read of them here is what libdw says,
 * for all compilers and versions; and damage in lists and expressions.
 */
#include "t/unit/symhelp.h"

#include <fcntl.h>

#include <dwarf.h>

#include "symbols/dwarfdie.h"
#include "symbols/varbuild.h"

struct seen {
	unsigned nr, wrong, ours;
};

static bool same_ops(const struct var_locs *l, const Dwarf_Op *ops, size_t nr)
{
	if (l->nr != nr)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (l->ops[i].atom != ops[i].atom ||
		    l->ops[i].number != ops[i].number ||
		    l->ops[i].number2 != ops[i].number2 ||
		    l->ops[i].offset != ops[i].offset)
			return false;
	return true;
}

static void compare(struct var_build *b, Dwarf_Attribute *attr, struct seen *s)
{
	struct var_locs l = {.attr = attr};
	ptrdiff_t at = 0;
	for (int got = 1; got > 0; s->nr++) {
		Dwarf_Addr base, lo, hi;
		Dwarf_Op *ops;
		size_t nr = 0;
		got = var_next_loc(b, &l);
		at = dwarf_getlocations(attr, at, &base, &lo, &hi, &ops, &nr);
		if (got != (at > 0) - (at < 0) ||
		    (got > 0 &&
		     (l.lo != lo || l.hi != hi || !same_ops(&l, ops, nr)))) {
			s->wrong++;
			break;
		}
		s->ours += got > 0 && l.ops == l.own;
	}
}

static void compare_all(struct var_build *b, Dwarf_Die *parent, struct seen *s,
			unsigned depth)
{
	Dwarf_Attribute attr;
	Dwarf_Die die;
	if (depth > VAR_MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		if (die_expression(dwarf_attr(&die, DW_AT_location, &attr)))
			compare(b, &attr, s);
		compare_all(b, &die, s, depth + 1);
	} while (die_next(&die));
}

static struct seen look_at(const char *path)
{
	struct seen s = {0};
	struct var_build b = {.v = NULL};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Dwarf *d = dwarf_begin(fd, DWARF_C_READ);
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, sub;
	uint8_t type;
	if (d)
		b.sections = var_sections_of(dwarf_getelf(d));
	while (d && !dwarf_get_units(d, cu, &cu, NULL, &type, &die, &sub)) {
		compare_all(&b, &die, &s, 0);
		if (type == DW_UT_skeleton && sub.addr)
			compare_all(&b, &sub, &s, 0);
	}
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
	check_int(run("cd $D && %s %s main.c -o prog", compiler, flags), 0);
	struct seen s = look_at(scratch_path("prog"));
	printf("# %s %s: %u places, %u ours\n", compiler, flags, s.nr, s.ours);
	check(s.nr > 8);
	check_int(s.wrong, 0);
	/* Addresses of another size are libdw's. */
	check(strstr(flags, "-m32") ? !s.ours : s.ours >= 4);
}

/* Any byte of the section: what libdw makes of it. */
static void test_damage(const char *flags, const char *section)
{
	Elf_Scn *scn = NULL;
	uint64_t at = 0, len = 0;
	size_t names;
	unsigned wrong = 0, ours = 0, failed = 0;
	check_int(run("cd $D && cc %s main.c -o one", flags), 0);
	int fd = open(scratch_path("one"), O_RDWR | O_CLOEXEC);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	check(!elf_getshdrstrndx(elf, &names));
	while ((scn = elf_nextscn(elf, scn))) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		if (!strcmp(elf_strptr(elf, names, sh->sh_name), section)) {
			at = sh->sh_offset;
			len = sh->sh_size;
		}
	}
	elf_end(elf);
	check(len > 40);
	for (uint64_t i = at; i < at + len; i++) {
		static const uint8_t values[] = {0,    1,    6,	   0x31,
						 0x7f, 0x80, 0xa3, 0xff};
		uint8_t was = 0;
		failed += pread(fd, &was, 1, (off_t)i) != 1;
		for (size_t k = 0; k < sizeof(values); k++) {
			failed += pwrite(fd, &values[k], 1, (off_t)i) != 1;
			struct seen s = look_at(scratch_path("one"));
			wrong += s.wrong;
			ours += s.ours;
		}
		failed += pwrite(fd, &was, 1, (off_t)i) != 1;
	}
	close(fd);
	printf("# %" PRIu64 " bytes of %s\n", len, section);
	check_int(failed, 0);
	check_int(wrong, 0);
	check(ours > len);
}

static const char source[] =
	"struct pair { int a, b; }; extern int puts(const char *);\n"
	"static int kept = 3; _Thread_local int own = 4; int seen[8];\n"
	"static inline int in(int x, struct pair p) { int y = x * 3 + p.a;\n"
	"  for (int i = 0; i < x; i++) { y += seen[i & 7] ^ p.b; kept += y; }\n"
	"  return y; }\n"
	"__attribute__((noinline)) int g(int n, unsigned char c, long l)\n"
	"{ struct pair p = { n, (int)l }; int s = in(n, p); const int k = "
	"70000;\n"
	"  if (c > 7) { puts(\"x\"); s += k * n + own++; }\n"
	"  p.b += s; return in(s & 7, p) - c; }\n"
	"int main(int argc, char **argv) { long sum = 0; (void)argv;\n"
	"  for (int i = 0; i < 9; i++) sum += g(i + argc, (char)i, sum);\n"
	"  return (int)sum & 1; }\n";

int main(void)
{
	static const char *const flags[] = {
		"-O2 -gdwarf-5",
		"-O2 -gdwarf-4",
		"-O0 -gdwarf-3",
		"-O0 -gdwarf-2",
		"-O2 -g -gz",
		"-O2 -g -flto",
		"-O2 -g -m32 -c",
		"-O2 -g -gsplit-dwarf",
		"-O3 -g -ffunction-sections",
	};
	make_scratch();
	FILE *f = fopen(scratch_path("main.c"), "w");
	check(f && fputs(source, f) >= 0 && !fclose(f));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		test_same("gcc", flags[i]);
		if (!strstr(flags[i], "lto"))
			test_same("clang", flags[i]);
	}
	test_damage("-O2 -gdwarf-5", ".debug_loclists");
	test_damage("-O0 -gdwarf-5", ".debug_info");
	return finish();
}
