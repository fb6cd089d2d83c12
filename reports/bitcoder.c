#include "reports/bitcoder.h"

#include <limits.h>

#define BIT_SEEN_MOST  30
#define BEYOND_ALLOWED 4 /* bytes: zeros at the end are not written */
#define HALF	       0x8000u

void bitcoder_begin_out(struct bitcoder *c, struct bbuf *out)
{
	*c = (struct bitcoder){.high = UINT32_MAX, .out = out};
}

static uint8_t next_byte(struct bitcoder *c)
{
	if (c->in.pos < c->in.len)
		return c->in.base[c->in.pos++];
	c->nr_beyond++;
	return 0;
}

void bitcoder_begin_in(struct bitcoder *c, struct cursor in)
{
	*c = (struct bitcoder){.high = UINT32_MAX, .in = in};
	for (int i = 0; i < 4; i++)
		c->code = c->code << 8 | next_byte(c);
}

static void put_byte(struct bitcoder *c, uint32_t byte)
{
	uint8_t b = (uint8_t)byte;
	bbuf_put(c->out, &b, 1);
}

/* The shortest that, followed by zeros, lies between low and high. */
void bitcoder_finish(struct bitcoder *c)
{
	for (unsigned n = 0; n <= 4; n++) {
		uint32_t v =
			n ? c->high & (uint32_t)(UINT64_MAX << (32 - 8 * n))
			  : 0;
		if (v < c->low)
			continue;
		for (unsigned i = 0; i < n; i++)
			put_byte(c, v >> (24 - 8 * i));
		break;
	}
}

bool bitcoder_failed(const struct bitcoder *c)
{
	return c->failed || c->nr_beyond > BEYOND_ALLOWED;
}

static inline bool split(struct bitcoder *c, uint32_t odds, bool bit)
{
	uint32_t mid = c->low +
		       (uint32_t)(((uint64_t)(c->high - c->low) * odds) >> 16);
	if (!c->out)
		bit = c->code <= mid;
	if (bit)
		c->high = mid;
	else
		c->low = mid + 1;
	while (!((c->low ^ c->high) >> 24)) {
		if (c->out)
			put_byte(c, c->high >> 24);
		else
			c->code = c->code << 8 | next_byte(c);
		c->low <<= 8;
		c->high = c->high << 8 | 0xff;
	}
	return bit;
}

bool code_bit(struct bitcoder *c, struct bit_model *m, bool bit)
{
	uint32_t odds = m->odds ^ HALF, pace = 2u * m->seen + 3;
	bit = split(c, odds, bit);
	if (bit)
		odds += (65536 - odds) * 2 / pace;
	else
		odds -= odds * 2 / pace;
	m->odds = (uint16_t)(odds ^ HALF);
	if (m->seen < BIT_SEEN_MOST)
		m->seen++;
	return bit;
}

unsigned code_bits(struct bitcoder *c, struct bit_model *m, unsigned nr,
		   unsigned v)
{
	unsigned node = 1;
	while (nr--)
		node = node << 1 | code_bit(c, &m[node], v >> nr & 1);
	return node;
}

/* How many bits @v has, by the models of lengths at @m; 0, and the coder has
 * failed, if what is read says more than @most. */
static inline unsigned code_length(struct bitcoder *c, struct bit_model *m,
				   unsigned most, uint64_t v)
{
	unsigned len = v ? 64 - (unsigned)__builtin_clzll(v) : 0;
	len = code_bits(c, m, 7, len) - 128;
	if (len <= most)
		return len;
	bitcoder_fail(c);
	return 0;
}

/* The @len bits of @v, of which the first is 1. Bits whose number with all
 * before them is below @nr have a model each, at @m by that number, the others
 * none. */
static inline uint64_t code_rest(struct bitcoder *c, struct bit_model *m,
				 unsigned nr, unsigned len, uint64_t v)
{
	if (len < 2)
		return len;
	uint64_t got = 1;
	for (unsigned left = len - 1; left--;) {
		bool bit = v >> left & 1;
		bit = got < nr ? code_bit(c, &m[got], bit)
			       : split(c, HALF, bit);
		got = got << 1 | bit;
	}
	return got;
}

uint64_t code_number(struct bitcoder *c, struct number_model *m, uint64_t v)
{
	unsigned len = code_length(c, m->length, 64, v);
	return code_rest(c, m->first[len], 8, len, v);
}

uint32_t code_number32(struct bitcoder *c, struct number_model *m, uint32_t v)
{
	uint64_t got = code_number(c, m, v);
	if (got > UINT32_MAX)
		bitcoder_fail(c);
	return (uint32_t)got;
}

uint32_t code_known32(struct bitcoder *c, struct known_model *m, uint32_t v)
{
	unsigned len = code_length(c, m->length, 32, v);
	/* The bits before, with the leading 1, and the length tell which. */
	bool known = len && len <= KNOWN_BITS;
	return (uint32_t)code_rest(c, &m->bit[known ? 1u << (len - 1) : 0],
				   known ? UINT_MAX : 0, len, v);
}

static bool is_repeated(const uint64_t *candidate, unsigned i, unsigned valid)
{
	for (unsigned j = 0; j < i; j++)
		if (valid >> j & 1 && candidate[j] == candidate[i])
			return true;
	return false;
}

unsigned code_choice(struct bitcoder *c, struct bit_model *m,
		     const uint64_t *candidate, unsigned nr, unsigned valid,
		     uint64_t *value)
{
	for (unsigned i = 0; i < nr; i++) {
		if (!(valid >> i & 1) || is_repeated(candidate, i, valid))
			continue;
		if (code_bit(c, &m[i], candidate[i] == *value)) {
			*value = candidate[i];
			return i;
		}
	}
	return nr;
}
