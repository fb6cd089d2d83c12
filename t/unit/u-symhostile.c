/*
 * Files with damaged headers, symbols, frame tables and DWARF: whatever comes
 * out, it must come out, and soon. Each batch runs in a process of its own.
 */
#include <elf.h>

#include "elfmangle.h"
#include "symhelp.h"

#define BATCHES	  24
#define PER_BATCH 60

static struct elf_bytes base;

/* Where damage does most: a section that is read, or the headers. */
static void pick_area(unsigned *seed, size_t *from, size_t *len)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)base.data;
	const Elf64_Shdr *sh = (const Elf64_Shdr *)(base.data + eh->e_shoff);
	unsigned r = (unsigned)rand_r(seed) % 8;
	if (r == 0) {
		*from = 0;
		*len = sizeof(*eh) + eh->e_phnum * sizeof(Elf64_Phdr);
		return;
	}
	if (r == 1) {
		*from = eh->e_shoff;
		*len = eh->e_shnum * sizeof(*sh);
		return;
	}
	const char *names =
		(const char *)base.data + sh[eh->e_shstrndx].sh_offset;
	for (;;) {
		const Elf64_Shdr *s = &sh[(unsigned)rand_r(seed) % eh->e_shnum];
		const char *name = names + s->sh_name;
		if (s->sh_type == SHT_NOBITS || !s->sh_size ||
		    (strncmp(name, ".debug", 6) && strcmp(name, ".eh_frame") &&
		     strcmp(name, ".dynsym") && strcmp(name, ".symtab") &&
		     strcmp(name, ".eh_frame_hdr") &&
		     strncmp(name, ".note", 5) && strcmp(name, ".dynamic") &&
		     strncmp(name, ".gnu.v", 6)))
			continue;
		*from = s->sh_offset;
		*len = s->sh_size;
		return;
	}
}

static void mangle(struct elf_bytes *e, unsigned seed)
{
	static const uint8_t nasty[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x40};
	size_t from, len;
	memcpy(e->data, base.data, base.len);
	unsigned areas = 1 + (unsigned)rand_r(&seed) % 3;
	for (unsigned i = 0; i < areas; i++) {
		pick_area(&seed, &from, &len);
		unsigned edits = 1 + (unsigned)rand_r(&seed) % 12;
		for (unsigned k = 0; k < edits; k++) {
			size_t at = from + (size_t)rand_r(&seed) % len;
			e->data[at] = rand_r(&seed) % 2
					      ? nasty[rand_r(&seed) %
						      (int)sizeof(nasty)]
					      : (uint8_t)rand_r(&seed);
		}
	}
	e->len = rand_r(&seed) % 10 ? base.len
				    : (size_t)rand_r(&seed) % base.len + 1;
}

static void run_batch(unsigned batch, int out)
{
	struct elf_bytes e = {malloc(base.len), base.len};
	for (unsigned i = 0; i < PER_BATCH; i++) {
		unsigned seed = batch * PER_BATCH + i;
		if (write(out, &seed, sizeof(seed)) < 0)
			_exit(2);
		alarm(120);
		mangle(&e, seed);
		elf_exercise(&e);
	}
	free(e.data);
}

static void test_file(const char *what, const char *build)
{
	char path[256];
	printf("# --- %s\n", what);
	check(!run("%s", build));
	snprintf(path, sizeof(path), "%s/prog", scratch);
	if (!check(elf_bytes_read(&base, path)))
		return;
	elf_exercise(&base); /* as it is */
	for (unsigned batch = 0; batch < BATCHES; batch++) {
		int fd[2];
		if (pipe(fd))
			return;
		fflush(stdout);
		pid_t pid = fork();
		if (!pid) {
			close(fd[0]);
			run_batch(batch, fd[1]);
			_exit(0);
		}
		close(fd[1]);
		unsigned seed = 0, nr = 0;
		while (read(fd[0], &seed, sizeof(seed)) > 0)
			nr++;
		int st;
		waitpid(pid, &st, 0);
		close(fd[0]);
		check_msg(st == 0 && nr == PER_BATCH,
			  "batch %u of damaged files (status %#x, last %u)",
			  batch, (unsigned)st, seed);
	}
	free(base.data);
}

int main(int argc, char **argv)
{
	make_scratch();
	if (argc > 2) { /* PROGRAM SEED: that one alone */
		struct elf_bytes e;
		elf_bytes_read(&base, argv[1]);
		elf_bytes_read(&e, argv[1]);
		mangle(&e, (unsigned)strtoul(argv[2], NULL, 0));
		elf_exercise(&e);
		return 0;
	}
	test_file("a program with DWARF 5",
		  "cc -O2 -g -o \"$D\"/prog " FIX "/names.c");
	test_file("DWARF 4, compressed",
		  "cc -O2 -g -gdwarf-4 -gz=zlib -o \"$D\"/prog " FIX
		  "/names.c");
	test_file("members behind pointers",
		  "cc -O0 -g -o \"$D\"/prog t/fixtures/range/behind.c");
	test_file("frame information by hand",
		  "as -o \"$D\"/cfi.o " FIX "/cfi.s && ld -shared "
		  "--eh-frame-hdr -o \"$D\"/prog \"$D\"/cfi.o");
	return finish();
}
