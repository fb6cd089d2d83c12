#include "supervisor/probe/watch-hits.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Pages of records, a power of two; fewer where less memory may be locked. */
#define MOST_PAGES 8
#define NR_REGS	   16
/* Header, address, time, what kind of registers, the registers. */
#define HIT_BYTES (8 + 8 + 8 + 8 + 8 * NR_REGS)

/* In the kernel's order, which is that of the record. */
static const struct {
	uint8_t bit, number;
} regs[NR_REGS] = {
	{PERF_REG_X86_AX, 0},	{PERF_REG_X86_BX, 3},	{PERF_REG_X86_CX, 1},
	{PERF_REG_X86_DX, 2},	{PERF_REG_X86_SI, 6},	{PERF_REG_X86_DI, 7},
	{PERF_REG_X86_BP, 5},	{PERF_REG_X86_SP, 4},	{PERF_REG_X86_R8, 8},
	{PERF_REG_X86_R9, 9},	{PERF_REG_X86_R10, 10}, {PERF_REG_X86_R11, 11},
	{PERF_REG_X86_R12, 12}, {PERF_REG_X86_R13, 13}, {PERF_REG_X86_R14, 14},
	{PERF_REG_X86_R15, 15},
};

void watch_hits_attr(struct perf_event_attr *attr)
{
	attr->sample_type =
		PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER;
	for (size_t i = 0; i < NR_REGS; i++)
		attr->sample_regs_user |= 1ULL << regs[i].bit;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

static int64_t room(size_t bytes)
{
	return (int64_t)((bytes - 1) / HIT_BYTES);
}

int watch_hits_open(struct watch_hits *h, const struct perf_event_attr *attr,
		    int fd, int64_t most, struct smco_err *err)
{
	const struct ring_format format = ring_format_of(attr);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), nr = 1;
	void *at = MAP_FAILED;
	memset(h, 0, sizeof(*h));
	while (nr < MOST_PAGES && room(nr * page) < most)
		nr *= 2;
	for (; nr && at == MAP_FAILED; nr /= 2) {
		h->page_bytes = (1 + nr) * page;
		at = mmap(NULL, h->page_bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);
	}
	if (at == MAP_FAILED)
		return smco_fail(err, SMCO_PERM, errno,
				 "watchpoints: no memory may be locked for "
				 "what the kernel tells of them "
				 "(perf_event_mlock_kb, ulimit -l)");
	h->page = at;
	int rc = ring_open_live(&h->ring, &format, h->page, err);
	if (rc) {
		munmap(at, h->page_bytes);
		h->page = NULL;
	}
	return rc;
}

void watch_hits_close(struct watch_hits *h)
{
	if (!h->page)
		return;
	ring_close(&h->ring);
	munmap(h->page, h->page_bytes);
	h->page = NULL;
}

int64_t watch_hits_room(const struct watch_hits *h)
{
	return room(h->ring.size);
}

bool watch_hits_next(struct watch_hits *h, struct watch_hit *ret)
{
	struct ring_record r;
	int rc;
	if (!h->page)
		return false;
	while ((rc = ring_next(&h->ring, &r, NULL)))
		if (rc == 1 && r.type == PERF_RECORD_SAMPLE)
			break;
	if (!rc)
		return false;
	const struct ring_regs *user = &r.sample.user;
	*ret = (struct watch_hit){
		.time_ns = r.time,
		.has_state = (r.misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				     PERF_RECORD_MISC_USER &&
			     user->abi == PERF_SAMPLE_REGS_ABI_64 &&
			     user->value.nr == NR_REGS,
		.state.ip = r.sample.ip,
	};
	for (size_t i = 0; ret->has_state && i < NR_REGS; i++)
		ret->state.reg[regs[i].number] = ring_u64(user->value, i);
	return true;
}
