/*
 * Unwinding stacks made by hand: a module from cfi.s at an address of our
 * choice, memory from an array. What running programs seldom show.
 */
#include <fcntl.h>
#include <gelf.h>

#include "symhelp.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, RIP = 16 };

#define BASE	 0x7f0000000000ULL
#define JIT	 0x7e0000000000ULL
#define STACK	 0x7ff000001000ULL
#define NR_WORDS 4096
#define OTHER	 0x7ff800000000ULL /* a signal's own stack, above */

/* --- the module --- */

static Elf *elf;
static struct sym_mapping map[2];
static char path[256];

static void make_module(void)
{
	check(!run("as -o \"$D\"/cfi.o " FIX "/cfi.s && ld -shared "
		   "--eh-frame-hdr -o \"$D\"/cfi \"$D\"/cfi.o"));
	snprintf(path, sizeof(path), "%s/cfi", scratch);
	elf_version(EV_CURRENT);
	elf = elf_begin(open(path, O_RDONLY | O_CLOEXEC), ELF_C_READ, NULL);
	size_t nr = 0;
	elf_getphdrnum(elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr ph;
		gelf_getphdr(elf, (int)i, &ph);
		if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X))
			map[0] = (struct sym_mapping){
				.start = BASE + (ph.p_vaddr & ~0xfffULL),
				.end = BASE +
				       ((ph.p_vaddr + ph.p_memsz + 0xfff) &
					~0xfffULL),
				.offset = ph.p_offset & ~0xfffULL,
				.exec = true,
				.path = path,
			};
	}
	map[1] = (struct sym_mapping){
		.start = JIT, .end = JIT + 0x1000, .exec = true, .path = ""};
}

static taddr_t label(const char *name)
{
	return BASE + label_in(elf, name);
}

/* --- the memory --- */

static uint64_t stack[NR_WORDS], other[64];
static uint8_t code[16]; /* at JIT + 0x100 */
static enum {
	WHOLE_OR_PART,
	WHOLE_OR_NOTHING,
	WORDS_ONLY,
	TOO_MUCH,
} manner;
static size_t nr_reads;

static ssize_t read_fake(void *ctx, taddr_t addr, void *buf, size_t len)
{
	static const struct {
		taddr_t at;
		void *mem;
		size_t len;
	} areas[] = {{STACK, stack, sizeof(stack)},
		     {OTHER, other, sizeof(other)},
		     {JIT + 0x100, code, sizeof(code)}};
	(void)ctx;
	nr_reads++;
	for (size_t i = 0; i < ARRAY_SIZE(areas); i++) {
		uint64_t off = addr - areas[i].at;
		if (off >= areas[i].len)
			continue;
		size_t left = areas[i].len - off, n = len < left ? len : left;
		if ((manner == WHOLE_OR_NOTHING && n < len) ||
		    (manner == WORDS_ONLY && len > 8 && len != sizeof(code) &&
		     areas[i].mem != code))
			return -1;
		memcpy(buf, (char *)areas[i].mem + off, n);
		return manner == TOO_MUCH ? (ssize_t)len + 1000 : (ssize_t)n;
	}
	return -1;
}

static struct sym_space *space;
static struct sym_regs regs;
static taddr_t frames[64], slots[64];
static bool complete;

/* Put @value at word @i of the stack; its address. */
static taddr_t put(size_t i, uint64_t value)
{
	stack[i] = value;
	return STACK + 8 * i;
}

static size_t unwind(taddr_t pc, size_t sp_word, taddr_t rbp, size_t max)
{
	regs.reg[RIP] = pc;
	regs.reg[RSP] = STACK + 8 * sp_word;
	regs.reg[RBP] = rbp;
	nr_reads = 0;
	memset(frames, 0x55, sizeof(frames));
	memset(slots, 0x55, sizeof(slots));
	size_t n = sym_unwind(space, &regs, frames, slots, max, &complete);
	check_int(frames[0], pc);
	check_int(slots[0], 0);
	return n;
}

static void check_frame(size_t i, taddr_t pc, taddr_t slot)
{
	check_int(frames[i], pc);
	check_int(slots[i], slot);
}

/* --- the cases --- */

static void test_plain(void)
{
	taddr_t end = label("at_outermost") + 1, slot;
	printf("# --- plain\n");
	memset(stack, 0, sizeof(stack));
	slot = put(10, end);
	check_int(unwind(label("at_plain_0"), 10, 0, 64), 2);
	check_frame(1, end, slot);
	check(complete);
	check_int(unwind(label("at_plain_4"), 3, STACK + 8 * 9, 64), 2);
	check_frame(1, end, slot);
	check(complete);
	/* The callee saved the register that its caller's frame hangs on. */
	put(10, STACK + 8 * 40);
	put(11, label("at_plain_4") + 1);
	put(41, end);
	check_int(unwind(label("at_plain_1"), 10, 0, 64), 3);
	check_frame(1, label("at_plain_4") + 1, STACK + 8 * 11);
	check_frame(2, end, STACK + 8 * 41);
	check(complete);
	/* A frame larger than the memory there is. */
	check_int(unwind(label("at_many"), 20, 0, 64), 1);
	check(!complete);
	/* The return address of a call that never comes back. */
	slot = put(9, label("plain_end"));
	put(11, end);
	check_int(unwind(label("at_plain_0"), 9, STACK + 8 * 10, 64), 3);
	check_frame(1, label("plain_end"), slot);
	check_frame(2, end, STACK + 8 * 11);
	check(complete);
	/* No more than asked for. */
	check_int(unwind(label("at_plain_0"), 9, STACK + 8 * 10, 2), 2);
	check(!complete);
	check_int(sym_unwind(space, &regs, NULL, NULL, 0, &complete), 0);
	/* A return address of 0 is an end too. */
	put(9, 0);
	check_int(unwind(label("at_plain_0"), 9, 0, 64), 1);
	check(complete);
}

