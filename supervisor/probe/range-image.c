/* A file's segments. */
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "supervisor/control/fixed.h"
#include "supervisor/probe/range-text.h"
#include "symbols/blocks.h"
#include "symbols/dynamic.h"
#include "symbols/landing.h"

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
	img->mark = calloc(1, img->hi - img->lo);
	if (!img->mark || !range_sweep(img, starts, nr_starts))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
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
	range_sweep_lead(ctx, addr);
}

/* From so many bytes on: libelf would read them by one thread, into pages that
 * come one by one. */
uint64_t range_image_own_from_bytes = 4 << 20;

/* The bytes of @ph in memory of our own; NULL: that is not worth it, or cannot
 * be. One of them. */
static const uint8_t *read_own(struct range_image *img, int fd,
			       const GElf_Phdr *ph)
{
	struct stat st;
	if (fd < 0 || img->own || !(ph->p_flags & PF_X) ||
	    ph->p_filesz < range_image_own_from_bytes || fstat(fd, &st) ||
	    ph->p_offset + ph->p_filesz > (uint64_t)st.st_size)
		return NULL;
	void *own = mmap(NULL, ph->p_filesz, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct block_file file = {.fd = fd,
				  .from = ph->p_offset,
				  .len = ph->p_filesz,
				  .into = own};
	if (own == MAP_FAILED)
		return NULL;
	if (!blocks_read(&file, 1)) {
		munmap(own, ph->p_filesz);
		return NULL;
	}
	img->own = own;
	img->own_bytes = ph->p_filesz;
	return own;
}

static const uint8_t *bytes_of(struct range_image *img, Elf *elf, int fd,
			       const GElf_Phdr *ph)
{
	const uint8_t *own = read_own(img, fd, ph);
	if (own)
		return own;
	const Elf_Data *d = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset,
						 ph->p_filesz, ELF_T_BYTE);
	if (!d || d->d_buf)
		return d ? d->d_buf : NULL;
	return ph->p_filesz ? NULL : (const uint8_t *)""; /* none are fine */
}

static int read_segments(struct range_image *img, Elf *elf, int fd,
			 struct smco_err *err)
{
	size_t nr = 0;
	struct dynamic dynamic;
	GElf_Ehdr head;

	memset(img, 0, sizeof(*img));
	if (elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &nr))
		return smco_fail(err, SMCO_FORMAT, 0, "not an ELF file");
	if (data_slots_read(&img->slots, elf))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (dynamic_read(elf, 0, &dynamic) && dynamic.has_text_relocs)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "its code is written to when it is linked");
	img->is_anywhere = gelf_getehdr(elf, &head) && head.e_type == ET_DYN;
	for (size_t i = 0; i < nr && img->nr_segments < RANGE_MAX_SEGMENTS;
	     i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    ph.p_offset > INT64_MAX || ph.p_memsz > INT64_MAX ||
		    ph.p_vaddr > INT64_MAX - ph.p_memsz ||
		    ph.p_filesz > ph.p_memsz)
			continue;
		img->end = max_u64(img->end, ph.p_vaddr + ph.p_memsz);
		/* Most of a file with debug information is something else. */
		const uint8_t *bytes = bytes_of(img, elf, fd, &ph);
		if (!bytes)
			continue;
		img->segment[img->nr_segments++] = (struct range_segment){
			.vaddr = ph.p_vaddr,
			.len = ph.p_filesz,
			.bytes = bytes,
			.exec = ph.p_flags & PF_X,
		};
	}
	return 0;
}

int range_image_open(struct range_image *img, Elf *elf, int fd,
		     struct smco_err *err)
{
	int r = read_segments(img, elf, fd, err);
	return r ? r : find_text(img, err);
}

int range_image_load(struct range_image *img, Elf *elf, int fd,
		     const uint64_t *starts, size_t nr_starts,
		     struct smco_err *err)
{
	int r = read_segments(img, elf, fd, err);
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
	if (img->own)
		munmap(img->own, img->own_bytes);
	data_slots_deinit(&img->slots);
	memset(img, 0, sizeof(*img));
}
