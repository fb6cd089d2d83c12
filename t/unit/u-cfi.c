/*
 * Rows compiled from call frame information: hand-written cases, and every
 * row of large libraries against libdw's own reading, by the linker's table of
 * it and without.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "symbols/cfi.h"
#include "symbols/cfiexpr.h"
#include "symhelp.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP };

static Elf *open_elf(const char *path, int *fd)
{
	elf_version(EV_CURRENT);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? NULL : elf_begin(*fd, ELF_C_READ, NULL);
}

/* --- hand-written --- */

static Elf *labels;

static uint64_t label(const char *name)
{
	return label_in(labels, name);
}

static const struct cfi_rule *rule(struct cfi_table *t, const char *name)
{
	static const struct cfi_rule none;
	const struct cfi_rule *r = cfi_lookup(t, label(name));
	return r ? r : &none;
}

/* CFA = @reg + @off, return address just below it, these registers saved. */
static void check_rule(struct cfi_table *t, const char *at, int reg, int off,
		       unsigned mask)
{
	const struct cfi_rule *r = rule(t, at);
	printf("# %s\n", at);
	check_int(r->cfa_kind, CFI_CFA_REG);
	check_int(r->cfa_reg, reg);
	check_int(r->cfa_off, off);
	check_int(r->ra_off, -8);
	check_int(r->mask, mask);
	check_int(r->flags, 0);
}

static void check_expression(struct cfi_table *t, int64_t at, const char *want)
{
	struct cursor c = cfi_expression(t, at);
	check(!c.bad && cursor_left(&c) == strlen(want) &&
	      !memcmp(c.p, want, strlen(want)));
}

static void check_none(struct cfi_table *t, const char *at)
{
	check_msg(!cfi_lookup(t, label(at)), "%s has no rule", at);
}

static void test_hand_written(const char *what, const char *build,
			      bool in_memory)
{
	printf("# --- %s%s\n", what, in_memory ? ", in memory" : "");
	check(!run("%s", build));
	char path[256];
	int fd, label_fd;
	snprintf(path, sizeof(path), "%s/cfi-labels", scratch);
	labels = open_elf(path, &label_fd);
	snprintf(path, sizeof(path), "%s/cfi", scratch);
	Elf *elf = open_elf(path, &fd);
	struct cfi_table *t = cfi_create(elf, in_memory ? -1 : fd);
	elf_end(elf);
	if (!check(t != NULL))
		return;
	check_rule(t, "at_plain_0", RSP, 8, 0);
	check_rule(t, "at_plain_1", RSP, 16, 1 << RBP);
	check_int(rule(t, "at_plain_1")->off[0], -16);
	check_rule(t, "at_plain_2", RBP, 16, 1 << RBP);
	check_rule(t, "at_plain_3", RSP, 8, 0);
	check_rule(t, "at_plain_4", RBP, 16, 1 << RBP);
	check_none(t, "plain_end");
	check_none(t, "gap");
	check(!cfi_lookup(t, label("plain") - 1));
	check(!cfi_lookup(t, 0) && !cfi_lookup(t, ~0ULL));

	unsigned saved = 1 << RBX | 1 << RBP | 15 << 12;
	check_rule(t, "at_many", RSP, 200000, saved);
	for (int i = 0; i < 6; i++)
		check_int(rule(t, "at_many")->off[i], -56 + 8 * i);
	check_rule(t, "at_six", RSP, 200000, saved & ~(1u << RBX));
	const struct cfi_rule *r = rule(t, "at_seven");
	check_int(r->flags, CFI_FULL);
	check_int(cfi_full(t, r)->kind[RDI], CFI_OFFSET);
	check_int(cfi_full(t, r)->val[RDI], -64);
	check_int(cfi_full(t, r)->val[RBX], -56);

	r = rule(t, "at_odd_0");
	check_int(r->flags, CFI_FULL);
	check_int(cfi_full(t, r)->kind[CFI_RA], CFI_REGISTER);
	check_int(cfi_full(t, r)->val[CFI_RA], RCX);
	r = rule(t, "at_odd_1");
	check_int(cfi_full(t, r)->kind[RBX], CFI_VAL_OFFSET);
	check_int(cfi_full(t, r)->val[RBX], -8);
	r = rule(t, "at_odd_2");
	check_int(r->cfa_kind, CFI_CFA_EXPR);
	check_expression(t, r->cfa_off, "\x77\x08\x06");
	r = rule(t, "at_odd_3");
	check_int(cfi_full(t, r)->kind[RBX], CFI_EXPR);
	check_expression(t, cfi_full(t, r)->val[RBX], "\x23\x18");

	r = rule(t, "at_switch");
	check_int(r->flags, CFI_FULL);
	check_int(cfi_full(t, r)->kind[RSP], CFI_OFFSET);

	check_int(rule(t, "at_sig")->flags, CFI_SIGNAL);
	check_int(rule(t, "at_outermost")->flags, CFI_OUTERMOST);
	check_rule(t, "far", RSP, 8, 0);
	check_rule(t, "at_far_1", RSP, 16, 0);
	check_rule(t, "at_far_2", RSP, 24, 0);
	check_rule(t, "at_far_4", RSP, 32, 0);
	/* The next function begins where that one ends. */
	check_int(label("far_end"), label("nonsense"));
	check_rule(t, "at_nonsense_0", RSP, 16, 0);
	check_none(t, "at_nonsense_1");
	check_rule(t, "at_deep_0", RSP, 8, 0);
	check_none(t, "at_deep_1"); /* deeper than anybody goes */
	check_rule(t, "at_after", RSP, 8, 0);
	cfi_destroy(t);
	elf_end(labels);
	close(fd);
	close(label_fd);
}

