/*
 * store.h - arrays of plain structs, put one after the other into a file, and
 * taken out of its bytes again by the same machine. Which are what only the
 * order says; numbers and sizes of items stand there and are compared. What
 * the items mean is the business of whoever takes them: nobody vouches for it.
 *
 * Strings are kept in an array of their own, most of them once, however often
 * they are named; a pointer to one is, in the file, its offset there.
 */
#ifndef SMCO_STORE_H
#define SMCO_STORE_H

#include "reports/outfile.h"

/* A checksum of 64 bits: it differs where a single word of eight bytes does. */
struct store_sum {
	uint64_t lane[4];
	uint64_t bytes;
};
void store_sum_init(struct store_sum *s);
/* @len is a multiple of 32, but for the last piece. */
void store_sum_add(struct store_sum *s, const void *bytes, size_t len);
uint64_t store_sum_end(const struct store_sum *s);
/*
 * That of many bytes is one of the sums of its blocks, of STORE_BUF_BYTES each
 * but for the last, which different threads can make: adds the sum of a block.
 */
void store_sum_block(struct store_sum *s, uint64_t sum, size_t len);
uint64_t store_blocks_sum(const void *bytes, size_t len);
#define STORE_BUF_BYTES (1u << 18)

struct store_out {
	struct outfile *file; /* the caller's */
	uint8_t *buf;
	size_t used;	      /* of STORE_BUF_BYTES */
	struct store_sum sum; /* of the blocks that are written */
	bool failed;	      /* no room, no memory: nothing more is written */
	/* Strings so far, and where those are that were met lately. */
	char *text;
	size_t text_len, text_cap;
	struct store_recent {
		const char *s;
		uint32_t at;
	} * recent;
	uint32_t *alike; /* by what they say: where one is; perhaps */
};

/* False: no memory. */
bool store_out_init(struct store_out *o, struct outfile *file);
void store_put(struct store_out *o, const void *items, size_t nr, size_t item);
/* The same in pieces, of @nr together: store_begin, then store_more of each,
 * then store_end. */
void store_begin(struct store_out *o, size_t nr, size_t item);
void store_more(struct store_out *o, const void *items, size_t bytes);
void store_end(struct store_out *o);
/* What stands for @s in the file; the string must stay until the strings are
 * put. NULL is no string, and none comes back. */
const char *store_string(struct store_out *o, const char *s);
/* All strings so far, and forgets them. */
void store_put_strings(struct store_out *o);
/* Write what is left; false: it failed at some time. */
bool store_flush(struct store_out *o);
void store_out_deinit(struct store_out *o);

/* Bytes aligned to 32; they are changed where strings are put in. */
struct store_in {
	uint8_t *bytes;
	size_t len;
	size_t at;
	bool bad; /* taken was what is not there */
	const char *text;
	size_t text_len;
};
/* The next array, in place; NULL if it is not of such items. *nr_ret is 0 then;
 * an array of none is not NULL. */
void *store_take(struct store_in *in, size_t item, size_t *nr_ret);
/* The same; bad unless there are @nr. */
void *store_take_some(struct store_in *in, size_t item, size_t nr);
/* The strings of what is taken until the next call. */
void store_take_strings(struct store_in *in);
/* The string that @s stands for; @s was read from the file. */
const char *store_string_at(struct store_in *in, const char *s);

#endif