static void test_odd(void)
{
	taddr_t end = label("at_outermost") + 1;
	printf("# --- odd\n");
	memset(stack, 0, sizeof(stack));
	regs.reg[RCX] = end;
	check_int(unwind(label("at_odd_0"), 10, 0, 64), 2);
	check_frame(1, end, 0); /* it was in a register */
	check(complete);
	/* CFA: what rsp + 8 points to. */
	put(11, STACK + 8 * 50);
	check_int(unwind(label("at_odd_2"), 10, 0, 64), 2);
	check_frame(1, end, 0);
	put(11, 12345); /* a CFA below the stack pointer: no caller there */
	check_int(unwind(label("at_odd_2"), 10, 0, 64), 1);
	check(!complete);
}

/* The caller's stack pointer was saved: it had another stack. */
static void test_switch(void)
{
	taddr_t end = label("at_outermost") + 1;
	printf("# --- another stack\n");
	memset(stack, 0, sizeof(stack));
	put(10, label("at_plain_0") + 1);
	put(8, STACK + 8 * 300);
	put(300, end);
	check_int(unwind(label("at_switch"), 10, 0, 64), 3);
	check_frame(2, end, STACK + 8 * 300);
	check(complete);
}

static void test_signal(void)
{
	taddr_t end = label("at_outermost") + 1;
	printf("# --- signals\n");
	memset(stack, 0, sizeof(stack));
	/* Interrupted at a function's first byte: the byte before is not its.
	 */
	put(10, label("at_plain_0"));
	put(11, end);
	check_int(unwind(label("at_sig"), 10, 0, 64), 3);
	check_frame(2, end, STACK + 8 * 11);
	check(complete);
	/* Called from there, it would be another function's business. */
	check_int(unwind(label("at_after"), 10, 0, 64), 2);

	/* The kernel's frame, known by its trampoline, on another stack. */
	memcpy(code, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
	memset(other, 0, sizeof(other));
	other[5 + 16] = label("at_plain_1"); /* rip */
	other[5 + 15] = STACK + 8 * 30;	     /* rsp */
	other[5 + 10] = 0x1234;		     /* rbp */
	put(31, end);
	regs.reg[RIP] = JIT + 0x100;
	regs.reg[RSP] = OTHER;
	size_t n = sym_unwind(space, &regs, frames, slots, 64, &complete);
	check_int(n, 3);
	check_frame(1, label("at_plain_1"), OTHER + 8 * 21);
	check_frame(2, end, STACK + 8 * 31);
	check(complete);
	code[7] = 0x90;
	n = sym_unwind(space, &regs, frames, slots, 64, &complete);
	check_int(n, 1);
	check(!complete);
}

static void test_frame_pointer(void)
{
	taddr_t end = label("at_outermost") + 1;
	printf("# --- frame pointers\n");
	memset(stack, 0, sizeof(stack));
	put(20, STACK + 8 * 40);
	put(21, JIT + 0x80);
	put(40, 0);
	put(41, end);
	check_int(unwind(JIT + 0x40, 10, STACK + 8 * 20, 64), 3);
	check_frame(1, JIT + 0x80, STACK + 8 * 21);
	check_frame(2, end, STACK + 8 * 41);
	check(complete); /* what it may have missed is between */
	check(!sym_unwind_stale(space)); /* but it knows what is there */
	/* Once seen, generated code is not read again. */
	check_int(unwind(JIT + 0x40, 10, STACK + 8 * 20, 64), 3);
	check_int(nr_reads, 1);
	check_int(unwind(label("gap"), 10, STACK + 8 * 20, 64), 3);
	/* Implausible: below, unaligned, far, to no code. */
	check_int(unwind(JIT + 0x40, 21, STACK + 8 * 20, 64), 1);
	uint64_t off_by_4[2] = {STACK + 8 * 40, end};
	memcpy((char *)&stack[24] + 4, off_by_4, sizeof(off_by_4));
	check_int(unwind(JIT + 0x40, 10, STACK + 8 * 24 + 4, 64), 1);
	check_int(unwind(JIT + 0x40, 10, STACK + (64 << 20), 64), 1);
	check(!sym_unwind_stale(space));
	put(21, STACK);
	check_int(unwind(JIT + 0x40, 10, STACK + 8 * 20, 64), 1);
	check_int(unwind(0, 10, STACK + 8 * 20, 64), 1);
}

/* Where a file begins there is no caller, whatever the stack has. */
static void test_entry(void)
{
	printf("# --- the first instructions of a file\n");
	taddr_t gap = label("gap"), end = label("at_outermost") + 1;
	struct sym_space *was = space;
	struct sym_mapping begins[2] = {map[0], map[1]};
	char with_entry[256];
	check(!run("ld -shared --eh-frame-hdr -e %#lx -o \"$D\"/begins "
		   "\"$D\"/cfi.o",
		   (unsigned long)(gap - BASE)));
	snprintf(with_entry, sizeof(with_entry), "%s/begins", scratch);
	begins[0].path = with_entry;
	memset(stack, 0, sizeof(stack));
	put(20, STACK + 8 * 40);
	put(21, gap + 1); /* behind its call */
	put(41, end);
	check_int(unwind(JIT + 0x40, 10, STACK + 8 * 20, 64), 3);
	space = sym_space_create(0, "", read_fake, NULL);
	check_int(sym_space_update(space, begins, 2, NULL), 0);
	check_int(unwind(gap, 10, STACK + 8 * 20, 64), 1);
	check(complete);
	check_int(unwind(JIT + 0x40, 10, STACK + 8 * 20, 64), 2);
	check_frame(1, gap + 1, STACK + 8 * 21);
	check(complete);
	/* The byte before it is another function's, which was called. */
	put(21, gap);
	check_int(unwind(JIT + 0x40, 10, STACK + 8 * 20, 64), 3);
	check_frame(2, end, STACK + 8 * 41);
	check(complete);
	sym_space_destroy(space);
	space = was;
}

/* A long stack of one function, up to the end of memory. */
static void test_memory(void)
{
	printf("# --- memory\n");
	for (manner = WHOLE_OR_PART; manner <= WORDS_ONLY; manner++) {
		for (size_t i = 0; i < NR_WORDS; i++)
			put(i, label("at_after") + 1);
		for (size_t sp = NR_WORDS - 64; sp < NR_WORDS; sp++) {
			size_t want = NR_WORDS - sp + 1;
			bool tap_quiet = want % 16;
			taddr_t pc = label("at_after");
			regs.reg[RIP] = pc;
			regs.reg[RSP] = STACK + 8 * sp;
			nr_reads = 0;
			size_t n = sym_unwind(space, &regs, frames, slots, 64,
					      &complete);
			/* Whole pages, even where more is refused; and the
			 * next page, the trampoline's bytes at the end. */
			if (manner != WORDS_ONLY && nr_reads > 6)
				check_range((double)nr_reads, 0, 6);
			if (want > 64)
				want = 64;
			if (n != want || !tap_quiet)
				check_int(n, want);
			if (slots[n - 1] != STACK + 8 * (sp + n - 2))
				check_int(slots[n - 1],
					  STACK + 8 * (sp + n - 2));
		}
	}
	manner = TOO_MUCH; /* a callback that cannot count is not believed */
	check_int(unwind(label("at_after"), 0, 0, 64), 1);
	manner = WHOLE_OR_PART;
	/* One read is enough for a stack like the ones before. */
	check_int(unwind(label("at_after"), 0, 0, 64), 64);
	check_int(unwind(label("at_after"), 0, 0, 64), 64);
	check_int(nr_reads, 1);
	/* No stack at all, and none of it ours. */
	regs.reg[RSP] = 0;
	check_int(sym_unwind(space, &regs, frames, slots, 64, &complete), 1);
	regs.reg[RSP] = ~0ULL;
	check_int(sym_unwind(space, &regs, frames, slots, 64, &complete), 1);
}

/* After unmapping, nothing of the module may be used. */
static void test_unmapped(void)
{
	printf("# --- unmapped\n");
	put(10, label("at_outermost") + 1);
	check_int(unwind(label("at_plain_0"), 10, 0, 64), 2);
	sym_space_update(space, NULL, 0, NULL);
	check_int(unwind(label("at_plain_0"), 10, 0, 64), 1);
	check(!complete);
	check(sym_unwind_stale(space));
	check_int(unwind(label("at_plain_0"), 10, 0, 64), 1);
	check(sym_unwind_stale(space)); /* the second time too */
	/* And at another place it is there again. */
	map[0].start += 0x100000;
	map[0].end += 0x100000;
	sym_space_update(space, map, 2, NULL);
	put(10, label("at_outermost") + 1 + 0x100000);
	check_int(unwind(label("at_plain_0") + 0x100000, 10, 0, 64), 2);
	check(complete);
	check(!sym_unwind_stale(space));
}

int main(void)
{
	make_scratch();
	make_module();
	space = sym_space_create(0, "", read_fake, NULL);
	check_int(sym_space_update(space, map, 2, NULL), 0);
	test_plain();
	test_odd();
	test_switch();
	test_signal();
	test_frame_pointer();
	test_entry();
	test_memory();
	test_unmapped();
	sym_space_destroy(space);
	return finish();
}
