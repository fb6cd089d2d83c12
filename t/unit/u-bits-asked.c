/*
 * Of which pages it is asked whether somebody else took their mark away, which
 * takes ten times as long as a look: of ranges for which it is wanted and in
 * which nothing is touched. In place of the kernel's page tables there are ours
 * here, so that it does not need anybody who takes marks away.
 */
#include "supervisor/probe/ptread.h"
#include "t/unit/pidproc.h"
#include "t/unit/tap.h"

#include "supervisor/probe/access.h"

#define NR_PAGES 4096
#define BASE	 0x10000000ul

static bool is_touched[NR_PAGES], is_aged[NR_PAGES];
static unsigned nr_asked; /* pages, since it was set to 0 */
static struct ptread_slot slots[PTREAD_MAX_SLOTS];
static struct access *a;

int ptread_get(struct ptread **ret, struct smco_err *err)
{
	(void)err;
	*ret = NULL;
	return 0;
}

void ptread_put(struct ptread *pt)
{
	(void)pt;
}

struct ptread_slot *ptread_slots(struct ptread *pt)
{
	(void)pt;
	return slots;
}

static void answer(struct ptread_slot *s)
{
	size_t end = (s->end - BASE) / TPAGE_SIZE;
	s->nr_present = s->nr_touched = s->nr_aged = s->nr_huge = s->flags = 0;
	s->first_touched = 0;
	for (size_t i = (s->start - BASE) / TPAGE_SIZE; i < end; i++) {
		s->nr_present++;
		nr_asked += s->want_aged;
		s->nr_aged += s->want_aged && is_aged[i];
		if (is_touched[i] && !s->nr_touched++)
			s->first_touched = BASE + i * TPAGE_SIZE;
	}
	s->want_aged = 0;
}

int ptread_scan(struct ptread *pt, int pagemap_fd, size_t nr,
		struct ptread_mm *mm)
{
	(void)pt;
	(void)pagemap_fd;
	mm->task_size = 1ul << 47;
	for (size_t k = 0; k < nr; k++)
		answer(&slots[k]);
	return 0;
}

static struct page_range pages(size_t first, size_t nr, bool want_aged)
{
	return (struct page_range){
		.start = BASE + first * TPAGE_SIZE,
		.end = BASE + (first + nr) * TPAGE_SIZE,
		.want_aged = want_aged,
	};
}

static void look(struct page_range *r, size_t n)
{
	nr_asked = 0;
	check_int(a->ops->collect(a, r, n), 0);
}

/* Several page tables, which are looked at in pieces. */
static void test_quiet(void)
{
	struct page_range r = pages(3, 2000, true);
	is_aged[5] = is_aged[1600] = true;
	look(&r, 1);
	check_int(r.nr_aged, 2);
	check_int(r.nr_touched, 0);
	check_int(r.nr_present, 2000); /* each once, though looked at twice */
	check_int(nr_asked, 2000);

	r.want_aged = false;
	look(&r, 1);
	check_int(r.nr_aged, 0);
	check_int(nr_asked, 0);
}

/* Touched at one end: the other one, looked at before, is not asked, either. */
static void test_touched(void)
{
	struct page_range r = pages(3, 2000, true);
	is_touched[2000] = true;
	look(&r, 1);
	check_int(r.nr_aged, 0);
	check_int(r.nr_touched, 1);
	check(r.first_touched == BASE + 2000 * TPAGE_SIZE);
	check_int(nr_asked, 0);
}

/* Each range by itself. */
static void test_some(void)
{
	struct page_range r[] = {
		pages(0, 10, true),	 pages(10, 1000, false),
		pages(1500, 1000, true), /* touched */
		pages(3000, 600, true),	 pages(3600, 10, true),
	};
	is_aged[3599] = is_aged[3600] = true;
	look(r, ARRAY_SIZE(r));
	check_int(r[0].nr_aged, 1);
	check_int(r[1].nr_aged, 0);
	check_int(r[2].nr_aged, 0);
	check_int(r[3].nr_aged, 1);
	check_int(r[4].nr_aged, 1);
	check_int(r[2].nr_touched, 1);
	check_int(r[1].nr_present, 1000);
	check_int(r[3].nr_present, 600);
	check_int(nr_asked, 10 + 600 + 10);
}

int main(void)
{
	struct tproc self = {getpid()};
	struct smco_err err = {0};
	if (!check_int(access_bits.open(&self, &a, &err), 0))
		return tap_done();
	test_quiet();
	test_touched();
	test_some();
	a->ops->close(a);
	return tap_done();
}
