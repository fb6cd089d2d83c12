/*
 * The end of a process is told while its memory is there, whoever ends it and
 * however: once, of those that were asked for, and of nothing else.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "t/unit/tap.h"
#include "t/unit/traced.h"

static uint64_t word = 0x0123456789abcdef;

static long act_exit(long status, long unused)
{
	(void)unused;
	_exit((int)status);
}

static void *exit_all(void *status)
{
	_exit((int)(long)status);
}

static void *idle(void *unused)
{
	return unused;
}

/* By another thread, while the first one waits. */
static long act_thread_exits(long status, long unused)
{
	pthread_t t;
	(void)unused;
	pthread_create(&t, NULL, exit_all, (void *)status);
	return pthread_join(t, NULL);
}

static long act_threads(long nr, long unused)
{
	(void)unused;
	for (long i = 0; i < nr; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, idle, NULL))
			return i;
		pthread_join(t, NULL);
	}
	return nr;
}

static long act_fork(long status, long unused)
{
	(void)unused;
	pid_t pid = fork();
	int how;
	if (pid == 0)
		_exit((int)status);
	if (waitpid(pid, &how, 0) != pid)
		return -1;
	return WEXITSTATUS(how);
}

static long act_exec(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	execl("/bin/true", "true", (char *)NULL);
	return -1;
}

struct heard {
	unsigned nr_endings, nr_gone, nr_new;
	uint64_t word; /* in the memory of who ends */
	int status;
	bool tell_next; /* of what is new, too */
};

/* Until nobody is left, or @until says so. */
static void hear(struct tracer *tr, struct heard *h, int answer)
{
	struct pollfd fd = {.fd = answer, .events = POLLIN};
	struct tevent ev;
	while (poll(&fd, answer >= 0, 0) <= 0 &&
	       tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) > 0) {
		switch (ev.kind) {
		case TEV_PROC_NEW:
			h->nr_new++;
			if (h->tell_next)
				tproc_tell_end(ev.proc);
			tproc_resume_new(ev.proc);
			break;
		case TEV_LIBS:
			tracer_resume(tr, ev.task, 0);
			break;
		case TEV_PROC_ENDING:
			h->nr_endings++;
			tmem_read(ev.proc, (taddr_t)(uintptr_t)&word, &h->word,
				  sizeof(h->word));
			check_int(task_tid(ev.task), tproc_pid(ev.proc));
			tracer_resume(tr, ev.task, 0);
			break;
		case TEV_PROC_GONE:
			h->nr_gone++;
			h->status = ev.exit_status;
			break;
		default:
			break;
		}
	}
}

static struct tproc *begin(struct tracer **tr, struct puppet *p, bool tell)
{
	struct smco_err err = {0};
	*p = puppet_start();
	check_int(tracer_create(tr, NULL, &err), 0);
	struct tproc *t = traced_must_attach(*tr, p->pid);
	if (tell)
		tproc_tell_end(t);
	tproc_resume_new(t);
	return t;
}

static void end(struct tracer *tr, struct puppet *p)
{
	tracer_destroy(tr);
	puppet_end(p);
}

/* It ends by @fn; 0: is killed. */
static void test_end(puppet_fn fn, bool tell)
{
	struct tracer *tr;
	struct puppet p;
	struct heard h = {0};
	begin(&tr, &p, tell);
	if (fn)
		puppet_begin(&p, fn, 7, 0);
	else
		kill(p.pid, SIGKILL);
	hear(tr, &h, -1);
	check_int(h.nr_endings, tell);
	check(h.word == (tell ? word : 0));
	check_int(h.nr_gone, 1);
	check_int(h.status, fn ? 7 << 8 : SIGKILL);
	end(tr, &p);
}

/* Neither threads nor copies tell of theirs; they do not even stop for it. */
static void test_others(void)
{
	struct tracer *tr;
	struct puppet p;
	struct heard h = {0};
	struct tproc *t = begin(&tr, &p, true);
	uint64_t nr = tracer_nr_stops(tr);
	puppet_begin(&p, act_threads, 20, 0);
	hear(tr, &h, p.answer);
	check_int(puppet_wait(&p), 20);
	check_range(tracer_nr_stops(tr) - nr, 20, 2 * 20);
	puppet_begin(&p, act_fork, 5, 0);
	hear(tr, &h, p.answer);
	check_int(puppet_wait(&p), 5);
	check_int(h.nr_endings, 0);
	check_int(h.nr_new, 1);
	/* It is left, and nobody waits for anything. */
	struct smco_err err = {0};
	check_int(tproc_detach(t, &err), 0);
	puppet_begin(&p, act_exit, 3, 0);
	int how;
	check_int(waitpid(p.pid, &how, __WALL), p.pid);
	check_int(how, 3 << 8);
	tracer_destroy(tr);
}

static void test_exec(bool tell_next)
{
	struct tracer *tr;
	struct puppet p;
	struct heard h = {.tell_next = tell_next};
	begin(&tr, &p, !tell_next);
	puppet_begin(&p, act_exec, 0, 0);
	hear(tr, &h, -1);
	check_int(h.nr_new, 1);
	check_int(h.nr_endings, tell_next);
	check_int(h.nr_gone, 1);
	check_int(h.status, 0);
	end(tr, &p);
}

int main(void)
{
	test_end(act_exit, true);
	test_end(act_exit, false);
	test_end(act_thread_exits, true);
	test_end(NULL, true);
	test_others();
	test_exec(false);
	test_exec(true);
	return tap_done();
}
