/* Code that two threads sweep, a half each, is marked as by one; numbers lead
 * nowhere in a file that can be loaded anywhere. */
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* @fd: the code is read by itself; -1: by libelf. */
static struct range_image load_of(Elf *elf, int fd, uint64_t two_from_bytes,
				  size_t nr)
{
	struct range_image img;
	struct smco_err err = {0};
	range_sweep_two_from_bytes = two_from_bytes;
	check_int(range_image_load(&img, elf, fd, start, nr, &err), 0);
	return img;
}

static struct range_image load(Elf *elf, uint64_t two_from_bytes, size_t nr)
{
	return load_of(elf, -1, two_from_bytes, nr);
}

static void compare(Elf *elf, int fd, size_t nr)
{
	range_image_own_from_bytes = 1;
	struct range_image one = load(elf, UINT64_MAX, nr);
	struct range_image two = load_of(elf, fd, 1, nr);
	check(!one.own && two.own && two.text == two.own);
	check(!memcmp(one.text, two.text, one.hi - one.lo));
	printf("# %zu functions, %zu addresses taken\n", nr, one.nr_taken);
	check(one.nr_taken > 100);
	check(one.lo == two.lo && one.hi == two.hi);
	check(!memcmp(one.mark, two.mark, one.hi - one.lo));
	check_int(one.nr_taken, two.nr_taken);
	check(!memcmp(one.taken, two.taken, one.nr_taken * sizeof(*one.taken)));
	range_image_deinit(&one);
	range_image_deinit(&two);
}

/* The number of the first instruction becomes what the second's address is. */
__asm__(".text\n"
	"u_number: mov $0x12345678, %eax\n"
	"u_behind: nop; ret\n");

static uint64_t address_of(Elf *elf, const char *name)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		Elf_Data *d = sh->sh_type == SHT_SYMTAB ? elf_getdata(scn, NULL)
							: NULL;
		const Elf64_Sym *sym = d ? d->d_buf : NULL;
		for (size_t i = 0; d && i < d->d_size / sizeof(*sym); i++) {
			const char *s =
				elf_strptr(elf, sh->sh_link, sym[i].st_name);
			if (s && !strcmp(s, name))
				return sym[i].st_value;
		}
	}
	return 0;
}

/* Of a file of type @type, at @bytes. */
static bool leads(uint8_t *bytes, size_t len, Elf64_Half type)
{
	((Elf64_Ehdr *)(void *)bytes)->e_type = type;
	Elf *elf = elf_memory((char *)bytes, len);
	uint64_t number = address_of(elf, "u_number");
	uint64_t behind = address_of(elf, "u_behind");
	uint32_t imm = (uint32_t)behind;
	struct range_image img = load(elf, UINT64_MAX, nr_starts);
	const uint8_t *at = range_image_at(&img, number + 1, sizeof(imm));
	check_int(behind, number + 5);
	memcpy(bytes + (at - bytes), &imm, sizeof(imm));
	range_image_deinit(&img);
	img = load(elf, UINT64_MAX, nr_starts);
	bool ret = range_image_is_leader(&img, behind);
	range_image_deinit(&img);
	elf_end(elf);
	return ret;
}

static void test_numbers(int fd)
{
	struct stat st;
	check_int(fstat(fd, &st), 0);
	size_t len = (size_t)st.st_size;
	uint8_t *bytes = malloc(len);
	check(bytes && pread(fd, bytes, len, 0) == st.st_size);
	check(leads(bytes, len, ET_EXEC));
	check(!leads(bytes, len, ET_DYN));
	free(bytes);
}

int main(void)
{
	elf_version(EV_CURRENT);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	find_starts(elf);
	check(nr_starts > 30);
	compare(elf, fd, nr_starts);
	compare(elf, fd, 1);
	compare(elf, fd, 0);
	test_numbers(fd);
	elf_end(elf);
	close(fd);
	return tap_done();
}
