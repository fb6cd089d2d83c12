#include "symbols/sdt.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_TYPE  3
#define MAX_PROBES 65536

/* How far the file was moved since the notes were written (prelink). */
static uint64_t section_address(Elf *elf, const char *wanted, Elf_Scn **ret)
{
	size_t names;
	Elf_Scn *scn = NULL;
	*ret = NULL;
	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name;
		if (!gelf_getshdr(scn, &shdr) ||
		    !(name = elf_strptr(elf, names, shdr.sh_name)) ||
		    strcmp(name, wanted) != 0)
			continue;
		*ret = scn;
		return shdr.sh_addr;
	}
	return 0;
}

/* The text at *at, up to @end; NULL if it does not end there. */
static const char *take_text(const char **at, const char *end)
{
	const char *s = *at;
	size_t n = strnlen(s, (size_t)(end - s));
	if (s + n >= end)
		return NULL;
	*at = s + n + 1;
	return s;
}

static bool take(const char *desc, size_t len, uint64_t base,
		 struct sdt_probe *ret)
{
	uint64_t word[3]; /* address, base, semaphore */
	if (len < sizeof(word))
		return false;
	memcpy(word, desc, sizeof(word));
	const char *at = desc + sizeof(word), *end = desc + len;
	ret->provider = take_text(&at, end);
	ret->name = ret->provider ? take_text(&at, end) : NULL;
	if (!ret->name || !*ret->name || !*ret->provider)
		return false;
	uint64_t moved = word[1] && base ? base - word[1] : 0;
	ret->addr = word[0] + moved;
	ret->semaphore = word[2] ? word[2] + moved : 0;
	return true;
}

/* Twice: to count, and with @to, to fill in. */
static size_t walk(Elf_Data *data, uint64_t base, struct sdt_probe *to)
{
	size_t at = 0, next, name_at, desc_at, nr = 0;
	GElf_Nhdr n;
	while (nr < MAX_PROBES &&
	       (next = gelf_getnote(data, at, &n, &name_at, &desc_at))) {
		struct sdt_probe p;
		const char *bytes = data->d_buf;
		if (n.n_type == NOTE_TYPE && n.n_namesz == sizeof("stapsdt") &&
		    !memcmp(bytes + name_at, "stapsdt", sizeof("stapsdt")) &&
		    take(bytes + desc_at, n.n_descsz, base, &p)) {
			if (to)
				to[nr] = p;
			nr++;
		}
		at = next;
	}
	return nr;
}

int sdt_read(Elf *elf, struct sdt_list *ret, struct smco_err *err)
{
	Elf_Scn *notes, *unused;
	*ret = (struct sdt_list){0};
	uint64_t base = section_address(elf, ".stapsdt.base", &unused);
	section_address(elf, ".note.stapsdt", &notes);
	Elf_Data *data = notes ? elf_getdata(notes, NULL) : NULL;
	if (gelf_getclass(elf) != ELFCLASS64 || !data || !data->d_buf ||
	    !data->d_size)
		return 0;
	/* A copy, for the names are to outlive the file. */
	Elf_Data own = *data;
	ret->text = malloc(data->d_size);
	size_t nr = walk(data, base, NULL);
	ret->probe = calloc(nr + 1, sizeof(*ret->probe));
	if (!ret->text || !ret->probe) {
		sdt_deinit(ret);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	memcpy(ret->text, data->d_buf, data->d_size);
	own.d_buf = ret->text;
	ret->nr = walk(&own, base, ret->probe);
	return 0;
}

void sdt_deinit(struct sdt_list *l)
{
	free(l->probe);
	free(l->text);
	*l = (struct sdt_list){0};
}
