/*
 * pages.h - a puppet and the memory it touches: PAGES small pages at mem, each
 * used once. PAGES is the test's, defined before this is included.
 */
#ifndef PAGES_H
#define PAGES_H

#include "supervisor/probe/access.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

#define PAGE	  4096UL
#define HUGE_PAGE (2UL << 20)

static char *mem;
static struct puppet pup;

static inline long act_load(long first, long stride)
{
	long sum = 0;
	for (long i = first; i < PAGES; i += stride)
		sum += *(volatile char *)(mem + i * (long)PAGE + 8);
	return sum;
}

static inline long act_store(long first, long stride)
{
	for (long i = first; i < PAGES; i += stride)
		*(volatile char *)(mem + i * (long)PAGE + 8) = 2;
	return 0;
}

static inline long act_munmap(long addr, long len)
{
	return munmap((void *)addr, (size_t)len);
}

/* As many huge pages as may be. */
static inline long act_fill_huge(long addr, long nr)
{
	madvise((void *)addr, (size_t)nr * HUGE_PAGE, MADV_HUGEPAGE);
	memset((void *)addr, 1, (size_t)nr * HUGE_PAGE);
	return 0;
}

static inline struct page_range range_at(const char *start, size_t pages)
{
	return (struct page_range){.start = (uintptr_t)start,
				   .end = (uintptr_t)start + pages * PAGE};
}

/* Of the puppet's memory at @r, or mapped together with it. */
static inline long anon_huge_kb(struct page_range r)
{
	char line[512];
	long sum = 0, kb;
	bool inside = false;
	snprintf(line, sizeof(line), "/proc/%d/smaps", (int)pup.pid);
	FILE *f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start < r.end && end > r.start;
		else if (inside && sscanf(line, "AnonHugePages: %ld", &kb) == 1)
			sum += kb;
	}
	if (f)
		fclose(f);
	return sum;
}

static inline char *map_anon(size_t size, int flags)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
	if (at == MAP_FAILED)
		exit(2);
	return at;
}

/* Whole huge pages, none used. */
static inline char *map_huge(unsigned nr)
{
	char *at = map_anon((nr + 1) * HUGE_PAGE, MAP_PRIVATE);
	return at + (-(uintptr_t)at & (HUGE_PAGE - 1));
}

/* What the puppet is to map too must have been mapped by now. */
static inline void start_with_pages(void)
{
	mem = map_anon(PAGES * PAGE, MAP_PRIVATE);
	madvise(mem, PAGES * PAGE, MADV_NOHUGEPAGE);
	pup = puppet_start();
	puppet_do(&pup, act_store, 0, 1);
}

#endif
