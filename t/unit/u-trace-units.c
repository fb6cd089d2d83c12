/*
 * Units of the schema in modelled records: what is a multiple of them and what
 * is not comes back as it was, also where differences wrap; and what is takes
 * the less.
 */
#include "t/unit/tap.h"

#include <string.h>

#include "reports/pack.h"
#include "reports/schema.h"

#define NR 2000

/* Naps at addresses beside each other, every one of which is there twice. */
static void nap_at(uint32_t i, uint64_t unit, struct record *r,
		   struct ev_nap *nap)
{
	uint64_t noise = i * 2654435761u % 1000000000u;
	*nap = (struct ev_nap){
		.addr = 0x7f0000000000 + 8192 * (uint64_t)(i / 2),
		.size = 8192,
		.start_ns = in_units(2000000000u + noise, unit),
		.length_ns = in_units(1000000000u + noise / 3, unit),
		.error_ns = in_units(noise / 5, unit),
		.alloc_ns = in_units(noise / 7, unit),
		.pid = 4711,
		.ended_syscall = -1,
	};
	*r = (struct record){
		.event = EV_NAP,
		.time_ns = in_units(3000000000u + 1000000 * (uint64_t)i, unit),
		.cpu = UINT32_MAX,
		.param = i / 2 * 7 % 1000,
		.payload = nap,
		.payload_len = sizeof(*nap),
	};
}

/* Ends of what 64 and 32 bits hold, beside multiples of units. */
static void edge_at(uint32_t i, struct record *r, struct ev_nap *nap)
{
	static const uint64_t edge[] = {0,
					1,
					999999,
					1000000,
					1000001,
					INT64_MAX,
					INT64_MIN,
					UINT64_MAX,
					UINT64_MAX - 1000000,
					1ull << 63 | 1,
					5000000,
					UINT64_MAX / 1000000 * 1000000,
					16,
					UINT64_MAX - 15};
	const size_t nr = ARRAY_SIZE(edge);
	nap_at(i, 1, r, nap);
	nap->addr = edge[i % nr];
	nap->start_ns = edge[i / nr % nr];
	nap->error_ns = edge[(i + i / nr) % nr];
	nap->length_ns = edge[i * 5 % nr];
	nap->alloc_ns = edge[i * 3 % nr];
	nap->pid = (uint32_t)edge[i * 11 % nr];
	r->time_ns = edge[(i + 3) % nr];
	r->param = (uint32_t)edge[i * 9 % nr];
}

static void make(uint32_t i, unsigned kind, struct record *r,
		 struct ev_nap *nap)
{
	if (kind == 2)
		edge_at(i, r, nap);
	else
		nap_at(i, kind ? NAP_UNIT_NS : 1, r, nap);
}

/* The bytes that records of @kind take; all are as they were. */
static size_t bytes_of(unsigned kind)
{
	struct pack_records *to = pack_records_create(NULL);
	struct pack_records *from = pack_records_create(NULL);
	struct bbuf b = {0};
	struct bitcoder c;
	struct record r, got;
	struct ev_nap nap;
	unsigned failed = 0, wrong = 0;
	bitcoder_begin_out(&c, &b);
	for (uint32_t i = 0; i < NR; i++) {
		make(i, kind, &r, &nap);
		failed += pack_record(to, &c, &r) != 0;
	}
	bitcoder_finish(&c);
	bitcoder_begin_in(&c, (struct cursor){b.data, b.len, 0});
	for (uint32_t i = 0; i < NR; i++) {
		make(i, kind, &r, &nap);
		failed += pack_record(from, &c, &got) != 0;
		wrong += got.time_ns != r.time_ns || got.param != r.param ||
			 got.payload_len != sizeof(nap) ||
			 memcmp(got.payload, &nap, sizeof(nap)) != 0;
	}
	size_t len = b.len;
	check_int(failed, 0);
	check_int(wrong, 0);
	pack_records_destroy(to);
	pack_records_destroy(from);
	bbuf_free(&b);
	return len;
}

int main(void)
{
	size_t exact = bytes_of(0), told = bytes_of(1);
	printf("# %zu bytes with ns, %zu with units\n", exact, told);
	/* A record has four new times, each of which has 20 bits less. */
	check(told + NR * 7 < exact);
	bytes_of(2);
	check_int(unit_for(9999, NAP_UNIT_NS), 1);
	check_int(unit_for(10 * NSEC_PER_MSEC, NAP_UNIT_NS), 10000);
	check_int(unit_for(999 * NSEC_PER_MSEC, NAP_UNIT_NS), 100000);
	check_int(unit_for(NSEC_PER_SEC, NAP_UNIT_NS), NAP_UNIT_NS);
	check_int(unit_for(3600 * NSEC_PER_SEC, NAP_UNIT_NS), NAP_UNIT_NS);
	return tap_done();
}
