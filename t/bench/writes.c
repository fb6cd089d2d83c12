/*
 * writes WHICH SECONDS - how often a variable is written in that time: "direct"
 * by its name, "pointed" through a pointer. Prints how often, a second, and the
 * smallest and largest value.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile int over;
static volatile long direct, pointed;
static volatile long *volatile way = &pointed;

static void end(int sig)
{
	over = sig;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noinline)) long by_name(void)
{
	long n = 0;
	while (!over)
		direct = n++;
	return n;
}

static __attribute__((noinline)) long by_pointer(void)
{
	long n = 0;
	while (!over)
		*way = n++;
	return n;
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	struct itimerval t = {.it_value.tv_sec = (time_t)seconds};
	t.it_value.tv_usec =
		(suseconds_t)((seconds - (double)(long)seconds) * 1e6);
	signal(SIGALRM, end);
	double since = now();
	setitimer(ITIMER_REAL, &t, NULL);
	long n = argc > 1 && !strcmp(argv[1], "pointed") ? by_pointer()
							 : by_name();
	printf("%ld %.0f 0 %ld\n", n, (double)n / (now() - since), n - 1);
	return 0;
}
