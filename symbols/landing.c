/* Tables for the language's exceptions, see landing.h. */
#include "symbols/landing.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/ehframe.h"

/* The section that holds @addr. */
static bool find_section(Elf *elf, uint64_t addr, struct cursor *ret,
			 uint64_t *vaddr_ret)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr sh;
		if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS ||
		    !(sh.sh_flags & SHF_ALLOC) || addr < sh.sh_addr ||
		    addr - sh.sh_addr >= sh.sh_size)
			continue;
		Elf_Data *d = elf_rawdata(scn, NULL);
		if (!d || !d->d_buf)
			return false;
		ret->p = d->d_buf;
		ret->end = ret->p + d->d_size;
		ret->bad = false;
		*vaddr_ret = sh.sh_addr;
		return true;
	}
	return false;
}

/* @all is the section, which lies at @vaddr. */
static void one_table(struct cursor all, uint64_t vaddr,
		      const struct ehframe_fde *fde,
		      void (*fn)(void *ctx, uint64_t addr), void *ctx)
{
	struct cursor c = all;
	uint64_t base = fde->start;
	cursor_take(&c, fde->lsda - vaddr);
	uint8_t enc = (uint8_t)cursor_uint(&c, 1);
	if (enc != DW_EH_PE_omit)
		base = ehframe_pointer(&c, enc,
				       vaddr + (uint64_t)(c.p - all.p));
	enc = (uint8_t)cursor_uint(&c, 1);
	if (enc != DW_EH_PE_omit)
		cursor_uleb(&c); /* where the types end */
	enc = (uint8_t)cursor_uint(&c, 1);
	struct cursor sites = cursor_take(&c, cursor_uleb(&c));
	while (cursor_more(&sites)) {
		ehframe_pointer(&sites, enc, 0); /* start */
		ehframe_pointer(&sites, enc, 0); /* length */
		uint64_t pad = ehframe_pointer(&sites, enc, 0);
		cursor_uleb(&sites); /* action */
		if (pad && !sites.bad)
			fn(ctx, base + pad);
	}
}

void landing_pads(Elf *elf, void (*fn)(void *ctx, uint64_t addr), void *ctx)
{
	struct ehframe_section s;
	struct ehframe e;
	struct cursor table = {NULL, NULL, false};
	uint64_t vaddr = 0;
	if (!ehframe_load(&s, elf))
		return;
	if (ehframe_parse(&e, &s)) {
		for (size_t i = 0; i < e.nr_fdes; i++) {
			const struct ehframe_fde *f = &e.fdes[i];
			if (!f->lsda)
				continue;
			if ((!table.p || f->lsda < vaddr ||
			     f->lsda - vaddr >=
				     (uint64_t)(table.end - table.p)) &&
			    !find_section(elf, f->lsda, &table, &vaddr))
				continue;
			one_table(table, vaddr, f, fn, ctx);
		}
		ehframe_deinit(&e);
	}
	ehframe_section_deinit(&s);
}
