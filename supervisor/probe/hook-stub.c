/* Decoding, relocating and emitting, see hook-stub.h. */
#include "supervisor/probe/hook-stub.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <Zydis/Zydis.h>

/* How much of a function is looked through for jumps into the window. */
#define SCAN_BYTES 4096

struct emit {
	uint8_t *buf;
	size_t len;
	taddr_t base;
	bool failed; /* out of room or of reach */
};

static void put(struct emit *e, const void *bytes, size_t n)
{
	if (e->failed || e->len + n > STUB_MAX_BYTES) {
		e->failed = true;
		return;
	}
	memcpy(e->buf + e->len, bytes, n);
	e->len += n;
}
#define EMIT(e, ...)                                                           \
	do {                                                                   \
		const uint8_t bytes_[] = {__VA_ARGS__};                        \
		put(e, bytes_, sizeof(bytes_));                                \
	} while (0)

static void put32(struct emit *e, uint32_t v)
{
	put(e, &v, sizeof(v));
}

/* A 32-bit distance to @target from the end of an instruction that ends
 * @tail bytes after the distance. */
static void put_rel(struct emit *e, taddr_t target, unsigned tail)
{
	int64_t d = target - (e->base + e->len + 4 + tail);
	if (d != (int32_t)d)
		e->failed = true;
	put32(e, (uint32_t)d);
}

static void jump(struct emit *e, taddr_t target)
{
	EMIT(e, 0xe9);
	put_rel(e, target, 0);
}

/* Forward jcc rel8, the distance filled in by land(). */
static size_t branch(struct emit *e, uint8_t opcode)
{
	EMIT(e, opcode, 0);
	return e->len;
}
static void land(struct emit *e, size_t from)
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
static void cmp_cutoff(struct emit *e, const struct stub_site *s, uint8_t rex,
		       uint8_t modrm)
{
	EMIT(e, rex, 0x3b, modrm);
	put_rel(e, CTL(s, cutoff), 0);
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
	size_t slow[2];
	size_t check[2];
	unsigned nr_slow, nr_check;
};

static void to_slow(struct test *t, struct emit *e, uint8_t opcode)
{
	t->slow[t->nr_slow++] = branch(e, opcode);
}
static void to_check(struct test *t, struct emit *e, uint8_t opcode)
{
	t->check[t->nr_check++] = branch(e, opcode);
}

/*
 * Tracked blocks lie at the start of a page, or 16 bytes behind it (chunks
 * that glibc maps), unless use_filter says otherwise.
 */
static void test_pointer(struct test *t, struct emit *e,
			 const struct stub_site *s)
{
	EMIT(e, 0xf7, 0xc7, 0xef, 0x0f, 0, 0); /* test $0xfef, %edi */
	to_check(t, e, JE);
	EMIT(e, 0x80, 0x3d); /* cmpb $0, use_filter */
	put_rel(e, CTL(s, use_filter), 1);
	EMIT(e, 0);
	to_check(t, e, JNE);
}

static void fast_test(struct test *t, struct emit *e, const struct stub_site *s)
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
		EMIT(e, 0x49, 0x89, 0xfb);	 /* mov %rdi, %r11 */
		EMIT(e, 0x4c, 0x0f, 0xaf, 0xde); /* imul %rsi, %r11 */
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
		EMIT(e, 0x49, 0x89, 0xf3);	 /* mov %rsi, %r11 */
		EMIT(e, 0x4c, 0x0f, 0xaf, 0xda); /* imul %rdx, %r11 */
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
		EMIT(e, 0xf6, 0xc1, 0x10); /* test $MAP_FIXED, %cl */
		to_slow(t, e, JNE);
		break;
	case AK_MUNMAP:
		break; /* slow itself, and the agent must know */
	case AK_MREMAP:
		EMIT(e, 0x83, 0x3d); /* cmpl $0, nr_maps_ever */
		put_rel(e, CTL(s, nr_maps_ever), 1);
		EMIT(e, 0);
		to_slow(t, e, JNE);
		break;
	case AK_PRCTL:
		EMIT(e, 0x83, 0xff, PR_SET_SECCOMP); /* cmp $22, %edi */
		to_slow(t, e, JE);
		break;
	case AK_SYSCALL:
		EMIT(e, 0x81, 0xff); /* cmp $SYS_seccomp, %edi */
		put32(e, SYS_seccomp);
		to_slow(t, e, JE);
		break;
	case NR_AGENT_KINDS:
		e->failed = true;
	}
}

