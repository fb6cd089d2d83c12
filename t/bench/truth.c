/*
 * What t/bench/truth.cc has noted, linked to the program: at its end a line for
 * each variable that had a value, number, smallest, largest, how many, is
 * appended to $SMCO_TRUTH. For one thread.
 */
#include <stdio.h>
#include <stdlib.h>

#define MOST 200000

void smco_truth_note(unsigned number, long long value, int is_unsigned);

/* Of one that has no sign 2^63 less, so that they are in order. */
static long long least[MOST], most[MOST];
static unsigned long nr[MOST];
static char has_no_sign[MOST];

static long long moved(long long value, int is_unsigned)
{
	return is_unsigned ? (long long)((unsigned long long)value ^ 1ULL << 63)
			   : value;
}

void smco_truth_note(unsigned number, long long value, int is_unsigned)
{
	if (number >= MOST)
		return;
	value = moved(value, is_unsigned);
	has_no_sign[number] = (char)is_unsigned;
	if (!nr[number]++)
		least[number] = most[number] = value;
	if (value < least[number])
		least[number] = value;
	if (value > most[number])
		most[number] = value;
}

__attribute__((destructor)) static void write_all(void)
{
	const char *path = getenv("SMCO_TRUTH");
	FILE *f = path ? fopen(path, "ae") : NULL;
	for (unsigned i = 0; f && i < MOST; i++)
		if (nr[i])
			fprintf(f,
				has_no_sign[i] ? "%u\t%llu\t%llu\t%lu\n"
					       : "%u\t%lld\t%lld\t%lu\n",
				i, moved(least[i], has_no_sign[i]),
				moved(most[i], has_no_sign[i]), nr[i]);
	if (f)
		fclose(f);
}
