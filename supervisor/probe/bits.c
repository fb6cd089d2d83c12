/*
 * Accessed bits: the processor sets one in the page table entry at the first
 * access after it was cleared. collect reads them (ptread.h), arm clears them
 * by process_madvise(MADV_COLD), which also moves the pages towards the end of
 * the kernel's reclaim list: under memory pressure watched pages go first.
 *
 * Huge mappings. A 2 MiB mapping has one bit, and MADV_COLD on a part of it
 * would split it, which costs the program for the rest of its life. So a huge
 * mapping at the edge of a range is reset as a whole, and what that hides
 * from other ranges in the same 2 MiB is remembered in huge_seen: collect
 * counts such a mapping as touched when its bit is set now or was set at a
 * reset after the range was armed (page_range.armed_ns). Between the look and
 * the reset lie some microseconds whose touches are lost, as with every page.
 *
 * Others clear bits, too: reclaim, and DAMON, which does not flush the TLB, so
 * that what is accessed afterwards leaves no mark at all. DAMON marks the page
 * instead ("young"), and so does idle page tracking. MADV_COLD takes the mark
 * away whether or not the bit is set, so a mark that is there later is an
 * access since (nr_aged). Reclaim leaves none.
 *
 * The kernel gets at pages without the page table's bits, too, where it looks
 * them up for a device (O_DIRECT): it marks those as "referenced", which is
 * taken for the same.
 */
#include "reports/procfs.h"
#include "supervisor/probe/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "supervisor/probe/bits-cost.h"
#include "supervisor/probe/bits-reset.h"
#include "supervisor/probe/hop.h"
#include "supervisor/probe/hugeseen.h"
#include "supervisor/probe/lrudrain.h"
#include "supervisor/probe/pagestate.h"
#include "supervisor/probe/ptread.h"

#define HUGE_SIZE    (2ULL << 20)
#define HUGE_DOWN(a) ((a) & ~(HUGE_SIZE - 1))
#define HUGE_UP(a)   HUGE_DOWN((a) + HUGE_SIZE - 1)

/* Pages of a range of which some are touched. */
struct reset_span {
	taddr_t start, end;
	uint32_t range; /* index */
	uint32_t flags; /* enum ptread_flags */
};

/* How far arming or looking has come: from @next on in range @at; 0 = all of
 * it. */
struct progress {
	size_t at;
	taddr_t next;
};

struct bits {
	struct access access;
	struct ptread *pt;
	int pagemap_fd;	     /* -1 = not open */
	struct ptread_mm mm; /* at the last look */
	struct bits_cost cost;
	struct bits_reset reset;
	struct hugeseen huge_seen;
	/* Scratch of one chunk: which range a slot is for; what is reset, in
	 * order of address, and by which iovec. */
	uint32_t range_of[PTREAD_MAX_SLOTS];
	struct reset_span span[PTREAD_MAX_SLOTS];
	uint32_t iov_of[PTREAD_MAX_SLOTS];
	struct iovec iov[PTREAD_MAX_SLOTS];
	int iov_errno[PTREAD_MAX_SLOTS];
};

static struct bits *bits_of(struct access *a)
{
	return (struct bits *)a;
}

static bool is_valid(const struct bits *b, const struct page_range *r)
{
	return r->start < r->end && r->end <= b->mm.task_size &&
	       !(r->start & (TPAGE_SIZE - 1)) && !(r->end & (TPAGE_SIZE - 1));
}

static int scan(struct bits *b, size_t nr)
{
	return ptread_scan(b->pt, b->pagemap_fd, nr, &b->mm);
}

/* Spans to be reset, the first ones, and how many bits are set in them. */
struct to_reset {
	size_t nr;
	uint64_t nr_pages;
};

/* Spans of several pages: of one that is alone a bit that is set again is most
 * likely a touch. */
static bool is_wide(const struct reset_span *s)
{
	return s->end - s->start > TPAGE_SIZE;
}

