#include "symbols/ehframe.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>

#include "symbols/ehhdr.h"

#define MAX_SECTION (512u << 20)
#define MAX_FDES    (8u << 20)
#define MAX_CIE_LEN 4096	/* real ones have two dozen bytes */
#define MAX_CIES    (32u << 10) /* linkers merge equal ones: a few dozen */

void ehframe_section_deinit(struct ehframe_section *s)
{
	pieces_close(&s->bytes);
	*s = (struct ehframe_section){0};
}

static bool take(struct ehframe_section *ret, Elf *elf, int fd, uint64_t offset,
		 uint64_t len, uint64_t vaddr)
{
	ret->vaddr = vaddr;
	return len && len <= MAX_SECTION &&
	       pieces_of_elf(&ret->bytes, elf, fd, offset, len);
}

static bool take_compressed(struct ehframe_section *ret, Elf_Scn *scn,
			    uint64_t vaddr)
{
	if (elf_compress(scn, 0, 0) < 0)
		return false;
	Elf_Data *d = elf_rawdata(scn, NULL);
	ret->vaddr = vaddr;
	return d && d->d_buf && d->d_size && d->d_size <= MAX_SECTION &&
	       pieces_of(&ret->bytes, d->d_buf, d->d_size);
}

static Elf_Scn *find_section(Elf *elf, const char *wanted, GElf_Shdr *ret)
{
	size_t strings;
	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		const char *name =
			gelf_getshdr(scn, ret)
				? elf_strptr(elf, strings, ret->sh_name)
				: NULL;
		if (name && !strcmp(name, wanted) && ret->sh_type != SHT_NOBITS)
			return scn;
	}
	return NULL;
}

static bool take_section(struct ehframe_section *ret, Elf *elf, int fd,
			 const char *wanted)
{
	GElf_Shdr sh;
	Elf_Scn *scn = find_section(elf, wanted, &sh);
	if (scn && sh.sh_flags & SHF_COMPRESSED)
		return take_compressed(ret, scn, sh.sh_addr);
	return scn && take(ret, elf, fd, sh.sh_offset, sh.sh_size, sh.sh_addr);
}

static const GElf_Phdr *segment_of(Elf *elf, uint64_t vaddr, GElf_Phdr *mem)
{
	size_t nr;
	if (elf_getphdrnum(elf, &nr))
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr *ph = gelf_getphdr(elf, (int)i, mem);
		if (ph && ph->p_type == PT_LOAD && vaddr >= ph->p_vaddr &&
		    vaddr - ph->p_vaddr < ph->p_filesz)
			return ph;
	}
	return NULL;
}

/* Without section headers: by what the program headers say. */
static bool take_segment(struct ehframe_section *ret, Elf *elf, int fd)
{
	struct ehhdr hdr;
	if (!ehhdr_open(&hdr, elf, fd))
		return false;
	uint64_t at = hdr.frame_vaddr;
	ehhdr_close(&hdr);
	GElf_Phdr mem;
	const GElf_Phdr *seg = segment_of(elf, at, &mem);
	if (!seg)
		return false;
	uint64_t skip = at - seg->p_vaddr;
	ret->open_ended = true;
	return take(ret, elf, fd, seg->p_offset + skip, seg->p_filesz - skip,
		    at);
}

bool ehframe_open(struct ehframe_section *ret, Elf *elf, int fd)
{
	*ret = (struct ehframe_section){0};
	if (take_section(ret, elf, fd, ".eh_frame") ||
	    take_segment(ret, elf, fd))
		return true;
	ret->open_ended = false;
	ret->is_debug_frame = true;
	return take_section(ret, elf, fd, ".debug_frame");
}

uint64_t ehframe_bytes(Elf *elf, int fd)
{
	GElf_Shdr sh;
	if (find_section(elf, ".eh_frame", &sh) ||
	    find_section(elf, ".debug_frame", &sh))
		return sh.sh_size;
	struct ehframe_section s = {0};
	uint64_t bytes = take_segment(&s, elf, fd) ? s.bytes.len : 0;
	ehframe_section_deinit(&s);
	return bytes;
}

