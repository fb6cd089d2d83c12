/*
 * Many changes of text in one stop: exactly the bytes that were asked for, few
 * calls, nobody else's bytes, and all of it is put back.
 */
#include <string.h>
#include <sys/mman.h>

#include "t/unit/calls.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define PAGE	 4096
#define NR_PAGES 12
#define AREA	 ((size_t)NR_PAGES * PAGE)
#define MOST	 200

/* Of a puppet, too, at the same place: read-only, as text is. */
static uint8_t *area;
static uint8_t want[AREA]; /* what is to be there */
static struct tpatch *patch[MOST];
static struct tpatch_change change[MOST];

static struct {
	enum tpatch_how how;
	uint8_t byte;	    /* to write */
	size_t leave;	    /* this one; MOST: none */
	size_t nr_composed; /* calls */
	size_t nr_others;   /* bytes that it was asked for whether they may be
			     * written */
	bool may;
	uint8_t first_seen; /* of the last one */
} plan;

static taddr_t at(size_t offset)
{
	return (taddr_t)(uintptr_t)(area + offset);
}

static enum tpatch_how compose(void *ctx, struct tpatch_change *c,
			       uint8_t *bytes)
{
	(void)ctx;
	plan.nr_composed++;
	plan.first_seen = bytes[0];
	if (c == &change[plan.leave % MOST] && plan.leave < MOST) {
		bytes[0] = 0x77; /* of no use to anybody */
		return TPATCH_LEAVE;
	}
	if (plan.how == TPATCH_WRITE)
		memset(bytes, plan.byte, c->len);
	return plan.how;
}

static bool may_write(void *ctx, taddr_t addr, const uint8_t *bytes, size_t len)
{
	(void)ctx;
	plan.nr_others += len;
	return plan.may && !memcmp(bytes, want + (addr - at(0)), len);
}

static taddr_t keep(void *ctx, taddr_t pc)
{
	(void)ctx;
	return pc;
}

static const struct tpatch_ops ops = {compose, may_write};

static void prepare(size_t nr, size_t from, size_t apart, size_t len)
{
	for (size_t i = 0; i < nr; i++)
		change[i] = (struct tpatch_change){
			.addr = at(from + i * apart),
			.len = len,
			.patch = &patch[i],
			.fix = keep,
		};
	plan.nr_composed = plan.nr_others = 0;
	plan.leave = MOST;
	plan.may = true;
}

static int make(struct tproc *p, size_t nr, enum tpatch_how how, uint8_t byte)
{
	struct smco_err err = {0};
	plan.how = how;
	plan.byte = byte;
	return tproc_patch_all(p, change, nr, &ops, NULL, &err);
}

static bool is_as_wanted(struct tproc *p)
{
	static uint8_t now[AREA];
	return !tmem_read(p, at(0), now, AREA) && !memcmp(now, want, AREA);
}

static void expect(size_t nr, uint8_t byte)
{
	for (size_t i = 0; i < nr; i++)
		memset(want + (change[i].addr - at(0)), byte, change[i].len);
}

static size_t nr_patches(size_t nr)
{
	size_t n = 0;
	for (size_t i = 0; i < nr; i++)
		n += patch[i] != NULL;
	return n;
}

/* In, other bytes, out; of 160 on ten pages a call for four pages. */
static void test_many(struct tproc *p)
{
	/* The last first: their order does not matter. */
	prepare(160, 100, 250, 40);
	change[0].addr = at(100 + 159 * 250);
	change[159].addr = at(100);
	unsigned long written = writing_calls(), then = reading_calls();
	int ret = make(p, 160, TPATCH_WRITE, 2);
	unsigned long nr = reading_calls_since(then);
	written = writing_calls() - written;
	check_int(ret, 0);
	check_int(nr, 3);
	check_int(written, 3);
	check_int(plan.nr_composed, 160);
	check(plan.nr_others > 0);
	expect(160, 2);
	check(is_as_wanted(p));
	check_int(nr_patches(160), 160);
	check_int(make(p, 160, TPATCH_WRITE, 3), 0);
	expect(160, 3);
	check(is_as_wanted(p));
	check(plan.first_seen == 2);
	check(*tpatch_old(patch[7]) == 1 && *tpatch_new(patch[7]) == 3);
	check_int(make(p, 160, TPATCH_RESTORE, 0), 0);
	expect(160, 1);
	check(is_as_wanted(p));
	check_int(nr_patches(160), 0);
}

