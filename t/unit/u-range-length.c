/* What tables say of an instruction is what the decoder says, for all first
 * bytes, for bytes at random, and of this program nearly all is known. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "supervisor/probe/range-length.h"
#include "supervisor/probe/range-text.h"
#include "t/unit/tap.h"

static ZydisDecoder decoder;
static uint64_t seed = 88172645463325252ULL;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Does the decoder say otherwise? */
static bool differs(const uint8_t *bytes, const struct range_length *l)
{
	ZydisDecodedInstruction z;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		    &decoder, NULL, bytes, RANGE_LENGTH_BYTES, &z)))
		return true;
	bool branch = z.raw.imm[0].is_relative;
	bool lea = z.mnemonic == ZYDIS_MNEMONIC_LEA &&
		   z.attributes & ZYDIS_ATTRIB_IS_RELATIVE;
	bool number = !branch && z.raw.imm[0].size >= 32;
	return z.length != l->bytes || branch != l->is_branch ||
	       lea != l->is_lea || number != l->has_number ||
	       (branch && z.raw.imm[0].value.s != l->distance) ||
	       (lea && z.raw.disp.value != l->distance);
}

static size_t nr_known, nr_wrong;

static void look(const uint8_t *bytes)
{
	struct range_length l = range_length_of(bytes);
	nr_known += l.bytes > 0;
	if (!l.bytes || !differs(bytes, &l))
		return;
	if (nr_wrong++ < 10)
		printf("# %02x %02x %02x %02x %02x %02x: %u\n", bytes[0],
		       bytes[1], bytes[2], bytes[3], bytes[4], bytes[5],
		       l.bytes);
}

/* Each opcode and operand behind @nr bytes of prefixes. */
static void all_behind(const uint8_t *prefix, size_t nr)
{
	for (uint32_t i = 0; i < 1u << 16; i++) {
		uint8_t bytes[RANGE_LENGTH_BYTES];
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(any() >> 20);
		memcpy(bytes, prefix, nr);
		bytes[nr] = (uint8_t)(i >> 8);
		bytes[nr + 1] = (uint8_t)i;
		look(bytes);
	}
}

static void test_all(void)
{
	static const uint8_t first[] = {0,    0x66, 0xf3, 0xf2, 0x2e, 0x41,
					0x48, 0x4f, 0xf0, 0x67, 0x64};
	uint8_t prefix[4];
	nr_known = nr_wrong = 0;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		for (size_t k = 0; k < ARRAY_SIZE(first); k++) {
			size_t nr = 0;
			if (first[i])
				prefix[nr++] = first[i];
			if (first[k])
				prefix[nr++] = first[k];
			all_behind(prefix, nr);
			prefix[nr++] = 0x0f;
			all_behind(prefix, nr);
		}
	printf("# %zu of them known\n", nr_known);
	check(nr_known > 700000);
	check_int(nr_wrong, 0);
}

static void test_any(void)
{
	nr_known = nr_wrong = 0;
	for (size_t i = 0; i < 2000000; i++) {
		uint64_t bytes[RANGE_LENGTH_BYTES / 8];
		for (size_t k = 0; k < ARRAY_SIZE(bytes); k++)
			bytes[k] = any();
		look((const uint8_t *)bytes);
	}
	check(nr_known > 500000);
	check_int(nr_wrong, 0);
}

/* This program's own code. */
static void test_own(void)
{
	struct range_image img;
	struct smco_err err = {0};
	size_t nr = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	check_int(range_image_load(&img, elf, -1, NULL, 0, &err), 0);
	nr_known = nr_wrong = 0;
	for (uint64_t at = img.lo; at + RANGE_LENGTH_BYTES < img.hi; at++) {
		if (!(img.mark[at - img.lo] & RANGE_MARK_INSN))
			continue;
		nr++;
		look(img.text + (at - img.lo));
	}
	printf("# %zu of %zu instructions known\n", nr_known, nr);
	check(nr > 5000 && nr_known > nr / 20 * 19);
	check_int(nr_wrong, 0);
	range_image_deinit(&img);
	elf_end(elf);
	close(fd);
}

int main(void)
{
	elf_version(EV_CURRENT);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	test_all();
	test_any();
	test_own();
	return tap_done();
}