bool ehframe_load(struct ehframe_section *ret, Elf *elf)
{
	return ehframe_open(ret, elf, -1);
}

uint64_t ehframe_pointer(struct cursor *c, uint8_t encoding, uint64_t vaddr)
{
	uint64_t v;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		v = cursor_uint(c, 8);
		break;
	case DW_EH_PE_udata2:
		v = cursor_uint(c, 2);
		break;
	case DW_EH_PE_udata4:
		v = cursor_uint(c, 4);
		break;
	case DW_EH_PE_sdata2:
		v = (uint64_t)cursor_int(c, 2);
		break;
	case DW_EH_PE_sdata4:
		v = (uint64_t)cursor_int(c, 4);
		break;
	case DW_EH_PE_uleb128:
		v = cursor_uleb(c);
		break;
	case DW_EH_PE_sleb128:
		v = (uint64_t)cursor_sleb(c);
		break;
	default:
		c->bad = true;
		return 0;
	}
	/* Bases other than the place itself do not occur for code here. */
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		v += vaddr;
	else if ((encoding & 0x70) != DW_EH_PE_absptr)
		c->bad = true;
	if (encoding & DW_EH_PE_indirect)
		c->bad = true;
	return v;
}

static void *grow(void *mem, size_t nr, size_t *cap, size_t item)
{
	if (nr < *cap)
		return mem;
	size_t want = *cap * 2 + 64;
	void *more = realloc(mem, want * item);
	if (more)
		*cap = want;
	return more;
}

/* What the letters of the augmentation string announce. */
static void parse_augmentation(struct ehframe_cie *cie, const char *letters,
			       struct cursor *c)
{
	if (*letters == 'z') {
		letters++;
		cie->has_augmentation_length = true;
	}
	struct cursor data = {c->p, c->p, false};
	if (cie->has_augmentation_length)
		data = cursor_take(c, cursor_uleb(c));
	for (; *letters && !data.bad; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = (uint8_t)cursor_uint(&data, 1);
			break;
		case 'L':
			cie->lsda_encoding = (uint8_t)cursor_uint(&data, 1);
			break;
		case 'P': {
			/* Its value is of no interest, its length is. */
			uint8_t enc = (uint8_t)cursor_uint(&data, 1);
			if ((enc & 0x70) == DW_EH_PE_aligned)
				data.bad = true;
			else
				ehframe_pointer(&data, enc & 0x0f, 0);
			break;
		}
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B':
			break;
		default:
			/* With a length the rest can be passed over. */
			if (!cie->has_augmentation_length)
				data.bad = true;
			letters += strlen(letters) - 1;
			break;
		}
	}
	if (data.bad)
		c->bad = true;
}

/* @c is behind the CIE's id field. */
static void parse_cie(struct ehframe_cie *cie, struct cursor c)
{
	uint8_t version = (uint8_t)cursor_uint(&c, 1);
	size_t left = cursor_left(&c);
	const uint8_t *nul = memchr(c.p, 0, left < 64 ? left : 64);
	if (!nul || left > MAX_CIE_LEN ||
	    (version != 1 && version != 3 && version != 4))
		return;
	const char *letters = (const char *)c.p;
	c.p = nul + 1;
	if (version == 4 &&
	    (cursor_uint(&c, 1) != 8 || cursor_uint(&c, 1) != 0))
		return; /* address size, segment size */
	cie->code_align = cursor_uleb(&c);
	cie->data_align = cursor_sleb(&c);
	uint64_t ra = version == 1 ? cursor_uint(&c, 1) : cursor_uleb(&c);
	parse_augmentation(cie, letters, &c);
	if (c.bad || ra > 16)
		return;
	cie->ra_reg = (uint8_t)ra;
	cie->program = c;
	cie->usable = true;
}

static uint32_t *cie_slot(struct ehframe *e, uint64_t offset)
{
	size_t at = (size_t)(offset * 0x9e3779b97f4a7c15ULL >> 32);
	for (;; at++) {
		uint32_t *slot = &e->cie_hash[at & (e->cie_hash_size - 1)];
		if (!*slot || e->cies[*slot - 1].offset == offset)
			return slot;
	}
}

