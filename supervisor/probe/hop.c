#include "supervisor/probe/hop.h"

static cpu_set_t allowed;

void hop_prepare(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		CPU_ZERO(&allowed);
}

static bool go_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

bool hop_to(int cpu, struct hop *back)
{
	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed) ||
	    sched_getaffinity(0, sizeof(back->may), &back->may))
		return false;
	back->from = sched_getcpu();
	return go_to(cpu);
}

void hop_back(const struct hop *back)
{
	int here = sched_getcpu();
	cpu_set_t away = back->may;
	if (here >= 0 && here < CPU_SETSIZE)
		CPU_CLR(here, &away);
	if (back->from != here && back->from >= 0 && back->from < CPU_SETSIZE &&
	    CPU_ISSET(back->from, &away))
		go_to(back->from);
	else if (CPU_COUNT(&away))
		sched_setaffinity(0, sizeof(away), &away);
	sched_setaffinity(0, sizeof(back->may), &back->may);
}
