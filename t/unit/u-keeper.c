/*
 * What is written gets onto the disk while a run lasts, by somebody for whom
 * nobody waits: not the one who writes, however long the disk takes.
 */
#include "t/unit/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/keeper.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-random.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned nr_syncs; /* begun */
static bool is_stalled;
static int answer, synced_fd;

/* In place of the C library's: a disk that takes as long as we like. */
int fdatasync(int fd)
{
	pthread_mutex_lock(&lock);
	nr_syncs++;
	synced_fd = fd;
	pthread_cond_broadcast(&changed);
	while (is_stalled)
		pthread_cond_wait(&changed, &lock);
	errno = answer;
	pthread_mutex_unlock(&lock);
	return answer ? -1 : 0;
}

static void stall(bool stalled)
{
	pthread_mutex_lock(&lock);
	is_stalled = stalled;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void wait_for_sync(unsigned nr)
{
	pthread_mutex_lock(&lock);
	while (nr_syncs < nr)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void often(void)
{
	struct keeper *k = keeper_start(77);
	nr_syncs = 0;
	/* Nothing was written, nothing is to be done. */
	check_int(keeper_stop(k), 0);
	check_int(nr_syncs, 0);
	k = keeper_start(77);
	keeper_wrote(k);
	wait_for_sync(1);
	check_int(synced_fd, 77);
	keeper_wrote(k);
	keeper_wrote(k);
	wait_for_sync(2);
	check_int(keeper_stop(k), 0);
	check_int(nr_syncs, 2);
	keeper_wrote(NULL);
	check_int(keeper_stop(NULL), 0);
}

static void failing(int error, int want)
{
	struct keeper *k = keeper_start(77);
	nr_syncs = 0;
	answer = error;
	keeper_wrote(k);
	wait_for_sync(1);
	check_int(keeper_stop(k), want);
	answer = 0;
}

/* Records go into the file all the time, none is dropped, and more than there
 * are places for: the thread that writes does not wait either. */
static void stalled_disk(const char *path)
{
	struct trace_writer *w = NULL;
	struct trace_stats stats;
	const unsigned nr = 40;
	unsigned nr_put = 0;
	nr_syncs = 0;
	stall(true);
	check_int(trace_writer_create(path, smco_now_ns(), &w, NULL), 0);
	struct record r = {.event = 100};
	while (!nr_syncs) { /* it first has to be a second old */
		trace_put(w, &r);
		trace_sync(w, NULL);
		usleep(10000);
	}
	trace_writer_stats(w, &stats);
	uint64_t before = stats.file_bytes;
	for (unsigned i = 0; i < nr; i++) {
		nr_put += !trace_put(w, &r);
		check_int(trace_sync(w, NULL), 0);
	}
	trace_writer_stats(w, &stats);
	check_int(nr_put, nr);
	check_int(stats.nr_dropped, 0);
	check(stats.file_bytes > before + nr);
	check_int(nr_syncs, 1);
	pid_t child = fork();
	if (!child) { /* where there is no such thread */
		trace_writer_destroy(w);
		_exit(0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	check_int(status, 0);
	stall(false);
	check_int(trace_writer_close(w, NULL), 0);
	unlink(path);
}

/* That it failed is told at the end. */
static void failing_disk(const char *path)
{
	struct trace_writer *w = NULL;
	struct smco_err err = {0};
	nr_syncs = 0;
	answer = EIO;
	check_int(trace_writer_create(path, smco_now_ns(), &w, NULL), 0);
	struct record r = {.event = 100};
	while (!nr_syncs) {
		trace_put(w, &r);
		trace_sync(w, NULL);
		usleep(10000);
	}
	check_int(trace_writer_close(w, &err), SMCO_SYS);
	check(strstr(err.msg, "cannot write trace"));
	answer = 0;
	unlink(path);
}

int main(void)
{
	const char *path = scratch_path("kept.trace");
	often();
	failing(EIO, EIO);
	failing(EINVAL, 0); /* it has no disk */
	stalled_disk(path);
	failing_disk(path);
	return tap_done();
}
