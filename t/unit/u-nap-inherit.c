/*
 * What a forked copy has of its parent's blocks: its own when that ends, but
 * for what it has let go of meanwhile, and what its parent allocated after the
 * fork. A copy of the copy has what both have left.
 */
#include "t/unit/napsim.h"

#include <string.h>

#define NAP_NS	(100 * MS)
#define SIZE	NAPSIM_SIZE
#define ADDR(i) (NAPSIM_BLOCK + (i)*4 * SIZE)
#define NR	8

static bool is_shared; /* nothing can be reset then */
static unsigned nr_of_pid[4];
static uint32_t stack_of[4][NR + 1]; /* by pid and block */

static int collect(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	for (size_t i = 0; i < n; i++) {
		r[i].nr_present = NAPSIM_NR_PAGES;
		r[i].nr_touched = r[i].nr_aged = 0;
		r[i].first_touched = 0;
	}
	return 0;
}

static int arm(struct access *a, struct page_range *r, size_t n)
{
	collect(a, r, n);
	for (size_t i = 0; i < n; i++) {
		r[i].nr_stuck = is_shared ? NAPSIM_NR_PAGES : 0;
		r[i].nr_reset = NAPSIM_NR_PAGES - r[i].nr_stuck;
	}
	return 0;
}

static const struct access_ops ops = NAPSIM_POLLED(arm, collect);

static void note(void *ctx, const struct record *r)
{
	(void)ctx;
	if (r->event != EV_NAP)
		return;
	const struct ev_nap *nap = r->payload;
	uint64_t i = (nap->addr - NAPSIM_BLOCK) / (4 * SIZE);
	if (!stack_of[nap->pid][i])
		nr_of_pid[nap->pid]++;
	stack_of[nap->pid][i] = nap->alloc_stack;
}

static void tell(struct nap_proc *np, enum heap_event_kind kind, unsigned i,
		 uint32_t stack)
{
	const struct heap_event ev = {
		.kind = kind,
		.time_ns = now,
		.addr = ADDR(i),
		.size = SIZE,
		.stack = stack,
	};
	nap_heap_event(np, &ev);
}

static void start(struct napsim *s)
{
	napsim_start(s, &ops, INT64_MAX, NAP_NS, note);
	memset(nr_of_pid, 0, sizeof(nr_of_pid));
	memset(stack_of, 0, sizeof(stack_of));
	for (unsigned i = 0; i < NR; i++)
		tell(s->np, HEAP_ALLOC, i, 100 + i);
	now += NSEC_PER_SEC;
}

static struct nap_proc *copy(struct napsim *s, pid_t pid,
			     const struct nap_proc *parent)
{
	struct nap_proc *np = nap_proc_create(s->n, pid, &s->a);
	nap_copied(np, parent, now);
	now += MS;
	return np;
}

static void test_daemon(void)
{
	struct napsim s;
	start(&s);
	struct nap_proc *np = copy(&s, 2, s.np);
	tell(s.np, HEAP_ALLOC, NR, 100 + NR);
	tell(np, HEAP_FREE, 1, 0);
	tell(np, HEAP_UNMAP, 2, 0);
	tell(np, HEAP_FREE, 3, 0);
	tell(np, HEAP_ALLOC, 3, 203);
	tell(s.np, HEAP_FREE, 4, 0);
	nap_proc_destroy(s.np, now, true);
	s.np = np;
	napsim_run_until(&s, now + 2 * NAP_NS);
	check_int(nr_of_pid[2], NR - 3); /* 0, 3, 5, 6, 7 */
	check_int(stack_of[2][0], 100);
	check_int(stack_of[2][1], 0);
	check_int(stack_of[2][2], 0);
	check_int(stack_of[2][3], 203);
	check_int(stack_of[2][4], 0);
	check_int(stack_of[2][7], 107);
	check_int(stack_of[2][NR], 0);
	/* They end as others do. */
	tell(np, HEAP_FREE, 7, 0);
	struct nap_stats st;
	nap_get_stats(s.n, &st);
	check_int(st.nr_known, NR - 4);
	napsim_stop(&s);
}

/* The first copy ends before it is heard that its parent has, or after. */
static void test_twice(bool first_ends_first)
{
	struct napsim s;
	start(&s);
	struct nap_proc *first = copy(&s, 2, s.np);
	tell(first, HEAP_FREE, 1, 0);
	struct nap_proc *np = copy(&s, 3, first);
	tell(np, HEAP_FREE, 2, 0);
	nap_proc_destroy(first_ends_first ? first : s.np, now, true);
	nap_proc_destroy(first_ends_first ? s.np : first, now, true);
	s.np = np;
	napsim_run_until(&s, now + 2 * NAP_NS);
	check_int(nr_of_pid[3], NR - 2);
	check_int(stack_of[3][0], 100);
	check_int(stack_of[3][1], 0);
	check_int(stack_of[3][2], 0);
	napsim_stop(&s);
}

/* It is left, and goes on with them. */
static void test_left(void)
{
	struct napsim s;
	start(&s);
	struct nap_proc *np = copy(&s, 2, s.np);
	nap_proc_destroy(s.np, now, false);
	s.np = np;
	napsim_run_until(&s, now + 2 * NAP_NS);
	check_int(nr_of_pid[2], 0);
	napsim_stop(&s);
}

/* A copy of others may share them for a moment. */
static void test_shared(void)
{
	struct napsim s;
	start(&s);
	struct nap_proc *np = copy(&s, 2, s.np);
	nap_proc_destroy(s.np, now, true);
	s.np = np;
	is_shared = true;
	napsim_run_until(&s, now + 3 * NAP_NS);
	check_int(nr_of_pid[2], 0);
	is_shared = false;
	napsim_run_until(&s, now + 2 * NSEC_PER_SEC);
	check_int(nr_of_pid[2], NR);
	napsim_stop(&s);
}

/* Of who lets go of very much nothing is known any more. */
static void test_much(void)
{
	struct napsim s;
	start(&s);
	struct nap_proc *np = copy(&s, 2, s.np);
	for (unsigned i = 0; i < 20000; i++)
		tell(np, HEAP_FREE, 100 + i, 0);
	nap_proc_destroy(s.np, now, true);
	s.np = np;
	napsim_run_until(&s, now + 2 * NAP_NS);
	check_int(nr_of_pid[2], 0);
	napsim_stop(&s);
}

int main(void)
{
	test_daemon();
	test_twice(true);
	test_twice(false);
	test_left();
	test_shared();
	test_much();
	return tap_done();
}
