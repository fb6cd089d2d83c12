/*
 * Damaged ELF files. The input is a list of edits to a sound file: the first
 * byte chooses which, and whether two threads read its variables, then five
 * bytes each: where (32 bits), what. libFuzzer finds its way among edits sooner
 * than among whole files.
 */
#include "symbols/varbuild.h"
#include "t/unit/elfmangle.h"

#define BY_TWO 0x80

static struct elf_bytes base[4];

static bool build(struct elf_bytes *e, const char *cmd)
{
	char full[512];
	snprintf(full, sizeof(full), cmd, "/tmp/smco-fuzz-symbols.tmp");
	bool fine = !system(full) &&
		    elf_bytes_read(e, "/tmp/smco-fuzz-symbols.tmp");
	unlink("/tmp/smco-fuzz-symbols.tmp");
	return fine;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	if (!build(&base[0], "echo 'static int k; int more(int by) "
			     "{ return k += by; }' | cc -O2 -g -o %s "
			     "t/fixtures/sym/names.c -x c -") ||
	    !build(&base[1], "cc -O2 -g -gdwarf-4 -shared -fPIC -o %s "
			     "t/fixtures/sym/plugin.c") ||
	    !build(&base[3], "cc -O2 -I supervisor/marks -o %s "
			     "t/fixtures/phase-work.c") ||
	    !build(&base[2], "cc -nostdlib -shared -Wl,--eh-frame-hdr -o %s "
			     "t/fixtures/sym/cfi.s"))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	const struct elf_bytes *from = &base[data[0] % 4];
	var_two_from_bytes = data[0] & BY_TWO ? 1 : UINT64_MAX;
	struct elf_bytes e = {malloc(from->len), from->len};
	memcpy(e.data, from->data, from->len);
	for (size_t i = 1; i + 5 <= size; i += 5) {
		uint32_t at;
		memcpy(&at, data + i, 4);
		e.data[at % e.len] = data[i + 4];
	}
	elf_exercise(&e);
	free(e.data);
	return 0;
}
