#include "symbols/store.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN	  32
#define RECENT	  4096	     /* a power of two */
#define ALIKE	  (1u << 18) /* the same */
#define NO_STRING UINT64_MAX

/* What stands before each array. */
struct store_head {
	uint64_t nr;
	uint64_t item;
	uint64_t zero[2];
};
_Static_assert(sizeof(struct store_head) == ALIGN, "keeps the alignment");

/* --- the checksum: four lanes, each of which any change of a word changes ---
 */

#define ODD_A 0x9e3779b185ebca87ULL
#define ODD_B 0xc2b2ae3d27d4eb4fULL

void store_sum_init(struct store_sum *s)
{
	*s = (struct store_sum){.lane = {ODD_A, ODD_B, ODD_A ^ ODD_B, 1}};
}

static inline uint64_t mix(uint64_t lane, uint64_t word)
{
	lane += word;
	lane = lane << 31 | lane >> 33;
	return lane * ODD_A;
}

static inline uint64_t word_at(const uint8_t *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof(word));
	return word;
}

/* The lanes one by one, and each in a register: in a loop they are in memory,
 * which takes three times as long. */
static void add_whole(uint64_t lane[4], const uint8_t *at, size_t len)
{
	uint64_t a = lane[0], b = lane[1], c = lane[2], d = lane[3];
	for (; len; len -= ALIGN, at += ALIGN) {
		a = mix(a, word_at(at));
		b = mix(b, word_at(at + 8));
		c = mix(c, word_at(at + 16));
		d = mix(d, word_at(at + 24));
	}
	lane[0] = a;
	lane[1] = b;
	lane[2] = c;
	lane[3] = d;
}

void store_sum_add(struct store_sum *s, const void *bytes, size_t len)
{
	size_t rest = len % ALIGN;
	uint8_t last[ALIGN] = {0};
	s->bytes += len;
	add_whole(s->lane, bytes, len - rest);
	if (!rest)
		return;
	memcpy(last, (const uint8_t *)bytes + (len - rest), rest);
	add_whole(s->lane, last, ALIGN);
}

uint64_t store_sum_end(const struct store_sum *s)
{
	uint64_t sum = s->bytes;
	for (unsigned i = 0; i < 4; i++)
		sum = mix(sum, s->lane[i] ^ s->lane[i] >> 29);
	return sum ^ sum >> 32;
}

void store_sum_block(struct store_sum *s, uint64_t sum, size_t len)
{
	const uint64_t words[4] = {sum, len};
	store_sum_add(s, words, sizeof(words));
}

static uint64_t sum_of(const void *bytes, size_t len)
{
	struct store_sum sum;
	store_sum_init(&sum);
	store_sum_add(&sum, bytes, len);
	return store_sum_end(&sum);
}

uint64_t store_blocks_sum(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	struct store_sum all;
	store_sum_init(&all);
	for (; len; at += STORE_BUF_BYTES) {
		size_t n = len < STORE_BUF_BYTES ? len : STORE_BUF_BYTES;
		store_sum_block(&all, sum_of(at, n), n);
		len -= n;
	}
	return store_sum_end(&all);
}

/* --- putting --- */

bool store_out_init(struct store_out *o, struct outfile *file)
{
	*o = (struct store_out){.file = file};
	store_sum_init(&o->sum);
	o->buf = malloc(STORE_BUF_BYTES);
	o->recent = calloc(RECENT, sizeof(*o->recent));
	o->alike = calloc(ALIKE, sizeof(*o->alike));
	o->failed = !o->buf || !o->recent || !o->alike;
	return !o->failed;
}

bool store_flush(struct store_out *o)
{
	if (!o->failed && o->used) {
		store_sum_block(&o->sum, sum_of(o->buf, o->used), o->used);
		o->failed = outfile_append(o->file, o->buf, o->used) != 0;
	}
	o->used = 0;
	return !o->failed;
}

void store_more(struct store_out *o, const void *items, size_t bytes)
{
	const uint8_t *at = items;
	while (bytes && !o->failed) {
		size_t room = STORE_BUF_BYTES - o->used;
		size_t n = bytes < room ? bytes : room;
		memcpy(o->buf + o->used, at, n);
		o->used += n;
		at += n;
		bytes -= n;
		if (o->used == STORE_BUF_BYTES)
			store_flush(o);
	}
}

