/*
 * Displacing the beginning of a function: what is moved does the same at its
 * new place, and what cannot be moved is refused.
 */
#include <stdlib.h>

#include "supervisor/probe/code.h"
#include "supervisor/probe/hook-stub.h"
#include "t/unit/tap.h"

#define FUNC 0x7f0000100000ULL
#define AREA 0x7f0000000000ULL

static struct stub out;

static int build(const void *bytes, size_t len, enum agent_kind kind)
{
	static uint8_t code[256];
	memset(code, 0xcc, sizeof(code));
	memcpy(code, bytes, len);
	struct stub_site s = {.kind = kind,
			      .number = 3,
			      .addr = FUNC,
			      .code = code,
			      .code_len = sizeof(code),
			      .area = AREA,
			      .stub = AREA + AGENT_STUB_OFF};
	return stub_build(&s, &out, NULL);
}
#define BUILD(kind, ...)                                                       \
	build((const uint8_t[]){__VA_ARGS__},                                  \
	      sizeof((const uint8_t[]){__VA_ARGS__}), kind)

static const uint8_t *moved(unsigned i)
{
	return out.code + (out.to[i] - out.start);
}
static int32_t rel32(const uint8_t *p)
{
	int32_t v;
	memcpy(&v, p, 4);
	return v;
}

static void plain(void)
{
	/* mov $11, %eax; syscall; ret, as munmap begins */
	check_int(BUILD(AK_MREMAP, 0xb8, 0x0b, 0, 0, 0, 0x0f, 0x05, 0xc3), 0);
	check_int(out.nr, 2);
	check_int(out.patch, FUNC);
	check(!memcmp(moved(0), "\xb8\x0b\0\0\0\xe9", 6));
	check_int(out.to[0] + 10 + rel32(moved(0) + 6), FUNC + 5);
	check_int(out.jump[0], 0xe9);
	check_int(FUNC + 5 + rel32(out.jump + 1), out.start);
	check_int(stub_moved_pc(&out, FUNC), out.to[0]);
	check_int(stub_moved_pc(&out, FUNC + 2), 0);
	unsigned pop = 9;
	check_int(stub_home_pc(&out, out.to[0], &pop), FUNC);
	check_int(pop, 0);
	check_int(stub_home_pc(&out, out.to[1], &pop), FUNC + 5);
	check_int(stub_home_pc(&out, out.start + 3, &pop), FUNC);
	check_int(stub_home_pc(&out, out.pushed, &pop), FUNC);
	check_int(pop, 8);
	check_int(stub_home_pc(&out, out.start + out.len, &pop), 0);
}

static void addresses(void)
{
	/* cmpb $0, 0x1234(%rip); ret: the same byte from elsewhere */
	check_int(BUILD(AK_MALLOC, 0x80, 0x3d, 0x34, 0x12, 0, 0, 0, 0xc3), 0);
	check_int(out.to[0] + 7 + rel32(moved(0) + 2), FUNC + 7 + 0x1234);
	/* endbr64 stays where it is */
	check_int(BUILD(AK_MALLOC, 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89,
			0xe5, 0x53, 0xc3),
		  0);
	check_int(out.patch, FUNC + 4);
	check_int(out.from[0], FUNC + 4);
	check(!memcmp(out.old, "\x55\x48\x89\xe5\x53", 5));
}

static void branches(void)
{
	/* test %rdi, %rdi; je +0x10; ret */
	check_int(BUILD(AK_FREE, 0x48, 0x85, 0xff, 0x74, 0x10, 0xc3), 0);
	check(!memcmp(moved(1), "\x0f\x84", 2));
	check_int(out.to[1] + 6 + rel32(moved(1) + 2), FUNC + 5 + 0x10);
	/* jmp +0x20, then padding: nothing to come back to */
	check_int(BUILD(AK_FREE, 0xeb, 0x20, 0x66, 0x90, 0x90), 0);
	check_int(out.nr, 1);
	check_int(out.to[0] + 5 + rel32(moved(0) + 1), FUNC + 2 + 0x20);
	/* sub $8, %rsp; call +0x100: the return address is the old one */
	check_int(BUILD(AK_FREE, 0x48, 0x83, 0xec, 8, 0xe8, 0, 1, 0, 0, 0xc3),
		  0);
	check(!memcmp(moved(1), "\xff\x35\x05\0\0\0\xe9", 7));
	check_int(out.to[1] + 11 + rel32(moved(1) + 7), FUNC + 9 + 0x100);
	uint64_t back;
	memcpy(&back, moved(1) + 11, 8);
	check_int(back, FUNC + 9);
}

