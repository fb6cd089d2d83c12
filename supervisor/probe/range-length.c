/* See range-length.h. What is rare, or valid in some forms only, is left to the
 * decoder. */
#include "supervisor/probe/range-length.h"

#include <string.h>

/* What follows an opcode. */
enum form {
	ASK = 0,
	PLAIN,
	IMM8,
	IMMZ,  /* four bytes, two with 66 */
	IMMV,  /* or eight with REX.W */
	REL8,  /* a branch */
	REL32, /* the same */
	MODRM,
	MODRM_IMM8,
	MODRM_IMMZ,
	LEA,
	SHIFT,	    /* not all of its numbers are documented */
	SHIFT_IMM8, /* the same */
	ONLY_0,	    /* the first of its numbers */
	ONLY_0_IMM8,
	ONLY_0_IMMZ,
	TEST8, /* the first has a number, the second is not documented */
	TESTZ,
	GROUP_4, /* increments, decrements */
	GROUP_5, /* jumps and calls that are not far, too */
	BITS,	 /* tests of a bit that a number names */
};

#define ARITHMETIC(op) [op... op + 3] = MODRM, [op + 4] = IMM8, [op + 5] = IMMZ

static const uint8_t one_byte[256] = {
	ARITHMETIC(0x00),	 ARITHMETIC(0x08),     ARITHMETIC(0x10),
	ARITHMETIC(0x18),	 ARITHMETIC(0x20),     ARITHMETIC(0x28),
	ARITHMETIC(0x30),	 ARITHMETIC(0x38),     [0x50 ... 0x5f] = PLAIN,
	[0x63] = MODRM,		 [0x68] = IMMZ,	       [0x69] = MODRM_IMMZ,
	[0x6a] = IMM8,		 [0x6b] = MODRM_IMM8,  [0x70 ... 0x7f] = REL8,
	[0x80] = MODRM_IMM8,	 [0x81] = MODRM_IMMZ,  [0x83] = MODRM_IMM8,
	[0x84 ... 0x8b] = MODRM, [0x8d] = LEA,	       [0x90 ... 0x99] = PLAIN,
	[0xa8] = IMM8,		 [0xa9] = IMMZ,	       [0xb0 ... 0xb7] = IMM8,
	[0xb8 ... 0xbf] = IMMV,	 [0xc0] = SHIFT_IMM8,  [0xc1] = SHIFT_IMM8,
	[0xc3] = PLAIN,		 [0xc6] = ONLY_0_IMM8, [0xc7] = ONLY_0_IMMZ,
	[0xc9] = PLAIN,		 [0xcc] = PLAIN,       [0xd0 ... 0xd3] = SHIFT,
	[0xe8] = REL32,		 [0xe9] = REL32,       [0xeb] = REL8,
	[0xf4] = PLAIN,		 [0xf6] = TEST8,       [0xf7] = TESTZ,
	[0xfe] = GROUP_4,	 [0xff] = GROUP_5,
};

/* Behind 0f, the general ones: without a prefix, or with 66. */
static const uint8_t two_bytes[256] = {
	[0x0b] = PLAIN,		 [0x1f] = ONLY_0,
	[0x40 ... 0x4f] = MODRM, [0x80 ... 0x8f] = REL32,
	[0xa2] = PLAIN,		 [0x90 ... 0x9f] = MODRM,
	[0xa3] = MODRM,		 [0xab] = MODRM,
	[0xa4] = MODRM_IMM8,	 [0xa5] = MODRM,
	[0xac] = MODRM_IMM8,	 [0xad] = MODRM,
	[0xaf] = MODRM,		 [0xb0] = MODRM,
	[0xb1] = MODRM,		 [0xb3] = MODRM,
	[0xb6] = MODRM,		 [0xb7] = MODRM,
	[0xba] = BITS,		 [0xbb ... 0xbf] = MODRM,
	[0xc0] = MODRM,		 [0xc1] = MODRM,
	[0xc8 ... 0xcf] = PLAIN,
};

/* Behind 0f, of floating point and vectors: by their prefix, a bit each. */
enum vector_prefix {
	V_NONE = 1,
	V_66 = 2,
	V_F3 = 4,
	V_F2 = 8,
};
static const uint8_t vector[256] = {
	[0x10] = 15,	      [0x11] = 15,
	[0x14] = 3,	      [0x15] = 3,
	[0x28] = 3,	      [0x29] = 3,
	[0x2a] = 12,	      [0x2c] = 12,
	[0x2d] = 12,	      [0x2e] = 3,
	[0x2f] = 3,	      [0x51] = 15,
	[0x54 ... 0x57] = 3,  [0x58 ... 0x5a] = 15,
	[0x5c ... 0x5f] = 15, [0x60 ... 0x6e] = V_66,
	[0x6f] = 6,	      [0x74 ... 0x76] = V_66,
	[0x7e] = 6,	      [0x7f] = 6,
	[0xd4] = V_66,	      [0xd6] = V_66,
	[0xdb] = V_66,	      [0xdf] = V_66,
	[0xeb] = V_66,	      [0xef] = V_66,
	[0xf4] = V_66,	      [0xfa ... 0xfe] = V_66,
};

