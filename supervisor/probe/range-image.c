/*
 * A file's segments, and one sweep over all its code for what control may come
 * to: targets of direct branches anywhere, and every address of code that code
 * or data names (labels of computed gotos, functions, tables of pointers).
 */
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "supervisor/probe/range-text.h"
#include "symbols/dynamic.h"
#include "symbols/landing.h"

static bool in_text(const struct range_image *img, uint64_t addr)
{
	return addr >= img->lo && addr < img->hi;
}

static void lead(struct range_image *img, uint64_t addr)
{
	if (in_text(img, addr))
		img->mark[addr - img->lo] |= RANGE_MARK_LEADER;
}

const uint8_t *range_image_at(const struct range_image *img, uint64_t vaddr,
			      uint64_t len)
{
	for (unsigned i = 0; i < img->nr_segments; i++) {
		const struct range_segment *s = &img->segment[i];
		if (vaddr >= s->vaddr && vaddr - s->vaddr <= s->len &&
		    len <= s->len - (vaddr - s->vaddr))
			return s->bytes + (vaddr - s->vaddr);
	}
	return NULL;
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
	else if (z->raw.imm[0].size >= 32 &&
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

static bool sweep(struct range_image *img, uint64_t lo, uint64_t hi)
{
	ZydisDecoder d;
	ZydisDecodedInstruction z;
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	while (lo < hi) {
		size_t off = lo - img->lo;
		img->mark[off] |= RANGE_MARK_INSN;
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			    &d, NULL, img->text + off, img->hi - lo, &z))) {
			lo++;
			continue;
		}
		if (!sweep_one(img, &z, lo))
			return false;
		lo += z.length;
	}
	return true;
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

static int find_text(struct range_image *img, struct smco_err *err)
{
	for (unsigned i = 0; i < img->nr_segments; i++)
		if (img->segment[i].exec &&
		    img->segment[i].len > img->hi - img->lo) {
			img->lo = img->segment[i].vaddr;
			img->hi = img->lo + img->segment[i].len;
			img->text = img->segment[i].bytes;
		}
	if (img->hi <= img->lo || img->hi - img->lo > UINT32_MAX)
		return smco_fail(err, SMCO_FORMAT, 0, "no code in this file");
	return 0;
}

int range_image_scan(struct range_image *img, const uint64_t *starts,
		     size_t nr_starts, struct smco_err *err)
{
	int r = find_text(img, err);
	if (r)
		return r;
	_cleanup_free_ uint64_t *sorted =
		calloc(nr_starts + 1, sizeof(*sorted));
	img->mark = calloc(1, img->hi - img->lo);
	bool ok = sorted && img->mark;
	if (ok && nr_starts)
		memcpy(sorted, starts, nr_starts * sizeof(*sorted));
	uint64_t at = img->lo;
	if (ok)
		qsort(sorted, nr_starts, sizeof(*sorted), by_value);
	for (size_t i = 0; ok && i < nr_starts; i++) {
		if (sorted[i] < at || sorted[i] >= img->hi)
			continue;
		ok = sweep(img, at, sorted[i]);
		lead(img, sorted[i]);
		at = sorted[i];
	}
	ok = ok && sweep(img, at, img->hi);
	for (unsigned i = 0; ok && i < img->nr_segments; i++)
		ok = scan_words(img, &img->segment[i]);
	if (!ok)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (img->nr_taken)
		qsort(img->taken, img->nr_taken, sizeof(*img->taken), by_value);
	return 0;
}

bool range_image_taken(const struct range_image *img, uint64_t lo, uint64_t hi)
{
	size_t a = 0, b = img->nr_taken;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (img->taken[mid] < lo)
			a = mid + 1;
		else
			b = mid;
	}
	return a < img->nr_taken && img->taken[a] < hi;
}

static void lead_to(void *ctx, uint64_t addr)
{
	lead(ctx, addr);
}

static int read_segments(struct range_image *img, Elf *elf,
			 struct smco_err *err)
{
	size_t nr = 0;
	struct dynamic dynamic;

	memset(img, 0, sizeof(*img));
	if (elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &nr))
		return smco_fail(err, SMCO_FORMAT, 0, "not an ELF file");
	if (data_slots_read(&img->slots, elf))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (dynamic_read(elf, 0, &dynamic) && dynamic.has_text_relocs)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "its code is written to when it is linked");
	for (size_t i = 0; i < nr && img->nr_segments < RANGE_MAX_SEGMENTS;
	     i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    ph.p_offset > INT64_MAX ||
		    ph.p_vaddr > INT64_MAX - ph.p_filesz)
			continue;
		/* Most of a file with debug information is something else. */
		const Elf_Data *d = elf_getdata_rawchunk(
			elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
		if (!d || (ph.p_filesz && !d->d_buf))
			continue;
		img->segment[img->nr_segments++] = (struct range_segment){
			.vaddr = ph.p_vaddr,
			.len = ph.p_filesz,
			.bytes = d->d_buf,
			.exec = ph.p_flags & PF_X,
		};
	}
	return 0;
}

int range_image_open(struct range_image *img, Elf *elf, struct smco_err *err)
{
	int r = read_segments(img, elf, err);
	return r ? r : find_text(img, err);
}

int range_image_load(struct range_image *img, Elf *elf, const uint64_t *starts,
		     size_t nr_starts, struct smco_err *err)
{
	int r = read_segments(img, elf, err);
	if (r == 0)
		r = range_image_scan(img, starts, nr_starts, err);
	if (r == 0)
		landing_pads(elf, lead_to, img);
	return r;
}

void range_image_deinit(struct range_image *img)
{
	free(img->mark);
	free(img->taken);
	data_slots_deinit(&img->slots);
	memset(img, 0, sizeof(*img));
}
