/*
 * Landing pads from the exception tables: those of a table made by hand, one
 * that control also falls into; and of tables that make no sense.
 */
#include "t/unit/symhelp.h"
#include <fcntl.h>

#include "supervisor/probe/range-text.h"
#include "symbols/landing.h"

static uint64_t pads[16];
static unsigned nr;

static void pad(void *ctx, uint64_t addr)
{
	(void)ctx;
	if (nr < 16)
		pads[nr] = addr;
	nr++;
}

/* @lpstart: .byte of the encoding, and what follows; @len of the table. */
static Elf *build(const char *lpstart, const char *len)
{
	char path[256];
	int st = run(
		"cat >$D/pad.s <<'END'\n"
		".text\n.globl f, pad, other\n"
		"f: .Lf: .cfi_startproc\n.cfi_lsda 0x1b, .Ltab\n"
		"mov %%eax, %%ecx\nmov %%eax, %%edx\n"
		"pad: mov %%eax, %%esi\nmov %%eax, %%edi\nret\n"
		"other: ret\n"
		".cfi_endproc\n.size f, .-f\n"
		".section .gcc_except_table,\"a\"\n.Ltab: %s\n.byte 0xff, 1\n"
		".uleb128 %s\n.Lbegin: .uleb128 0\n.uleb128 2\n"
		".uleb128 pad-f\n.uleb128 0\n"
		".uleb128 2\n.uleb128 1\n.uleb128 0\n.uleb128 0\n"
		".uleb128 3\n.uleb128 1\n.uleb128 other-f\n.uleb128 1\n"
		".Lend: .section .note.GNU-stack,\"\"\n"
		"END\ngcc -shared -nostdlib -o $D/pad.so $D/pad.s",
		lpstart, len);
	snprintf(path, sizeof(path), "%s/pad.so", scratch);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	elf_version(EV_CURRENT);
	nr = 0;
	return st || fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
}

int main(void)
{
	make_scratch();
	Elf *elf = build(".byte 0xff", ".Lend-.Lbegin");
	if (check(elf != NULL)) {
		struct range_image img;
		/* First: it reads the whole file. */
		check_int(range_image_load(&img, elf, -1, NULL, 0, NULL), 0);
		landing_pads(elf, pad, NULL);
		check_int(nr, 2);
		check_int(pads[0], label_in(elf, "pad"));
		check_int(pads[1], label_in(elf, "other"));
		check(img.mark[pads[0] - img.lo] & RANGE_MARK_LEADER);
		check(!(img.mark[pads[0] + 2 - img.lo] & RANGE_MARK_LEADER));
		range_image_deinit(&img);
	}
	elf_end(elf);
	/* A base of its own. */
	elf = build(".byte 0x1b\n.Lbase: .long .Lf+1-.Lbase", ".Lend-.Lbegin");
	if (check(elf != NULL)) {
		landing_pads(elf, pad, NULL);
		check_int(nr, 2);
		check_int(pads[0], label_in(elf, "pad") + 1);
	}
	elf_end(elf);
	/* Longer than the section; nothing there. */
	elf = build(".byte 0xff", "100000");
	if (check(elf != NULL))
		landing_pads(elf, pad, NULL);
	check_int(nr, 0);
	elf_end(elf);
	elf = build(".byte 0xff", "3");
	if (check(elf != NULL))
		landing_pads(elf, pad, NULL);
	check_int(nr, 0);
	elf_end(elf);
	return finish();
}