/* Behind the displaced instructions. r10 and r11 are free at an entry. */
static void slow_way(struct test *t, struct emit *e, const struct stub_site *s,
		     uint32_t entry, size_t orig)
{
	for (unsigned i = 0; i < t->nr_check; i++)
		land(e, t->check[i]);
	if (t->nr_check) {
		EMIT(e, 0x49, 0x89, 0xfb);     /* mov %rdi, %r11 */
		EMIT(e, 0x49, 0xc1, 0xeb, 12); /* shr $12, %r11 */
		EMIT(e, 0x41, 0x81, 0xe3);     /* and $mask, %r11d */
		put32(e, AGENT_FILTER_SLOTS - 1);
		EMIT(e, 0x4c, 0x8d, 0x15); /* lea filter, %r10 */
		put_rel(e, s->area + AGENT_FILTER_OFF, 0);
		EMIT(e, 0x43, 0x80, 0x3c, 0x1a, 0); /* cmpb $0, (%r10,%r11) */
		EMIT(e, 0x0f, 0x84);		    /* je orig */
		put_rel(e, e->base + orig, 0);
	}
	for (unsigned i = 0; i < t->nr_slow; i++)
		land(e, t->slow[i]);
	EMIT(e, 0x6a, (uint8_t)s->number); /* push $number */
	jump(e, s->area + AGENT_IMAGE_OFF + entry);
}

struct insn {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	taddr_t addr;
	taddr_t target; /* of a relative branch, else 0 */
	bool ends;	/* what follows is not reached from here */
};

static bool decode(const struct stub_site *s, taddr_t at, struct insn *ret)
{
	ZydisDecoder d;
	size_t off = at - s->addr;
	if (off >= s->code_len)
		return false;
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(
		    &d, s->code + off, s->code_len - off, &ret->z, ret->op)))
		return false;
	ret->addr = at;
	ret->target = 0;
	for (int i = 0; i < ret->z.operand_count; i++)
		if (ret->op[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    ret->op[i].imm.is_relative)
			ret->target =
				at + ret->z.length + ret->op[i].imm.value.s;
	ret->ends = ret->z.meta.category == ZYDIS_CATEGORY_RET ||
		    ret->z.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	return true;
}

static int refuse(struct smco_err *err, const struct stub_site *s,
		  const char *why)
{
	return smco_fail(err, SMCO_UNSUPPORTED, 0,
			 "the function at 0x%llx cannot carry a sensor: %s",
			 (unsigned long long)s->addr, why);
}

