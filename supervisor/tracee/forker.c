#include "supervisor/tracee/forker.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* execvp(3) may copy all arguments there. */
#define STACK_BYTES (16u << 20)

/* The kernel's struct sigaction, and the signals that libc keeps for itself and
 * hides: those of whoever has threads are not what they were. */
struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};
#define HIDDEN	  32
#define NR_HIDDEN 2

static struct {
	struct kernel_action hidden[NR_HIDDEN];
	pid_t owner; /* the process that has the thread */
	sem_t asked, done;
	void (*child)(void *ctx);
	void *ctx;
	pid_t pid;
	int errnum;
} forker;

static void put_back_hidden(void)
{
	for (int i = 0; i < NR_HIDDEN; i++)
		if (forker.hidden[i].handler == (void *)SIG_IGN)
			syscall(SYS_rt_sigaction, HIDDEN + i, &forker.hidden[i],
				NULL, sizeof(forker.hidden[i].mask));
}

static void find_hidden(void)
{
	for (int i = 0; i < NR_HIDDEN; i++)
		syscall(SYS_rt_sigaction, HIDDEN + i, NULL, &forker.hidden[i],
			sizeof(forker.hidden[i].mask));
}

static void await(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

static void *serve(void *arg)
{
	for (;;) {
		await(&forker.asked);
		forker.pid = fork();
		if (!forker.pid) {
			put_back_hidden();
			forker.child(forker.ctx);
			_exit(127);
		}
		forker.errnum = errno;
		sem_post(&forker.done);
	}
	return arg;
}

static int start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int e = pthread_attr_init(&attr);
	if (e)
		return e;
	/* Signals are for the thread that runs the event loop. */
	sigfillset(&all);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&thread, &attr, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return e;
}

int forker_prepare(struct smco_err *err)
{
	/* A copy of us has none. */
	if (forker.owner == getpid())
		return 0;
	if (!forker.owner)
		find_hidden();
	sem_init(&forker.asked, 0, 0);
	sem_init(&forker.done, 0, 0);
	int e = start_thread();
	if (e)
		return smco_fail(err, SMCO_SYS, e, "cannot make a thread");
	forker.owner = getpid();
	return 0;
}

pid_t forker_fork(void (*child)(void *ctx), void *ctx)
{
	forker.child = child;
	forker.ctx = ctx;
	sem_post(&forker.asked);
	await(&forker.done);
	errno = forker.errnum;
	return forker.pid;
}