void store_begin(struct store_out *o, size_t nr, size_t item)
{
	const struct store_head head = {.nr = nr, .item = item};
	store_more(o, &head, sizeof(head));
}

void store_end(struct store_out *o)
{
	static const uint8_t zero[ALIGN];
	store_more(o, zero, -o->used & (ALIGN - 1));
}

void store_put(struct store_out *o, const void *items, size_t nr, size_t item)
{
	store_begin(o, nr, item);
	store_more(o, items, nr * item);
	store_end(o);
}

static const char *stands_for(uint64_t at)
{
	return (const char *)(uintptr_t)at;
}

static uint64_t hash_of(const char *s, size_t len)
{
	uint64_t h = len;
	for (; len >= sizeof(h); len -= sizeof(h), s += sizeof(h))
		h = mix(h, word_at((const uint8_t *)s));
	for (; len; len--)
		h = mix(h, (uint8_t)*s++);
	return h >> 40;
}

/* Where a copy of @s is, made if there is none that was met lately: units of
 * one program have most names in common. False: no room. */
static bool place_string(struct store_out *o, const char *s, uint32_t *ret)
{
	size_t len = strlen(s) + 1;
	uint32_t *alike = &o->alike[hash_of(s, len) & (ALIKE - 1)];
	*ret = *alike;
	if (*ret < o->text_len && !strcmp(o->text + *ret, s))
		return true;
	if (o->text_cap - o->text_len < len) {
		size_t cap = 2 * (o->text_cap + len) + STORE_BUF_BYTES;
		char *more = cap < UINT32_MAX ? realloc(o->text, cap) : NULL;
		if (!more)
			return false;
		o->text = more;
		o->text_cap = cap;
	}
	memcpy(o->text + o->text_len, s, len);
	*alike = *ret = (uint32_t)o->text_len;
	o->text_len += len;
	return true;
}

const char *store_string(struct store_out *o, const char *s)
{
	if (!s)
		return stands_for(NO_STRING);
	struct store_recent *r =
		&o->recent[((uintptr_t)s * ODD_A >> 40) & (RECENT - 1)];
	uint32_t at = r->at;
	if (r->s == s || o->failed)
		return stands_for(at);
	o->failed = !place_string(o, s, &at);
	*r = (struct store_recent){.s = s, .at = at};
	return stands_for(at);
}

void store_put_strings(struct store_out *o)
{
	store_put(o, o->text, o->text_len, 1);
	free(o->text);
	o->text = NULL;
	o->text_len = o->text_cap = 0;
	if (o->recent)
		memset(o->recent, 0, RECENT * sizeof(*o->recent));
	if (o->alike)
		memset(o->alike, 0, ALIKE * sizeof(*o->alike));
}

void store_out_deinit(struct store_out *o)
{
	free(o->buf);
	free(o->text);
	free(o->recent);
	free(o->alike);
}

/* --- taking --- */

void *store_take(struct store_in *in, size_t item, size_t *nr_ret)
{
	struct store_head head;
	uint64_t bytes;
	*nr_ret = 0;
	if (!in->bad && in->len - in->at >= sizeof(head)) {
		memcpy(&head, in->bytes + in->at, sizeof(head));
		size_t left = in->len - in->at - sizeof(head);
		if (head.item == item &&
		    !__builtin_mul_overflow(head.nr, head.item, &bytes) &&
		    bytes <= left &&
		    ((bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1)) <= left) {
			void *items = in->bytes + in->at + sizeof(head);
			in->at += sizeof(head) +
				  ((bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1));
			*nr_ret = head.nr;
			return items;
		}
	}
	in->bad = true;
	return NULL;
}

void *store_take_some(struct store_in *in, size_t item, size_t nr)
{
	size_t got;
	void *items = store_take(in, item, &got);
	if (got == nr)
		return items;
	in->bad = true;
	return NULL;
}

void store_take_strings(struct store_in *in)
{
	in->text = store_take(in, 1, &in->text_len);
	if (in->text_len && in->text[in->text_len - 1])
		in->bad = true;
}

const char *store_string_at(struct store_in *in, const char *s)
{
	uint64_t at = (uintptr_t)s;
	if (at == NO_STRING)
		return NULL;
	if (!in->bad && at < in->text_len)
		return in->text + at;
	in->bad = true;
	return "";
}
