/*
 * Rings made here, with every type of record, wrapped at every place, cut and
 * damaged; and rings of this kernel.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmu/event.h"
#include "pmu/open.h"
#include "pmu/ring.h"
#include "t/unit/tap.h"

#define RING_BYTES 4096

/* ----------------------------------------------------- writing records --- */

static uint8_t made[RING_BYTES];
static size_t made_len, made_start;
static bool with_id;

static void p64(uint64_t v)
{
	memcpy(made + made_len, &v, 8);
	made_len += 8;
}
static void p32(uint32_t a, uint32_t b)
{
	p64((uint64_t)b << 32 | a);
}
static void ptext(const char *s)
{
	size_t len = (strlen(s) + 8) / 8 * 8;
	memset(made + made_len, 0, len);
	memcpy(made + made_len, s, strlen(s));
	made_len += len;
}
static void begin(uint32_t type, uint16_t misc)
{
	made_start = made_len;
	p64((uint64_t)misc << 32 | type);
}
static void end(void)
{
	if (with_id) { /* TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER */
		p32(71, 72);
		p64(73);
		p64(74);
		p64(75);
		p32(6, 0);
		p64(74);
	}
	uint16_t size = (uint16_t)(made_len - made_start);
	memcpy(made + made_start + 6, &size, 2);
}

#define SAMPLE_ALL                                                             \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |           \
	 PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |                \
	 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |        \
	 PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |          \
	 PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |                    \
	 PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |  \
	 PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR |                     \
	 PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |                          \
	 PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE |             \
	 PERF_SAMPLE_AUX)

static const struct ring_format all = {
	.sample_type = SAMPLE_ALL,
	.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
		       PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
		       PERF_FORMAT_LOST,
	.sample_id_all = true,
	.regs_user = 0x105,
	.regs_intr = 0x3,
	.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX,
};

static void put_sample(void)
{
	bool id = with_id;
	with_id = false;
	begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	p64(1);	     /* identifier */
	p64(0x4010); /* ip */
	p32(10, 11);
	p64(12);     /* time */
	p64(0x5000); /* addr */
	p64(1);	     /* id */
	p64(13);
	p32(3, 0);
	p64(100000); /* period */
	p64(2);	     /* a group of two: nr, times, {value, id, lost} */
	p64(900);
	p64(450);
	p64(1000);
	p64(1);
	p64(0);
	p64(2000);
	p64(2);
	p64(5);
	p64(3); /* callchain */
	p64(PERF_CONTEXT_USER);
	p64(0x4010);
	p64(0x4020);
	p32(4, 0xdeadbeef); /* raw */
	p64(1);		    /* branches */
	p64(7);		    /* hw_idx */
	p64(0x4000);
	p64(0x4100);
	p64(1);
	p64(2); /* registers: abi, three */
	p64(21);
	p64(22);
	p64(23);
	p64(16); /* stack: room, bytes, how many are valid */
	p64(0x1111);
	p64(0x2222);
	p64(8);
	p64(31);     /* weight */
	p64(32);     /* data_src */
	p64(33);     /* transaction */
	p64(0);	     /* registers: none */
	p64(0x9000); /* physical */
	p64(34);     /* cgroup */
	p64(4096);
	p64(2097152);
	p64(8); /* aux */
	p64(0x3333);
	end();
	with_id = id;
}

static void put_mappings(void)
{
	begin(PERF_RECORD_MMAP, 0);
	p32(1, 2);
	p64(0x1000);
	p64(0x2000);
	p64(0x3000);
	ptext("/bin/a");
	end();
	begin(PERF_RECORD_MMAP2, 0);
	p32(1, 2);
	p64(0x1000);
	p64(0x2000);
	p64(0x3000);
	p32(8, 1);
	p64(4242);
	p64(9);
	p32(5, 2);
	ptext("/bin/exactly8");
	end();
	begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	p32(1, 2);
	p64(0x1000);
	p64(0x2000);
	p64(0x3000);
	p64(0x0403020100000014); /* 20 bytes: 01 02 03 04 ... */
	p64(0);
	p64(0);
	p32(5, 2);
	ptext("/bin/c");
	end();
}

