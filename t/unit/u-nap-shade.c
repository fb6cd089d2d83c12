/*
 * A block directly above a stack that is sampled: the copy of the stack touches
 * its first pages, which is no use of it. Its other pages tell of naps, which
 * say that the first ones were not watched; once there are no samples these
 * tell, too. A block that has hardly any others is not watched.
 */
#include "t/unit/napsim.h"

#define PAGES	  64
#define REACHED	  4 /* by a copy */
#define SP	  (NAPSIM_BLOCK - 200)
#define COPY	  16384
#define NAP_NS	  (500 * MS)
#define READ_LATE 4 /* steps until a sample is read */

static bool young[PAGES];
static struct napsim *sim;
static bool is_sampled;
static uint64_t pending[READ_LATE];
static struct ev_coverage shared;

static int fake_collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		uint64_t k = (r[i].start - NAPSIM_BLOCK) / TPAGE_SIZE;
		uint64_t end = (r[i].end - NAPSIM_BLOCK) / TPAGE_SIZE;
		r[i].nr_present = (uint32_t)(end - k);
		r[i].nr_touched = 0;
		r[i].first_touched = 0;
		for (; k < end; k++) {
			r[i].nr_touched += young[k];
			if (young[k] && !r[i].first_touched)
				r[i].first_touched =
					NAPSIM_BLOCK + k * TPAGE_SIZE;
		}
	}
	return 0;
}

static int fake_arm(struct access *a, struct page_range *r, size_t n)
{
	fake_collect(a, r, n); /* arm says so, too */
	for (size_t i = 0; i < n; i++) {
		for (taddr_t at = r[i].start; at < r[i].end; at += TPAGE_SIZE)
			young[(at - NAPSIM_BLOCK) / TPAGE_SIZE] = false;
		r[i].nr_reset = r[i].nr_touched;
		r[i].nr_stuck = r[i].nr_waiting = 0;
	}
	return 0;
}

static const struct access_ops fake_ops = NAPSIM_POLLED(fake_arm, fake_collect);

static void tell(uint64_t *when)
{
	if (*when)
		nap_sampled(sim->np, SP, SP + COPY, *when);
	*when = 0;
}

static void read_samples(void *ctx)
{
	(void)ctx;
	for (unsigned i = 0; i < READ_LATE; i++)
		tell(&pending[i]);
}

static void emit(void *ctx, const struct record *r)
{
	if (r->event == EV_COVERAGE && r->param == COVER_SHARED)
		shared = *(const struct ev_coverage *)r->payload;
	napsim_emit(ctx, r);
}

/* In steps; a page that the program uses every @every_ns, if that is not 0. */
static void run_using(uint64_t ns, unsigned page, uint64_t every_ns)
{
	static unsigned step;
	for (uint64_t end = now + ns; now < end;) {
		tell(&pending[++step % READ_LATE]);
		if (is_sampled) {
			for (unsigned k = 0; k < REACHED; k++)
				young[k] = true;
			pending[step % READ_LATE] = now;
		}
		if (every_ns && now / (10 * MS) % (every_ns / (10 * MS)) == 0)
			young[page] = true;
		napsim_run_until(sim, now + 10 * MS);
	}
}

static void run(uint64_t ns)
{
	run_using(ns, 0, 0);
}

static unsigned nr_ended(void)
{
	return nr_naps - nr_ongoing;
}

static void start(struct napsim *s, unsigned pages)
{
	for (unsigned k = 0; k < PAGES; k++)
		young[k] = true;
	nr_naps = nr_ongoing = 0;
	sim = s;
	napsim_start(s, &fake_ops, PPB, NAP_NS, emit);
	napsim_allocate(s, NAPSIM_BLOCK + 16, pages * TPAGE_SIZE - 16);
}

static void test_from_the_beginning(void)
{
	struct napsim s;
	start(&s, PAGES);
	is_sampled = true;
	run(3000 * MS);
	check_int(nr_naps, 1);
	check_int(last.flags & NAP_HEAD_UNSEEN, NAP_HEAD_UNSEEN);
	young[PAGES - 1] = true;
	run(200 * MS);
	check_int(nr_ended(), 1);
	check_int(last.flags & NAP_UNWATCHED, 0);
	run_using(3000 * MS, PAGES / 2, 300 * MS);
	check_int(nr_naps, 2);

	/* The stack's thread is gone: the first pages tell, too. */
	is_sampled = false;
	run(3000 * MS);
	check_int(nr_ended(), 1);
	young[0] = true;
	run(600 * MS);
	check_int(nr_ended(), 2);
	run(3000 * MS);
	check_int(nr_ended(), 2);
	check_int(last.flags & NAP_ONGOING, NAP_ONGOING);
	check_int(last.flags & NAP_HEAD_UNSEEN, 0);
	young[0] = true;
	run(600 * MS);
	check_int(nr_ended(), 3);
	unsigned was = nr_naps;
	run_using(5000 * MS, 0, 300 * MS);
	check_int(nr_naps, was);
	napsim_stop(&s);
}

static void test_later(void)
{
	struct napsim s;
	start(&s, PAGES);
	is_sampled = false;
	run(2000 * MS);
	check_int(nr_naps, 1);
	check_int(last.flags & NAP_HEAD_UNSEEN, 0);
	is_sampled = true;
	run(3000 * MS);
	check_int(nr_ended(), 0);
	young[PAGES / 2] = true;
	run(200 * MS);
	check_int(nr_ended(), 1);
	check_int(last.flags & NAP_HEAD_UNSEEN, NAP_HEAD_UNSEEN);
	napsim_stop(&s);
}

static void test_small(void)
{
	struct napsim s;
	start(&s, REACHED + 2);
	is_sampled = true;
	run(5000 * MS);
	check_int(nr_naps, 0);
	is_sampled = false;
	run(15000 * MS);
	check_int(nr_naps, 1);
	is_sampled = true;
	run(2000 * MS);
	check_int(nr_ended(), 1);
	check_int(last.flags & NAP_UNWATCHED, NAP_UNWATCHED);
	nap_proc_destroy(s.np, now, true);
	nap_emit_coverage(s.n);
	check_int(shared.nr_objects, 1);
	nap_destroy(s.n);
	control_destroy(s.c);
	ledger_destroy(s.l);
}

int main(void)
{
	napsim_read_samples = read_samples;
	test_from_the_beginning();
	test_later();
	test_small();
	return tap_done();
}
