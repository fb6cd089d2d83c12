/*
 * The NAP monitor on a simulated program: virtual time, a fake mechanism that
 * behaves like accessed bits, blocks with known busy and idle spans. Every
 * reported nap must have happened; with budget enough, every nap must be
 * found and its length known.
 */
#include <stdlib.h>

#include "t/unit/napsim.h"
#include "t/unit/rnd.h"

#define MAX_BLOCKS 4000
#define MAX_NAPS   16

/* A simulated block: touched every @period during busy spans, at one page or
 * at pages that walk through the block. */
struct sim {
	taddr_t addr;
	uint64_t pages;
	uint64_t period_ns;
	bool walks;
	bool never;
	unsigned nr_idle;
	struct {
		uint64_t start, end; /* no access in (start, end) */
	} idle[MAX_NAPS];
	uint64_t next_touch;
	uint64_t nr_touches;
	uint8_t *young, *present;
	unsigned found[MAX_NAPS];
};

static struct sim sims[MAX_BLOCKS];
static unsigned nr_sims;
static uint64_t nr_first_touches; /* what the program paid for */
static unsigned nr_false, nr_bad_length, nr_reported;

static struct sim *sim_of(taddr_t addr)
{
	return &sims[(addr >> 32) - 1];
}

static void touch(struct sim *s, uint64_t page)
{
	s->present[page] = 1;
	if (!s->young[page])
		nr_first_touches++;
	s->young[page] = 1;
}

/* When @s is touched after this time. An idle span begins with the last touch
 * before it. */
static uint64_t next_touch(struct sim *s)
{
	uint64_t t = s->next_touch + s->period_ns;
	for (unsigned i = 0; i < s->nr_idle; i++)
		if (t > s->idle[i].start && t < s->idle[i].end) {
			s->idle[i].start = s->next_touch;
			return s->idle[i].end;
		}
	return t;
}

static void run_until(uint64_t t)
{
	for (unsigned i = 0; i < nr_sims; i++) {
		struct sim *s = &sims[i];
		while (!s->never && s->next_touch <= t) {
			touch(s, s->walks ? s->nr_touches % s->pages
					  : s->pages / 2);
			s->nr_touches++;
			s->next_touch = next_touch(s);
		}
	}
	now = t;
}

/* ---- the fake mechanism ---- */

static int fake_collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		struct sim *s = sim_of(r[i].start);
		r[i].nr_present = r[i].nr_touched = 0;
		r[i].first_touched = 0;
		for (taddr_t p = r[i].start; p < r[i].end; p += TPAGE_SIZE) {
			uint64_t k = (p - s->addr) / TPAGE_SIZE;
			r[i].nr_present += s->present[k];
			r[i].nr_touched += s->young[k];
			if (s->young[k] && !r[i].first_touched)
				r[i].first_touched = p;
		}
	}
	return 0;
}

static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	fake_collect(a, r, n); /* arm says so, too */
	for (size_t i = 0; i < n; i++) {
		struct sim *s = sim_of(r[i].start);
		for (taddr_t p = r[i].start; p < r[i].end; p += TPAGE_SIZE)
			s->young[(p - s->addr) / TPAGE_SIZE] = 0;
		r[i].nr_reset = 0;
	}
	return 0;
}

static const struct access_ops fake_ops = NAPSIM_POLLED(fake_arm, fake_collect);

/* ---- judging the records ---- */

static uint64_t threshold;

static void judge(void *ctx, const struct record *r)
{
	(void)ctx;
	if (r->event != EV_NAP)
		return;
	const struct ev_nap *nap = r->payload;
	struct sim *s = sim_of(nap->addr);
	uint64_t mid = nap->start_ns + nap->length_ns / 2;
	nr_reported++;
	for (unsigned i = 0; i < s->nr_idle; i++) {
		if (mid < s->idle[i].start || mid > s->idle[i].end)
			continue;
		uint64_t len = s->idle[i].end - s->idle[i].start;
		if (len < threshold)
			break;
		s->found[i]++;
		if (nap->flags & NAP_ONGOING)
			return;
		int64_t off = (int64_t)(nap->length_ns - len);
		uint64_t tolerance = len / 20 > 20 * MS ? len / 20 : 20 * MS;
		if ((uint64_t)llabs(off) > tolerance ||
		    (uint64_t)llabs(off) > nap->error_ns + 1) {
			nr_bad_length++;
			printf("# block %u: off by %" PRId64 " us of %" PRIu64
			       " ms, error %" PRIu64 " us\n",
			       (unsigned)(s - sims), off / 1000, len / MS,
			       nap->error_ns / 1000);
		}
		return;
	}
	nr_false++;
	printf("# false nap: block %u start %" PRIu64 " length %" PRIu64 "\n",
	       (unsigned)(s - sims), nap->start_ns / MS, nap->length_ns / MS);
}

