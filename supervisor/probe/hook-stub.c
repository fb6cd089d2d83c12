/* Decoding, relocating and emitting, see hook-stub.h. */
#include "supervisor/probe/hook-stub.h"

#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "supervisor/probe/code.h"

/* How much of a function is looked through for jumps into the window. */
#define SCAN_BYTES 4096

/* Forward jcc rel8, the distance filled in by land(). */
static size_t branch(struct code_buf *e, uint8_t opcode)
{
	CODE(e, opcode, 0);
	return e->len;
}
static void land(struct code_buf *e, size_t from)
{
	if (e->failed || e->len - from > 127) {
		e->failed = true;
		return;
	}
	e->buf[from - 1] = e->len - from;
}

#define JO  0x70
#define JAE 0x73
#define JE  0x74
#define JNE 0x75

static taddr_t ctl(const struct stub_site *s, size_t field)
{
	return s->area + AGENT_SHM_OFF + field;
}
#define CTL(s, field) ctl(s, offsetof(struct agent_ctl, field))

/* cmp REG, [cutoff]: rex, modrm of the register. */
static void cmp_cutoff(struct code_buf *e, const struct stub_site *s,
		       uint8_t rex, uint8_t modrm)
{
	CODE(e, rex, 0x3b, modrm);
	code_put_rel(e, CTL(s, cutoff), 0);
}
#define RDI 0x48, 0x3d
#define RSI 0x48, 0x35
#define RDX 0x48, 0x15
#define R11 0x4c, 0x1d

/*
 * The quick test. Calls that it lets through fall into the displaced
 * instructions; the others branch ahead, to slow or, where the address in rdi
 * decides, to the look into the filter.
 */
struct test {
	size_t slow[3]; /* of prctl */
	size_t check[2];
	unsigned nr_slow, nr_check;
};

static void to_slow(struct test *t, struct code_buf *e, uint8_t opcode)
{
	size_t at = branch(e, opcode);
	if (t->nr_slow == ARRAY_SIZE(t->slow))
		e->failed = true;
	else
		t->slow[t->nr_slow++] = at;
}
static void to_check(struct test *t, struct code_buf *e, uint8_t opcode)
{
	size_t at = branch(e, opcode);
	if (t->nr_check == ARRAY_SIZE(t->check))
		e->failed = true;
	else
		t->check[t->nr_check++] = at;
}

/*
 * Tracked blocks lie at the start of a page, or 16 bytes behind it (chunks
 * that glibc maps), unless use_filter says otherwise.
 */
static void test_pointer(struct test *t, struct code_buf *e,
			 const struct stub_site *s)
{
	CODE(e, 0xf7, 0xc7, 0xef, 0x0f, 0, 0); /* test $0xfef, %edi */
	to_check(t, e, JE);
	CODE(e, 0x80, 0x3d); /* cmpb $0, use_filter */
	code_put_rel(e, CTL(s, use_filter), 1);
	CODE(e, 0);
	to_check(t, e, JNE);
}

