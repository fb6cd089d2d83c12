#include "symbols/dataslot.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dynamic.h"

static int by_slot(const void *a, const void *b)
{
	const struct data_slot *x = a, *y = b;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Those of one address: one with a slot first. */
static int by_addr(const void *a, const void *b)
{
	const struct data_export *x = a, *y = b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return !x->slot - !y->slot;
}

static Elf64_Sym symbol_at(const struct dynamic *d, uint64_t i)
{
	Elf64_Sym sym = {.st_shndx = SHN_UNDEF};
	if (i < d->nr_syms)
		memcpy(&sym, (const char *)d->syms + i * sizeof(sym),
		       sizeof(sym));
	return sym;
}

static bool is_data(const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	return sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS &&
	       (type == STT_OBJECT || type == STT_COMMON ||
		type == STT_NOTYPE) &&
	       sym->st_value;
}

/* The memory that is read-only once it is relocated. */
static void find_relro(Elf *elf, uint64_t *lo_ret, uint64_t *hi_ret)
{
	size_t nr;
	*lo_ret = *hi_ret = 0;
	if (elf_getphdrnum(elf, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr p;
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_GNU_RELRO &&
		    p.p_memsz <= UINT64_MAX - p.p_vaddr) {
			*lo_ret = p.p_vaddr;
			*hi_ret = p.p_vaddr + p.p_memsz;
		}
	}
}

/* @slot_of: of each symbol. */
static void read_slots(struct data_slots *s, const struct dynamic *d, Elf *elf,
		       uint64_t *slot_of)
{
	uint64_t lo, hi;
	find_relro(elf, &lo, &hi);
	for (size_t i = 0; i < d->nr_relas; i++) {
		Elf64_Rela r;
		memcpy(&r, (const char *)d->relas + i * sizeof(r), sizeof(r));
		uint64_t symbol = ELF64_R_SYM(r.r_info), addr = 0;
		if (ELF64_R_TYPE(r.r_info) == R_X86_64_GLOB_DAT) {
			const Elf64_Sym sym = symbol_at(d, symbol);
			if (!is_data(&sym))
				continue;
			addr = sym.st_value;
			slot_of[symbol] = r.r_offset;
		} else if (ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE &&
			   r.r_offset >= lo && r.r_offset < hi) {
			addr = (uint64_t)r.r_addend;
		}
		if (addr)
			s->slot[s->nr++] = (struct data_slot){r.r_offset, addr};
	}
	if (s->nr)
		qsort(s->slot, s->nr, sizeof(*s->slot), by_slot);
}

static void read_exports(struct data_slots *s, const struct dynamic *d,
			 const uint64_t *slot_of)
{
	for (size_t i = 0; i < d->nr_syms; i++) {
		const Elf64_Sym sym = symbol_at(d, i);
		if (!is_data(&sym) || ELF64_ST_BIND(sym.st_info) == STB_LOCAL ||
		    ELF64_ST_VISIBILITY(sym.st_other) != STV_DEFAULT ||
		    !sym.st_size || sym.st_size > UINT64_MAX - sym.st_value)
			continue;
		s->export[s->nr_exports++] = (struct data_export){
			sym.st_value, sym.st_size, slot_of[i]};
	}
	if (s->nr_exports)
		qsort(s->export, s->nr_exports, sizeof(*s->export), by_addr);
}

int data_slots_read(struct data_slots *ret, Elf *elf)
{
	struct dynamic d;
	*ret = (struct data_slots){.nr = 0};
	if (!dynamic_read(elf, 0, &d))
		return 0;
	_cleanup_free_ uint64_t *slot_of =
		calloc(d.nr_syms + 1, sizeof(*slot_of));
	ret->slot = calloc(d.nr_relas + 1, sizeof(*ret->slot));
	ret->export = calloc(d.nr_syms + 1, sizeof(*ret->export));
	if (!slot_of || !ret->slot || !ret->export) {
		data_slots_deinit(ret);
		return SMCO_NOMEM;
	}
	read_slots(ret, &d, elf, slot_of);
	if (d.is_library && !d.is_symbolic)
		read_exports(ret, &d, slot_of);
	return 0;
}

void data_slots_deinit(struct data_slots *s)
{
	free(s->slot);
	free(s->export);
	*s = (struct data_slots){.nr = 0};
}

bool data_slots_find(const struct data_slots *s, uint64_t slot,
		     uint64_t *addr_ret)
{
	const struct data_slot key = {.slot = slot};
	const struct data_slot *x =
		s->nr ? bsearch(&key, s->slot, s->nr, sizeof(key), by_slot)
		      : NULL;
	if (x)
		*addr_ret = x->addr;
	return x;
}

const struct data_export *data_export_find(const struct data_slots *s,
					   uint64_t addr)
{
	size_t a = 0, b = s->nr_exports;
	while (a < b) { /* the first that begins behind it */
		size_t mid = a + (b - a) / 2;
		if (s->export[mid].addr <= addr)
			a = mid + 1;
		else
			b = mid;
	}
	if (!a || addr - s->export[a - 1].addr >= s->export[a - 1].size)
		return NULL;
	uint64_t start = s->export[--a].addr;
	while (a && s->export[a - 1].addr == start)
		a--;
	return &s->export[a];
}