/*
 * After a reset of @n spans: whose bits are still set? Either the page is hot
 * and was touched again, or it is new and not reset yet (lrudrain.h), or it
 * cannot be reset. Or it was off the kernel's lists just then: reclaim, with or
 * without need (DAMON), takes pages away by the hundred, and soon brings most
 * of them back. *@again, unless it is NULL: the spans that may be so of, which
 * are to be reset once more.
 */
static int find_stuck(struct bits *b, struct page_range *r, size_t n,
		      struct to_reset *again)
{
	struct ptread_slot *slots = ptread_slots(b->pt);
	bool is_waiting = false;
	for (size_t k = 0; k < n; k++) {
		slots[k].start = b->span[k].start;
		slots[k].end = b->span[k].end;
	}
	int err = scan(b, n);
	if (err)
		return err;
	for (size_t k = 0; k < n; k++) {
		struct page_range *pr = &r[b->span[k].range];
		uint32_t young = slots[k].nr_touched, stuck = young;
		if (!young)
			continue;
		if (b->iov_errno[b->iov_of[k]] != EINVAL) {
			struct pagestate st = pagestate_get(
				b->pagemap_fd, slots[k].first_touched,
				b->span[k].end);
			if (st.nr_shared < young)
				stuck = st.nr_shared;
			if (again && stuck < young && !st.nr_waiting &&
			    is_wide(&b->span[k])) {
				b->span[again->nr++] = b->span[k];
				again->nr_pages += young;
				continue;
			}
			pr->nr_waiting += st.nr_waiting;
			is_waiting |= stuck < young;
		} /* else locked, hugetlb, device memory */
		pr->nr_stuck += stuck;
		pr->nr_reset -= stuck < pr->nr_reset ? stuck : pr->nr_reset;
	}
	if (is_waiting)
		lrudrain_ask(b->mm.cpu_mask);
	return 0;
}

/* Widen [*start, *end) over huge mappings at its edges and remember what the
 * reset of those hides from others. */
static void widen(struct bits *b, const struct reset_span *s, uint64_t now,
		  taddr_t *start, taddr_t *end)
{
	*start = s->start;
	*end = s->end;
	if (s->flags & PTREAD_FIRST_HUGE && HUGE_DOWN(*start) != *start) {
		*start = HUGE_DOWN(*start);
		if (s->flags & PTREAD_FIRST_YOUNG)
			hugeseen_note(&b->huge_seen, *start, now);
	}
	if (s->flags & PTREAD_LAST_HUGE && HUGE_UP(*end) != *end) {
		*end = HUGE_UP(*end);
		if (s->flags & PTREAD_LAST_YOUNG)
			hugeseen_note(&b->huge_seen, *end - HUGE_SIZE, now);
	}
}