/* --- against libdw --- */

static bool same_reg(struct cfi_table *t, const struct cfi_rule *r,
		     Dwarf_Frame *frame, int reg)
{
	Dwarf_Op mem[3], *ops;
	size_t nr;
	int64_t off = 0;
	int kind = CFI_SAME;
	if (r->flags & CFI_FULL) {
		kind = cfi_full(t, r)->kind[reg];
		off = cfi_full(t, r)->val[reg];
	} else if (reg == CFI_RA) {
		kind = r->flags & CFI_OUTERMOST ? CFI_SAME : CFI_OFFSET;
		off = r->ra_off;
	} else if (r->mask & 1u << reg) {
		kind = CFI_OFFSET;
		off = r->off[__builtin_popcount(r->mask & ((1u << reg) - 1))];
	}
	if (dwarf_frame_register(frame, reg, mem, &ops, &nr))
		return false;
	if (kind == CFI_SAME || kind == CFI_UNDEFINED)
		return !nr || reg == RSP;
	if (kind == CFI_OFFSET)
		return nr && ops[0].atom == DW_OP_call_frame_cfa &&
		       (nr == 2 ? ops[1].atom == DW_OP_plus_uconst &&
					  (int64_t)ops[1].number == off
				: nr == 1 && !off);
	if (kind == CFI_REGISTER)
		return nr == 1 && ops[0].atom == DW_OP_regx &&
		       (int64_t)ops[0].number == off;
	return nr > 1; /* the others are tried by hand */
}

static bool same_frame(struct cfi_table *t, const struct cfi_rule *r,
		       Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t nr;
	bool signal;
	if (dwarf_frame_cfa(frame, &ops, &nr) || !nr)
		return false;
	dwarf_frame_info(frame, NULL, NULL, &signal);
	if (signal != !!(r->flags & CFI_SIGNAL))
		return false;
	if (r->cfa_kind == CFI_CFA_EXPR) {
		if (nr < 2)
			return false;
	} else if (nr != 1 || ops[0].atom != DW_OP_bregx ||
		   ops[0].number != r->cfa_reg ||
		   (int64_t)ops[0].number2 != r->cfa_off) {
		return false;
	}
	for (int reg = 0; reg < CFI_NR_REGS; reg++)
		if (!same_reg(t, r, frame, reg))
			return false;
	return true;
}

/* At @addr both say the same, or both nothing. */
static bool agrees(struct cfi_table *t, Dwarf_CFI *cfi, uint64_t addr)
{
	const struct cfi_rule *r = cfi_lookup(t, addr);
	Dwarf_Frame *frame;
	bool found = !dwarf_cfi_addrframe(cfi, addr, &frame);
	bool ok = found == (r != NULL) && (!found || same_frame(t, r, frame));
	if (found)
		free(frame);
	return ok;
}

/* The first and the last byte of each row. */
static void compare(const char *path, struct cfi_table *t, Dwarf_CFI *cfi)
{
	size_t nr = 0, same = 0;
	uint64_t next, at = 0;
	cfi_row(t, at, &next);
	for (at = next; at != UINT64_MAX; at = next) {
		cfi_row(t, at, &next);
		uint64_t both[] = {at, next == UINT64_MAX ? at : next - 1};
		for (int k = 0; k < 2; k++) {
			bool ok = agrees(t, cfi, both[k]);
			if (!ok && nr - same < 5)
				printf("# %s: %#lx differs\n", path, both[k]);
			same += ok;
			nr++;
		}
	}
	printf("# %s: %zu places\n", path, nr);
	check(nr > 2000);
	check_int(same, nr);
}