static uint64_t rnd_state = 88172645463325252ull;
static uint64_t rnd(uint64_t n)
{
	return rnd_next(&rnd_state) % n;
}

static void add_sim(uint64_t pages, uint64_t period, bool walks)
{
	struct sim *s = &sims[nr_sims++];
	memset(s, 0, sizeof(*s));
	s->addr = (taddr_t)nr_sims << 32;
	s->pages = pages;
	s->period_ns = period;
	s->walks = walks;
	s->young = calloc(pages, 1);
	s->present = calloc(pages, 1);
}

static void add_idle(struct sim *s, uint64_t start, uint64_t len)
{
	s->idle[s->nr_idle].start = start;
	s->idle[s->nr_idle++].end = start + len;
}

struct outcome {
	unsigned nr_true, nr_found;
	double overhead; /* of the program's run time, from outside */
	uint64_t bytes_per_block;
};

/* Run the simulated program for @length under @target; sims are set up. */
static struct outcome simulate(int64_t target_ppb, uint64_t length)
{
	struct napsim sim, *w = &sim;
	now = NSEC_PER_SEC;
	napsim_start(w, &fake_ops, target_ppb, threshold, judge);
	uint64_t start = now, tick = nap_window_ns(w->n);
	struct outcome out = {0};

	nr_first_touches = nr_false = nr_bad_length = nr_reported = 0;
	for (unsigned i = 0; i < nr_sims; i++) {
		struct heap_event ev = {
			.kind = HEAP_ALLOC,
			.time_ns = now,
			.addr = sims[i].addr,
			.size = sims[i].pages * TPAGE_SIZE,
			.stack = 1 + i % 7,
		};
		/* initialised by the program, as programs do */
		memset(sims[i].young, !sims[i].never, sims[i].pages);
		memset(sims[i].present, !sims[i].never, sims[i].pages);
		sims[i].next_touch = now + rnd(sims[i].period_ns);
		nap_heap_event(w->np, &ev);
	}
	while (now < start + length) {
		run_until(now + tick);
		ledger_advance(w->l, now, tick);
		control_tick(w->c, now, tick);
		while (nap_tick(w->n, now))
			;
	}
	struct nap_stats st;
	struct ledger_totals lt;
	ledger_get(w->l, &lt);
	printf("# ledger: spent %.3f ms, touches cost %.3f ms\n",
	       (double)lt.spent_ns / MS,
	       (double)nr_first_touches * NAPSIM_COST_NS / MS);
	nap_get_stats(w->n, &st);
	out.bytes_per_block = st.bytes / nr_sims;
	out.overhead =
		(double)(nr_first_touches * NAPSIM_COST_NS) / (double)length;
	napsim_stop(w);
	for (unsigned i = 0; i < nr_sims; i++)
		for (unsigned k = 0; k < sims[i].nr_idle; k++) {
			uint64_t len =
				sims[i].idle[k].end - sims[i].idle[k].start;
			if (len < threshold + threshold / 10 ||
			    sims[i].idle[k].end > start + length)
				continue;
			out.nr_true++;
			out.nr_found += sims[i].found[k] > 0;
		}
	return out;
}

static void clear_sims(void)
{
	for (unsigned i = 0; i < nr_sims; i++) {
		free(sims[i].young);
		free(sims[i].present);
	}
	nr_sims = 0;
}