static void refused(void)
{
	/* ret, and no padding */
	check_int(BUILD(AK_FREE, 0xc3, 0x55, 0x53, 0x55, 0x53, 0x55),
		  SMCO_UNSUPPORTED);
	/* push %rbx x6; jmp back to the second */
	check_int(
		BUILD(AK_FREE, 0x53, 0x53, 0x53, 0x53, 0x53, 0x53, 0xeb, 0xf9),
		SMCO_UNSUPPORTED);
	/* the same to the first is a loop through the sensor: harmless */
	check_int(
		BUILD(AK_FREE, 0x53, 0x53, 0x53, 0x53, 0x53, 0x53, 0xeb, 0xf8),
		0);
	/* jrcxz; loop */
	check_int(BUILD(AK_FREE, 0xe3, 0x20, 0x90, 0x90, 0x90),
		  SMCO_UNSUPPORTED);
	check_int(BUILD(AK_FREE, 0xe2, 0x20, 0x90, 0x90, 0x90),
		  SMCO_UNSUPPORTED);
	/* call in the middle; call through a register */
	check_int(BUILD(AK_FREE, 0xff, 0xd0, 0x90, 0x90, 0x90, 0x90),
		  SMCO_UNSUPPORTED);
	check_int(BUILD(AK_FREE, 0x53, 0x90, 0x90, 0xff, 0xd0, 0x90),
		  SMCO_UNSUPPORTED);
	/* not an instruction */
	check_int(BUILD(AK_FREE, 0x06, 0x06, 0x06, 0x06, 0x06), SMCO_FORMAT);
}

/* Whether a function jumps back into its window is seen without decoding it,
 * but where bytes look as if it did: then as far as those. */
static void scanned(void)
{
	uint8_t code[200];
	memset(code, 0x53, sizeof(code)); /* push %rbx */
	check_int(build(code, sizeof(code), AK_FREE), 0);
	check_int(out.nr_scanned, 0);
	/* mov $0x..9feb, %eax at 80: no jump, but it looks like one to 1 */
	memcpy(code + 80, "\xb8\0\0\xeb\xac", 5);
	check_int(build(code, sizeof(code), AK_FREE), 0);
	check_int(out.nr_scanned, 81);
	/* and a jump to 3, in each form that there is */
	memcpy(code + 60, "\x75\xc5", 2);
	check_int(build(code, sizeof(code), AK_FREE), SMCO_UNSUPPORTED);
	memcpy(code + 60, "\x53\xe9\xc1\xff\xff\xff", 6);
	check_int(build(code, sizeof(code), AK_FREE), SMCO_UNSUPPORTED);
	memcpy(code + 60, "\x0f\x84\xc1\xff\xff\xff", 6);
	check_int(build(code, sizeof(code), AK_FREE), SMCO_UNSUPPORTED);
	/* the same behind what is no instruction: nobody comes there */
	code[59] = 0x06;
	check_int(build(code, sizeof(code), AK_FREE), 0);
}

/* The first instruction stays where it is: taken back, and done again. */
static void first_stays(void)
{
	static const struct {
		uint8_t len, code[4];
		uint8_t undo_len, undo[5];
	} kind[] = {
		{1, {0x53}, 5, {0x48, 0x8d, 0x64, 0x24, 8}}, /* push %rbx */
		{2, {0x41, 0x54}, 5, {0x48, 0x8d, 0x64, 0x24, 8}},
		{4,
		 {0x48, 0x83, 0xec, 0x58},
		 5,
		 {0x48, 0x8d, 0x64, 0x24, 0x58}},
		{3, {0x48, 0x85, 0xff}, 0, {0}},    /* test %rdi, %rdi */
		{3, {0x48, 0x39, 0xf7}, 0, {0}},    /* cmp %rsi, %rdi */
		{4, {0x48, 0x83, 0xff, 1}, 0, {0}}, /* cmp $1, %rdi */
		{2, {0x31, 0xc0}, 0, {0}},	    /* xor %eax, %eax */
		{3, {0x48, 0x89, 0xf8}, 0, {0}},    /* mov %rdi, %rax */
		{3, {0x48, 0x8b, 0xc7}, 0, {0}},    /* the other form */
		{3, {0x41, 0x89, 0xca}, 0, {0}},    /* mov %ecx, %r10d */
		/* It changes what counts, or reads what may fault. */
		{3, {0x48, 0x89, 0xf7}, 9, {0}},       /* mov %rsi, %rdi */
		{3, {0x48, 0x89, 0xc7}, 9, {0}},       /* mov %rax, %rdi */
		{3, {0x4c, 0x89, 0xd0}, 9, {0}},       /* mov %r10, %rax */
		{3, {0x48, 0x89, 0xe0}, 9, {0}},       /* mov %rsp, %rax */
		{3, {0x48, 0x83, 0xc4}, 9, {0}},       /* add $n, %rsp */
		{4, {0x48, 0x83, 0xec, 0x80}, 9, {0}}, /* sub $-128, %rsp */
		{3, {0x48, 0x85, 0x07}, 9, {0}},       /* test %rax, (%rdi) */
		{3, {0x48, 0x8b, 0x07}, 9, {0}},       /* mov (%rdi), %rax */
		{2, {0x31, 0xff}, 9, {0}},	       /* xor %edi, %edi */
	};
	for (size_t i = 0; i < ARRAY_SIZE(kind); i++) {
		uint8_t code[32];
		unsigned n = kind[i].len, undo = kind[i].undo_len, pop = 9;
		memset(code, 0x53, sizeof(code));
		memcpy(code, kind[i].code, n);
		check_int(build(code, sizeof(code), AK_MALLOC), 0);
		if (undo == 9) {
			check_int(out.patch, FUNC);
			continue;
		}
		check_int(out.patch, FUNC + n);
		check(!memcmp(out.code, kind[i].undo, undo));
		check_int(out.test, out.start + undo);
		check(!memcmp(moved(0), kind[i].code, n));
		check_int(out.from[0], FUNC);
		check_int(out.from[1], FUNC + n);
		check_int(FUNC + n + 5 + rel32(out.jump + 1), out.start);
		check_int(stub_home_pc(&out, out.start, &pop),
			  undo ? FUNC + n : FUNC);
		check_int(pop, 0);
		check_int(stub_home_pc(&out, out.test + 1, &pop), FUNC);
		check_int(stub_home_pc(&out, out.to[1], &pop), FUNC + n);
		check_int(stub_home_pc(&out, out.pushed, &pop), FUNC);
		check_int(pop, 8);
		/* Who comes back behind it is not at the beginning. */
		code[20] = 0xeb;
		code[21] = (uint8_t)((int)n - 22);
		check_int(build(code, sizeof(code), AK_MALLOC),
			  SMCO_UNSUPPORTED);
	}
}

