#include "symbols/pair.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

size_t pair_from = 1 << 14;

void pair_run(bool two, void *(*other)(void *), void *a, void *(*mine)(void *),
	      void *b)
{
	pthread_t thread;
	sigset_t all, before;
	cpu_set_t set;
	two = two && !sched_getaffinity(0, sizeof(set), &set) &&
	      CPU_COUNT(&set) >= 2;
	if (two) {
		/* Signals are the other threads' business. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		two = !pthread_create(&thread, NULL, other, a);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	mine(b);
	if (two)
		pthread_join(thread, NULL);
	else
		other(a);
}
