/*
 * recvmsg that waits for all and has room for control data, cut short in a
 * process all of whose system calls stop: what is known of its room is what the
 * program said, not what the kernel wrote there at the end of the short call.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define FIRST 2000
#define ALL   5000

static struct puppet pup;
static int ends[2]; /* the puppet's, ours */
static struct shared {
	char bytes[ALL], control[256];
	struct iovec v;
	struct msghdr m;
	pid_t from;
} * shm;

static long act_receive(long unused, long unused2)
{
	struct ucred who = {0};
	(void)unused, (void)unused2;
	shm->v = (struct iovec){shm->bytes, ALL};
	shm->m = (struct msghdr){.msg_iov = &shm->v,
				 .msg_iovlen = 1,
				 .msg_control = shm->control,
				 .msg_controllen = sizeof(shm->control)};
	syscall(SYS_getppid); /* where we begin to look */
	long n = recvmsg(ends[0], &shm->m, MSG_WAITALL);
	struct cmsghdr *h = CMSG_FIRSTHDR(&shm->m);
	if (h && h->cmsg_type == SCM_CREDENTIALS)
		memcpy(&who, CMSG_DATA(h), sizeof(who));
	shm->from = who.pid;
	return n < 0 ? -errno : n;
}

/* It stands in a stop that the tracer has not heard of. */
static void until_it_stands(void)
{
	while (puppet_state(pup.pid) != 't')
		usleep(500);
}

static void next(struct tracer *tr, struct tevent *ev)
{
	while (tracer_next(tr, smco_now_ns() + NSEC_PER_SEC, ev) > 0 &&
	       ev->kind != TEV_SYSCALL_IN && ev->kind != TEV_SYSCALL_OUT)
		if (ev->task)
			tracer_resume(tr, ev->task, 0);
}

static long nr_of(struct task *t)
{
	struct user_regs_struct regs;
	return task_get_regs(t, &regs) == 0 ? (long)regs.orig_rax : -1;
}

static void send_some(int from, int to)
{
	static char bytes[ALL];
	check_int(send(ends[1], bytes, (size_t)(to - from), 0), to - from);
}

static void cut_short(struct tracer *tr, struct tproc *p)
{
	struct tevent ev;

	memset(shm, 0, sizeof(*shm));
	check_int(tproc_trace_syscalls(p, true), 0);
	puppet_begin(&pup, act_receive, 0, 0);
	do {
		next(tr, &ev);
		if (ev.kind == TEV_SYSCALL_OUT && nr_of(ev.task) == SYS_getppid)
			break;
		tracer_resume(tr, ev.task, 0);
	} while (1);
	send_some(0, FIRST);
	tracer_resume(tr, ev.task, 0);
	until_it_stands(); /* at the entry */
	check_int(traced_stop(p, NULL), 0);
	tproc_cont(p);
	next(tr, &ev);
	check_int(ev.kind, TEV_SYSCALL_IN);
	check_int(nr_of(ev.task), SYS_recvmsg);
	/* It finds a signal that seems pending. */
	tracer_resume(tr, ev.task, 0);
	until_it_stands(); /* at the end of the short call */
	check_int(shm->m.msg_controllen, 0);
	check_int(traced_stop(p, NULL), 0);
	tproc_cont(p);
	send_some(FIRST, ALL);

	struct pollfd fd = {.fd = pup.answer, .events = POLLIN};
	while (poll(&fd, 1, 0) <= 0)
		if (tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) > 0 &&
		    ev.task)
			tracer_resume(tr, ev.task, 0);
	check_int(puppet_wait(&pup), ALL);
	check_int(shm->m.msg_flags & MSG_CTRUNC, 0);
	check_int(shm->from, getpid());
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	const int yes = 1;

	shm = mmap(NULL, sizeof(*shm), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check_int(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	check_int(
		setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)),
		0);
	pup = puppet_start();
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check(p != NULL))
		return tap_done();
	tproc_resume_new(p);
	for (int i = 0; i < 3; i++)
		cut_short(tr, p);
	check_int(tracer_detach_all(tr, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
