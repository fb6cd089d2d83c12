#include "supervisor/probe/hop.h"

static cpu_set_t allowed;

void hop_prepare(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		CPU_ZERO(&allowed);
}

bool hop_to(int cpu, cpu_set_t *back)
{
	cpu_set_t set;
	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed) ||
	    sched_getaffinity(0, sizeof(*back), back))
		return false;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

void hop_back(const cpu_set_t *back)
{
	sched_setaffinity(0, sizeof(*back), back);
}