/* Insertion sort by address: mostly sorted already. */
static void sort_spans(struct reset_span *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct reset_span x = v[i];
		size_t k = i;
		for (; k && v[k - 1].start > x.start; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

/*
 * The iovecs that reset span[0..n): what touches or overlaps is one iovec,
 * since each costs the program's running threads an interrupt.
 */
static size_t build_iov(struct bits *b, size_t n, uint64_t now)
{
	size_t nr = 0;
	taddr_t prev_start = 0, prev_end = 0;
	sort_spans(b->span, n);
	for (size_t k = 0; k < n; k++) {
		taddr_t start, end;
		widen(b, &b->span[k], now, &start, &end);
		if (nr && start <= prev_end) {
			if (end > prev_end)
				prev_end = end;
		} else {
			prev_start = start;
			prev_end = end;
			nr++;
		}
		b->iov[nr - 1] = (struct iovec){
			.iov_base =
				(void *)(uintptr_t)prev_start, /* tracee's */
			.iov_len = prev_end - prev_start};
		b->iov_of[k] = (uint32_t)(nr - 1);
	}
	return nr;
}

/* Is it left to be asked what of it is aged? What is touched is not quiet,
 * whoever else was there. */
static bool is_to_ask(const struct page_range *r)
{
	return r->want_aged && !r->nr_touched;
}

/*
 * The next pieces of @r, as many as one look takes. A piece ends where a huge
 * mapping may: in a large range with few pages touched only pieces of it are
 * reset, for a reset costs some 100 ns a page, touched or not. @asks: only of
 * those that are to be asked.
 */
static size_t next_pieces(struct bits *b, const struct page_range *r, size_t n,
			  struct progress *pg, bool asks)
{
	struct ptread_slot *slots = ptread_slots(b->pt);
	size_t nr = 0;
	for (; pg->at < n; pg->at++, pg->next = 0) {
		const struct page_range *pr = &r[pg->at];
		if (!is_valid(b, pr) || (asks && !pg->next && !is_to_ask(pr)))
			continue;
		taddr_t start = pg->next ? pg->next : pr->start;
		for (; start < pr->end && nr < PTREAD_MAX_SLOTS; nr++) {
			taddr_t end = HUGE_UP(start + 1);
			slots[nr].start = start;
			slots[nr].end = end < pr->end ? end : pr->end;
			slots[nr].want_aged = asks;
			b->range_of[nr] = (uint32_t)pg->at;
			start = slots[nr].end;
		}
		pg->next = start;
		if (start < pr->end)
			break;
	}
	return nr;
}

/* What of piece @s has to be reset. */
static struct reset_span span_of(const struct ptread_slot *s,
				 const struct page_range *r, uint32_t range)
{
	struct reset_span span = {
		.start = s->start,
		.end = s->end,
		.range = range,
		.flags = s->flags,
	};
	if (!r->was_aged && !s->nr_huge) {
		span.start = s->first_touched;
		span.end = s->touched_end;
	}
	return span;
}

/* Of the pieces that were looked at the spans to be reset; returns how many,
 * *nr_pages_ret how many bits are set in them. */
static size_t find_spans(struct bits *b, struct page_range *r, size_t nr,
			 uint64_t *nr_pages_ret)
{
	const struct ptread_slot *slots = ptread_slots(b->pt);
	size_t nr_spans = 0;
	*nr_pages_ret = 0;
	for (size_t k = 0; k < nr; k++) {
		struct page_range *pr = &r[b->range_of[k]];
		if (pr->nr_reset == UINT32_MAX)
			pr->nr_reset = 0;
		pr->nr_present += slots[k].nr_present;
		pr->nr_touched += slots[k].nr_touched;
		if (slots[k].flags & PTREAD_GIGANTIC) {
			pr->nr_stuck += slots[k].nr_touched;
		} else if (slots[k].nr_touched || pr->was_aged) {
			pr->nr_reset += slots[k].nr_touched;
			*nr_pages_ret += slots[k].nr_touched;
			b->span[nr_spans++] =
				span_of(&slots[k], pr, b->range_of[k]);
		}
	}
	return nr_spans;
}

static int who_runs(void *arg, struct ptread_mm *mm)
{
	struct bits *b = arg;
	mm->want_running = true;
	return ptread_scan(b->pt, b->pagemap_fd, 0, mm);
}

static int reset_spans(struct bits *b, const struct to_reset *t)
{
	struct reset_work w = {
		.iov = b->iov, .error = b->iov_errno, .nr_pages = t->nr_pages};
	w.n = build_iov(b, t->nr, smco_now_ns());
	return bits_reset(&b->reset, &w, &b->mm);
}

/*
 * Of two ranges with a page in common both have seen its bit, which was reset
 * once and will be set once. It counts for the first one by address. Spans, in
 * that order by now, begin and end with a page whose bit was set, but for those
 * of huge mappings and of aged pages.
 */
static void count_once(struct bits *b, struct page_range *r, size_t nr)
{
	taddr_t end = 0;
	for (size_t k = 0; k < nr; k++) {
		const struct reset_span *s = &b->span[k];
		struct page_range *pr = &r[s->range];
		taddr_t both = end < s->end ? end : s->end;
		uint64_t pages =
			both > s->start ? (both - s->start) / TPAGE_SIZE : 0;
		pr->nr_reset -=
			pages < pr->nr_reset ? (uint32_t)pages : pr->nr_reset;
		if (s->end > end)
			end = s->end;
	}
}

static int arm_pieces(struct bits *b, struct page_range *r, size_t nr)
{
	struct to_reset all, again = {0};
	b->mm.want_running = true;
	int err = scan(b, nr);
	b->mm.want_running = false;
	if (err)
		return err;
	all.nr = find_spans(b, r, nr, &all.nr_pages);
	if (all.nr)
		err = reset_spans(b, &all);
	uint64_t now = smco_now_ns();
	count_once(b, r, all.nr);
	if (!err && all.nr)
		err = find_stuck(b, r, all.nr, &again);
	if (!err && again.nr) {
		err = reset_spans(b, &again);
		now = smco_now_ns();
	}
	for (size_t k = 0; k < nr; k++)
		r[b->range_of[k]].armed_ns = now;
	return err || !again.nr ? err : find_stuck(b, r, again.nr, NULL);
}

static int bits_arm(struct access *a, struct page_range *r, size_t n)
{
	struct bits *b = bits_of(a);
	struct progress pg = {0};
	int err = 0;
	for (size_t i = 0; i < n; i++) {
		r[i].nr_reset = UINT32_MAX;
		r[i].nr_stuck = r[i].nr_waiting = 0;
		r[i].nr_present = r[i].nr_touched = 0;
		r[i].armed_ns = 0;
	}
	while (pg.at < n && !err) {
		size_t first = pg.at, nr = next_pieces(b, r, n, &pg, false);
		err = nr ? arm_pieces(b, r, nr) : 0;
		for (size_t i = first; err && i < n; i++) {
			r[i].nr_reset = UINT32_MAX;
			r[i].armed_ns = 0;
		}
	}
	return err;
}

/* A bit that is clear harms nobody. */
static int bits_disarm(struct access *a, struct page_range *r, size_t n)
{
	(void)a;
	(void)r;
	(void)n;
	return 0;
}

/* Pages of piece @s in a huge mapping whose bit somebody else's reset took
 * since @armed_ns. */
static void add_hidden(struct bits *b, const struct ptread_slot *s,
		       struct page_range *r)
{
	if (!(s->flags & PTREAD_FIRST_HUGE) || s->flags & PTREAD_FIRST_YOUNG ||
	    hugeseen_last(&b->huge_seen, HUGE_DOWN(s->start)) <= r->armed_ns)
		return;
	r->nr_touched += (uint32_t)((s->end - s->start) / TPAGE_SIZE);
	if (!r->first_touched)
		r->first_touched = s->start;
}

static void add_piece(struct bits *b, const struct ptread_slot *s,
		      struct page_range *r)
{
	r->nr_present += s->nr_present;
	r->nr_touched += s->nr_touched;
	r->nr_huge += s->nr_huge;
	r->nr_aged += s->nr_aged;
	r->nr_pinned += s->nr_pinned;
	if (!r->first_touched)
		r->first_touched = s->first_touched;
	if (s->nr_huge && r->armed_ns)
		add_hidden(b, s, r);
}

static void forget_look(struct page_range *r)
{
	r->nr_present = r->nr_touched = r->nr_huge = r->nr_aged = 0;
	r->nr_pinned = 0;
	r->first_touched = 0;
}

static int look(struct bits *b, struct page_range *r, size_t n, bool asks)
{
	const struct ptread_slot *slots = ptread_slots(b->pt);
	struct progress pg = {0};
	int err = 0;
	while (pg.at < n && !err) {
		size_t nr = next_pieces(b, r, n, &pg, asks);
		err = nr ? scan(b, nr) : 0;
		for (size_t k = 0; k < nr && !err; k++)
			add_piece(b, &slots[k], &r[b->range_of[k]]);
	}
	return err;
}

/* To ask takes ten times as long as to look: of those that are quiet. */
static int bits_collect(struct access *a, struct page_range *r, size_t n)
{
	struct bits *b = bits_of(a);
	bool asks = false;
	for (size_t i = 0; i < n; i++)
		forget_look(&r[i]);
	int err = look(b, r, n, false);
	for (size_t i = 0; i < n && !err; i++) {
		if (!is_to_ask(&r[i]))
			continue;
		forget_look(&r[i]);
		asks = true;
	}
	return asks ? look(b, r, n, true) : err;
}

static void bits_close(struct access *a)
{
	struct bits *b = bits_of(a);
	if (b->pagemap_fd >= 0)
		close(b->pagemap_fd);
	bits_reset_deinit(&b->reset);
	hugeseen_deinit(&b->huge_seen);
	ptread_put(b->pt);
	free(b);
}

static int bits_probe(struct smco_err *err)
{
	struct ptread *pt;
	int r = ptread_get(&pt, err);
	if (!r)
		ptread_put(pt);
	return r;
}

/* Held from prepare to unprepare, so that no process waits for the load. */
static struct ptread *prepared;

static int bits_prepare(struct smco_err *err)
{
	struct bits_cost cost;
	int r = ptread_get(&prepared, err);
	hop_prepare();
	return r ? r : bits_cost_get(&cost, err);
}

static void bits_unprepare(void)
{
	ptread_put(prepared);
	prepared = NULL;
}

static int bits_open(struct tproc *p, struct access **ret, struct smco_err *err)
{
	struct bits *b = calloc(1, sizeof(*b));
	if (!b)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	b->access.ops = &access_bits;
	b->access.proc = p;
	b->pagemap_fd = b->reset.pidfd = -1;
	int r = ptread_get(&b->pt, err);
	if (r)
		goto fail;
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), procfs_holder(tproc_pid(p)), "pagemap");
	b->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (b->pagemap_fd < 0) {
		r = smco_fail(err, errno == ENOENT ? SMCO_GONE : SMCO_PERM,
			      errno, "cannot open /proc/%d/pagemap",
			      (int)tproc_pid(p));
		goto fail;
	}
	r = scan(b, 0);
	if (r) {
		smco_fail(err, r, 0,
			  "the page tables of process %d cannot be read",
			  (int)tproc_pid(p));
		goto fail;
	}
	r = bits_cost_get(&b->cost, err);
	if (r)
		goto fail;
	bits_reset_init(&b->reset, p, &b->cost, who_runs, b);
	smco_debug("bits", "pid %d: reset by %s, first touch %llu ns",
		   (int)tproc_pid(p),
		   b->reset.by_injection ? "injected madvise"
					 : "process_madvise",
		   (unsigned long long)b->cost.touch_ns);
	*ret = &b->access;
	return 0;
fail:
	bits_close(&b->access);
	return r;
}

