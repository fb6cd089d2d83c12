#include "symbols/symtab.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/dynamic.h"

/* More than any real module has; bounds what a hostile file can claim. */
#define MAX_SYMBOLS (16u << 20)
#define MAX_STRINGS (512u << 20)
#define MAX_NAME    (32u << 10)

struct symtab {
	struct symtab_sym *syms; /* by address, then by preference */
	size_t nr, cap;
	char *strings;
	size_t strings_len, strings_cap;
	uint64_t *max_end; /* largest end among syms[0..i] */
	uint32_t *by_name; /* chain heads, index + 1; built on first search */
	uint32_t *next;	   /* the rest of each chain */
	size_t hash_size;  /* a power of two */
	bool has_static;
};

struct symtab *symtab_create(void)
{
	return calloc(1, sizeof(struct symtab));
}

void symtab_destroy(struct symtab *t)
{
	if (!t)
		return;
	free(t->syms);
	free(t->strings);
	free(t->max_end);
	free(t->by_name);
	free(t->next);
	free(t);
}

const char *symtab_string(const struct symtab *t, const struct symtab_sym *s)
{
	return t->strings + s->name;
}

bool symtab_has_static(const struct symtab *t)
{
	return t->has_static;
}

size_t symtab_nr(const struct symtab *t)
{
	return t->nr;
}

const struct symtab_sym *symtab_get(const struct symtab *t, size_t i)
{
	return &t->syms[i];
}

/* Store @name up to its version; false if memory is out. */
static bool add_string(struct symtab *t, const char *name, uint32_t *ret)
{
	size_t len = strcspn(name, "@");
	if (len > MAX_NAME)
		len = MAX_NAME;
	if (t->strings_len + len + 1 > MAX_STRINGS)
		return false;
	if (t->strings_len + len + 1 > t->strings_cap) {
		size_t cap = (t->strings_cap + len + 1) * 2 + 4096;
		char *mem = realloc(t->strings, cap);
		if (!mem)
			return false;
		t->strings = mem;
		t->strings_cap = cap;
	}
	*ret = (uint32_t)t->strings_len;
	memcpy(t->strings + t->strings_len, name, len);
	t->strings[t->strings_len + len] = 0;
	t->strings_len += len + 1;
	return true;
}

static bool add_symbol(struct symtab *t, const struct symtab_sym *s)
{
	if (t->nr == t->cap) {
		size_t cap = t->cap * 2 + 256;
		void *mem = realloc(t->syms, cap * sizeof(*t->syms));
		if (!mem)
			return false;
		t->syms = mem;
		t->cap = cap;
	}
	t->syms[t->nr++] = *s;
	return true;
}

/* .gnu.version of the .dynsym section with index @dynsym. */
static Elf_Data *find_versions(Elf *elf, size_t dynsym)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr mem, *sh = gelf_getshdr(scn, &mem);
		if (sh && sh->sh_type == SHT_GNU_versym &&
		    sh->sh_link == dynsym)
			return elf_getdata(scn, NULL);
	}
	return NULL;
}

/*
 * Which symbols name code: functions, and labels of hand-written assembly,
 * which have no type but lie in an executable section. *limit_ret gets the end
 * of the symbol's section.
 */
static bool is_code(Elf *elf, const GElf_Sym *sym, uint64_t *limit_ret)
{
	*limit_ret = sym->st_value;
	int type = GELF_ST_TYPE(sym->st_info);
	if (sym->st_shndx == SHN_UNDEF || !sym->st_value)
		return false;
	bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
	if (!function && type != STT_NOTYPE)
		return false;
	if (sym->st_shndx >= SHN_LORESERVE)
		return function;
	GElf_Shdr mem, *sh = gelf_getshdr(elf_getscn(elf, sym->st_shndx), &mem);
	if (sh)
		*limit_ret = sh->sh_addr + sh->sh_size;
	return function || (sh && (sh->sh_flags & SHF_EXECINSTR));
}

static void add_section(struct symtab *t, Elf *elf, Elf_Scn *scn,
			const GElf_Shdr *sh)
{
	bool dynamic = sh->sh_type == SHT_DYNSYM;
	Elf_Data *data = elf_getdata(scn, NULL);
	if (!data || sh->sh_entsize != sizeof(Elf64_Sym))
		return;
	Elf_Data *versions =
		dynamic ? find_versions(elf, elf_ndxscn(scn)) : NULL;
	size_t nr = data->d_size / sizeof(Elf64_Sym);
	if (nr > MAX_SYMBOLS)
		nr = MAX_SYMBOLS;
	for (size_t i = 1; i < nr; i++) {
		GElf_Sym mem, *sym = gelf_getsym(data, (int)i, &mem);
		uint64_t limit;
		if (!sym || !is_code(elf, sym, &limit))
			continue;
		const char *name = elf_strptr(elf, sh->sh_link, sym->st_name);
		if (!name || !*name)
			continue;
		int type = GELF_ST_TYPE(sym->st_info);
		/* Local labels of assemblers (".L", "$x") name nothing. */
		if (type == STT_NOTYPE && (*name == '.' || *name == '$'))
			continue;
		struct symtab_sym s = {
			.addr = sym->st_value,
			.size = sym->st_size,
			.limit = limit,
			.bind = GELF_ST_BIND(sym->st_info),
			.dynamic = dynamic,
			.ifunc = type == STT_GNU_IFUNC,
		};
		GElf_Versym vmem,
			*v = versions ? gelf_getversym(versions, (int)i, &vmem)
				      : NULL;
		s.old_version = v && (*v & 0x8000);
		const char *at = strchr(name, '@');
		if (at && at[1] != '@')
			s.old_version = true;
		if (!add_string(t, name, &s.name) || !add_symbol(t, &s))
			return;
		if (!dynamic)
			t->has_static = true;
	}
}

