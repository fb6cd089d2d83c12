/*
 * A signal's frame on a stack is known by two words of it, wherever they are
 * among those that are read, and by nothing less.
 */
#include <string.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"

#define NR    300
#define FLAGS 0x246UL
#define CS    0x002b000000000033UL /* ss, two halfwords, cs */

static uint64_t words[NR];

/* As on a stack: addresses, small numbers, nothing. */
static void fill(void)
{
	for (size_t i = 0; i < NR; i++)
		words[i] = i % 3 ? 0x7fff00000000UL + 8 * i : i % 2 ? 0x33 : 0;
}

static bool has(size_t at, uint64_t flags, uint64_t cs)
{
	fill();
	words[at] = flags;
	words[at + 1] = cs;
	return arch.has_frame(words, NR);
}

int main(void)
{
	size_t nr = 0;
	fill();
	check(!arch.has_frame(words, NR));
	check(!arch.has_frame(words, 0));
	check(!arch.has_frame(words, 1));
	for (size_t i = 0; i + 1 < NR; i++)
		nr += has(i, FLAGS, CS);
	check_int(nr, NR - 1);
	/* Half of it is behind what was read. */
	fill();
	words[NR - 2] = FLAGS;
	words[NR - 1] = CS;
	check(!arch.has_frame(words, NR - 1));
	check(has(7, 0x3fffff, CS));
	check(has(7, FLAGS, 0x33));	/* a kernel without room for ss */
	check(has(7, FLAGS, 0xe033));	/* of Xen */
	check(!has(7, 0x400246, CS));	/* no such flags */
	check(!has(7, 0x46, CS));	/* interrupts are off */
	check(!has(7, 0x244, CS));	/* a bit that is always set */
	check(!has(7, FLAGS, CS + 1));	/* another segment */
	check(!has(7, FLAGS, 0x10033)); /* halfwords that are not zero */
	check(!has(7, FLAGS, 0x100000033));
	check(!has(10, CS, FLAGS));
	return tap_done();
}
