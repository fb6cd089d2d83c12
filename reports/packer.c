#include "reports/packer.h"

#include <stdlib.h>

#include "reports/codec.h"
#include "reports/schema-file.h"

#define MOST_RECORDS 16384	  /* of a chunk; more come too fast */
#define GROUP_CHUNKS 128	  /* that continue each other: what the */
#define GROUP_BYTES  (512u << 10) /* loss of one can cost */

struct group {
	uint32_t seq; /* of the last one */
	uint32_t nr;  /* 0: the next one starts afresh */
	size_t bytes;
};

struct packer {
	struct pack_records *records;
	struct pack_stacks *stacks;
	struct group of_records, of_stacks;
	struct codec_reader columns;
	struct schema_table schema; /* our own */
};

static bool own_schema(struct packer *p)
{
	struct bbuf b = {0};
	uint32_t nr = schema_write(&b);
	struct cursor c = {b.data, b.len, 0};
	bool ok = !b.failed && !schema_read(&p->schema, true, nr, &c);
	bbuf_free(&b);
	return ok;
}

struct packer *packer_create(void)
{
	struct packer *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->records = pack_records_create(NULL);
	p->stacks = pack_stacks_create();
	if (p->records && p->stacks && own_schema(p))
		return p;
	packer_destroy(p);
	return NULL;
}

void packer_destroy(struct packer *p)
{
	if (!p)
		return;
	pack_records_destroy(p->records);
	pack_stacks_destroy(p->stacks);
	codec_reader_free(&p->columns);
	schema_table_free(&p->schema);
	free(p);
}

static bool pack_columns(struct packer *p, uint32_t nr, const struct bbuf *body,
			 struct bbuf *out)
{
	struct cursor in = {body->data, body->len, 0};
	struct bitcoder c;
	struct record r;
	if (codec_reader_begin(&p->columns, in, nr, &p->schema))
		return false;
	bbuf_varint(out, p->columns.nr_dropped);
	bitcoder_begin_out(&c, out);
	for (uint32_t i = 0; i < nr; i++)
		if (codec_decode(&p->columns, &r) ||
		    pack_record(p->records, &c, &r))
			return false;
	bitcoder_finish(&c);
	return true;
}

static bool pack_plain_stacks(struct packer *p, uint32_t nr,
			      const struct bbuf *body, struct bbuf *out)
{
	struct cursor in = {body->data, body->len, 0};
	struct bitcoder c;
	bitcoder_begin_out(&c, out);
	if (pack_stacks_encode(p->stacks, &c, nr, in))
		return false;
	bitcoder_finish(&c);
	return true;
}

bool packer_pack(struct packer *p, enum chunk_type type, uint32_t nr,
		 uint32_t seq, const struct bbuf *body, struct bbuf *out,
		 uint16_t *back_ret)
{
	bool is_records = type == CHUNK_RECORDS, ok = true;
	struct group *g = is_records ? &p->of_records : &p->of_stacks;
	size_t before = out->len;
	uint32_t back = seq - g->seq;
	if (g->nr >= GROUP_CHUNKS || g->bytes >= GROUP_BYTES ||
	    back > UINT16_MAX)
		g->nr = 0;
	if (is_records && nr > MOST_RECORDS) {
		g->nr = 0;
		return false;
	}
	if (!g->nr) {
		back = 0;
		g->bytes = 0;
		if (is_records)
			pack_records_reset(p->records, false);
		else
			pack_stacks_reset(p->stacks, false);
	}
	ok = is_records ? pack_columns(p, nr, body, out)
			: pack_plain_stacks(p, nr, body, out);
	size_t len = out->len - before;
	if (!ok || out->failed || len > CHUNK_MAX ||
	    nr > pack_most_items(len)) {
		out->len = before;
		g->nr = 0;
		return false;
	}
	g->nr++;
	g->seq = seq;
	g->bytes += len;
	*back_ret = (uint16_t)back;
	return true;
}

bool unpack_begin(struct unpack_order *o, const struct chunk_head *h,
		  size_t len, bool *reset_ret)
{
	bool ok = !h->back || (o->is_whole && h->seq - o->seq == h->back &&
			       h->flags == o->flags);
	*o = (struct unpack_order){.seq = h->seq, .flags = h->flags};
	*reset_ret = !h->back;
	return ok && h->nr_items <= pack_most_items(len);
}