static void fast_test(struct test *t, struct code_buf *e,
		      const struct stub_site *s)
{
	switch (s->kind) {
	case AK_MALLOC:
	case AK_VALLOC:
	case AK_PVALLOC:
	case AK_NEW:
	case AK_NEW_NOTHROW:
	case AK_NEW_ALIGN:
	case AK_NEW_ALIGN_NOTHROW:
		cmp_cutoff(e, s, RDI);
		to_slow(t, e, JAE);
		break;
	case AK_MEMALIGN:
		cmp_cutoff(e, s, RSI);
		to_slow(t, e, JAE);
		break;
	case AK_POSIX_MEMALIGN:
		cmp_cutoff(e, s, RDX);
		to_slow(t, e, JAE);
		break;
	case AK_CALLOC:
		CODE(e, 0x49, 0x89, 0xfb);	 /* mov %rdi, %r11 */
		CODE(e, 0x4c, 0x0f, 0xaf, 0xde); /* imul %rsi, %r11 */
		to_slow(t, e, JO);
		cmp_cutoff(e, s, R11);
		to_slow(t, e, JAE);
		break;
	case AK_REALLOC:
		cmp_cutoff(e, s, RSI);
		to_slow(t, e, JAE);
		test_pointer(t, e, s);
		break;
	case AK_REALLOCARRAY:
		CODE(e, 0x49, 0x89, 0xf3);	 /* mov %rsi, %r11 */
		CODE(e, 0x4c, 0x0f, 0xaf, 0xda); /* imul %rdx, %r11 */
		to_slow(t, e, JO);
		cmp_cutoff(e, s, R11);
		to_slow(t, e, JAE);
		test_pointer(t, e, s);
		break;
	case AK_FREE:
		test_pointer(t, e, s);
		break;
	case AK_MMAP:
		cmp_cutoff(e, s, RSI);
		to_slow(t, e, JAE);
		CODE(e, 0xf6, 0xc1, 0x10); /* test $MAP_FIXED, %cl */
		to_slow(t, e, JNE);
		break;
	case AK_MUNMAP:
		break; /* slow itself, and the agent must know */
	case AK_MREMAP:
		CODE(e, 0x83, 0x3d); /* cmpl $0, nr_maps_ever */
		code_put_rel(e, CTL(s, nr_maps_ever), 1);
		CODE(e, 0);
		to_slow(t, e, JNE);
		break;
	case AK_PRCTL:
		CODE(e, 0x83, 0xff, PR_SET_SECCOMP); /* cmp $22, %edi */
		to_slow(t, e, JE);
		CODE(e, 0x83, 0xff, PR_SET_TSC); /* cmp $26, %edi */
		to_slow(t, e, JE);
		CODE(e, 0x83, 0xff, PR_SET_SYSCALL_USER_DISPATCH);
		to_slow(t, e, JE);
		break;
	case AK_SYSCALL:
		CODE(e, 0x81, 0xff); /* cmp $SYS_seccomp, %edi */
		code_put32(e, SYS_seccomp);
		to_slow(t, e, JE);
		break;
	case AK_IOCTL:		     /* each userfaultfd begins with it */
		CODE(e, 0x81, 0xfe); /* cmp $UFFDIO_API, %esi */
		code_put32(e, (uint32_t)UFFDIO_API);
		to_slow(t, e, JE);
		break;
	case NR_AGENT_KINDS:
		e->failed = true;
	}
}

/* Behind the displaced instructions. r10 and r11 are free at an entry. */
static void slow_way(struct test *t, struct code_buf *e,
		     const struct stub_site *s, uint32_t entry, size_t orig)
{
	for (unsigned i = 0; i < t->nr_check; i++)
		land(e, t->check[i]);
	if (t->nr_check) {
		CODE(e, 0x49, 0x89, 0xfb);     /* mov %rdi, %r11 */
		CODE(e, 0x49, 0xc1, 0xeb, 12); /* shr $12, %r11 */
		CODE(e, 0x41, 0x81, 0xe3);     /* and $mask, %r11d */
		code_put32(e, AGENT_FILTER_SLOTS - 1);
		CODE(e, 0x4c, 0x8d, 0x15); /* lea filter, %r10 */
		code_put_rel(e, s->area + AGENT_FILTER_OFF, 0);
		CODE(e, 0x43, 0x80, 0x3c, 0x1a, 0); /* cmpb $0, (%r10,%r11) */
		CODE(e, 0x0f, 0x84);		    /* je orig */
		code_put_rel(e, e->base + orig, 0);
	}
	for (unsigned i = 0; i < t->nr_slow; i++)
		land(e, t->slow[i]);
	CODE(e, 0x6a, (uint8_t)s->number); /* push $number */
	code_jump(e, s->area + AGENT_IMAGE_OFF + entry);
}

static bool decode(const struct stub_site *s, taddr_t at, struct code_insn *ret)
{
	size_t off = at - s->addr;
	return off < s->code_len &&
	       code_decode(s->code + off, s->code_len - off, at, ret);
}

static int refuse(struct smco_err *err, const struct stub_site *s,
		  const char *why)
{
	return smco_fail(err, SMCO_UNSUPPORTED, 0,
			 "the function at 0x%llx cannot carry a sensor: %s",
			 (unsigned long long)s->addr, why);
}

/* The window's bytes that a jump must not lead to: all but its first, which is
 * the function's own beginning; behind an instruction that is undone, all. */
static bool in_window(taddr_t target, const struct stub *st)
{
	taddr_t first = st->patch + (st->patch == st->entry);
	return target >= first && target < st->patch + STUB_JUMP_BYTES;
}