/* Without section headers there is only what the dynamic linker sees. */
static void add_dynamic(struct symtab *t, Elf *elf, uint64_t bias)
{
	struct dynamic d;
	if (!dynamic_read(elf, bias, &d))
		return;
	for (size_t i = 1; i < d.nr_syms && i < MAX_SYMBOLS; i++) {
		Elf64_Sym sym;
		memcpy(&sym, (const char *)d.syms + i * sizeof(sym),
		       sizeof(sym));
		int type = ELF64_ST_TYPE(sym.st_info);
		if (sym.st_shndx == SHN_UNDEF || !sym.st_value ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC) ||
		    sym.st_name >= d.strings_len || !d.strings[sym.st_name])
			continue;
		struct symtab_sym s = {
			.addr = sym.st_value,
			.size = sym.st_size,
			.limit = sym.st_value,
			.bind = ELF64_ST_BIND(sym.st_info),
			.dynamic = true,
			.ifunc = type == STT_GNU_IFUNC,
		};
		if (!add_string(t, d.strings + sym.st_name, &s.name) ||
		    !add_symbol(t, &s))
			return;
	}
}

void symtab_add(struct symtab *t, Elf *elf, uint64_t bias)
{
	bool found = false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr mem, *sh = gelf_getshdr(scn, &mem);
		if (sh &&
		    (sh->sh_type == SHT_SYMTAB || sh->sh_type == SHT_DYNSYM)) {
			add_section(t, elf, scn, sh);
			found = true;
		}
	}
	if (!found)
		add_dynamic(t, elf, bias);
}

static size_t leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/*
 * Among names of one address the one that a reader knows comes first: sized
 * before unsized, public before private, "malloc" before "__libc_malloc".
 */
static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct symtab *t = ctx;
	const struct symtab_sym *a = pa, *b = pb;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (!a->size != !b->size)
		return a->size ? -1 : 1;
	if ((a->bind == STB_LOCAL) != (b->bind == STB_LOCAL))
		return a->bind == STB_LOCAL ? 1 : -1;
	if (a->old_version != b->old_version)
		return a->old_version ? 1 : -1;
	const char *na = symtab_string(t, a), *nb = symtab_string(t, b);
	size_t ua = leading_underscores(na), ub = leading_underscores(nb);
	if (ua != ub)
		return ua < ub ? -1 : 1;
	if (a->bind != b->bind) /* GLOBAL is 1, WEAK is 2 */
		return a->bind < b->bind ? -1 : 1;
	int c = strcmp(na, nb);
	return c ? c : (int)a->dynamic - (int)b->dynamic;
}

void symtab_finish(struct symtab *t)
{
	if (!t->nr)
		return;
	qsort_r(t->syms, t->nr, sizeof(*t->syms), compare, t);
	t->max_end = malloc(t->nr * sizeof(*t->max_end));
	uint64_t max = 0;
	for (size_t i = 0; t->max_end && i < t->nr; i++) {
		uint64_t end = t->syms[i].addr + t->syms[i].size;
		if (end > max && end >= t->syms[i].addr)
			max = end;
		t->max_end[i] = max;
	}
}

const struct symtab_sym *symtab_at(const struct symtab *t, uint64_t addr)
{
	size_t lo = 0, hi = t->nr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (t->syms[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || !t->max_end)
		return NULL;
	/* The first of the names of the nearest address below. */
	size_t i = lo - 1;
	while (i && t->syms[i - 1].addr == t->syms[i].addr)
		i--;
	/*
	 * A symbol without a size ends where the next begins, but only what no
	 * sized symbol around it claims.
	 */
	const struct symtab_sym *unsized = NULL;
	if (!t->syms[i].size && addr < t->syms[i].limit)
		unsized = &t->syms[i];
	for (unsigned steps = 0; steps < 64; steps++) {
		const struct symtab_sym *s = &t->syms[i];
		if (s->size && addr - s->addr < s->size)
			return s;
		if (!i || t->max_end[i - 1] <= addr)
			break;
		i--;
	}
	return unsized;
}

static uint32_t hash_name(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

static bool build_hash(struct symtab *t)
{
	size_t size = 64;
	while (size < t->nr)
		size *= 2;
	t->by_name = calloc(size, sizeof(*t->by_name));
	t->next = calloc(t->nr, sizeof(*t->next));
	if (!t->by_name || !t->next)
		return false;
	t->hash_size = size;
	/* Chained, not probed: a file may give a million symbols one name. */
	for (size_t i = t->nr; i-- > 0;) {
		uint32_t h = hash_name(symtab_string(t, &t->syms[i]));
		uint32_t *head = &t->by_name[h & (size - 1)];
		t->next[i] = *head;
		*head = (uint32_t)i + 1;
	}
	return true;
}

const struct symtab_sym *symtab_named(struct symtab *t, const char *name,
				      bool dynamic)
{
	const struct symtab_sym *best = NULL;
	if (!t->nr || (!t->hash_size && !build_hash(t)))
		return NULL;
	uint32_t i = t->by_name[hash_name(name) & (t->hash_size - 1)];
	for (; i; i = t->next[i - 1]) {
		const struct symtab_sym *s = &t->syms[i - 1];
		if ((dynamic && !s->dynamic) ||
		    strcmp(symtab_string(t, s), name))
			continue;
		if (!best || (best->old_version && !s->old_version) ||
		    (best->old_version == s->old_version &&
		     best->bind == STB_LOCAL && s->bind != STB_LOCAL))
			best = s;
	}
	return best;
}