static void put_tasks(void)
{
	begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	p32(1, 2);
	ptext("name");
	end();
	for (uint32_t type = PERF_RECORD_EXIT; type <= PERF_RECORD_FORK;
	     type += PERF_RECORD_FORK - PERF_RECORD_EXIT) {
		begin(type, 0);
		p32(1, 2);
		p32(3, 4);
		p64(5);
		end();
	}
	begin(PERF_RECORD_THROTTLE, 0);
	p64(1);
	p64(2);
	p64(3);
	end();
	begin(PERF_RECORD_UNTHROTTLE, 0);
	p64(4);
	p64(5);
	p64(6);
	end();
	begin(PERF_RECORD_READ, 0);
	p32(1, 2);
	p64(1); /* a group of one */
	p64(10);
	p64(20);
	p64(77);
	p64(1);
	p64(0);
	end();
	begin(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
	end();
	begin(PERF_RECORD_SWITCH_CPU_WIDE, 0);
	p32(8, 9);
	end();
}

static void put_others(void)
{
	begin(PERF_RECORD_LOST, 0);
	p64(1);
	p64(17);
	end();
	begin(PERF_RECORD_LOST_SAMPLES, 0);
	p64(3);
	end();
	begin(PERF_RECORD_AUX, 0);
	p64(1);
	p64(2);
	p64(3);
	end();
	begin(PERF_RECORD_ITRACE_START, 0);
	p32(1, 2);
	end();
	begin(PERF_RECORD_NAMESPACES, 0);
	p32(1, 2);
	p64(2);
	p64(3);
	p64(4);
	p64(5);
	p64(6);
	end();
	begin(PERF_RECORD_KSYMBOL, 0);
	p64(0xffff0000);
	p64(0x0002000100000040); /* len 0x40, type 1, flags 2 */
	ptext("bpf_prog");
	end();
	begin(PERF_RECORD_BPF_EVENT, 0);
	p64(0x0000000500020001); /* type 1, flags 2, id 5 */
	p64(0x0807060504030201);
	end();
	begin(PERF_RECORD_CGROUP, 0);
	p64(99);
	ptext("/a/b");
	end();
	begin(PERF_RECORD_TEXT_POKE, 0);
	p64(0xffff1000);
	p64(0x0033221100020001); /* 1 byte: 11, 2 bytes: 22 33 */
	end();
	begin(PERF_RECORD_AUX_OUTPUT_HW_ID, 0);
	p64(55);
	end();
	begin(200, 7); /* none that is known */
	p64(0xabcd);
	end();
}

#define NR_RECORDS 23

static void make_all(void)
{
	made_len = 0;
	with_id = true;
	put_sample();
	put_mappings();
	put_tasks();
	put_others();
}

/* ------------------------------------------------------ reading records --- */

static void check_sample(const struct ring_record *r)
{
	const struct ring_sample *s = &r->sample;
	check_int(r->type, PERF_RECORD_SAMPLE);
	check_int(r->misc, PERF_RECORD_MISC_USER);
	check(r->pid == 10 && r->tid == 11 && r->time == 12 && r->id == 1 &&
	      r->stream_id == 13 && r->cpu == 3);
	check(s->ip == 0x4010 && s->addr == 0x5000 && s->period == 100000);
	check(s->read.nr == 2 && s->read.stride == 3 &&
	      s->read.enabled_ns == 900 && s->read.running_ns == 450);
	check(ring_u64(s->read.entry, 3) == 2000 &&
	      ring_u64(s->read.entry, 5) == 5);
	check(s->callchain.nr == 3 && ring_u64(s->callchain, 2) == 0x4020);
	check(s->raw.nr == 4 && s->raw.data[0] == 0xef &&
	      s->raw.data[3] == 0xde);
	check(s->branch.nr == 1 && s->branch_hw_idx == 7 &&
	      ring_u64(s->branch, 1) == 0x4100);
	check(s->user.abi == 2 && s->user.value.nr == 3 &&
	      ring_u64(s->user.value, 2) == 23);
	check(s->stack.nr == 8 && s->stack.data[0] == 0x11);
	check(s->weight == 31 && s->data_src == 32 && s->transaction == 33);
	check(s->intr.abi == 0 && s->phys_addr == 0x9000 && s->cgroup == 34);
	check(s->data_page_size == 4096 && s->code_page_size == 2097152);
	check(s->aux.nr == 8 && ring_u64(s->aux, 0) == 0x3333);
}

static void check_others(const struct ring_record *r)
{
	check(r[1].mmap.addr == 0x1000 && !strcmp(r[1].mmap.name, "/bin/a"));
	check(r[2].mmap.inode == 4242 && r[2].mmap.major == 8 &&
	      r[2].mmap.prot == 5 && !r[2].mmap.build_id.nr &&
	      !strcmp(r[2].mmap.name, "/bin/exactly8"));
	check(r[3].mmap.build_id.nr == 20 && r[3].mmap.build_id.data[1] == 2 &&
	      !r[3].mmap.inode && !strcmp(r[3].mmap.name, "/bin/c"));
	check(r[4].comm.tid == 2 && !strcmp(r[4].comm.name, "name"));
	check(r[5].type == PERF_RECORD_EXIT && r[5].task.ptid == 4);
	check(r[6].type == PERF_RECORD_FORK && r[6].task.ppid == 2 &&
	      r[6].task.time == 5);
	check(r[7].throttle.id == 2 && r[8].throttle.stream_id == 6);
	check(r[9].read.read.nr == 1 &&
	      ring_u64(r[9].read.read.entry, 0) == 77);
	check(r[10].type == PERF_RECORD_SWITCH &&
	      r[10].misc == PERF_RECORD_MISC_SWITCH_OUT);
	check(r[11].other.tid == 9);
	check(r[12].lost.lost == 17 && r[13].lost.lost == 3);
	check(r[14].aux.flags == 3 && r[15].other.pid == 1);
	check(r[16].namespaces.link.nr == 2 &&
	      ring_u64(r[16].namespaces.link, 3) == 6);
	check(r[17].ksymbol.len == 0x40 && r[17].ksymbol.flags == 2 &&
	      !strcmp(r[17].ksymbol.name, "bpf_prog"));
	check(r[18].bpf.id == 5 && r[18].bpf.tag[7] == 8);
	check(r[19].cgroup.id == 99 && !strcmp(r[19].cgroup.path, "/a/b"));
	check(r[20].poke.before.nr == 1 && r[20].poke.before.data[0] == 0x11 &&
	      r[20].poke.after.nr == 2 && r[20].poke.after.data[1] == 0x33);
	check(r[21].hw_id == 55);
	check(r[22].type == 200 && r[22].body.nr == 8 &&
	      ring_u64(r[22].body, 0) == 0xabcd);
	for (size_t i = 1; i < NR_RECORDS; i++)
		check_msg(r[i].pid == 71 && r[i].tid == 72 && r[i].time == 73 &&
				  r[i].id == 74 && r[i].stream_id == 75 &&
				  r[i].cpu == 6,
			  "record %zu says whose it is", i);
}

static void test_all_types(void)
{
	struct ring_record r[NR_RECORDS + 1];
	struct ring ring;
	size_t nr = 0;
	make_all();
	check_int(ring_open_recorded(&ring, &all, made, RING_BYTES, made_len, 0,
				     NULL),
		  0);
	while (nr <= NR_RECORDS && ring_next(&ring, &r[nr], NULL) > 0)
		nr++;
	check_int(nr, NR_RECORDS);
	if (nr == NR_RECORDS) {
		check_sample(&r[0]);
		check_others(r);
	}
	check_int(ring.nr_lost, 20);
	check_int(ring.nr_throttled, 1);
	check_int(ring.nr_damaged, 0);
	ring_close(&ring);
}

/* The same records begin at each place of a ring: what is read is the same. */
static void test_wrapped(void)
{
	static uint8_t turned[RING_BYTES];
	size_t nr_right = 0, nr_wrapped = 0;
	make_all();
	for (size_t shift = 0; shift < RING_BYTES; shift += 8) {
		struct ring ring;
		struct ring_record r;
		uint64_t base = 5ull * RING_BYTES + shift;
		uint64_t sum = 0;
		size_t nr = 0;
		for (size_t i = 0; i < made_len; i++)
			turned[(shift + i) % RING_BYTES] = made[i];
		nr_wrapped += shift + made_len > RING_BYTES;
		ring_open_recorded(&ring, &all, turned, RING_BYTES,
				   base + made_len, base, NULL);
		for (; ring_next(&ring, &r, NULL) > 0; nr++) {
			if (r.type == PERF_RECORD_SAMPLE)
				sum += ring_u64(r.sample.aux, 0) +
				       ring_u64(r.sample.branch, 2);
			if (r.type == PERF_RECORD_CGROUP)
				sum += strlen(r.cgroup.path);
			if (r.type == PERF_RECORD_NAMESPACES)
				sum += ring_u64(r.namespaces.link, 3);
		}
		nr_right += nr == NR_RECORDS && sum == 0x3333 + 1 + 4 + 6 &&
			    ring.nr_lost == 20 && !ring.nr_damaged;
		ring_close(&ring);
	}
	check_int(nr_right, RING_BYTES / 8);
	check(nr_wrapped > 100);
}

/* Every record cut short everywhere: refused, or shorter, never more. */
static void test_cut(void)
{
	size_t nr = 0, nr_refused = 0;
	make_all();
	for (size_t at = 0; at < made_len;) {
		uint16_t size;
		memcpy(&size, made + at + 6, 2);
		for (uint16_t cut = 0; cut < size; cut += 4) {
			uint8_t *copy = malloc(cut ? cut : 1);
			struct ring_record r;
			memcpy(copy, made + at, cut);
			nr++;
			nr_refused += ring_decode(&all, copy, cut, &r) != 0;
			free(copy);
		}
		at += size;
	}
	check(nr > 300);
	check(nr_refused > nr * 9 / 10);
}

static void test_random(void)
{
	static uint64_t noise[RING_BYTES / 8];
	uint64_t state = 1;
	size_t nr = 0;
	for (int round = 0; round < 3000; round++) {
		struct ring ring;
		struct ring_record r;
		int rc;
		make_all();
		memcpy(noise, made, sizeof(noise));
		for (int i = 0; i < 1 + round % 20; i++) {
			state = state * 6364136223846793005u +
				1442695040888963407u;
			noise[state >> 33 & 511] ^= 1ull << (state >> 20 & 63);
		}
		ring_open_recorded(&ring, &all, noise, RING_BYTES, made_len, 0,
				   NULL);
		while ((rc = ring_next(&ring, &r, NULL)) > 0)
			nr++;
		/* Given up, but only once, and then there is nothing. */
		if (rc < 0 && (!ring.nr_damaged || ring_next(&ring, &r, NULL)))
			check(!"gives up once");
		ring_close(&ring);
	}
	check(nr > 3000);
}

static void test_bad_rings(void)
{
	struct ring r;
	struct smco_err err = {0};
	check_int(ring_open_recorded(&r, &all, made, 4095, 8, 0, &err),
		  SMCO_FORMAT);
	check_int(ring_open_recorded(&r, &all, made, 0, 0, 0, &err),
		  SMCO_FORMAT);
	check_int(ring_open_recorded(&r, &all, made, 64, 128, 0, &err),
		  SMCO_FORMAT);
	check_int(ring_open_recorded(&r, &all, made, 64, 0, 8, &err),
		  SMCO_FORMAT);
	check(strstr(err.msg, "a ring of 64 bytes cannot hold 8 to 0") != NULL);
}

/* A single read has its times between the value and the id. */
static void test_single_read(void)
{
	struct ring_format f = {
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_ID |
			       PERF_FORMAT_LOST,
	};
	struct ring_record r;
	made_len = 0;
	with_id = false;
	begin(PERF_RECORD_READ, 0);
	p32(1, 2);
	p64(100);
	p64(200);
	p64(3);
	p64(4);
	end();
	check_int(ring_decode(&f, made, made_len, &r), 0);
	check_int(ring_u64(r.read.read.entry, 0), 100);
	check_int(r.read.read.enabled_ns, 200);
	check_int(r.read.read.running_ns, 0);
	check_int(r.read.read.id, 3);
	check_int(r.read.read.lost, 4);
	check_int(r.has, 0);
}

/* ----------------------------------------------- what this kernel writes ---
 */

struct live {
	int fd;
	struct perf_event_mmap_page *page;
	size_t len;
	struct ring ring;
};

/* One record for each page fault of ours. */
static bool open_faults(struct live *l, size_t pages)
{
	struct pmu_event ev;
	pmu_event_parse("page-faults:u", &ev, NULL);
	ev.attr.sample_period = 1;
	ev.attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
			      PERF_SAMPLE_TIME | PERF_SAMPLE_IP;
	ev.attr.sample_id_all = 1;
	l->fd = pmu_open(&ev.attr, 0, -1, -1);
	l->len = (pages + 1) * TPAGE_SIZE;
	l->page = l->fd < 0 ? MAP_FAILED
			    : mmap(NULL, l->len, PROT_READ | PROT_WRITE,
				   MAP_SHARED, l->fd, 0);
	if (l->page == MAP_FAILED) {
		tap_skip("sampling is not permitted here");
		return false;
	}
	struct ring_format f = ring_format_of(&ev.attr);
	return check_int(ring_open_live(&l->ring, &f, l->page, NULL), 0);
}

static void close_live(struct live *l)
{
	ring_close(&l->ring);
	munmap(l->page, l->len);
	close(l->fd);
}

static uint8_t *fresh(size_t pages)
{
	uint8_t *p = mmap(NULL, pages * TPAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, pages * TPAGE_SIZE, MADV_NOHUGEPAGE);
	return p;
}

static void test_live(void)
{
	struct live l;
	struct ring_record r;
	uint8_t *p = fresh(500);
	size_t nr_ours = 0, nr_in_order = 0;
	if (!open_faults(&l, 1))
		return;
	/* Through a ring for some hundred, so that it wraps. */
	for (size_t i = 0; i < 500; i++) {
		p[i * TPAGE_SIZE] = 1;
		while (i % 20 == 19 && ring_next(&l.ring, &r, NULL) > 0) {
			if (r.type != PERF_RECORD_SAMPLE ||
			    r.sample.addr < (uintptr_t)p ||
			    r.sample.addr >= (uintptr_t)p + 500 * TPAGE_SIZE)
				continue;
			nr_in_order += r.sample.addr ==
				       (uintptr_t)p + nr_ours * TPAGE_SIZE;
			nr_ours +=
				r.pid == (uint32_t)getpid() && r.sample.ip != 0;
		}
	}
	check_int(nr_ours, 500);
	check_int(nr_in_order, 500);
	check_int(l.ring.nr_lost + l.ring.nr_damaged, 0);
	munmap(p, 500 * TPAGE_SIZE);
	close_live(&l);
}

/* A ring that nobody reads: what is lost is counted, to the last one. */
static void test_live_lost(void)
{
	struct live l;
	struct ring_record r;
	uint8_t *p = fresh(1000);
	uint64_t nr_samples = 0, faults[1] = {0};
	if (!open_faults(&l, 1))
		return;
	for (size_t i = 0; i < 999; i++)
		p[i * TPAGE_SIZE] = 1;
	for (int round = 0; round < 2; round++) {
		while (ring_next(&l.ring, &r, NULL) > 0)
			nr_samples += r.type == PERF_RECORD_SAMPLE;
		/* The next record tells of the losses before it. */
		p[999 * TPAGE_SIZE] = 1;
	}
	check(read(l.fd, faults, sizeof(faults)) == sizeof(faults));
	check(nr_samples < 500);
	check(l.ring.nr_lost > 500);
	check_int(nr_samples + l.ring.nr_lost, faults[0]);
	munmap(p, 1000 * TPAGE_SIZE);
	close_live(&l);
}

int main(void)
{
	test_all_types();
	test_wrapped();
	test_cut();
	test_random();
	test_bad_rings();
	test_single_read();
	test_live();
	test_live_lost();
	return tap_done();
}
