/*
 * One sweep over all code of a file for what control may come to: targets of
 * direct branches anywhere, and every address of code that code or data names
 * (labels of computed gotos, functions, tables of pointers). A small number is
 * one as well, where a file's code begins at 4096: in instructions only where
 * the file cannot be loaded elsewhere. Much code is swept
 * by two threads, the second from the beginning of a function, where one alone
 * would have begun anew, too.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "supervisor/probe/range-length.h"
#include "supervisor/probe/range-text.h"

uint64_t range_sweep_two_from_bytes = 4 << 20;

static bool in_text(const struct range_image *img, uint64_t addr)
{
	return addr >= img->lo && addr < img->hi;
}

/* Both threads mark where either leads. */
static void mark(struct range_image *img, uint64_t addr, enum range_mark what)
{
	__atomic_fetch_or(&img->mark[addr - img->lo], (uint8_t)what,
			  __ATOMIC_RELAXED);
}

static void lead(struct range_image *img, uint64_t addr)
{
	if (in_text(img, addr))
		mark(img, addr, RANGE_MARK_LEADER);
}

void range_sweep_lead(struct range_image *img, uint64_t addr)
{
	lead(img, addr);
}

/* Code leads, data is taken; any other number is neither. */
static bool named(struct range_image *img, uint64_t addr)
{
	if (in_text(img, addr)) {
		lead(img, addr);
		return true;
	}
	if (addr < img->segment[0].vaddr)
		return true;
	if (img->nr_taken == img->cap_taken) {
		size_t cap = img->cap_taken ? 2 * img->cap_taken : 1024;
		uint64_t *more = realloc(img->taken, cap * sizeof(*more));
		if (!more)
			return false;
		img->taken = more;
		img->cap_taken = cap;
	}
	img->taken[img->nr_taken++] = addr;
	return true;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* The end of all memory that the image has, data without bytes included, is
 * not known to the segments: 64 MiB behind the last is near enough. */
static bool near_image(const struct range_image *img, uint64_t addr)
{
	const struct range_segment *last = &img->segment[img->nr_segments - 1];
	return addr >= img->segment[0].vaddr &&
	       addr < last->vaddr + last->len + (64 << 20);
}

/* One instruction: where it leads, what it names. */
static bool sweep_one(struct range_image *img, const ZydisDecodedInstruction *z,
		      uint64_t addr)
{
	uint64_t next = addr + z->length;
	if (z->raw.imm[0].is_relative)
		lead(img, next + z->raw.imm[0].value.u);
	else if (!img->is_anywhere && z->raw.imm[0].size >= 32 &&
		 near_image(img, z->raw.imm[0].value.u) &&
		 !named(img, z->raw.imm[0].value.u))
		return false;
	bool rip = z->attributes & ZYDIS_ATTRIB_IS_RELATIVE &&
		   z->attributes & ZYDIS_ATTRIB_HAS_MODRM &&
		   z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5;
	if (rip && z->mnemonic == ZYDIS_MNEMONIC_LEA &&
	    near_image(img, next + (uint64_t)z->raw.disp.value))
		return named(img, next + (uint64_t)z->raw.disp.value);
	return true;
}

/* The same without the decoder; how long it is, 0 if that is not known. */
static unsigned sweep_quickly(struct range_image *img, uint64_t addr, bool *ok)
{
	if (img->hi - addr < RANGE_LENGTH_BYTES)
		return 0;
	struct range_length l = range_length_of(img->text + (addr - img->lo));
	if (l.has_number && !img->is_anywhere)
		return 0;
	uint64_t to = addr + l.bytes + (uint64_t)(int64_t)l.distance;
	if (l.is_branch)
		lead(img, to);
	else if (l.is_lea && near_image(img, to))
		*ok = named(img, to);
	return l.bytes;
}

static bool sweep(struct range_image *img, uint64_t lo, uint64_t hi)
{
	ZydisDecoder d;
	ZydisDecodedInstruction z;
	bool ok = true;
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	while (ok && lo < hi) {
		size_t off = lo - img->lo;
		mark(img, lo, RANGE_MARK_INSN);
		unsigned bytes = sweep_quickly(img, lo, &ok);
		if (bytes) {
			lo += bytes;
			continue;
		}
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			    &d, NULL, img->text + off, img->hi - lo, &z))) {
			lo++;
			continue;
		}
		if (!sweep_one(img, &z, lo))
			return false;
		lo += z.length;
	}
	return ok;
}

