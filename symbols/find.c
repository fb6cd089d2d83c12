#include <string.h>

#include "symbols/space.h"
#include "symbols/symtab.h"

/*
 * What @m offers under @name to others: a definition in .dynsym. In a static
 * program every symbol counts, in a dynamic one only with @any.
 */
static const struct symtab_sym *offered(struct module *m, const char *name,
					bool any)
{
	if (!m->is_elf ||
	    (!any && m->needs_linker && !module_may_export(m, name)))
		return NULL;
	struct symtab *t = module_symtab(m);
	if (!t)
		return NULL;
	const struct symtab_sym *sym = symtab_named(t, name, true);
	if (!sym && (any || !m->needs_linker))
		sym = symtab_named(t, name, false);
	return sym;
}

/* Where file address @addr of @module is executable memory now; 0 nowhere. */
static taddr_t place_in_ranges(const struct sym_space *s, uint32_t module,
			       uint64_t addr, taddr_t *start_ret,
			       taddr_t *end_ret)
{
	for (size_t i = 0; i < s->nr_ranges; i++) {
		const struct space_range *r = &s->ranges[i];
		taddr_t at = r->bias + addr;
		if (r->module != module || at < r->start || at >= r->end)
			continue;
		/* Patched or re-protected text is split: give the whole of it.
		 */
		size_t first = i, last = i;
		while (first && s->ranges[first - 1].module == module &&
		       s->ranges[first - 1].end == s->ranges[first].start)
			first--;
		while (last + 1 < s->nr_ranges &&
		       s->ranges[last + 1].module == module &&
		       s->ranges[last + 1].start == s->ranges[last].end)
			last++;
		if (start_ret)
			*start_ret = s->ranges[first].start;
		if (end_ret)
			*end_ret = s->ranges[last].end;
		return at;
	}
	return 0;
}

/*
 * An IFUNC's value is its resolver. Which implementation that chose only the
 * tracee knows; nothing of an allocator is one, so say that it is unknown.
 */
static taddr_t find_in(struct sym_space *s, uint32_t module, const char *name,
		       bool any, taddr_t *start_ret, taddr_t *end_ret,
		       uint64_t *size_ret)
{
	const struct symtab_sym *sym =
		offered(space_module(s, module), name, any);
	if (!sym || sym->ifunc)
		return 0;
	taddr_t at = place_in_ranges(s, module, sym->addr, start_ret, end_ret);
	if (at && size_ret)
		*size_ret = sym->size;
	return at;
}

static bool is_mapped(const struct sym_space *s, uint32_t module)
{
	for (size_t i = 0; i < s->nr_ranges; i++)
		if (s->ranges[i].module == module)
			return true;
	return false;
}

taddr_t sym_find(struct sym_space *s, const char *name, const char *anchor,
		 taddr_t *start_ret, taddr_t *end_ret, uint64_t *size_ret)
{
	space_link_order(s);
	if (anchor) {
		for (size_t i = 0; i < s->nr_link_order; i++) {
			uint32_t module = s->link_order[i];
			struct module *m = space_module(s, module);
			if (is_mapped(s, module) && !m->is_loader &&
			    offered(m, anchor, false))
				return find_in(s, module, name, true, start_ret,
					       end_ret, size_ret);
		}
		return 0;
	}
	/* First what the linker would find, then names it does not see. */
	for (int any = 0; any <= 1; any++) {
		for (size_t i = 0; i < s->nr_link_order; i++) {
			taddr_t at = find_in(s, s->link_order[i], name, any,
					     start_ret, end_ret, size_ret);
			if (at)
				return at;
		}
	}
	return 0;
}
