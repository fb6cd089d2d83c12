/* Symbols by address and by name, in the odd cases. */
#include <fcntl.h>
#include <inttypes.h>

#include "symbols/dynamic.h"
#include "symbols/symtab.h"
#include "symhelp.h"

static struct symtab *load(const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	elf_version(EV_CURRENT);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	struct symtab *t = symtab_create();
	symtab_add(t, elf, 0);
	symtab_finish(t);
	elf_end(elf);
	close(fd);
	return t;
}

static uint64_t addr_of(struct symtab *t, const char *name)
{
	const struct symtab_sym *s = symtab_named(t, name, false);
	check_msg(s != NULL, "there is %s", name);
	return s ? s->addr : 0;
}

static const char *name_at(struct symtab *t, uint64_t addr)
{
	const struct symtab_sym *s = symtab_at(t, addr);
	return s ? symtab_string(t, s) : "";
}

static void test_addresses(void)
{
	printf("# --- by address\n");
	check(!run("cat >\"$D\"/a.s <<'END'\n"
		   " .text\n"
		   " .skip 32, 0xcc\n"
		   " .globl first, alias, _under\n"
		   " .type first, @function\n .type alias, @function\n"
		   " .type _under, @function\n .type local, @function\n"
		   "local:\n_under:\nalias:\nfirst: .skip 16\n"
		   " .size first, 16\n .size alias, 16\n .size _under, 16\n"
		   " .size local, 16\n"
		   "unsized: .skip 16\n"
		   " .type outside, @function\n"
		   "outside: .skip 8\n"
		   " .type inside, @function\n"
		   "inside: .skip 8\n .size inside, 8\n .skip 16\n"
		   " .size outside, . - outside\n"
		   " .skip 16, 0xcc\n"
		   "last: .skip 4\n"
		   ".L_hidden: .skip 4\n"
		   " .data\n"
		   "data: .quad 0\n"
		   "END\n"
		   "as -o \"$D\"/a.o \"$D\"/a.s && "
		   "ld -shared -o \"$D\"/a \"$D\"/a.o"));
	struct symtab *t = load("a");
	uint64_t first = addr_of(t, "first");
	check_str(name_at(t, first - 1), "");
	/* Of four names the one a reader knows. */
	check_str(name_at(t, first), "alias");
	check_str(name_at(t, first + 15), "alias");
	check_str(name_at(t, first + 16), "unsized");
	check_str(name_at(t, first + 31), "unsized");
	check_str(name_at(t, first + 32), "outside");
	check_str(name_at(t, first + 40), "inside");
	check_str(name_at(t, first + 47), "inside");
	check_str(name_at(t, first + 48), "outside");
	check_str(name_at(t, first + 63), "outside");
	check_str(name_at(t, first + 64), ""); /* padding is nobody's */
	check_str(name_at(t, first + 80), "last");
	check_str(name_at(t, first + 87), "last"); /* to the section's end */
	check_str(name_at(t, first + 88), "");
	check_str(name_at(t, first + 4096), "");
	check_str(name_at(t, 0), "");
	check_str(name_at(t, ~0ULL), "");
	check(!symtab_named(t, "data", false));
	check(!symtab_named(t, "fir", false));
	check(!symtab_named(t, "", false));
	check(symtab_named(t, "first", true) != NULL);
	check(!symtab_named(t, "local", true));
	check(symtab_has_static(t));
	symtab_destroy(t);
}