/* Words that are addresses: tables, static initialisers. */
static bool scan_words(struct range_image *img, const struct range_segment *s)
{
	for (uint64_t at = -s->vaddr & 7; at + 8 <= s->len; at += 8) {
		uint64_t v;
		memcpy(&v, s->bytes + at, sizeof(v));
		if (near_image(img, v) && v && !named(img, v))
			return false;
	}
	return true;
}

/* --- by two --- */

/* A part of the code, of some functions' @start on, sorted. */
struct part {
	struct range_image img; /* with addresses that are taken of its own */
	uint64_t lo, hi;
	const uint64_t *start;
	size_t nr_starts;
	bool ok;
};

static void *sweep_part(void *arg)
{
	struct part *p = arg;
	uint64_t at = p->lo;
	p->ok = true;
	for (size_t i = 0; p->ok && i < p->nr_starts; i++) {
		if (p->start[i] < at || p->start[i] >= p->hi)
			continue;
		p->ok = sweep(&p->img, at, p->start[i]);
		lead(&p->img, p->start[i]);
		at = p->start[i];
	}
	p->ok = p->ok && sweep(&p->img, at, p->hi);
	return NULL;
}

/* The function's start that the second half begins with; @nr: none. */
static size_t middle_of(const struct range_image *img, const uint64_t *start,
			size_t nr)
{
	uint64_t middle = img->lo + (img->hi - img->lo) / 2;
	cpu_set_t set;
	size_t i = 0;
	if (img->hi - img->lo < range_sweep_two_from_bytes ||
	    sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2)
		return nr;
	while (i < nr && start[i] < middle)
		i++;
	return i < nr && start[i] < img->hi ? i : nr;
}

static bool take_over(struct range_image *img, struct range_image *from)
{
	size_t nr = img->nr_taken + from->nr_taken;
	uint64_t *all = realloc(img->taken, (nr + 1) * sizeof(*all));
	if (all) {
		if (from->nr_taken)
			memcpy(all + img->nr_taken, from->taken,
			       from->nr_taken * sizeof(*all));
		img->taken = all;
		img->nr_taken = nr;
		img->cap_taken = nr + 1;
	}
	free(from->taken);
	return all;
}

static bool sweep_code(struct range_image *img, const uint64_t *start,
		       size_t nr)
{
	size_t middle = middle_of(img, start, nr);
	struct part one = {*img, img->lo, img->hi, start, nr, false}, two = one;
	pthread_t thread;
	sigset_t all, before;
	bool has_two = middle < nr;
	if (has_two) {
		two.lo = one.hi = start[middle];
		two.start += middle;
		two.nr_starts -= middle;
		/* Signals are the other threads' business. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		has_two = !pthread_create(&thread, NULL, sweep_part, &two);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (!has_two)
		one.hi = img->hi;
	sweep_part(&one);
	*img = one.img;
	if (!has_two)
		return one.ok;
	pthread_join(thread, NULL);
	return take_over(img, &two.img) && one.ok && two.ok;
}

bool range_sweep(struct range_image *img, const uint64_t *starts,
		 size_t nr_starts)
{
	_cleanup_free_ uint64_t *sorted =
		calloc(nr_starts + 1, sizeof(*sorted));
	bool ok = sorted;
	if (ok && nr_starts) {
		memcpy(sorted, starts, nr_starts * sizeof(*sorted));
		qsort(sorted, nr_starts, sizeof(*sorted), by_value);
	}
	ok = ok && sweep_code(img, sorted, nr_starts);
	for (unsigned i = 0; ok && i < img->nr_segments; i++)
		ok = scan_words(img, &img->segment[i]);
	if (ok && img->nr_taken)
		qsort(img->taken, img->nr_taken, sizeof(*img->taken), by_value);
	return ok;
}