static void bits_drop(struct access *a, taddr_t start, taddr_t end)
{
	hugeseen_drop(&bits_of(a)->huge_seen, start, end);
}

static uint64_t bits_touch_cost_ns(const struct access *a)
{
	return ((const struct bits *)a)->cost.touch_ns;
}

static uint64_t bits_side_cost_ns(const struct access *a)
{
	return ((const struct bits *)a)->reset.side_ns;
}

static uint64_t bits_wait_cost_ns(const struct access *a)
{
	return ((const struct bits *)a)->reset.waited_ns;
}

/* Nothing is planted: a fork needs nothing. The pages are shared then, and
 * stuck until written. */
const struct access_ops access_bits = {
	.name = "bits",
	.sees = ACCESS_READS | ACCESS_WRITES | ACCESS_KERNEL,
	.probe = bits_probe,
	.prepare = bits_prepare,
	.unprepare = bits_unprepare,
	.open = bits_open,
	.close = bits_close,
	.forget = bits_close,
	.arm = bits_arm,
	.disarm = bits_disarm,
	.collect = bits_collect,
	.drop = bits_drop,
	.touch_cost_ns = bits_touch_cost_ns,
	.side_cost_ns = bits_side_cost_ns,
	.wait_cost_ns = bits_wait_cost_ns,
};
