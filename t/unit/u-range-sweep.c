/* Code that two threads sweep, a half each, is marked as by one. */
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/probe/range-text.h"
#include "t/unit/tap.h"

#define MAX_STARTS 20000

static uint64_t start[MAX_STARTS];
static size_t nr_starts;

/* The functions of this program. */
static void find_starts(Elf *elf)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		Elf_Data *d = sh->sh_type == SHT_SYMTAB ? elf_getdata(scn, NULL)
							: NULL;
		const Elf64_Sym *sym = d ? d->d_buf : NULL;
		for (size_t i = 0; d && i < d->d_size / sizeof(*sym); i++)
			if (ELF64_ST_TYPE(sym[i].st_info) == STT_FUNC &&
			    sym[i].st_value && nr_starts < MAX_STARTS)
				start[nr_starts++] = sym[i].st_value;
	}
}

static struct range_image load(Elf *elf, uint64_t two_from_bytes, size_t nr)
{
	struct range_image img;
	struct smco_err err = {0};
	range_sweep_two_from_bytes = two_from_bytes;
	check_int(range_image_load(&img, elf, start, nr, &err), 0);
	return img;
}

static void compare(Elf *elf, size_t nr)
{
	struct range_image one = load(elf, UINT64_MAX, nr);
	struct range_image two = load(elf, 1, nr);
	printf("# %zu functions, %zu addresses taken\n", nr, one.nr_taken);
	check(one.nr_taken > 100);
	check(one.lo == two.lo && one.hi == two.hi);
	check(!memcmp(one.mark, two.mark, one.hi - one.lo));
	check_int(one.nr_taken, two.nr_taken);
	check(!memcmp(one.taken, two.taken, one.nr_taken * sizeof(*one.taken)));
	range_image_deinit(&one);
	range_image_deinit(&two);
}

int main(void)
{
	elf_version(EV_CURRENT);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	find_starts(elf);
	check(nr_starts > 30);
	compare(elf, nr_starts);
	compare(elf, 1);
	compare(elf, 0);
	elf_end(elf);
	close(fd);
	return tap_done();
}