/* So that nobody finds the linker's table. */
static void hide_table(uint8_t *data)
{
	const Elf64_Ehdr *eh = (Elf64_Ehdr *)data;
	Elf64_Phdr *ph = (Elf64_Phdr *)(data + eh->e_phoff);
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_GNU_EH_FRAME)
			ph[i].p_type = PT_NULL;
}

static bool equal(struct cfi_table *a, const struct cfi_rule *ra,
		  struct cfi_table *b, const struct cfi_rule *rb)
{
	struct cfi_rule x, y;
	if (!ra || !rb)
		return ra == rb;
	x = *ra;
	y = *rb;
	if (x.flags & y.flags & CFI_FULL) {
		x.full = y.full = 0; /* by number, in the order of making */
		if (memcmp(cfi_full(a, ra), cfi_full(b, rb),
			   sizeof(struct cfi_full)) != 0)
			return false;
	}
	return !memcmp(&x, &y, sizeof(x));
}

/* In every place the same, from the last one on: nobody else has asked. */
static void check_equal(struct cfi_table *t, struct cfi_table *other)
{
	size_t nr = 0, same = 0;
	uint64_t next, last = 0, next_other, start;
	for (cfi_row(t, 0, &start); start != UINT64_MAX; start = next) {
		last = start;
		cfi_row(t, start, &next);
	}
	for (uint64_t at = last; at; at = at > last - 100000 ? at - 1 : 0) {
		const struct cfi_rule *r = cfi_row(t, at, &next);
		same += equal(t, r, other, cfi_row(other, at, &next_other)) &&
			next == next_other;
		nr++;
	}
	cfi_row(t, 0, &start);
	for (uint64_t at = start; at < last; at = next) {
		same += equal(t, cfi_row(t, at, &next), other,
			      cfi_row(other, at, &next_other)) &&
			next == next_other;
		nr++;
	}
	check_int(same, nr);
}

static void test_library(const char *path)
{
	int fd;
	struct stat st;
	Elf *elf = open_elf(path, &fd);
	if (!elf || fstat(fd, &st)) {
		tap_skip(path);
		return;
	}
	check_int(cfi_work_bytes(elf, fd), 0);
	struct cfi_table *t = cfi_create(elf, fd);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	if (!check(t && cfi))
		return;
	compare(path, t, cfi);
	dwarf_cfi_end(cfi);

	struct cfi_table *other = cfi_create(elf, fd);
	check_equal(t, other);
	cfi_destroy(other);
	other = cfi_create(elf, fd);
	cfi_complete(other);
	check_equal(t, other);
	cfi_destroy(other);
	elf_end(elf);

	uint8_t *data = malloc((size_t)st.st_size);
	check(data && pread(fd, data, (size_t)st.st_size, 0) == st.st_size);
	hide_table(data);
	elf = elf_memory((char *)data, (size_t)st.st_size);
	check(elf && cfi_work_bytes(elf, -1) > 10000);
	other = cfi_create(elf, -1);
	check_equal(t, other);
	cfi_destroy(other);
	elf_end(elf);
	free(data);
	cfi_destroy(t);
	close(fd);
}

/* A file that somebody makes shorter says nothing more; what was read stays. */
static void test_shorter(void)
{
	char path[256];
	int fd;
	uint64_t first, last = 0, next;
	check(!run("cp /lib/x86_64-linux-gnu/libc.so.6 \"$D\"/shorter"));
	snprintf(path, sizeof(path), "%s/shorter", scratch);
	Elf *elf = open_elf(path, &fd);
	struct cfi_table *t = cfi_create(elf, fd);
	struct cfi_table *all = cfi_create(elf, fd);
	cfi_row(all, 0, &first);
	for (uint64_t at = first; at != UINT64_MAX; at = next)
		if (cfi_row(all, at, &next))
			last = at;
	const struct cfi_rule *r = cfi_lookup(t, first);
	check(r && last > first && cfi_lookup(all, last));
	check_int(truncate(path, 4096), 0);
	check(cfi_lookup(t, first) == r);
	check(!cfi_lookup(t, last));
	check(cfi_lookup(all, last) != NULL);
	cfi_complete(t);
	check(!cfi_lookup(t, last));
	cfi_destroy(t);
	check(!cfi_create(elf, fd));
	cfi_destroy(all);
	elf_end(elf);
	close(fd);
}

/* --- expressions --- */

static bool read_double(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	*ret = addr * 2;
	return addr != 0xbad;
}

