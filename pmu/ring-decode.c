/*
 * What stands in a record: <linux/perf_event.h>, "enum perf_event_type", and
 * perf_event_open(2) have the layouts.
 */
#include <string.h>

#include "pmu/ring.h"

/* The rest of a record; a read beyond its end fails all later ones. */
struct body {
	const uint8_t *at, *end;
	bool failed;
};

static const uint8_t *take(struct body *b, uint64_t len)
{
	static const uint8_t nothing[8];
	const uint8_t *p = b->at;
	if (b->failed || len > (uint64_t)(b->end - b->at)) {
		b->failed = true;
		return nothing;
	}
	b->at += len;
	return p;
}

static uint64_t u64(struct body *b)
{
	uint64_t v;
	memcpy(&v, take(b, sizeof(v)), sizeof(v));
	return v;
}

static uint32_t u32(struct body *b)
{
	uint32_t v;
	memcpy(&v, take(b, sizeof(v)), sizeof(v));
	return v;
}

static uint16_t u16(struct body *b)
{
	uint16_t v;
	memcpy(&v, take(b, sizeof(v)), sizeof(v));
	return v;
}

/* @nr items of @item bytes. */
static struct ring_array array(struct body *b, uint64_t nr, size_t item)
{
	struct ring_array a = {0};
	if (nr > (uint64_t)(b->end - b->at) / item)
		b->failed = true;
	a.data = take(b, b->failed ? 0 : nr * item);
	a.nr = b->failed ? 0 : (size_t)nr;
	return a;
}

/* A text that ends, in what is left; padded with zeros to 8 bytes. */
static const char *text(struct body *b)
{
	size_t len = (size_t)(b->end - b->at);
	const char *s = (const char *)b->at;
	if (b->failed || !memchr(s, '\0', len)) {
		b->failed = true;
		return "";
	}
	b->at = b->end;
	return s;
}

static void read_values(struct body *b, uint64_t format, struct ring_read *ret)
{
	uint64_t nr = 1;
	*ret = (struct ring_read){.stride = 1};
	ret->stride += !!(format & PERF_FORMAT_ID);
	ret->stride += !!(format & PERF_FORMAT_LOST);
	if (format & PERF_FORMAT_GROUP) {
		nr = u64(b);
	} else {
		/* The times stand between the value and its id. */
		ret->entry = array(b, 1, 8);
	}
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		ret->enabled_ns = u64(b);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		ret->running_ns = u64(b);
	if (format & PERF_FORMAT_GROUP) {
		ret->entry = array(b, nr, ret->stride * 8);
		ret->nr = ret->entry.nr;
		return;
	}
	if (format & PERF_FORMAT_ID)
		ret->id = u64(b);
	if (format & PERF_FORMAT_LOST)
		ret->lost = u64(b);
	ret->stride = 1;
	ret->nr = b->failed ? 0 : 1;
}

static void regs(struct body *b, uint64_t mask, struct ring_regs *ret)
{
	ret->abi = u64(b);
	if (ret->abi)
		ret->value = array(b, (uint64_t)__builtin_popcountll(mask), 8);
}

