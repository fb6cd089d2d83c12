/* The records of a trace that was opened, one after the other. */
#include "reports/trace-private.h"

#include "reports/disk.h"

static int lose_chunk(struct trace_reader *r, int code, struct smco_err *err)
{
	r->nr_damaged++;
	r->nr_lost += r->records_left;
	r->records_left = 0;
	return smco_fail(err, code, 0,
			 code == SMCO_NOMEM
				 ? "out of memory for a chunk of the trace"
				 : "damaged chunk %zu of the trace's records",
			 r->next_chunk);
}

static bool is_outside(const struct trace_reader *r,
		       const struct record_chunk *c)
{
	return c->is_indexed && (c->latest_ns < r->from_ns ||
				 (r->to_ns && c->earliest_ns >= r->to_ns) ||
				 !(c->threads & r->threads));
}

/* Nothing of the next chunk is wanted, nor of those that continue it. */
static bool can_skip(const struct trace_reader *r)
{
	size_t i = r->next_chunk;
	do
		if (!is_outside(r, &r->chunk[i]))
			return false;
	while (++i < r->nr_chunks && r->chunk[i].continues);
	return true;
}

static int begin_modelled(struct trace_reader *r, const struct chunk_head *h,
			  struct cursor c)
{
	bool reset;
	if (!unpack_begin(&r->of_records, h, c.len, &reset) ||
	    !cursor_varint(&c, &r->codec.nr_dropped))
		return SMCO_FORMAT;
	if (!r->packed)
		r->packed = pack_records_create(&r->schema);
	if (!r->packed)
		return SMCO_NOMEM;
	if (reset)
		pack_records_reset(r->packed, !(h->flags & CHUNK_MODELLED_7));
	bitcoder_begin_in(&r->bits, c);
	if (!h->nr_items)
		unpack_end(&r->of_records);
	return SMCO_OK;
}

static int next_chunk(struct trace_reader *r, struct smco_err *err)
{
	if (can_skip(r)) {
		r->nr_skipped += r->chunk[r->next_chunk++].nr_items;
		return SMCO_OK;
	}
	uint64_t pos = r->chunk[r->next_chunk++].pos;
	struct chunk_head h;
	r->records_left = 0;
	if (!trace_chunk_header(r, pos, &h)) /* the file changed since */
		return lose_chunk(r, SMCO_FORMAT, err);
	r->records_left = h.nr_items;
	r->is_modelled = h.flags & CHUNK_MODELLED;
	struct cursor c;
	int rc = trace_chunk_payload(r, pos, &h, &c);
	if (!rc && !r->has_schema)
		rc = SMCO_FORMAT;
	if (!rc)
		rc = r->is_modelled
			     ? begin_modelled(r, &h, c)
			     : codec_reader_begin(&r->codec, c, h.nr_items,
						  &r->schema);
	if (rc)
		return lose_chunk(r, rc, err);
	r->nr_dropped += r->codec.nr_dropped;
	return SMCO_OK;
}

int trace_next(struct trace_reader *r, struct record *ret, struct smco_err *err)
{
	while (!r->records_left) {
		if (r->next_chunk >= r->nr_chunks)
			return 0;
		int rc = next_chunk(r, err);
		if (rc)
			return rc;
	}
	int rc = r->is_modelled ? pack_record(r->packed, &r->bits, ret)
				: codec_decode(&r->codec, ret);
	if (rc)
		return lose_chunk(r, rc, err);
	if (!--r->records_left && r->is_modelled)
		unpack_end(&r->of_records);
	r->nr_returned++;
	return 1;
}

void trace_narrow(struct trace_reader *r, uint64_t from_ns, uint64_t to_ns,
		  const uint32_t *tid)
{
	r->from_ns = from_ns;
	r->to_ns = to_ns;
	r->threads = tid ? codec_thread_bit(*tid) : UINT64_MAX;
}

uint64_t trace_nr_dropped(const struct trace_reader *r)
{
	return r->nr_dropped_in_all > r->nr_dropped ? r->nr_dropped_in_all
						    : r->nr_dropped;
}

void trace_rewind(struct trace_reader *r)
{
	r->next_chunk = 0;
	r->records_left = 0;
	r->of_records = (struct unpack_order){0};
	r->nr_damaged = r->nr_damaged_opened;
	r->nr_lost = r->nr_lost_opened;
	r->nr_returned = 0;
	r->nr_skipped = 0;
	r->nr_dropped = 0;
}

uint64_t trace_nr_damaged(const struct trace_reader *r)
{
	return r->nr_damaged;
}

uint64_t trace_nr_lost(const struct trace_reader *r)
{
	/* Of a chunk whose header is gone, only the grand total knows. */
	uint64_t seen = r->nr_returned + r->nr_skipped + r->nr_lost;
	return r->nr_lost + (r->nr_written > seen ? r->nr_written - seen : 0);
}
