/*
 * Reads page tables of another address space, on demand (program type
 * "syscall", run by bpf_prog_test_run). The kernel's types are declared here
 * with the few members used; libbpf finds the real offsets in the running
 * kernel's BTF when it loads the program.
 *
 * The address space comes from an open /proc/PID/pagemap, whose file keeps a
 * reference to the mm_struct: it cannot be freed under the walk, pid
 * namespaces do not matter, and after an exec it is still the old one. The
 * page tables themselves can change or be freed while they are read; every
 * read is a probe read, so the worst outcome is a wrong answer about memory
 * that was unmapped at that moment.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "supervisor/probe/ptread-bpf.h"
#include "supervisor/probe/ptread-space.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct page {
	unsigned long compound_head; /* of a tail page: its head, plus 1 */
	struct atomic_counter _mapcount;
	struct atomic_counter _refcount;
} KERNEL_TYPE;
/* Its flags are those of its first page. */
struct folio {
	struct atomic_counter _pincount; /* of several pages only */
} KERNEL_TYPE;
struct pipe_buffer {
	struct page *page;
} KERNEL_TYPE;
struct pipe_inode_info {
	struct pipe_buffer *bufs;
} KERNEL_TYPE;
enum pageflags { PG_young = 1, PG_referenced = 2, PG_head = 3 };

/* Kernel: GUP_PIN_COUNTING_BIAS, by which a pin counts as a reference. */
#define PIN_REFERENCES 1024

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ptread_io);
} io SEC(".maps");

#define PAGE_SHIFT     12
#define PMD_SHIFT      21
#define PUD_SHIFT      30
#define P4D_SHIFT      39
#define PGD5_SHIFT     48
#define ENTRY_PRESENT  1ULL
#define ENTRY_ACCESSED (1ULL << 5)
#define ENTRY_LEAF     (1ULL << 7) /* maps memory, at PMD and PUD level */
#define ENTRY_SPECIAL  (1ULL << 9) /* nobody's page: the zero page, devices */
/* Present to the kernel but not to the CPU: mprotect(PROT_NONE), NUMA. */
#define ENTRY_PROTNONE (1ULL << 8)
#define MAX_STEPS      (1 << 23)

#define NO_TAG (~0ULL)

/* Tells the verifier, past the compiler's wits, that @v is at most @mask. */
#define BOUND(v, mask) asm volatile("%0 &= %1" : "+r"(v) : "i"(mask))

/* Keeps clang from loading everything first and spilling it. */
#define IN_ORDER(v) asm volatile("" : "+r"(v)::"memory")

struct walk {
	__u64 pgd;
	__u64 base;
	__u64 phys_mask;
	__u32 nr_levels;
	__u32 first_slot;
	/* The last PMD page found: for which GiB, where; 0 = there is none,
	 * then shift says how much address space is missing there. */
	__u64 pmd_tag;
	__u64 pmd_page;
	__u64 pud_entry; /* a gigantic leaf instead of a PMD page */
	__u32 missing_shift;
	__u32 slot; /* of the range being read */
	/* The last entry read there: which 2 MiB it is for. Ranges come in
	 * order of their addresses, many of one page table. */
	__u64 pt_tag;
	__u64 pt_entry;
	__u64 start;
	__u64 end;
	__u64 cur;
};

static __always_inline __u64 read_entry(__u64 addr)
{
	__u64 v = 0;
	bpf_probe_read_kernel(&v, sizeof(v), (void *)addr);
	return v;
}

static __always_inline __u64 table_of(const struct walk *w, __u64 entry)
{
	return w->base + (entry & w->phys_mask);
}