/* name@VERSION and name@@VERSION, with .dynsym and from .symtab alone. */
static void test_versions(void)
{
	printf("# --- versions\n");
	check(!run("cat >\"$D\"/v.c <<'END'\n"
		   "int old(void), new(void);\n"
		   "__attribute__((noinline)) int old(void) { return 1; }\n"
		   "__asm__(\".symver old, fn@V1\");\n"
		   "__attribute__((noinline)) int new(void) { return 2; }\n"
		   "__asm__(\".symver new, fn@@V2\");\n"
		   "int (*pick(void))(void);\n"
		   "static int a(void) { return 3; }\n"
		   "int (*pick(void))(void) { return a; }\n"
		   "int chosen(void) __attribute__((ifunc(\"pick\")));\n"
		   "END\n"
		   "echo 'V1 { global: fn; }; V2 { global: fn; chosen; "
		   "local: *; } V1;' >\"$D\"/v.map && "
		   "cc -O1 -shared -fPIC -Wl,--version-script=\"$D\"/v.map "
		   "-o \"$D\"/v \"$D\"/v.c && "
		   "objcopy --only-keep-debug \"$D\"/v \"$D\"/v.debug"));
	struct symtab *both = load("v"), *alone = load("v.debug");
	uint64_t new = addr_of(both, "new");
	for (int i = 0; i < 2; i++) {
		struct symtab *t = i ? alone : both;
		check_int(addr_of(t, "fn"), new);
		check(addr_of(t, "old") != new);
		check(!symtab_named(t, "fn@@V2", false));
		check(!symtab_named(t, "fn@V1", false));
		const struct symtab_sym *s = symtab_named(t, "chosen", false);
		check(s && s->ifunc);
	}
	check_int(symtab_named(both, "fn", true)->addr, new);
	check(!symtab_named(both, "new", true));
	check(!symtab_named(alone, "fn", true));
	symtab_destroy(both);
	symtab_destroy(alone);
	symtab_destroy(NULL);
}

/* A return address behind a last call belongs to the caller. */
static void test_return_addresses(void)
{
	printf("# --- return addresses\n");
	check(!run("as -o \"$D\"/cfi.o " FIX "/cfi.s && "
		   "ld -shared -o \"$D\"/cfi \"$D\"/cfi.o"));
	char path[256];
	snprintf(path, sizeof(path), "%s/cfi", scratch);
	struct symtab *t = load("cfi");
	struct sym_mapping map = {
		.start = 0, .end = 1 << 20, .exec = true, .path = path};
	struct sym_space *s = sym_space_create(0, "", NULL, NULL);
	sym_space_update(s, &map, 1, NULL);
	struct sym_name n[SYM_MAX_INLINE];
	struct sym_place at = {1, addr_of(t, "after")};
	uint64_t before = addr_of(t, "deep");
	sym_name(s, at, false, n);
	check_str(n[0].function, "after");
	check_int(n[0].func_offset, 0);
	sym_name(s, at, true, n);
	check_str(n[0].function, "deep");
	check_int(n[0].func_offset, at.offset - before);
	/* Unless nobody is there: a trampoline is entered by returning. */
	at.offset = addr_of(t, "plain");
	sym_name(s, at, true, n);
	check_str(n[0].function, "plain");
	check_int(n[0].func_offset, 0);
	sym_space_destroy(s);
	symtab_destroy(t);
}

/* Bytes that this process has read so far. */
static uint64_t bytes_read(void)
{
	char text[512];
	uint64_t nr = 0;
	if (smco_slurp("/proc/self/io", text, sizeof(text)) <= 0 ||
	    sscanf(text, "rchar: %" SCNu64, &nr) != 1)
		return 0;
	return nr;
}

/* Debug information lies behind what is loaded, and may be most of a file. */
static void test_what_is_read(void)
{
	printf("# --- only what is loaded is read\n");
	check(!run("cat >\"$D\"/big.s <<'END'\n"
		   " .text\n .globl small\n .type small, @function\n"
		   "small: .skip 16\n .size small, 16\n"
		   " .section .debug_big,\"\",@progbits\n .skip 33554432, 1\n"
		   "END\n"
		   "as -o \"$D\"/big.o \"$D\"/big.s && "
		   "ld -shared -o \"$D\"/big \"$D\"/big.o"));
	char path[256];
	struct dynamic d;
	snprintf(path, sizeof(path), "%s/big", scratch);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	uint64_t before = bytes_read();
	if (!before)
		tap_skip("no /proc/self/io here");
	check(dynamic_read(elf, 0, &d) && d.nr_syms == 2);
	check(bytes_read() - before < 1 << 20);
	elf_end(elf);
	close(fd);
}

int main(void)
{
	make_scratch();
	test_addresses();
	test_what_is_read();
	test_versions();
	test_return_addresses();
	return finish();
}
