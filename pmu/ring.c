/* Where records begin and end. */
#include "pmu/ring.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RECORD 65536 /* their sizes have 16 bits */

struct ring_format ring_format_of(const struct perf_event_attr *attr)
{
	return (struct ring_format){
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.sample_id_all = attr->sample_id_all,
		.regs_user = attr->sample_regs_user,
		.regs_intr = attr->sample_regs_intr,
		.branch_sample_type = attr->branch_sample_type,
	};
}

int ring_open_recorded(struct ring *r, const struct ring_format *format,
		       const void *data, uint64_t size, uint64_t head,
		       uint64_t tail, struct smco_err *err)
{
	if (!size || size & (size - 1) || head < tail || head - tail > size ||
	    tail % 8)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "a ring of %ju bytes cannot hold %ju to %ju",
				 (uintmax_t)size, (uintmax_t)tail,
				 (uintmax_t)head);
	*r = (struct ring){
		.format = *format,
		.data = data,
		.size = size,
		.head = head,
		.tail = tail,
		.copy = malloc(MAX_RECORD),
	};
	if (!r->copy)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	return 0;
}

int ring_open_live(struct ring *r, const struct ring_format *format,
		   struct perf_event_mmap_page *page, struct smco_err *err)
{
	uint64_t tail = page->data_tail;
	int rc = ring_open_recorded(r, format,
				    (const uint8_t *)page + page->data_offset,
				    page->data_size, tail, tail, err);
	if (!rc)
		r->live = page;
	return rc;
}

void ring_close(struct ring *r)
{
	free(r->copy);
	r->copy = NULL;
}

/* @len bytes at @at, in one piece. */
static const uint8_t *piece(struct ring *r, uint64_t at, size_t len)
{
	uint64_t from = at & (r->size - 1);
	if (from + len <= r->size)
		return r->data + from;
	size_t first = (size_t)(r->size - from);
	memcpy(r->copy, r->data + from, first);
	memcpy(r->copy + first, r->data, len - first);
	return r->copy;
}

/* What was read may be overwritten; what was written may be read. */
static void exchange(struct ring *r)
{
	if (!r->live)
		return;
	__atomic_store_n(&r->live->data_tail, r->tail, __ATOMIC_RELEASE);
	r->head = __atomic_load_n(&r->live->data_head, __ATOMIC_ACQUIRE);
}

static void count(struct ring *r, const struct ring_record *rec)
{
	r->nr_records++;
	if (rec->type == PERF_RECORD_LOST ||
	    rec->type == PERF_RECORD_LOST_SAMPLES)
		r->nr_lost += rec->lost.lost;
	else if (rec->type == PERF_RECORD_THROTTLE)
		r->nr_throttled++;
}

static int give_up(struct ring *r, struct smco_err *err)
{
	uint64_t at = r->tail;
	r->nr_damaged += r->head - r->tail;
	r->tail = r->head;
	return smco_fail(err, SMCO_FORMAT, 0, "no record at %ju of a ring",
			 (uintmax_t)at);
}

int ring_next(struct ring *r, struct ring_record *ret, struct smco_err *err)
{
	struct perf_event_header h;
	if (r->tail == r->head)
		exchange(r);
	uint64_t left = r->head - r->tail;
	if (!left)
		return 0;
	if (left > r->size || left < sizeof(h))
		return give_up(r, err);
	memcpy(&h, piece(r, r->tail, sizeof(h)), sizeof(h));
	if (h.size < sizeof(h) || h.size % 8 || h.size > left ||
	    ring_decode(&r->format, piece(r, r->tail, h.size), h.size, ret))
		return give_up(r, err);
	r->tail += h.size;
	count(r, ret);
	return 1;
}