static __always_inline void find_pmd_page(struct walk *w, __u64 va)
{
	__u64 table = w->pgd, e;

	w->pmd_page = 0;
	w->pud_entry = 0;
	w->pmd_tag = va >> PUD_SHIFT;
	if (w->nr_levels == 5) {
		e = read_entry(table + ((va >> PGD5_SHIFT) & 511) * 8);
		if (!(e & ENTRY_PRESENT)) {
			w->missing_shift = P4D_SHIFT;
			return;
		}
		table = table_of(w, e);
	}
	e = read_entry(table + ((va >> P4D_SHIFT) & 511) * 8);
	if (!(e & ENTRY_PRESENT)) {
		w->missing_shift = P4D_SHIFT;
		return;
	}
	w->missing_shift = PUD_SHIFT;
	e = read_entry(table_of(w, e) + ((va >> PUD_SHIFT) & 511) * 8);
	if (e & ENTRY_LEAF)
		w->pud_entry = e & (ENTRY_PRESENT | ENTRY_PROTNONE) ? e : 0;
	else if (e & ENTRY_PRESENT)
		w->pmd_page = table_of(w, e);
}

static int has_flag(__u64 flags, __u64 nr)
{
	return flags >> (nr & 63) & 1;
}

enum page_marks { MARK_AGED = 1, MARK_PINNED = 2 };

/* Is it pinned, the page or folio that begins at @page with these flags? */
static __always_inline int is_pinned(const void *page, __u64 flags)
{
	int nr = 0;

	if (bpf_core_field_exists(((struct folio *)0)->_pincount) &&
	    bpf_core_enum_value_exists(enum pageflags, PG_head) &&
	    has_flag(flags, bpf_core_enum_value(enum pageflags, PG_head))) {
		bpf_probe_read_kernel(
			&nr, sizeof(nr),
			page + bpf_core_field_offset(struct folio, _pincount));
		return nr > 0;
	}
	bpf_probe_read_kernel(
		&nr, sizeof(nr),
		page + bpf_core_field_offset(struct page, _refcount));
	return nr >= PIN_REFERENCES;
}

/*
 * Was the page that @e maps used, and the accessed bit does not say so? DAMON
 * and idle page tracking leave the page flag "young" when they clear the bit.
 * What the kernel uses past the page table, for files without a cache, it marks
 * as "referenced". MADV_COLD takes both away. Where other address spaces map
 * the page, too, it may have been there: that says nothing. What is pinned, for
 * a device or as a ring's registered buffer, is used without any mark.
 */
__noinline int page_marks(__u64 e)
{
	__u32 zero = 0;
	struct ptread_io *b = bpf_map_lookup_elem(&io, &zero);
	/* The flags have always been the first word; a tail page's head,
	 * plus 1, follows (ptread_piped has looked). */
	__u64 word[2] = {0, 0};
	int mapcount = 0;

	if (!b || !b->vmemmap ||
	    !bpf_core_enum_value_exists(enum pageflags, PG_young))
		return 0;
	void *page =
		(void *)(b->vmemmap + ((e & b->phys_mask) >> PAGE_SHIFT) *
					      bpf_core_type_size(struct page));
	if (bpf_probe_read_kernel(word, sizeof(word), page))
		return 0;
	__u64 is_tail = word[1] & 1;
	void *first = is_tail ? (void *)(word[1] - 1) : page;
	if (is_tail)
		bpf_probe_read_kernel(word, sizeof(word), first);
	int marks = is_pinned(first, word[0]) ? MARK_PINNED : 0;
	if (!has_flag(word[0], bpf_core_enum_value(enum pageflags, PG_young)) &&
	    !has_flag(word[0],
		      bpf_core_enum_value(enum pageflags, PG_referenced)))
		return marks;
	bpf_probe_read_kernel(
		&mapcount, sizeof(mapcount),
		page + bpf_core_field_offset(struct page, _mapcount));
	if (is_tail || mapcount <= 0) /* it counts from -1 */
		marks |= MARK_AGED;
	return marks;
}

/* May it have marks, not being touched itself? */
static __always_inline int is_to_ask(__u64 e)
{
	return (e & (ENTRY_PRESENT | ENTRY_ACCESSED | ENTRY_SPECIAL)) ==
	       ENTRY_PRESENT;
}

