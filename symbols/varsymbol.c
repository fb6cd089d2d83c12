/*
 * Variables of a file without debug information: what its symbol table names
 * and has the size of an integer for.
 */
#include <stdlib.h>

#include "symbols/demangle.h"
#include "symbols/space.h"
#include "symbols/module.h"
#include "symbols/varbuild.h"

/* More than any real file has; bounds what a hostile one can claim. */
#define MAX_SYMBOLS (16u << 20)

/* What a type would say is not known: neither the sign nor what it stands for.
 * False: its size is no integer's. */
static bool type_of(uint64_t size, struct var_type *ret)
{
	static const char *const names[] = {[1] = "1 byte",
					    [2] = "2 bytes",
					    [4] = "4 bytes",
					    [8] = "8 bytes"};
	if (size >= ARRAY_SIZE(names) || !names[size])
		return false;
	*ret = (struct var_type){
		.name = names[size],
		.width = (uint8_t)size,
		.is_signed = true,
	};
	return true;
}

static void add(struct var_build *b, const struct variable *var, uint64_t addr)
{
	struct variables *v = b->v;
	v->nr_seen++;
	if (b->want && !b->want(b->want_ctx, var))
		return;
	if (v->nr_vars >= VAR_MAX_VARIABLES) {
		v->cut_short = true;
		return;
	}
	if (!var_grow(b, (void **)&v->vars, v->nr_vars, &b->cap_vars,
		      sizeof(*v->vars)) ||
	    !var_grow(b, (void **)&b->found, b->nr_found, &b->cap_found,
		      sizeof(*b->found)))
		return;
	struct variable *own = &v->vars[v->nr_vars];
	*own = *var;
	own->name = own->qualified = var_string(b, var->name);
	b->found[b->nr_found++] = (struct var_found){
		.var = (uint32_t)v->nr_vars++,
		.place = {.hi = UINT64_MAX,
			  .function = VAR_NO_FUNCTION,
			  .kind = VAR_ADDR,
			  .offset = (int64_t)addr},
	};
}

static void see(struct var_build *b, Elf *elf, const GElf_Sym *sym,
		const char *name)
{
	struct variable var = {
		.file = "",
		.scope = "",
		.flags = VAR_GLOBAL | VAR_STATIC,
	};
	GElf_Shdr mem, *sh;
	if (GELF_ST_TYPE(sym->st_info) != STT_OBJECT || !sym->st_value ||
	    sym->st_shndx == SHN_UNDEF || sym->st_shndx >= SHN_LORESERVE ||
	    !type_of(sym->st_size, &var.type) || !name || !*name)
		return;
	sh = gelf_getshdr(elf_getscn(elf, sym->st_shndx), &mem);
	if (!sh || !(sh->sh_flags & SHF_ALLOC))
		return;
	var.type.is_const = !(sh->sh_flags & SHF_WRITE);
	char *readable _cleanup_free_ = sym_demangle(name);
	var.name = var.qualified = readable ? readable : name;
	add(b, &var, sym->st_value);
}

static void see_all(struct var_build *b, Elf *elf)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr mem, *sh = gelf_getshdr(scn, &mem);
		Elf_Data *data;
		if (!sh || sh->sh_type != SHT_SYMTAB ||
		    sh->sh_entsize != sizeof(Elf64_Sym) ||
		    !(data = elf_getdata(scn, NULL)))
			continue;
		size_t nr = data->d_size / sizeof(Elf64_Sym);
		for (size_t i = 1; i < nr && i < MAX_SYMBOLS; i++) {
			GElf_Sym sym_mem,
				*sym = gelf_getsym(data, (int)i, &sym_mem);
			if (sym && var_step(b))
				see(b, elf, sym,
				    elf_strptr(elf, sh->sh_link, sym->st_name));
		}
	}
}

struct variables *variables_of_symbols(struct sym_space *s, uint32_t module,
				       var_want_fn want, void *want_ctx,
				       struct smco_err *err)
{
	struct module *m = space_module(s, module);
	Elf *elf = m && m->is_elf ? module_elf(m) : NULL;
	struct var_build b = {
		.want = want,
		.want_ctx = want_ctx,
		.steps_left = VAR_MAX_STEPS,
	};
	bool fine = var_build_begin(&b);
	if (fine && elf)
		see_all(&b, elf);
	elf_end(elf);
	if (!fine || b.no_memory || !var_build_settle(&b)) {
		var_build_drop(&b);
		smco_fail(err, SMCO_NOMEM, 0,
			  "out of memory for the symbols of %s", m->path);
		return NULL;
	}
	if (b.v->nr_seen)
		return b.v;
	variables_destroy(b.v);
	smco_fail(err, SMCO_NOTFOUND, 0,
		  "%s has neither debug information nor symbols", m->path);
	return NULL;
}
