/*
 * packer.h - which chunks are modelled (pack.h), and in what order one
 * continues another: the writer's side, which may refuse any chunk, and the
 * reader's, which notices that one before is missing.
 */
#ifndef SMCO_PACKER_H
#define SMCO_PACKER_H

#include "reports/chunk-head.h"
#include "reports/disk.h"
#include "reports/pack.h"

/* ---- writing ---- */

struct packer;

struct packer *packer_create(void); /* NULL if out of memory */
void packer_destroy(struct packer *p);
/*
 * The payload of chunk @seq, of @type and with @nr items, modelled, appended to
 * @out, and in *back_ret how many chunks before the one stands that it
 * continues, 0 if none. False: it is better stored as it is, or out of memory;
 * @out has nothing more then.
 */
bool packer_pack(struct packer *p, enum chunk_type type, uint32_t nr,
		 uint32_t seq, const struct bbuf *body, struct bbuf *out,
		 uint16_t *back_ret);

/* ---- reading: of one type of chunks ---- */

struct unpack_order {  /* zero-initialise */
	bool is_whole; /* the last one was decoded to its end */
	uint8_t flags; /* it had */
	uint32_t seq;
};

/* Chunk @h of @len coded bytes is to be decoded; false if it cannot be.
 * *reset_ret: forget first all that came before. */
bool unpack_begin(struct unpack_order *o, const struct chunk_head *h,
		  size_t len, bool *reset_ret);
/* It was decoded to its end. */
static inline void unpack_end(struct unpack_order *o)
{
	o->is_whole = true;
}

#endif