static bool grow_cie_hash(struct ehframe *e)
{
	if (e->nr_cies * 2 < e->cie_hash_size)
		return true;
	free(e->cie_hash);
	e->cie_hash_size = e->cie_hash_size ? e->cie_hash_size * 4 : 64;
	e->cie_hash = calloc(e->cie_hash_size, sizeof(*e->cie_hash));
	if (!e->cie_hash)
		return false;
	for (size_t i = 0; i < e->nr_cies; i++)
		*cie_slot(e, e->cies[i].offset) = (uint32_t)i + 1;
	return true;
}

/*
 * Where an entry's fields are: its length takes 4 or 12 bytes, and its id
 * is 4 bytes, or 8 in a 64-bit .debug_frame.
 */
struct entry {
	uint64_t offset;
	uint64_t id;
	uint64_t id_offset;
	struct cursor body; /* behind the id */
	bool is_cie;
};

static bool next_entry(const struct ehframe_section *s, struct cursor *c,
		       struct entry *ret)
{
	while (cursor_more(c)) {
		ret->offset = (uint64_t)(c->p - s->bytes.data);
		uint64_t len = cursor_uint(c, 4);
		bool is_64 = len == 0xffffffff;
		if (is_64)
			len = cursor_uint(c, 8);
		/* A terminator; linkers have been seen to leave one inside. */
		if (!len && s->open_ended)
			return false;
		if (!len)
			continue;
		ret->body = cursor_take(c, len);
		ret->id_offset = (uint64_t)(ret->body.p - s->bytes.data);
		is_64 = is_64 && s->is_debug_frame;
		ret->id = cursor_uint(&ret->body, is_64 ? 8 : 4);
		if (!s->is_debug_frame)
			ret->is_cie = !ret->id;
		else
			ret->is_cie = ret->id == (is_64 ? ~0ULL : 0xffffffff);
		if (c->bad)
			return false;
		if (!ret->body.bad)
			return true;
	}
	return false;
}

/* The entry at @offset, as far as it goes; false if there is none, or it cannot
 * be read. */
static bool entry_at(struct ehframe_section *s, uint64_t offset,
		     struct entry *ret)
{
	struct pieces *b = &s->bytes;
	uint64_t head = 4, len = 0;
	if (!pieces_need(b, offset, head))
		return false;
	memcpy(&len, b->data + offset, 4);
	if (len == 0xffffffff) {
		head = 12;
		if (!pieces_need(b, offset, head))
			return false;
		memcpy(&len, b->data + offset + 4, 8);
	}
	if (!len || len > b->len || !pieces_need(b, offset, head + len))
		return false;
	struct cursor c = {b->data + offset, b->data + offset + head + len,
			   false};
	return next_entry(s, &c, ret) && ret->offset == offset;
}

/* The CIE at @offset of the section, read on first use; NULL: memory is out. */
static struct ehframe_cie *cie_at(struct ehframe *e, struct ehframe_section *s,
				  uint64_t offset)
{
	static struct ehframe_cie too_many;
	if (e->nr_cies >= MAX_CIES)
		return &too_many;
	if (!grow_cie_hash(e))
		return NULL;
	uint32_t *slot = cie_slot(e, offset);
	if (*slot)
		return &e->cies[*slot - 1];
	void *mem = grow(e->cies, e->nr_cies, &e->cap_cies, sizeof(*e->cies));
	if (!mem)
		return NULL;
	e->cies = mem;
	struct ehframe_cie *cie = &e->cies[e->nr_cies];
	*cie = (struct ehframe_cie){.offset = offset,
				    .lsda_encoding = DW_EH_PE_omit};
	*slot = (uint32_t)++e->nr_cies;
	struct entry entry;
	if (entry_at(s, offset, &entry) && entry.is_cie)
		parse_cie(cie, entry.body);
	return cie;
}

enum fde { FDE_NO_MEMORY, FDE_USELESS, FDE_FINE };