/* What lies between may not be written: each by itself, the same bytes. */
static void test_apart(struct tproc *p)
{
	prepare(20, 64, 250, 250);
	plan.may = false;
	check_int(make(p, 20, TPATCH_WRITE, 4), 0);
	check_int(plan.nr_others, 0); /* nothing does */
	expect(20, 4);
	check(is_as_wanted(p));
	check_int(make(p, 20, TPATCH_RESTORE, 0), 0);
	expect(20, 1);

	prepare(20, 64, 250, 100);
	plan.may = false;
	check_int(make(p, 20, TPATCH_WRITE, 5), 0);
	check_int(plan.nr_others, 150); /* the first of them settles it */
	expect(20, 5);
	check(is_as_wanted(p));
	check_int(nr_patches(20), 20);
}

/* The tenth is somebody else's by now, and one is left: of @nr. */
static void test_others(struct tproc *p)
{
	uint8_t foreign = 0xcc;
	plan.may = true;
	check_int(tmem_write(p, change[10].addr + 50, &foreign, 1), 0);
	want[change[10].addr + 50 - at(0)] = foreign;
	plan.leave = 3;
	check_int(make(p, 20, TPATCH_WRITE, 6), SMCO_BUSY);
	for (size_t i = 0; i < 20; i++)
		if (i != 10 && i != 3)
			memset(want + (change[i].addr - at(0)), 6, 100);
	check(is_as_wanted(p));
	check_int(change[10].ret, SMCO_BUSY);
	check_int(change[3].ret, 0);
	check_int(change[11].ret, 0);
	check(*tpatch_new(patch[10]) == 5 && *tpatch_new(patch[3]) == 5 &&
	      *tpatch_new(patch[11]) == 6);
	/* It stays his when the patches go, all of the tenth. */
	plan.leave = MOST;
	check_int(make(p, 20, TPATCH_RESTORE, 0), 0);
	for (size_t i = 0; i < 20; i++)
		if (i != 10)
			memset(want + (change[i].addr - at(0)), 1, 100);
	check(is_as_wanted(p));
	check_int(nr_patches(20), 0);
	uint8_t mine[100];
	memset(mine, 1, sizeof(mine));
	tmem_write(p, change[10].addr, mine, sizeof(mine));
	memset(want + (change[10].addr - at(0)), 1, 100);
}

/* One is where nothing is mapped: the others are made. */
static void test_nowhere(struct tproc *p)
{
	prepare(8, AREA - 3 * 512 - 100, 512, 60);
	check_int(make(p, 8, TPATCH_WRITE, 7), SMCO_FAULT);
	for (size_t i = 0; i < 8; i++)
		check_int(change[i].ret, i < 4 ? 0 : SMCO_FAULT);
	expect(4, 7);
	check(is_as_wanted(p));
	check_int(nr_patches(8), 4);
}

/* In the puppet. */
static long nr_other(long byte, long unused)
{
	long nr = 0;
	(void)unused;
	for (size_t i = 0; i < AREA; i++)
		nr += area[i] != byte;
	return nr;
}

int main(void)
{
	struct smco_err err = {0};
	struct tracer *tr;
	const struct tracer_options opts = {0};
	area = mmap(NULL, AREA + PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(area + AREA, PAGE);
	memset(area, 1, AREA);
	memset(want, 1, AREA);
	mprotect(area, AREA, PROT_READ);
	struct puppet pup = puppet_start();
	if (!check_int(tracer_create(&tr, &opts, &err), 0))
		return tap_done();
	struct tproc *p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	check_int(traced_stop(p, &err), 0);
	check(is_as_wanted(p)); /* its file is open now */
	test_many(p);
	test_apart(p);
	test_others(p);
	test_nowhere(p);
	/* Whoever leaves puts back what is left. */
	check_int(tproc_detach(p, &err), 0);
	check_int(puppet_do(&pup, nr_other, 1, 0), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