/* Set bits of @slot for a leaf of more than a page that covers [va, to). */
static __always_inline void count_huge(struct walk *w, struct ptread_slot *slot,
				       __u64 entry, __u64 va, __u64 to)
{
	__u32 pages = (to - va) >> PAGE_SHIFT;

	slot->nr_present += pages;
	slot->nr_huge += (to - 1 - (va & ~((1ULL << PMD_SHIFT) - 1))) /
				 (1ULL << PMD_SHIFT) +
			 1;
	__u32 flags = 0;
	if (va == w->start)
		flags |= PTREAD_FIRST_HUGE;
	if (to == w->end)
		flags |= PTREAD_LAST_HUGE;
	if (entry & ENTRY_ACCESSED) {
		slot->nr_touched += pages;
		slot->touched_end = to;
		if (!slot->first_touched)
			slot->first_touched = va;
		flags |= flags << 1;
	}
	slot->flags |= flags;
	if (slot->want_aged && !slot->nr_touched && is_to_ask(entry)) {
		int marks = page_marks(entry);
		if (marks & MARK_AGED)
			slot->nr_aged += pages;
		if (marks & MARK_PINNED)
			slot->nr_pinned += pages;
	}
}

struct tally {
	__u64 present;
	__u64 touched;
	__u64 first; /* index of the first touched entry, or of its group */
	__u64 end;   /* of the last group with one */
	__u64 aged;
	__u64 pinned;
};

/*
 * Present pages of group @g of the page table, and touched ones << 16. Global,
 * so that the verifier looks at it once instead of a hundred times, which was
 * half of the time that loading took.
 */
__noinline __u32 tally_entries(__u32 g)
{
	__u32 zero = 0;
	struct ptread_io *b = bpf_map_lookup_elem(&io, &zero);
	__u64 k = g * PTREAD_GROUP, present = 0, touched = 0;
	__u64 sum = 0, all = ~0ULL;

	if (!b)
		return 0;
	BOUND(k, PTREAD_PT_ENTRIES - 1);
	/* Nearly always every page is present: then both counts fit in one
	 * sum, and half the work does. */
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < PTREAD_GROUP; i++) {
		__u64 e = b->pt[k + i];
		sum += e & (ENTRY_PRESENT | ENTRY_ACCESSED);
		all &= e;
		IN_ORDER(sum);
	}
	if (all & ENTRY_PRESENT) {
		touched = (sum - PTREAD_GROUP) / ENTRY_ACCESSED;
		return PTREAD_GROUP | (__u32)touched << 16;
	}
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < PTREAD_GROUP; i++) {
		__u64 e = b->pt[k + i];
		__u64 p = e | e >> 8; /* bit 0: present or protnone */
		present += p & 1;
		touched += (e >> 5) & p & 1;
		IN_ORDER(touched);
	}
	return (__u32)present | (__u32)touched << 16;
}

static long tally_group(__u32 g, struct tally *t)
{
	__u32 nr = tally_entries(g);
	if (nr >> 16) {
		if (!t->touched)
			t->first = g * PTREAD_GROUP;
		t->end = (g + 1) * PTREAD_GROUP;
	}
	t->present += nr & 0xffff;
	t->touched += nr >> 16;
	return 0;
}

/* Entry @i of the table that was read. */
static __always_inline int table_entry(__u64 i, __u64 *ret)
{
	__u32 zero = 0;
	struct ptread_io *b = bpf_map_lookup_elem(&io, &zero);

	if (!b)
		return 0;
	BOUND(i, PTREAD_PT_ENTRIES - 1);
	*ret = b->pt[i];
	return 1;
}

static long find_touched(__u32 i, struct tally *t)
{
	__u64 e;

	if (!table_entry(t->first, &e))
		return 1;
	if (e & ENTRY_ACCESSED && e & (ENTRY_PRESENT | ENTRY_PROTNONE))
		return 1;
	t->first++;
	return 0;
}

