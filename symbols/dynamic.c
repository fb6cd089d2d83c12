#include "symbols/dynamic.h"

#include <string.h>

/* The bytes of the file from address @vaddr to the end of its segment. Most of
 * a file with debug information is in none: that is not read. */
static const void *at_vaddr(Elf *elf, uint64_t vaddr, size_t *len_ret)
{
	size_t nr;
	if (elf_getphdrnum(elf, &nr))
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr mem, *ph = gelf_getphdr(elf, (int)i, &mem);
		if (!ph || ph->p_type != PT_LOAD || vaddr < ph->p_vaddr ||
		    vaddr - ph->p_vaddr >= ph->p_filesz ||
		    ph->p_offset > INT64_MAX)
			continue;
		const Elf_Data *d = elf_getdata_rawchunk(
			elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_BYTE);
		if (!d || !d->d_buf)
			continue;
		uint64_t skip = vaddr - ph->p_vaddr;
		*len_ret = ph->p_filesz - skip;
		return (const char *)d->d_buf + skip;
	}
	return NULL;
}

/* Addresses of tables in memory were relocated, those in files were not. */
static const void *table(Elf *elf, uint64_t ptr, uint64_t bias, size_t *len_ret)
{
	const void *p = NULL;
	if (bias && ptr >= bias)
		p = at_vaddr(elf, ptr - bias, len_ret);
	return p ? p : at_vaddr(elf, ptr, len_ret);
}

bool dynamic_read(Elf *elf, uint64_t bias, struct dynamic *ret)
{
	uint64_t symtab = 0, strtab = 0, strsz = 0, soname = 0, rela = 0;
	uint64_t relasz = 0;
	bool is_program = false;
	GElf_Ehdr head;
	const char *entries = NULL;
	size_t nr, len = 0;
	*ret = (struct dynamic){0};
	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && !entries; i++) {
		GElf_Phdr mem, *ph = gelf_getphdr(elf, (int)i, &mem);
		is_program |= ph && ph->p_type == PT_INTERP;
		if (ph && ph->p_type == PT_DYNAMIC)
			entries = at_vaddr(elf, ph->p_vaddr, &len);
	}
	is_program |= gelf_getehdr(elf, &head) && head.e_type != ET_DYN;
	for (size_t i = 0; entries && i < len / sizeof(Elf64_Dyn); i++) {
		Elf64_Dyn d;
		memcpy(&d, entries + i * sizeof(d), sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_SYMTAB)
			symtab = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRTAB)
			strtab = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRSZ)
			strsz = d.d_un.d_val;
		else if (d.d_tag == DT_SONAME)
			soname = d.d_un.d_val;
		else if (d.d_tag == DT_RELA)
			rela = d.d_un.d_ptr;
		else if (d.d_tag == DT_RELASZ)
			relasz = d.d_un.d_val;
		else if (d.d_tag == DT_SYMBOLIC ||
			 (d.d_tag == DT_FLAGS && d.d_un.d_val & DF_SYMBOLIC))
			ret->is_symbolic = true;
		else if (d.d_tag == DT_FLAGS_1 && d.d_un.d_val & DF_1_PIE)
			is_program = true;
		else if (d.d_tag == DT_NEEDED)
			ret->has_needed = true;
		if (d.d_tag == DT_TEXTREL ||
		    (d.d_tag == DT_FLAGS && d.d_un.d_val & DF_TEXTREL))
			ret->has_text_relocs = true;
	}
	size_t syms_len = 0, strings_len = 0;
	const char *strings = table(elf, strtab, bias, &strings_len);
	ret->syms = table(elf, symtab, bias, &syms_len);
	if (!entries || !symtab || !strtab || !strsz || !strings || !ret->syms)
		return false;
	if (strsz < strings_len)
		strings_len = strsz;
	/* Nothing says how many symbols there are, but linkers put their names
	 * right behind them. */
	if (strtab <= symtab || strings[strings_len - 1])
		return false;
	if (strtab - symtab < syms_len)
		syms_len = strtab - symtab;
	ret->nr_syms = syms_len / sizeof(Elf64_Sym);
	ret->strings = strings;
	ret->strings_len = strings_len;
	if (soname && soname < strings_len)
		ret->soname = strings + soname;
	ret->is_library = ret->soname || !is_program;
	size_t relas_len = 0;
	ret->relas = rela ? table(elf, rela, bias, &relas_len) : NULL;
	if (relasz < relas_len)
		relas_len = relasz;
	ret->nr_relas = ret->relas ? relas_len / sizeof(Elf64_Rela) : 0;
	return true;
}
