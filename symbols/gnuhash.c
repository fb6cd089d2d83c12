#include "symbols/gnuhash.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SECTION (64u << 20)

/*
 * A program that is not position-independent has entries for functions whose
 * addresses it takes, too, although they are defined elsewhere.
 */
static void read_defined(struct gnuhash *h, Elf_Scn *dynsym)
{
	GElf_Shdr mem, *sh = gelf_getshdr(dynsym, &mem);
	if (!sh || sh->sh_type != SHT_DYNSYM || sh->sh_size > MAX_SECTION)
		return;
	Elf_Data *data = elf_getdata(dynsym, NULL);
	if (!data || !data->d_buf || data->d_type != ELF_T_SYM)
		return;
	size_t nr = data->d_size / sizeof(Elf64_Sym);
	h->defined = calloc(nr / 8 + 1, 1);
	if (!h->defined)
		return;
	h->nr_syms = nr;
	const Elf64_Sym *syms = data->d_buf;
	for (size_t i = 0; i < nr; i++)
		if (syms[i].st_shndx != SHN_UNDEF)
			h->defined[i / 8] |= (uint8_t)(1 << i % 8);
}

static bool is_defined(const struct gnuhash *h, uint64_t i)
{
	return i >= h->nr_syms || h->defined[i / 8] >> i % 8 & 1;
}

void gnuhash_read(struct gnuhash *h, Elf *elf)
{
	*h = (struct gnuhash){0};
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr mem, *sh = gelf_getshdr(scn, &mem);
		if (!sh || sh->sh_type != SHT_GNU_HASH)
			continue;
		Elf_Data *data = sh->sh_size <= MAX_SECTION
					 ? elf_rawdata(scn, NULL)
					 : NULL;
		if (!data || !data->d_buf || !data->d_size)
			return;
		h->data = malloc(data->d_size);
		if (!h->data)
			return;
		memcpy(h->data, data->d_buf, data->d_size);
		h->len = data->d_size;
		Elf_Scn *dynsym = elf_getscn(elf, sh->sh_link);
		if (dynsym)
			read_defined(h, dynsym);
		return;
	}
}

void gnuhash_deinit(struct gnuhash *h)
{
	free(h->data);
	free(h->defined);
	*h = (struct gnuhash){0};
}

static uint32_t hash_name(const char *name)
{
	uint32_t h = 5381;
	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

/* Word @i of @size bytes from @from on; false if it is not in the section. */
static bool word(const struct gnuhash *h, uint64_t from, uint64_t i,
		 size_t size, uint64_t *ret)
{
	uint64_t at = from + i * size;
	*ret = 0;
	if (at > h->len || h->len - at < size)
		return false;
	memcpy(ret, h->data + at, size);
	return true;
}

/*
 * The section: four words (number of buckets, index of the first hashed
 * symbol, number of filter words, shift), the filter (64 bits each), the
 * buckets (index of their first symbol, 0: empty), and for each symbol its
 * hash, bit 0 set in the last one of a bucket.
 */
bool gnuhash_may_have(const struct gnuhash *h, const char *name)
{
	uint64_t nr_buckets, first, nr_filter, shift, bits, at, entry;
	if (!h->data || !word(h, 0, 0, 4, &nr_buckets) ||
	    !word(h, 0, 1, 4, &first) || !word(h, 0, 2, 4, &nr_filter) ||
	    !word(h, 0, 3, 4, &shift) || !nr_buckets || !nr_filter ||
	    nr_filter & (nr_filter - 1) || shift > 31)
		return true;
	uint32_t hash = hash_name(name);
	if (!word(h, 16, hash / 64 & (nr_filter - 1), 8, &bits))
		return true;
	if (!(bits >> hash % 64 & bits >> (hash >> shift) % 64 & 1))
		return false;
	uint64_t buckets = 16 + nr_filter * 8,
		 chains = buckets + nr_buckets * 4;
	if (!word(h, buckets, hash % nr_buckets, 4, &at))
		return true;
	if (!at)
		return false;
	if (at < first)
		return true;
	for (; word(h, chains, at - first, 4, &entry); at++) {
		if ((entry | 1) == (hash | 1) && is_defined(h, at))
			return true;
		if (entry & 1)
			return false;
	}
	return true;
}