/* Blocks of 2 pages to 64 MiB, some idle for a while, some hot. */
static void make_schedule(unsigned nr, uint64_t length, bool heavy)
{
	for (unsigned i = 0; i < nr; i++) {
		uint64_t pages = i % 97 == 5 && heavy ? 16384 : 2 + rnd(300);
		add_sim(pages, (1 + rnd(12)) * MS, heavy && rnd(2));
		uint64_t t = 3 * NSEC_PER_SEC + rnd(length / 2);
		for (unsigned k = 0; k < 3; k++) {
			uint64_t len = threshold / 4 + rnd(2 * threshold);
			add_idle(&sims[i], t, len);
			t += len + threshold / 2 + rnd(threshold);
		}
	}
}

static void test_schedule(int64_t target_percent, double min_recall, bool heavy)
{
	threshold = NSEC_PER_SEC;
	make_schedule(300, 12 * NSEC_PER_SEC, heavy);
	struct outcome o =
		simulate(target_percent * (PPB / 100), 14 * NSEC_PER_SEC);
	clear_sims();
	printf("# target %" PRId64 " %%: %u of %u found, overhead %.3f %%, "
	       "%" PRIu64 " bytes a block\n",
	       target_percent, o.nr_found, o.nr_true, o.overhead * 100,
	       o.bytes_per_block);
	check_int(nr_false, 0);
	/* One in a hundred may have had to wait for its turn. */
	if (target_percent >= 10)
		check(nr_bad_length * 100 <= o.nr_true);
	check(o.nr_true > 200);
	check_range((double)o.nr_found / o.nr_true, min_recall, 1);
	check_range(o.overhead, 0, (double)target_percent / 100);
}

static void test_off(void)
{
	threshold = NSEC_PER_SEC;
	make_schedule(50, 4 * NSEC_PER_SEC, true);
	struct outcome o = simulate(0, 5 * NSEC_PER_SEC);
	clear_sims();
	check_int(nr_first_touches, 0);
	check_int(nr_reported, 0);
	check_int(o.nr_found, 0);
}

/* One huge block that is walked through all the time must not explode. */
static void test_huge_busy(int64_t target_percent)
{
	threshold = NSEC_PER_SEC;
	add_sim(1 << 20, 2000, true);
	struct outcome o =
		simulate(target_percent * (PPB / 100), 5 * NSEC_PER_SEC);
	clear_sims();
	printf("# huge busy block at %" PRId64 " %%: overhead %.3f %%\n",
	       target_percent, o.overhead * 100);
	/* the promise: at most a point above, or a tenth */
	check_range(o.overhead, 0, (double)target_percent / 100 + 0.01);
	check_int(nr_reported, 0);
}

/* Large blocks that look quiet for a while, and never are, may not keep the
 * small ones from getting their turns. */
static void test_large_beside_small(void)
{
	threshold = NSEC_PER_SEC;
	for (unsigned i = 0; i < 40; i++)
		add_sim(16384, 150 * MS, true);
	for (unsigned i = 0; i < 300; i++) {
		add_sim(3, (20 + rnd(60)) * MS, false);
		add_idle(&sims[nr_sims - 1], 2 * NSEC_PER_SEC + rnd(threshold),
			 3 * threshold);
		add_idle(&sims[nr_sims - 1], 7 * NSEC_PER_SEC + rnd(threshold),
			 3 * threshold);
	}
	struct outcome o = simulate(PPB / 100, 12 * NSEC_PER_SEC);
	clear_sims();
	printf("# small beside large: %u of %u found, overhead %.3f %%\n",
	       o.nr_found, o.nr_true, o.overhead * 100);
	check_int(o.nr_true, 600);
	check_range((double)o.nr_found / o.nr_true, 0.95, 1);
	check_int(nr_false, 0);
}

static void test_never_touched(void)
{
	threshold = NSEC_PER_SEC;
	add_sim(1000, MS, false);
	sims[0].never = true;
	add_idle(&sims[0], 0, 100 * NSEC_PER_SEC);
	simulate(PPB / 100, 3 * NSEC_PER_SEC);
	check(nr_reported > 0);
	check_int(nr_first_touches, 0);
	check_int(nr_false, 0);
	clear_sims();
}

int main(void)
{
	test_off();
	test_never_touched();
	test_schedule(10, 1.0, true);
	test_schedule(1, 0.95, false);
	test_large_beside_small();
	test_huge_busy(10);
	test_huge_busy(1);
	return tap_done();
}