static enum fde parse_fde(struct ehframe *e, struct ehframe_section *s,
			  struct entry *entry, struct ehframe_fde *ret)
{
	/* .eh_frame counts back from the id field, .debug_frame from 0. */
	uint64_t at =
		s->is_debug_frame ? entry->id : entry->id_offset - entry->id;
	struct ehframe_cie *cie = cie_at(e, s, at);
	if (!cie)
		return FDE_NO_MEMORY;
	if (!cie->usable)
		return FDE_USELESS;
	struct cursor *c = &entry->body;
	uint64_t vaddr = s->vaddr + (uint64_t)(c->p - s->bytes.data);
	*ret = (struct ehframe_fde){.cie = (uint32_t)(cie - e->cies)};
	ret->start = ehframe_pointer(c, cie->encoding, vaddr);
	ret->end = ret->start + ehframe_pointer(c, cie->encoding & 0x0f, 0);
	if (cie->has_augmentation_length) {
		struct cursor data = cursor_take(c, cursor_uleb(c));
		vaddr = s->vaddr + (uint64_t)(data.p - s->bytes.data);
		if (cie->lsda_encoding != DW_EH_PE_omit)
			ret->lsda = ehframe_pointer(&data, cie->lsda_encoding,
						    vaddr);
		ret->lsda = data.bad ? 0 : ret->lsda;
	}
	ret->program = *c;
	/* Code that the linker dropped was left at address 0. */
	return c->bad || ret->end <= ret->start || !ret->start ? FDE_USELESS
							       : FDE_FINE;
}

static bool add_fde(struct ehframe *e, struct ehframe_section *s,
		    struct entry *entry)
{
	struct ehframe_fde fde;
	enum fde is = parse_fde(e, s, entry, &fde);
	if (is != FDE_FINE)
		return is != FDE_NO_MEMORY;
	void *mem = grow(e->fdes, e->nr_fdes, &e->cap_fdes, sizeof(*e->fdes));
	if (!mem)
		return false;
	e->fdes = mem;
	e->fdes[e->nr_fdes++] = fde;
	return true;
}

bool ehframe_fde_at(struct ehframe *e, struct ehframe_section *s,
		    uint64_t vaddr, struct ehframe_fde *ret)
{
	struct entry entry;
	return vaddr >= s->vaddr && entry_at(s, vaddr - s->vaddr, &entry) &&
	       !entry.is_cie && parse_fde(e, s, &entry, ret) == FDE_FINE;
}

static int compare_fde(const void *pa, const void *pb)
{
	const struct ehframe_fde *a = pa, *b = pb;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static _Thread_local bool (*pause_fn)(void *ctx);
static _Thread_local void *pause_ctx;
static _Thread_local bool has_given_up;

void ehframe_set_pause(bool (*fn)(void *ctx), void *ctx)
{
	pause_fn = fn;
	pause_ctx = ctx;
	has_given_up = false;
}

bool ehframe_has_given_up(void)
{
	return has_given_up;
}

/* After so many entries. */
static bool may_go_on(size_t nr)
{
	if (pause_fn && nr % EHFRAME_PAUSE == 0)
		has_given_up |= !pause_fn(pause_ctx);
	return !has_given_up;
}

/* Linkers mostly have left them in order. */
static void sort(struct ehframe *e)
{
	size_t i = 1;
	while (i < e->nr_fdes && compare_fde(&e->fdes[i - 1], &e->fdes[i]) <= 0)
		i++;
	if (i < e->nr_fdes)
		qsort(e->fdes, e->nr_fdes, sizeof(*e->fdes), compare_fde);
}

bool ehframe_parse(struct ehframe *ret, struct ehframe_section *s)
{
	struct cursor c = {s->bytes.data, s->bytes.data + s->bytes.len, false};
	struct entry entry;
	*ret = (struct ehframe){0};
	if (!pieces_need(&s->bytes, 0, s->bytes.len))
		return true;
	for (size_t nr = 0; may_go_on(nr); nr++) {
		if (ret->nr_fdes == MAX_FDES || !next_entry(s, &c, &entry)) {
			sort(ret);
			return true;
		}
		if (!entry.is_cie && !add_fde(ret, s, &entry))
			break;
	}
	ehframe_deinit(ret);
	return false;
}

void ehframe_deinit(struct ehframe *e)
{
	free(e->cies);
	free(e->fdes);
	free(e->cie_hash);
	*e = (struct ehframe){0};
}