static long tally_aged(__u32 i, struct tally *t)
{
	__u64 e;

	if (!table_entry(i, &e))
		return 1;
	if (is_to_ask(e)) {
		int marks = page_marks(e);
		t->aged += marks & MARK_AGED;
		t->pinned += (marks & MARK_PINNED) != 0;
	}
	return 0;
}

#define FEW_PAGES 8

/*
 * As count_small() for at most FEW_PAGES pages: most blocks are not larger, and
 * to count in groups costs several times as much as they do. Does not ask what
 * is aged.
 */
__noinline int count_few(__u64 k, __u64 table, __u64 va, __u64 n)
{
	__u32 zero = 0;
	struct ptread_io *b = bpf_map_lookup_elem(&io, &zero);
	__u64 present = 0, touched = 0, first = 0, end = 0;

	if (!b)
		return 0;
	BOUND(k, PTREAD_MAX_SLOTS - 1);
	struct ptread_slot *slot = &b->slots[k];
	for (__u32 i = 1; i < FEW_PAGES; i++)
		b->pt[i] = 0;
	BOUND(n, 2 * FEW_PAGES - 1);
	if (n < 1 || n > FEW_PAGES ||
	    bpf_probe_read_kernel(
		    b->pt, n * 8,
		    (void *)(table + ((va >> PAGE_SHIFT) & 511) * 8)))
		return 0;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < FEW_PAGES; i++) {
		__u64 p = b->pt[i] | b->pt[i] >> 8; /* or protnone */
		__u64 t = (b->pt[i] >> 5) & p & 1;
		present += p & 1;
		touched += t;
		first += !touched;
		end = t ? i + 1 : end;
		IN_ORDER(touched);
	}
	slot->nr_present += present;
	slot->nr_touched += touched;
	if (!touched)
		return 0;
	slot->touched_end = va + (end << PAGE_SHIFT);
	if (!slot->first_touched)
		slot->first_touched = va + (first << PAGE_SHIFT);
	return 0;
}

/* The pages of one page table that belong to [va, to), for slot @k. Global for
 * the same reason. */
__noinline int count_small(__u64 k, __u64 table, __u64 va, __u64 to)
{
	__u32 zero = 0;
	struct ptread_io *b = bpf_map_lookup_elem(&io, &zero);
	__u64 n = (to - va) >> PAGE_SHIFT;
	struct tally t = {};

	if (!b)
		return 0;
	BOUND(k, PTREAD_MAX_SLOTS - 1);
	struct ptread_slot *slot = &b->slots[k];
	BOUND(n, 2 * PTREAD_PT_ENTRIES - 1);
	if (n < 1 || n > PTREAD_PT_ENTRIES)
		return 0;
	if (bpf_probe_read_kernel(
		    b->pt, n * 8,
		    (void *)(table + ((va >> PAGE_SHIFT) & 511) * 8)))
		return 0;
	/* The last group is counted whole. */
	for (__u32 i = 0; i < PTREAD_GROUP; i++)
		b->pt[n + i] = 0;
	bpf_loop((n + PTREAD_GROUP - 1) / PTREAD_GROUP, tally_group, &t, 0);
	slot->nr_present += t.present;
	slot->nr_touched += t.touched;
	/* What is touched is not quiet, whoever else was there. */
	if (slot->want_aged && !slot->nr_touched) {
		bpf_loop(n, tally_aged, &t, 0);
		slot->nr_aged += t.aged;
		slot->nr_pinned += t.pinned;
	}
	if (!t.touched)
		return 0;
	if (t.end > n)
		t.end = n;
	slot->touched_end = va + (t.end << PAGE_SHIFT);
	if (slot->first_touched)
		return 0;
	bpf_loop(PTREAD_GROUP, find_touched, &t, 0);
	slot->first_touched = va + (t.first << PAGE_SHIFT);
	return 0;
}