static bool is_short_branch(uint8_t opcode)
{
	return (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 ||
	       opcode == 0xeb;
}

/*
 * Where the last branch into the window would end, if any bytes that look like
 * the distance of one are that; 0 = there are none. A branch ends with its
 * distance, of 8 or 32 bits. Nothing is decoded for this, which takes a hundred
 * times as long; most functions have no such bytes.
 */
static taddr_t last_suspect(const struct stub_site *s, const struct stub *st,
			    size_t len)
{
	for (size_t end = len; end >= 2; end--) {
		const uint8_t *p = s->code + end;
		taddr_t at = s->addr + end;
		int32_t far;
		if (is_short_branch(p[-2]) &&
		    in_window(at + (uint64_t)(int8_t)p[-1], st))
			return at;
		if (end < sizeof(far) + 1)
			continue;
		memcpy(&far, p - sizeof(far), sizeof(far));
		if (in_window(at + (uint64_t)(int64_t)far, st))
			return at;
	}
	return 0;
}

/* A jump from the function's own code to the middle of the patched bytes.
 * st->nr_scanned: instructions that were decoded for that. */
static bool jumped_into(const struct stub_site *s, struct stub *st)
{
	size_t len = s->code_len < SCAN_BYTES ? s->code_len : SCAN_BYTES;
	taddr_t end = last_suspect(s, st, len);
	struct code_insn in;
	for (taddr_t at = s->addr; at < end; at += in.z.length) {
		st->nr_scanned++;
		if (!decode(s, at, &in))
			return false; /* data behind the code, no matter */
		if (in_window(in.target, st))
			return true;
	}
	return false;
}

/* Only padding may follow a function that is shorter than the jump. */
static bool padding(const struct stub_site *s, taddr_t from, taddr_t to)
{
	for (; from < to; from++) {
		size_t off = from - s->addr;
		if (off >= s->code_len)
			return false;
		if (s->code[off] == 0xcc || s->code[off] == 0x90)
			continue;
		/* nop of several bytes */
		struct code_insn in;
		if (!decode(s, from, &in) ||
		    in.z.mnemonic != ZYDIS_MNEMONIC_NOP)
			return false;
		from += in.z.length - 1;
	}
	return true;
}

static int displace(struct code_buf *e, const struct stub_site *s,
		    struct stub *ret, struct smco_err *err)
{
	taddr_t at = ret->entry, need = ret->patch + STUB_JUMP_BYTES;
	bool ended = false;

	while (at < need && !ended) {
		struct code_insn in;
		if (!decode(s, at, &in))
			return smco_fail(err, SMCO_FORMAT, 0,
					 "no instruction at 0x%llx",
					 (unsigned long long)at);
		if (ret->nr == STUB_MAX_INSNS - 1)
			return refuse(err, s, "too many instructions");
		if (in_window(in.target, ret))
			return refuse(err, s, "it jumps into its beginning");
		/* The kernel's, of a uprobe; it goes as it came. */
		if (in.z.mnemonic == ZYDIS_MNEMONIC_INT3)
			return refuse(err, s, "somebody's breakpoint is there");
		ret->from[ret->nr] = at;
		ret->to[ret->nr++] = e->base + e->len;
		const char *why =
			code_relocate(e, s->code + (at - s->addr), &in);
		if (why)
			return refuse(err, s, why);
		at += in.z.length;
		ended = in.ends;
		/* A call comes back to its old place: that must be whole. */
		if (in.z.meta.category == ZYDIS_CATEGORY_CALL) {
			if (at < need || !in.target)
				return refuse(err, s, "a call in the window");
			ended = true;
		}
	}
	if (at < need && !padding(s, at, need))
		return refuse(err, s, "it is too short");
	if (!ended) {
		ret->from[ret->nr] = at;
		ret->to[ret->nr++] = e->base + e->len;
		code_jump(e, at);
	}
	return 0;
}

/*
 * The first instruction is to stay where it is, and to be done again by the
 * displaced ones: emits what takes it back, as far as an entry's state counts
 * (flags, rax, r10 and r11 do not, but what is in them is written again).
 * Returns its length, 0 for one that is not among those; or that is as long as
 * the jump, behind which nobody comes back into it.
 */
static size_t undo_first(struct code_buf *e, const uint8_t *c)
{
	size_t rex = (c[0] & 0xf0) == 0x40;
	uint8_t wide = rex ? c[0] : 0, op = c[rex], modrm = c[rex + 1];
	bool is_reg = modrm >= 0xc0;
	if ((op & 0xf8) == 0x50) {		    /* push */
		CODE(e, 0x48, 0x8d, 0x64, 0x24, 8); /* lea 8(%rsp), %rsp */
		return rex + 1;
	}
	if (wide == 0x48 && op == 0x83 && modrm == 0xec && c[3] < 0x80) {
		CODE(e, 0x48, 0x8d, 0x64, 0x24, c[3]); /* sub $n, %rsp */
		return 4;
	}
	if (!is_reg)
		return 0;
	if (op == 0x84 || op == 0x85 || (op >= 0x38 && op <= 0x3b))
		return rex + 2; /* test, cmp */
	if ((op == 0x80 || op == 0x83) && (modrm & 0x38) == 0x38)
		return rex + 3; /* cmp $n */
	if (!rex && (op == 0x31 || op == 0x33) && modrm == 0xc0)
		return 2; /* xor %eax, %eax */
	unsigned to = (modrm & 7) | (wide & 1) << 3;
	unsigned from = (modrm >> 3 & 7) | (wide & 4) << 1;
	if (op == 0x8b) {
		unsigned other = to;
		to = from;
		from = other;
	}
	bool is_spare = to == 0 || to == 10 || to == 11;
	bool stays = from != 0 && from != 4 && from != 10 && from != 11;
	return (op == 0x89 || op == 0x8b) && is_spare && stays ? rex + 2 : 0;
}

extern const uint8_t agent_image_start[];

/* @stays: the first instruction, if it is one that can. */
static int build(const struct stub_site *s, struct stub *ret, bool stays,
		 struct smco_err *err)
{
	struct agent_header hdr;
	struct code_buf e = {
		.buf = ret->code, .cap = sizeof(ret->code), .base = s->stub};
	static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

	memcpy(&hdr, agent_image_start, sizeof(hdr));
	memset(ret, 0, sizeof(*ret));
	ret->start = s->stub;
	ret->entry = s->addr;
	if (s->code_len >= 4 && !memcmp(s->code, endbr64, 4))
		ret->entry += 4;
	ret->patch = ret->entry;
	/* Behind an endbr64 it is the second one already. */
	if (stays && ret->entry == s->addr && s->code_len >= 4)
		ret->patch += undo_first(&e, s->code);
	ret->test = e.base + e.len;
	if (s->code_len < ret->patch - s->addr + STUB_JUMP_BYTES)
		return refuse(err, s, "its code cannot be read");
	memcpy(ret->old, s->code + (ret->patch - s->addr), STUB_JUMP_BYTES);
	if (jumped_into(s, ret))
		return refuse(err, s, "it jumps into its beginning");

	struct test t = {.nr_slow = 0};
	fast_test(&t, &e, s);
	/* Without a test the slow way must come first. */
	size_t over = 0;
	if (!t.nr_slow && !t.nr_check)
		over = branch(&e, 0xeb);
	size_t orig = e.len;
	ret->orig = e.base + orig;
	int r = displace(&e, s, ret, err);
	if (r)
		return r;
	ret->slow = e.base + e.len;
	if (over)
		land(&e, over);
	slow_way(&t, &e, s, hdr.entry_off, orig);
	ret->pushed = e.base + e.len - STUB_JUMP_BYTES;
	ret->len = e.len;

	struct code_buf j = {
		.buf = ret->jump, .cap = sizeof(ret->jump), .base = ret->patch};
	code_jump(&j, s->stub);
	if (e.failed || j.failed)
		return refuse(err, s, "the stub is too far away or too long");
	return 0;
}

int stub_build(const struct stub_site *s, struct stub *ret,
	       struct smco_err *err)
{
	if (build(s, ret, true, NULL) == 0)
		return 0;
	return build(s, ret, false, err);
}

taddr_t stub_moved_pc(const struct stub *s, taddr_t pc)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (s->from[i] == pc)
			return s->to[i];
	return 0;
}

taddr_t stub_home_pc(const struct stub *s, taddr_t pc, unsigned *pop_ret)
{
	*pop_ret = pc == s->pushed ? 8 : 0;
	if (pc == s->start && s->start < s->test) /* nothing is undone yet */
		return s->patch;
	/* The test changes flags and scratch registers only: do it again. */
	if ((pc >= s->start && pc < s->orig) ||
	    (pc >= s->slow && pc <= s->pushed))
		return s->entry;
	for (unsigned i = 0; i < s->nr; i++)
		if (s->to[i] == pc)
			return s->from[i];
	return 0;
}
