/*
 * ring.h - the records of a perf ring buffer, live or recorded, one after the
 * other. All types that the kernel documents are decoded; one that is not known
 * here is handed through. What a ring holds is not trusted: each length is
 * checked, and nothing is read beyond a record.
 *
 * Lost and throttled records are counted, for a reader that does not look at
 * them must still say how much it did not see.
 */
#ifndef SMCO_PMU_RING_H
#define SMCO_PMU_RING_H

#include <linux/perf_event.h>

#include "reports/base.h"

/* What a ring's records look like: of the attr its events were opened with. */
struct ring_format {
	uint64_t sample_type;
	uint64_t read_format;
	bool sample_id_all;
	uint64_t regs_user, regs_intr; /* masks */
	uint64_t branch_sample_type;
};
struct ring_format ring_format_of(const struct perf_event_attr *attr);

/* Numbers that lie in the record, perhaps not aligned: ring_u64. */
struct ring_array {
	const uint8_t *data;
	size_t nr;
};
static inline uint64_t ring_u64(struct ring_array a, size_t i)
{
	uint64_t v;
	__builtin_memcpy(&v, a.data + i * 8, 8);
	return v;
}

struct ring_read {			 /* PERF_RECORD_READ, and in samples */
	uint64_t enabled_ns, running_ns; /* 0 if not recorded */
	/* nr entries of @stride numbers: the value; in a group then id and
	 * lost if read_format has them. */
	struct ring_array entry;
	size_t nr, stride;
	uint64_t id, lost; /* of a single one */
};

struct ring_regs {
	uint64_t abi; /* 0 = none */
	struct ring_array value;
};

struct ring_sample {
	uint64_t ip, addr, period, weight, data_src, transaction, phys_addr,
		cgroup, data_page_size, code_page_size;
	struct ring_read read;
	struct ring_array callchain; /* with PERF_CONTEXT_... marks */
	struct ring_array raw;	     /* nr bytes */
	uint64_t branch_hw_idx;
	struct ring_array branch; /* from, to, flags: 3 numbers each */
	struct ring_regs user, intr;
	struct ring_array stack; /* nr bytes that are valid */
	struct ring_array aux;	 /* nr bytes */
};

struct ring_record {
	uint32_t type; /* enum perf_event_type */
	uint16_t misc;
	/* Of what follows, these are known (PERF_SAMPLE_TID, _TIME, _ID,
	 * _STREAM_ID, _CPU), and in a sample all that it has. */
	uint64_t has;
	uint32_t pid, tid, cpu;
	uint64_t time, id, stream_id;
	union {
		struct ring_sample sample;
		struct { /* MMAP, MMAP2 */
			uint32_t pid, tid;
			uint64_t addr, len, pgoff;
			/* MMAP2 only; inode 0 where there is a build-id */
			uint32_t major, minor, prot, flags;
			uint64_t inode, generation;
			struct ring_array build_id;
			const char *name;
		} mmap;
		struct {
			uint64_t id, lost;
		} lost; /* LOST; LOST_SAMPLES has no id */
		struct {
			uint32_t pid, tid;
			const char *name;
		} comm;
		struct { /* FORK, EXIT */
			uint32_t pid, ppid, tid, ptid;
			uint64_t time;
		} task;
		struct { /* THROTTLE, UNTHROTTLE */
			uint64_t time, id, stream_id;
		} throttle;
		struct {
			uint32_t pid, tid;
			struct ring_read read;
		} read;
		struct {
			uint64_t offset, size, flags;
		} aux;
		struct { /* ITRACE_START, SWITCH_CPU_WIDE: the other one */
			uint32_t pid, tid;
		} other;
		struct {
			uint32_t pid, tid;
			struct ring_array link; /* device, inode: 2 each */
		} namespaces;
		struct {
			uint64_t addr;
			uint32_t len;
			uint16_t ksym_type, flags;
			const char *name;
		} ksymbol;
		struct {
			uint16_t type, flags;
			uint32_t id;
			const uint8_t *tag; /* 8 bytes */
		} bpf;
		struct {
			uint64_t id;
			const char *path;
		} cgroup;
		struct {
			uint64_t addr;
			struct ring_array before, after; /* bytes */
		} poke;
		uint64_t hw_id;		/* AUX_OUTPUT_HW_ID */
		struct ring_array body; /* unknown types: bytes */
	};
};

struct ring {
	struct ring_format format;
	const uint8_t *data;
	uint64_t size;			   /* a power of two */
	struct perf_event_mmap_page *live; /* NULL: recorded */
	uint64_t head, tail;		   /* never wrapped */
	uint64_t nr_records, nr_lost, nr_throttled, nr_damaged;
	uint8_t *copy; /* of a record that wraps; private */
};

/* A recorded ring: @size bytes at @data, which must stay, records between
 * @tail and @head as the kernel counts. SMCO_FORMAT, SMCO_NOMEM. */
int ring_open_recorded(struct ring *r, const struct ring_format *format,
		       const void *data, uint64_t size, uint64_t head,
		       uint64_t tail, struct smco_err *err);
/* The mapping of an event's descriptor; it stays the caller's. */
int ring_open_live(struct ring *r, const struct ring_format *format,
		   struct perf_event_mmap_page *page, struct smco_err *err);
void ring_close(struct ring *r);

/*
 * The next record: 1, 0 if there is none now, SMCO_FORMAT if what stands there
 * is none: all that was there is then given up (nr_damaged counts that), and
 * the ring goes on with what comes. *ret points into the ring and is valid
 * until the next call; the kernel gets the room back when all that was there
 * has been read.
 */
int ring_next(struct ring *r, struct ring_record *ret, struct smco_err *err);

/* Decode one record of @size bytes, header included. SMCO_FORMAT. */
int ring_decode(const struct ring_format *f, const void *data, size_t size,
		struct ring_record *ret);

#endif