/* One PMD entry, or one hole, per call. */
static long walk_step(__u32 i, struct walk *w)
{
	__u32 zero = 0;
	struct ptread_io *b = bpf_map_lookup_elem(&io, &zero);
	__u64 va = w->cur, size = 1ULL << PMD_SHIFT;

	if (!b || va >= w->end)
		return 1;
	__u64 k = w->slot;
	BOUND(k, PTREAD_MAX_SLOTS - 1);
	struct ptread_slot *slot = &b->slots[k];
	if (va >> PUD_SHIFT != w->pmd_tag)
		find_pmd_page(w, va);
	if (!w->pmd_page)
		size = 1ULL << (w->missing_shift & 63);
	__u64 to = (va & ~(size - 1)) + size;
	if (to > w->end)
		to = w->end;
	w->cur = to;
	if (!w->pmd_page) {
		if (w->pud_entry) {
			slot->flags |= PTREAD_GIGANTIC;
			count_huge(w, slot, w->pud_entry, va, to);
		}
		return 0;
	}
	if (va >> PMD_SHIFT != w->pt_tag) {
		w->pt_tag = va >> PMD_SHIFT;
		w->pt_entry =
			read_entry(w->pmd_page + ((va >> PMD_SHIFT) & 511) * 8);
	}
	__u64 e = w->pt_entry, nr = (to - va) >> PAGE_SHIFT;
	/* A huge page under split or made PROT_NONE has no present bit; a
	 * migrating one has neither and counts as not present. */
	if (e & ENTRY_LEAF) {
		if (e & (ENTRY_PRESENT | ENTRY_PROTNONE))
			count_huge(w, slot, e, va, to);
	} else if (e & ENTRY_PRESENT && nr <= FEW_PAGES && !slot->want_aged) {
		count_few(k, table_of(w, e), va, nr);
	} else if (e & ENTRY_PRESENT) {
		count_small(k, table_of(w, e), va, to);
	}
	return 0;
}

static long walk_range(__u32 i, struct walk *w)
{
	__u32 zero = 0;
	struct ptread_io *b = bpf_map_lookup_elem(&io, &zero);

	__u64 k = w->first_slot + i;
	if (!b || k >= PTREAD_MAX_SLOTS)
		return 1;
	BOUND(k, PTREAD_MAX_SLOTS - 1);
	w->slot = k;
	w->start = w->cur = b->slots[k].start;
	w->end = b->slots[k].end;
	bpf_loop(MAX_STEPS, walk_step, w, 0);
	return 0;
}

SEC("syscall") int ptread_scan(struct ptread_arg *a)
{
	struct walk w = {.pgd = pgd_of(a),
			 .base = a->base,
			 .phys_mask = a->phys_mask,
			 .nr_levels = a->nr_levels,
			 .first_slot = a->first,
			 .pmd_tag = NO_TAG,
			 .pt_tag = NO_TAG};
	if (!w.pgd)
		return 0;
	bpf_loop(a->nr, walk_range, &w, 0);
	return 0;
}

/* The leaf entry for @va; its size in *leaf_bytes, 0 if there is none. */
static __always_inline __u64 leaf_of(struct walk *w, __u64 va,
				     __u64 *leaf_bytes)
{
	*leaf_bytes = 0;
	find_pmd_page(w, va);
	if (w->pud_entry) {
		*leaf_bytes = 1ULL << PUD_SHIFT;
		return w->pud_entry;
	}
	if (!w->pmd_page)
		return 0;
	__u64 e = read_entry(w->pmd_page + ((va >> PMD_SHIFT) & 511) * 8);
	if (!(e & ENTRY_PRESENT))
		return 0;
	if (e & ENTRY_LEAF) {
		*leaf_bytes = 1ULL << PMD_SHIFT;
		return e;
	}
	e = read_entry(table_of(w, e) + ((va >> PAGE_SHIFT) & 511) * 8);
	if (e & ENTRY_PRESENT)
		*leaf_bytes = 1ULL << PAGE_SHIFT;
	return e;
}

