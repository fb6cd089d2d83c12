#include "reports/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct keeper {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_new, stop; /* under the lock */
	int error;	   /* the thread's: the first one */
};

static void one_second_on(struct timespec *ret)
{
	clock_gettime(CLOCK_MONOTONIC, ret);
	ret->tv_sec++;
}

static void sync_now(struct keeper *k)
{
	/* Not every file has a disk. */
	if (fdatasync(k->fd) < 0 && errno != EINVAL && errno != EROFS &&
	    !k->error)
		k->error = errno;
}

static void *work(void *arg)
{
	struct keeper *k = arg;
	struct timespec next;
	pthread_mutex_lock(&k->lock);
	for (;;) {
		while (!k->is_new && !k->stop)
			pthread_cond_wait(&k->changed, &k->lock);
		if (k->stop)
			break;
		k->is_new = false;
		one_second_on(&next);
		pthread_mutex_unlock(&k->lock);
		sync_now(k);
		pthread_mutex_lock(&k->lock);
		while (!k->stop && pthread_cond_timedwait(&k->changed, &k->lock,
							  &next) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

struct keeper *keeper_start(int fd)
{
	struct keeper *k = calloc(1, sizeof(*k));
	pthread_condattr_t monotonic;
	sigset_t all, before;
	if (!k)
		return NULL;
	k->fd = fd;
	pthread_mutex_init(&k->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&k->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	/* Signals are the other threads' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&k->thread, NULL, work, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		return k;
	keeper_forget(k);
	return NULL;
}

void keeper_wrote(struct keeper *k)
{
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	if (!k->is_new)
		pthread_cond_signal(&k->changed);
	k->is_new = true;
	pthread_mutex_unlock(&k->lock);
}

int keeper_stop(struct keeper *k)
{
	if (!k)
		return 0;
	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_cond_signal(&k->changed);
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	int error = k->error;
	pthread_mutex_destroy(&k->lock);
	pthread_cond_destroy(&k->changed);
	free(k);
	return error;
}

void keeper_forget(struct keeper *k)
{
	free(k);
}
