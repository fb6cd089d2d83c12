#include "supervisor/build-number.h"

#include <link.h>

#include "symbols/store.h"

/* The linker's number of an executable: a note in its memory. */
static int add_notes(struct dl_phdr_info *info, size_t size, void *sum)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + p->p_vaddr);
		if (p->p_type != PT_NOTE)
			continue;
		for (uint64_t left = p->p_memsz; left > sizeof(ElfW(Nhdr));) {
			const ElfW(Nhdr) *n = (const void *)at;
			uint64_t len = sizeof(*n) +
				       ((n->n_namesz + 3ULL) & ~3ULL) +
				       ((n->n_descsz + 3ULL) & ~3ULL);
			if (len > left)
				break;
			if (n->n_type == NT_GNU_BUILD_ID)
				store_sum_add(sum, at, len);
			at += len;
			left -= len;
		}
	}
	(void)size;
	return 1; /* the first is the program */
}

uint64_t build_number(void)
{
	struct store_sum sum;
	store_sum_init(&sum);
	dl_iterate_phdr(add_notes, &sum);
	return sum.bytes ? store_sum_end(&sum) : 0;
}