/* Somebody else's breakpoint is there. */
static void others_come(void)
{
	uint8_t code[32];
	memset(code, 0x53, sizeof(code));
	struct stub_site s = {.kind = AK_MALLOC,
			      .addr = FUNC,
			      .code = code,
			      .code_len = sizeof(code),
			      .area = AREA,
			      .stub = AREA + AGENT_STUB_OFF};
	check_int(stub_build(&s, &out, NULL), 0);
	for (unsigned i = 0; i < 5; i++) {
		memset(code, 0x53, sizeof(code));
		code[i] = 0xcc;
		check_int(stub_build(&s, &out, NULL), SMCO_UNSUPPORTED);
	}
}

/* As if each instruction were decoded. */
static bool jumps_back(const uint8_t *code, size_t len)
{
	struct code_insn in;
	for (size_t at = 0; at < len; at += in.z.length) {
		if (!code_decode(code + at, len - at, FUNC + at, &in))
			return false;
		if (in.target > FUNC && in.target < FUNC + STUB_JUMP_BYTES)
			return true;
	}
	return false;
}

static void as_decoded(void)
{
	static const char *const forms[] = {
		"\xeb", "\x70",	    "\x7f", "\xe0",	"\xe3",
		"\xe9", "\x0f\x8a", "\xe8", "\x2e\x74", "\xf2\xeb"};
	unsigned seed = 7, differ = 0, nr = 0;
	for (int i = 0; i < 20000; i++) {
		uint8_t code[256];
		for (size_t k = 0; k < sizeof(code); k++)
			code[k] = rand_r(&seed) % 3 ? 0x53 : rand_r(&seed) >> 7;
		memset(code, 0x53, 8); /* the window itself is movable */
		const char *form = forms[i % ARRAY_SIZE(forms)];
		size_t len = strlen(form), at = 8 + rand_r(&seed) % 100;
		bool far = i % ARRAY_SIZE(forms) >= 5 &&
			   i % ARRAY_SIZE(forms) <= 7;
		memcpy(code + at, form, len);
		int32_t dist =
			rand_r(&seed) % 7 - (int32_t)(at + len + (far ? 4 : 1));
		memcpy(code + at + len, &dist, far ? 4 : 1);
		bool jumps = jumps_back(code, sizeof(code));
		nr += jumps;
		differ += jumps != (build(code, sizeof(code), AK_FREE) ==
				    SMCO_UNSUPPORTED);
	}
	check(nr > 1000);
	check_int(differ, 0);
}

/* Anything at all as a function: refused or displaced, nothing else. */
static void random_bytes(void)
{
	unsigned seed = 1, ok = 0, bad = 0;
	for (int i = 0; i < 20000; i++) {
		uint8_t code[64];
		for (size_t k = 0; k < sizeof(code); k++)
			code[k] = rand_r(&seed) >> 7;
		int r = build(code, sizeof(code), i % NR_AGENT_KINDS);
		ok += r == 0;
		if (r == 0 &&
		    (out.len > STUB_MAX_BYTES || out.orig < out.start ||
		     out.pushed >= out.start + out.len))
			bad++;
	}
	printf("# %u of 20000 random functions displaced\n", ok);
	check(ok > 100);
	check_int(bad, 0);
}

int main(void)
{
	plain();
	first_stays();
	others_come();
	addresses();
	branches();
	refused();
	scanned();
	as_decoded();
	random_bytes();
	return tap_done();
}