static void branches(struct body *b, const struct ring_format *f,
		     struct ring_sample *s)
{
	uint64_t nr = u64(b);
	if (f->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		s->branch_hw_idx = u64(b);
	s->branch = array(b, nr, 24);
}

static void user_stack(struct body *b, struct ring_sample *s)
{
	uint64_t size = u64(b);
	s->stack = array(b, size, 1);
	if (!size)
		return;
	uint64_t valid = u64(b);
	if (valid < s->stack.nr)
		s->stack.nr = (size_t)valid;
}

/* In the order in which the kernel writes them. */
static void sample_head(struct body *b, uint64_t type, struct ring_record *r)
{
	struct ring_sample *s = &r->sample;
	if (type & PERF_SAMPLE_IDENTIFIER)
		r->id = u64(b);
	if (type & PERF_SAMPLE_IP)
		s->ip = u64(b);
	if (type & PERF_SAMPLE_TID) {
		r->pid = u32(b);
		r->tid = u32(b);
	}
	if (type & PERF_SAMPLE_TIME)
		r->time = u64(b);
	if (type & PERF_SAMPLE_ADDR)
		s->addr = u64(b);
	if (type & PERF_SAMPLE_ID)
		r->id = u64(b);
	if (type & PERF_SAMPLE_STREAM_ID)
		r->stream_id = u64(b);
	if (type & PERF_SAMPLE_CPU) {
		r->cpu = u32(b);
		u32(b);
	}
	if (type & PERF_SAMPLE_PERIOD)
		s->period = u64(b);
}

static void sample(struct body *b, const struct ring_format *f,
		   struct ring_record *r)
{
	uint64_t type = f->sample_type;
	struct ring_sample *s = &r->sample;
	sample_head(b, type, r);
	if (type & PERF_SAMPLE_READ)
		read_values(b, f->read_format, &s->read);
	if (type & PERF_SAMPLE_CALLCHAIN)
		s->callchain = array(b, u64(b), 8);
	if (type & PERF_SAMPLE_RAW)
		s->raw = array(b, u32(b), 1);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		branches(b, f, s);
	if (type & PERF_SAMPLE_REGS_USER)
		regs(b, f->regs_user, &s->user);
	if (type & PERF_SAMPLE_STACK_USER)
		user_stack(b, s);
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		s->weight = u64(b);
	if (type & PERF_SAMPLE_DATA_SRC)
		s->data_src = u64(b);
	if (type & PERF_SAMPLE_TRANSACTION)
		s->transaction = u64(b);
	if (type & PERF_SAMPLE_REGS_INTR)
		regs(b, f->regs_intr, &s->intr);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		s->phys_addr = u64(b);
	if (type & PERF_SAMPLE_CGROUP)
		s->cgroup = u64(b);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		s->data_page_size = u64(b);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		s->code_page_size = u64(b);
	if (type & PERF_SAMPLE_AUX)
		s->aux = array(b, u64(b), 1);
	r->has = type;
	if (type & PERF_SAMPLE_IDENTIFIER)
		r->has |= PERF_SAMPLE_ID;
}

#define ID_BITS                                                                \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |                 \
	 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* The end of every record but samples, where sample_id_all was asked for; it is
 * cut off @b. */
static void sample_id(struct body *b, const struct ring_format *f,
		      struct ring_record *r)
{
	uint64_t type = f->sample_type & ID_BITS;
	size_t len = 8 * (size_t)__builtin_popcountll(type);
	if (!f->sample_id_all)
		return;
	if (len > (size_t)(b->end - b->at)) {
		b->failed = true;
		return;
	}
	struct body id = {b->end - len, b->end, false};
	b->end -= len;
	if (type & PERF_SAMPLE_TID) {
		r->pid = u32(&id);
		r->tid = u32(&id);
	}
	if (type & PERF_SAMPLE_TIME)
		r->time = u64(&id);
	if (type & PERF_SAMPLE_ID)
		r->id = u64(&id);
	if (type & PERF_SAMPLE_STREAM_ID)
		r->stream_id = u64(&id);
	if (type & PERF_SAMPLE_CPU) {
		r->cpu = u32(&id);
		u32(&id);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		r->id = u64(&id);
	r->has = type & ~(uint64_t)PERF_SAMPLE_IDENTIFIER;
	if (type & PERF_SAMPLE_IDENTIFIER)
		r->has |= PERF_SAMPLE_ID;
}

static void mmap_record(struct body *b, struct ring_record *r)
{
	r->mmap.pid = u32(b);
	r->mmap.tid = u32(b);
	r->mmap.addr = u64(b);
	r->mmap.len = u64(b);
	r->mmap.pgoff = u64(b);
	if (r->type == PERF_RECORD_MMAP2) {
		struct body id = *b; /* one or the other, 24 bytes */
		take(b, 24);
		if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			uint8_t len = *take(&id, 1);
			take(&id, 3);
			r->mmap.build_id = array(&id, len < 20 ? len : 20, 1);
		} else {
			r->mmap.major = u32(&id);
			r->mmap.minor = u32(&id);
			r->mmap.inode = u64(&id);
			r->mmap.generation = u64(&id);
		}
		r->mmap.prot = u32(b);
		r->mmap.flags = u32(b);
	}
	r->mmap.name = text(b);
}

static void task(struct body *b, struct ring_record *r)
{
	r->task.pid = u32(b);
	r->task.ppid = u32(b);
	r->task.tid = u32(b);
	r->task.ptid = u32(b);
	r->task.time = u64(b);
}

static void poke(struct body *b, struct ring_record *r)
{
	r->poke.addr = u64(b);
	uint16_t before = u16(b), after = u16(b);
	r->poke.before = array(b, before, 1);
	r->poke.after = array(b, after, 1);
}

static void ksymbol(struct body *b, struct ring_record *r)
{
	r->ksymbol.addr = u64(b);
	r->ksymbol.len = u32(b);
	r->ksymbol.ksym_type = u16(b);
	r->ksymbol.flags = u16(b);
	r->ksymbol.name = text(b);
}

static void bpf(struct body *b, struct ring_record *r)
{
	r->bpf.type = u16(b);
	r->bpf.flags = u16(b);
	r->bpf.id = u32(b);
	r->bpf.tag = take(b, 8);
}

static void other_body(struct body *b, const struct ring_format *f,
		       struct ring_record *r)
{
	switch (r->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return mmap_record(b, r);
	case PERF_RECORD_LOST:
		r->lost.id = u64(b);
		r->lost.lost = u64(b);
		return;
	case PERF_RECORD_LOST_SAMPLES:
		r->lost.lost = u64(b);
		return;
	case PERF_RECORD_COMM:
		r->comm.pid = u32(b);
		r->comm.tid = u32(b);
		r->comm.name = text(b);
		return;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return task(b, r);
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		r->throttle.time = u64(b);
		r->throttle.id = u64(b);
		r->throttle.stream_id = u64(b);
		return;
	case PERF_RECORD_READ:
		r->read.pid = u32(b);
		r->read.tid = u32(b);
		return read_values(b, f->read_format, &r->read.read);
	case PERF_RECORD_AUX:
		r->aux.offset = u64(b);
		r->aux.size = u64(b);
		r->aux.flags = u64(b);
		return;
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		r->other.pid = u32(b);
		r->other.tid = u32(b);
		return;
	case PERF_RECORD_SWITCH:
		return;
	case PERF_RECORD_NAMESPACES:
		r->namespaces.pid = u32(b);
		r->namespaces.tid = u32(b);
		r->namespaces.link = array(b, u64(b), 16);
		return;
	case PERF_RECORD_KSYMBOL:
		return ksymbol(b, r);
	case PERF_RECORD_BPF_EVENT:
		return bpf(b, r);
	case PERF_RECORD_CGROUP:
		r->cgroup.id = u64(b);
		r->cgroup.path = text(b);
		return;
	case PERF_RECORD_TEXT_POKE:
		return poke(b, r);
	case PERF_RECORD_AUX_OUTPUT_HW_ID:
		r->hw_id = u64(b);
		return;
	default:
		r->body = array(b, (uint64_t)(b->end - b->at), 1);
		return;
	}
}

int ring_decode(const struct ring_format *f, const void *data, size_t size,
		struct ring_record *ret)
{
	struct perf_event_header h;
	if (size < sizeof(h))
		return SMCO_FORMAT;
	memcpy(&h, data, sizeof(h));
	memset(ret, 0, sizeof(*ret));
	ret->type = h.type;
	ret->misc = h.misc;
	struct body b = {
		.at = (const uint8_t *)data + sizeof(h),
		.end = (const uint8_t *)data + size,
	};
	if (h.type == PERF_RECORD_SAMPLE) {
		sample(&b, f, ret);
	} else {
		sample_id(&b, f, ret);
		other_body(&b, f, ret);
	}
	return b.failed ? SMCO_FORMAT : 0;
}
