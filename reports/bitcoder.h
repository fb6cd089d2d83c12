/*
 * bitcoder.h - an adaptive binary range coder, and numbers and choices on top
 * of it. Each decision is coded by what came of it before in the same
 * situation. One set of functions works in both directions: encoding they take
 * a value and return it, decoding they return what was taken, whatever they are
 * given. FORMAT.md, "Modelled chunks", is normative.
 */
#ifndef SMCO_BITCODER_H
#define SMCO_BITCODER_H

#include "reports/bytes.h"

/* A situation; all zero before anything came of it. */
struct bit_model {
	uint16_t odds; /* of a 1, of 65536, xor 32768 */
	uint16_t seen; /* how often, at most BIT_SEEN_MOST */
};

/* What numbers of a kind are coded by: their length, and the first bits of
 * those of each length. */
struct number_model {
	struct bit_model length[128];
	struct bit_model first[65][8];
};

/* What numbers are coded by that come again: all their bits. */
#define KNOWN_BITS 16
struct known_model {
	struct bit_model length[128];
	struct bit_model bit[1 << KNOWN_BITS];
};

struct bitcoder {
	/* private: */
	uint32_t low, high, code;
	struct bbuf *out; /* NULL: decoding */
	struct cursor in;
	unsigned nr_beyond; /* bytes taken from behind the end */
	bool failed;
};

/* Encode to the end of @out. */
void bitcoder_begin_out(struct bitcoder *c, struct bbuf *out);
/* What is still to be written; @out->failed says whether memory ran out. */
void bitcoder_finish(struct bitcoder *c);
/* Decode the rest of @in, which must stay. */
void bitcoder_begin_in(struct bitcoder *c, struct cursor in);
/* Decoding: what was taken cannot have been written. */
bool bitcoder_failed(const struct bitcoder *c);
/* To be said by who finds a value impossible. */
static inline void bitcoder_fail(struct bitcoder *c)
{
	c->failed = true;
}
static inline bool bitcoder_decodes(const struct bitcoder *c)
{
	return !c->out;
}

bool code_bit(struct bitcoder *c, struct bit_model *m, bool bit);
/* @nr bits of @v, the highest first; @m has 2^nr models. */
unsigned code_bits(struct bitcoder *c, struct bit_model *m, unsigned nr,
		   unsigned v);
uint64_t code_number(struct bitcoder *c, struct number_model *m, uint64_t v);
/* One of at most 32 bits; a larger one fails. */
uint32_t code_number32(struct bitcoder *c, struct number_model *m, uint32_t v);

/* The same of numbers that come again; above KNOWN_BITS bits they are not
 * learned. */
uint32_t code_known32(struct bitcoder *c, struct known_model *m, uint32_t v);

/*
 * Is @value one of @candidate[0..nr)? Its index, or @nr if it is none of them;
 * those of which @valid lacks the bit, and repeated ones, are left out. Of the
 * one it is decoding stores it in *value. @m: @nr models.
 */
unsigned code_choice(struct bitcoder *c, struct bit_model *m,
		     const uint64_t *candidate, unsigned nr, unsigned valid,
		     uint64_t *value);

#endif