/* Emits one displaced instruction so that it does the same elsewhere. */
static const char *relocate(struct emit *e, const struct stub_site *s,
			    const struct insn *in)
{
	const uint8_t *bytes = s->code + (in->addr - s->addr);
	const ZydisDecodedInstruction *z = &in->z;

	if (in->target) {
		switch (z->meta.category) {
		case ZYDIS_CATEGORY_UNCOND_BR:
			jump(e, in->target);
			return NULL;
		case ZYDIS_CATEGORY_COND_BR:
			if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
			    (z->opcode & 0xf0) != 0x70)
				return "it begins with a loop or jrcxz";
			EMIT(e, 0x0f, 0x80 | (z->opcode & 0xf));
			put_rel(e, in->target, 0);
			return NULL;
		case ZYDIS_CATEGORY_CALL: {
			/* The return address must be the one unwinders know:
			 * push it, then jump. */
			uint64_t back = in->addr + z->length;
			EMIT(e, 0xff, 0x35, 5, 0, 0, 0);
			jump(e, in->target);
			put(e, &back, sizeof(back));
			return NULL;
		}
		default:
			return "a relative branch of an unknown kind";
		}
	}
	size_t start = e->len;
	put(e, bytes, z->length);
	for (int i = 0; i < z->operand_count; i++) {
		const ZydisDecodedOperand *op = &in->op[i];
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    op->mem.base != ZYDIS_REGISTER_RIP)
			continue;
		if (z->raw.disp.size != 32)
			return "an address relative to the counter, not 32 "
			       "bits";
		taddr_t target =
			in->addr + z->length + (int64_t)op->mem.disp.value;
		size_t end = e->len;
		e->len = start + z->raw.disp.offset;
		put_rel(e, target, z->length - z->raw.disp.offset - 4);
		e->len = end;
		break;
	}
	return NULL;
}

/* A jump from the function's own code to the middle of the patched bytes. */
static bool jumped_into(const struct stub_site *s, taddr_t patch)
{
	taddr_t end =
		s->addr + (s->code_len < SCAN_BYTES ? s->code_len : SCAN_BYTES);
	struct insn in;
	for (taddr_t at = s->addr; at < end; at += in.z.length) {
		if (!decode(s, at, &in))
			return false; /* data behind the code, no matter */
		if (in.target > patch && in.target < patch + STUB_JUMP_BYTES)
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
		struct insn in;
		if (!decode(s, from, &in) ||
		    in.z.mnemonic != ZYDIS_MNEMONIC_NOP)
			return false;
		from += in.z.length - 1;
	}
	return true;
}

static int displace(struct emit *e, const struct stub_site *s, struct stub *ret,
		    struct smco_err *err)
{
	taddr_t at = ret->patch, need = ret->patch + STUB_JUMP_BYTES;
	bool ended = false;

	while (at < need && !ended) {
		struct insn in;
		if (!decode(s, at, &in))
			return smco_fail(err, SMCO_FORMAT, 0,
					 "no instruction at 0x%llx",
					 (unsigned long long)at);
		if (ret->nr == STUB_MAX_INSNS - 1)
			return refuse(err, s, "too many instructions");
		if (in.target > ret->patch && in.target < need)
			return refuse(err, s, "it jumps into its beginning");
		ret->from[ret->nr] = at;
		ret->to[ret->nr++] = e->base + e->len;
		const char *why = relocate(e, s, &in);
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
		jump(e, at);
	}
	return 0;
}

extern const uint8_t agent_image_start[];

int stub_build(const struct stub_site *s, struct stub *ret,
	       struct smco_err *err)
{
	struct agent_header hdr;
	struct emit e = {.buf = ret->code, .base = s->stub};
	static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

	memcpy(&hdr, agent_image_start, sizeof(hdr));
	memset(ret, 0, sizeof(*ret));
	ret->start = s->stub;
	ret->patch = s->addr;
	if (s->code_len >= 4 && !memcmp(s->code, endbr64, 4))
		ret->patch += 4;
	if (s->code_len < ret->patch - s->addr + STUB_JUMP_BYTES)
		return refuse(err, s, "its code cannot be read");
	memcpy(ret->old, s->code + (ret->patch - s->addr), STUB_JUMP_BYTES);
	if (jumped_into(s, ret->patch))
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

	struct emit j = {.buf = ret->jump, .base = ret->patch};
	jump(&j, s->stub);
	if (e.failed || j.failed)
		return refuse(err, s, "the stub is too far away or too long");
	return 0;
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
	/* The test changes flags and scratch registers only: do it again. */
	if ((pc >= s->start && pc < s->orig) ||
	    (pc >= s->slow && pc <= s->pushed))
		return s->patch;
	for (unsigned i = 0; i < s->nr; i++)
		if (s->to[i] == pc)
			return s->from[i];
	return 0;
}
