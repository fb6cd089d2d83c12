/* The trace reader, both summaries and every table. */
#include "t/fuzz/trace-mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len;
	uint8_t *file = mutate(data, size, &len);
	if (file && !show(file, len, true))
		abort();
	free(file);
	return 0;
}