/* One page: its entry and its first bytes, through the direct map. */
SEC("syscall") int ptread_peek(struct ptread_arg *a)
{
	__u32 zero = 0;
	struct ptread_io *b = bpf_map_lookup_elem(&io, &zero);
	struct walk w = {.pgd = pgd_of(a),
			 .base = a->base,
			 .phys_mask = a->phys_mask,
			 .nr_levels = a->nr_levels};
	if (!w.pgd || !b)
		return 0;
	__u64 bytes;
	a->pte = leaf_of(&w, a->va, &bytes);
	a->leaf_bytes = bytes;
	if (bytes != 1ULL << PAGE_SHIFT)
		return 0;
	bpf_probe_read_kernel(b->content, sizeof(b->content),
			      (void *)table_of(&w, a->pte));
	return 0;
}

/*
 * Does the direct map begin at w->base? The page directory is in the direct
 * map itself, so walking to its own address must lead to the physical address
 * that the candidate says it has.
 */
static long try_base(__u32 i, struct walk *w)
{
	__u64 bytes, e = leaf_of(w, w->pgd, &bytes);

	if (bytes) {
		__u64 mask = bytes - 1;
		__u64 phys = (e & w->phys_mask & ~mask) | (w->pgd & mask);
		if (w->base + phys == w->pgd) {
			w->cur = w->base;
			return 1;
		}
	}
	w->base += 1ULL << PUD_SHIFT;
	return 0;
}

/*
 * a->nr candidates from a->base upwards, a GiB apart (the alignment that
 * address space randomisation keeps). Upwards matters: with a base that is too
 * low every computed address lies at or below the true one, in the direct map
 * or in the hole under it, never in somebody's device registers above it.
 */
SEC("syscall") int ptread_locate(struct ptread_arg *a)
{
	struct walk w = {.pgd = pgd_of(a),
			 .base = a->base,
			 .phys_mask = a->phys_mask,
			 .nr_levels = a->nr_levels};
	if (!w.pgd)
		return 0;
	if (!w.base) /* the highest candidate is the GiB the directory is in */
		w.base = (w.pgd & ~((1ULL << PUD_SHIFT) - 1)) -
			 ((__u64)(a->nr - 1) << PUD_SHIFT);
	bpf_loop(a->nr, try_base, &w, 0);
	a->base = w.cur;
	if (!w.cur)
		a->status = PTREAD_NO_BASE;
	return 0;
}

/* The pages in the first two buffers of a pipe that nobody has read from. */
SEC("syscall") int ptread_piped(struct ptread_arg *a)
{
	a->status = PTREAD_NO_FILE;
	a->page_bytes = 0;
	if (!bpf_core_enum_value_exists(enum pageflags, PG_young) ||
	    !bpf_core_field_exists(((struct page *)0)->compound_head) ||
	    bpf_core_field_offset(struct page, compound_head) != 8 ||
	    !bpf_core_field_exists(((struct page *)0)->_mapcount) ||
	    !bpf_core_field_exists(((struct pipe_inode_info *)0)->bufs) ||
	    !bpf_core_field_exists(((struct pipe_buffer *)0)->page))
		return 0;
	struct pipe_inode_info *pipe = private_data_of(a);
	if (!pipe)
		return 0;
	void *bufs = BPF_CORE_READ(pipe, bufs);
	bufs += bpf_core_field_offset(struct pipe_buffer, page);
	__u64 first = 0, second = 0;
	bpf_probe_read_kernel(&first, sizeof(first), bufs);
	bufs += bpf_core_type_size(struct pipe_buffer);
	bpf_probe_read_kernel(&second, sizeof(second), bufs);
	a->page[0] = first;
	a->page[1] = second;
	a->page_bytes = bpf_core_type_size(struct page);
	a->status = PTREAD_OK;
	return 0;
}