static void test_expressions(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool fine;
		uint64_t want; /* with 100 pushed first */
	} cases[] = {
#define E(s) s, sizeof(s) - 1
		{E("\x23\x08"), true, 108},		     /* plus_uconst 8 */
		{E("\x77\x78"), true, 1000 + 7 - 8},	     /* breg7 -8 */
		{E("\x06"), true, 200},			     /* deref */
		{E("\x94\x01"), true, 200},		     /* deref_size 1 */
		{E("\x0a\xff\xff\x1a"), true, 100},	     /* const2u; and */
		{E("\x32\x24"), true, 400},		     /* lit2; shl */
		{E("\x11\x70\x32\x26"), true, (uint64_t)-4}, /* -16 >> 2 */
		{E("\x11\x70\x08\x50\x26"), true, (uint64_t)-1},
		{E("\x0b\xfe\xff\x22"), true, 98}, /* const2s -2; plus */
		{E("\x09\xff\x1c"), true, 101},	   /* const1s -1; minus */
		{E("\x12\x1c"), true, 0},	   /* dup; minus */
		{E("\x31\x16\x1c"), true, (uint64_t)-99},	/* 1; swap; - */
		{E("\x2f\x01\x00\x96\x96"), true, 100},		/* skip 1 */
		{E("\x31\x28\x01\x00\xff\x23\x01"), true, 101}, /* bra */
		/* The PLT's: rsp + 8 + ((rip & 15) >= 11) << 3 */
		{E("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"), true,
		 1000 + 7 + 8 + 8},
		{E(""), true, 100},
		{E("\x22"), false, 0},		   /* plus, one value only */
		{E("\x13\x13"), false, 0},	   /* drop, drop */
		{E("\x30\x1b"), false, 0},	   /* division by 0 */
		{E("\x0a\xad\x0b\x06"), false, 0}, /* unreadable */
		{E("\x2f\xfd\xff"), false, 0},	   /* round and round */
		{E("\x2f\x10\x00"), false, 0},	   /* out of it */
		{E("\x2f\xf0\xff"), false, 0},
		{E("\x0e\x01"), false, 0},	   /* cut short */
		{E("\xf3"), false, 0},		   /* no such operation here */
		{E("\x12\x2f\xfc\xff"), false, 0}, /* stack grows for ever */
		{E("\x90\x40"), false, 0},
		{E("\x15\x09"), false, 0}, /* pick out of the stack */
	};
	uint64_t regs[17], initial = 100;
	for (size_t i = 0; i < 17; i++)
		regs[i] = 1000 + i;
	regs[16] = 0x10cb; /* & 15 is 11 */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cursor c = {
			(const uint8_t *)cases[i].bytes,
			(const uint8_t *)cases[i].bytes + cases[i].len, false};
		uint64_t got = 0;
		bool fine = cfiexpr_eval(c, regs, &initial, read_double, NULL,
					 &got);
		check_msg(fine == cases[i].fine &&
				  (!fine || got == cases[i].want),
			  "expression %zu (got %d, %" PRId64 ")", i, fine,
			  (int64_t)got);
	}
}

#define LINK                                                                   \
	"as -o \"$D\"/cfi.o " FIX "/cfi.s && "                                 \
	"ld -shared -o \"$D\"/cfi-labels \"$D\"/cfi.o && "

static void test_both(const char *what, const char *build)
{
	test_hand_written(what, build, false);
	test_hand_written(what, build, true);
}

int main(void)
{
	make_scratch();
	test_both(".eh_frame", LINK "cp \"$D\"/cfi-labels \"$D\"/cfi");
	test_both("no section headers", LINK
		  "ld -shared --eh-frame-hdr -o \"$D\"/cfi-labels "
		  "\"$D\"/cfi.o && cp \"$D\"/cfi-labels \"$D\"/cfi && "
		  /* e_shoff, e_shnum, e_shstrndx */
		  "printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=\"$D\"/cfi bs=1 "
		  "seek=40 conv=notrunc status=none && "
		  "printf '\\0\\0\\0\\0' | dd of=\"$D\"/cfi bs=1 seek=60 "
		  "conv=notrunc status=none");
	test_both(".debug_frame",
		  "(echo .cfi_sections .debug_frame; cat " FIX "/cfi.s) "
		  "| as -o \"$D\"/cfi.o && ld -shared -o \"$D\"/cfi-labels "
		  "\"$D\"/cfi.o && cp \"$D\"/cfi-labels \"$D\"/cfi");
	test_both("compressed .debug_frame",
		  "objcopy --compress-debug-sections \"$D\"/cfi-labels "
		  "\"$D\"/cfi && readelf -SW \"$D\"/cfi | "
		  "grep -q 'debug_frame.* C '");
	test_library("/lib/x86_64-linux-gnu/libc.so.6");
	test_library("/lib/x86_64-linux-gnu/libm.so.6");
	test_library("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	test_library("/usr/bin/python3");
	test_shorter();
	test_expressions();
	return finish();
}
