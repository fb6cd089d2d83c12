#include "supervisor/probe/lrudrain.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "reports/base.h"

#define INTERVAL_NS (50 * NSEC_PER_MSEC)

static void *visit(void *arg)
{
	uint64_t mask = (uint64_t)(uintptr_t)arg;
	void *page = mmap(NULL, TPAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	for (int cpu = 0; cpu < 64; cpu++) {
		cpu_set_t set;
		if (!(mask >> cpu & 1))
			continue;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (!sched_setaffinity(0, sizeof(set), &set))
			madvise(page, TPAGE_SIZE, MADV_COLD);
	}
	munmap(page, TPAGE_SIZE);
	return NULL;
}

void lrudrain_ask(uint64_t cpu_mask)
{
	static uint64_t last_ns;
	uint64_t now = smco_now_ns();
	if (!cpu_mask || (last_ns && now - last_ns < INTERVAL_NS))
		return;
	last_ns = now;

	/* Signals are for the thread that runs the event loop. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_attr_t attr;
	if (pthread_attr_init(&attr))
		return;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_t thread;
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_create(&thread, &attr, visit, (void *)(uintptr_t)cpu_mask);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}