struct prefixes {
	bool is_16, is_rep, is_repne, is_cs, is_wide;
	bool unusual; /* for the decoder */
};

static const uint8_t *read_prefixes(const uint8_t *p, struct prefixes *ret)
{
	const uint8_t *begin = p;
	*ret = (struct prefixes){0};
	for (; p - begin < 4; p++) {
		if (*p == 0x66)
			ret->is_16 = true;
		else if (*p == 0x2e)
			ret->is_cs = true;
		else if (*p == 0xf3)
			ret->is_rep = true;
		else if (*p == 0xf2)
			ret->is_repne = true;
		else
			break;
	}
	if ((*p & 0xf0) == 0x40)
		ret->is_wide = *p++ & 8;
	/* Padding has several; else one is usual. */
	bool pads = p[0] == 0x0f && p[1] == 0x1f;
	ret->unusual = (p - begin > 2 && !pads) || (ret->is_cs && !pads) ||
		       ret->is_16 + ret->is_rep + ret->is_repne > 1 ||
		       (ret->is_16 && ret->is_wide);
	return p;
}

/* Bytes of what @modrm begins: itself, the index's, the displacement. */
static unsigned modrm_bytes(const uint8_t *modrm)
{
	unsigned mod = *modrm >> 6, rm = *modrm & 7, bytes = 1;
	if (mod == 3)
		return bytes;
	if (rm == 4) {
		bytes++;
		rm = modrm[1] & 7;
	}
	if (mod == 1)
		bytes++;
	else if (mod == 2 || rm == 5)
		bytes += 4;
	return bytes;
}

static bool is_valid(enum form form, uint8_t modrm)
{
	unsigned reg = modrm >> 3 & 7;
	switch (form) {
	case LEA:
		return modrm >> 6 != 3;
	case SHIFT:
	case SHIFT_IMM8:
		return reg != 6;
	case ONLY_0:
	case ONLY_0_IMM8:
	case ONLY_0_IMMZ:
		return !reg;
	case TEST8:
	case TESTZ:
		return reg != 1;
	case GROUP_4:
		return reg < 2;
	case GROUP_5:
		return reg < 3 || reg == 4 || reg == 6;
	case BITS:
		return reg >= 4;
	default:
		return true;
	}
}

/* Bytes of the number behind the operand that @modrm is. */
static unsigned number_bytes(enum form form, uint8_t modrm, unsigned immz)
{
	bool first = !(modrm >> 3 & 7);
	switch (form) {
	case MODRM_IMM8:
	case SHIFT_IMM8:
	case ONLY_0_IMM8:
	case BITS:
		return 1;
	case MODRM_IMMZ:
	case ONLY_0_IMMZ:
		return immz;
	case TEST8:
		return first;
	case TESTZ:
		return first ? immz : 0;
	default:
		return 0;
	}
}

static void finish(struct range_length *l, const uint8_t *begin,
		   const uint8_t *end, unsigned number)
{
	l->bytes = (unsigned)(end - begin) + number;
	l->has_number = number >= 4 && !l->is_branch;
}

/* Of what has no operand but a number. */
static void without_modrm(struct range_length *l, enum form form,
			  const uint8_t *begin, const uint8_t *p, unsigned immz,
			  bool wide)
{
	l->is_branch = form == REL8 || form == REL32;
	if (form == REL8)
		l->distance = (int8_t)*p;
	else if (form == REL32)
		memcpy(&l->distance, p, sizeof(l->distance));
	finish(l, begin, p,
	       form == PLAIN		      ? 0
	       : form == IMM8 || form == REL8 ? 1
	       : form == REL32		      ? 4
	       : form == IMMV && wide	      ? 8
					      : immz);
}

static void with_modrm(struct range_length *l, enum form form,
		       const uint8_t *begin, const uint8_t *p, unsigned immz)
{
	if (!is_valid(form, *p))
		return;
	l->is_lea = form == LEA && (*p & 0xc7) == 5;
	if (l->is_lea)
		memcpy(&l->distance, p + 1, sizeof(l->distance));
	finish(l, begin, p + modrm_bytes(p), number_bytes(form, *p, immz));
}

static enum form form_of(const uint8_t **p, const struct prefixes *x)
{
	uint8_t op = *(*p)++;
	bool repeats = x->is_rep || x->is_repne;
	if (op != 0x0f)
		return repeats ? ASK : one_byte[op];
	op = *(*p)++;
	enum vector_prefix prefix = x->is_repne ? V_F2
				    : x->is_rep ? V_F3
				    : x->is_16	? V_66
						: V_NONE;
	if (vector[op] & prefix)
		return MODRM;
	return repeats ? ASK : two_bytes[op];
}

struct range_length range_length_of(const uint8_t *bytes)
{
	struct range_length l = {.bytes = 0};
	struct prefixes x;
	const uint8_t *p = read_prefixes(bytes, &x);
	enum form form = x.unusual ? ASK : form_of(&p, &x);
	unsigned immz = x.is_16 ? 2 : 4;
	if (form == ASK || (x.is_16 && (form == REL8 || form == REL32)))
		return l;
	if (form < MODRM)
		without_modrm(&l, form, bytes, p, immz, x.is_wide);
	else
		with_modrm(&l, form, bytes, p, immz);
	return l;
}
