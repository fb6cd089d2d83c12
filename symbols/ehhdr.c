#include "symbols/ehhdr.h"

#include <dwarf.h>
#include <gelf.h>

#include "symbols/ehframe.h"

#define HEAD	  20 /* bytes before the table, at most */
#define ENTRY	  8
#define MAX_TABLE (256u << 20)

static const GElf_Phdr *find(Elf *elf, GElf_Phdr *mem)
{
	size_t nr;
	if (elf_getphdrnum(elf, &nr))
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr *ph = gelf_getphdr(elf, (int)i, mem);
		if (ph && ph->p_type == PT_GNU_EH_FRAME)
			return ph;
	}
	return NULL;
}

/* All linkers write pairs of 32 bits, counted from the first byte on. */
static void read_head(struct ehhdr *h, struct cursor *c)
{
	const uint8_t *from = c->p;
	uint8_t version = (uint8_t)cursor_uint(c, 1);
	uint8_t frame = (uint8_t)cursor_uint(c, 1);
	uint8_t count = (uint8_t)cursor_uint(c, 1);
	uint8_t table = (uint8_t)cursor_uint(c, 1);
	if (version != 1)
		c->bad = true;
	h->frame_vaddr = ehframe_pointer(c, frame, h->vaddr + 4);
	if (c->bad || table != (DW_EH_PE_datarel | DW_EH_PE_sdata4) ||
	    count != DW_EH_PE_udata4)
		return;
	h->nr = cursor_uint(c, 4);
	h->table = (size_t)(c->p - from);
	if (c->bad || h->nr > (h->bytes.len - h->table) / ENTRY)
		h->nr = 0;
	c->bad = false;
}

bool ehhdr_open(struct ehhdr *ret, Elf *elf, int fd)
{
	GElf_Phdr mem;
	const GElf_Phdr *ph = find(elf, &mem);
	*ret = (struct ehhdr){0};
	if (!ph || ph->p_filesz < 8 || ph->p_filesz > MAX_TABLE)
		return false;
	ret->vaddr = ph->p_vaddr;
	if (!pieces_of_elf(&ret->bytes, elf, fd, ph->p_offset, ph->p_filesz))
		return false;
	size_t len = ret->bytes.len < HEAD ? ret->bytes.len : HEAD;
	struct cursor c = {ret->bytes.data, ret->bytes.data + len, false};
	if (pieces_need(&ret->bytes, 0, len))
		read_head(ret, &c);
	else
		c.bad = true;
	if (c.bad)
		ehhdr_close(ret);
	return !c.bad;
}

void ehhdr_close(struct ehhdr *h)
{
	pieces_close(&h->bytes);
	*h = (struct ehhdr){0};
}

bool ehhdr_entry(struct ehhdr *h, size_t i, uint64_t *start_ret,
		 uint64_t *fde_ret)
{
	int32_t pair[2];
	size_t at = h->table + i * ENTRY;
	if (i >= h->nr || !pieces_need(&h->bytes, at, sizeof(pair)))
		return false;
	memcpy(pair, h->bytes.data + at, sizeof(pair));
	*start_ret = h->vaddr + (uint64_t)(int64_t)pair[0];
	*fde_ret = h->vaddr + (uint64_t)(int64_t)pair[1];
	return true;
}
