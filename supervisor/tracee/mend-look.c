/*
 * What is looked at before a thread is interrupted, because nobody can tell it
 * afterwards: since when it has been waiting, and how much room for control
 * data its message has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

#define FIRST_LOOKS 8

/* The call that @t is in, as far as it sleeps in one. */
struct place {
	long nr;
	unsigned long args[6], sp, pc;
};

static bool look(const struct task *t, struct place *ret)
{
	char path[PROCFS_PATH], buf[256];
	procfs_path(path, sizeof(path), t->tid, "syscall");
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return false;
	unsigned long *a = ret->args;
	return sscanf(buf, "%ld %lx %lx %lx %lx %lx %lx %lx %lx", &ret->nr,
		      &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &ret->sp,
		      &ret->pc) == 9;
}

/*
 * recvmsg's message says how much room for control data there is until the
 * kernel writes there how much of it was used.
 */
static bool read_room(struct task *t, const struct place *in, struct msghdr *m)
{
	return in->nr == SYS_recvmsg && (in->args[2] & MSG_WAITALL) &&
	       !whole_has(t->proc, in->pc) &&
	       tmem_read(t->proc, in->args[1], m, sizeof(*m)) == 0 &&
	       m->msg_control;
}

static void note_room(struct task *t, const struct place *in,
		      const struct msghdr *m)
{
	t->proc->has_rooms = true;
	t->room.msg = in->args[1];
	t->room.sp = in->sp;
	t->room.control = (taddr_t)(uintptr_t)m->msg_control;
	t->room.len = m->msg_controllen;
}

/* A look takes longer than the rest of a stop: at threads that have not been
 * seen to need it, only a few. */
bool mend_wants_look(const struct task *t)
{
	return t->may_wait || t->nr_looks < FIRST_LOOKS ||
	       (t->proc && t->proc->has_rooms);
}

void mend_before_interrupt(struct task *t)
{
	struct slept now;
	struct place in;
	struct msghdr m;

	t->slept = (struct slept){0};
	t->nr_looks++;
	/* An announced wait goes on; its end is known. One that stands at the
	 * end of its call, in a stop that we have not heard of yet, looks as if
	 * it were in it. */
	if (t->mend.call || !look(t, &in) ||
	    !mend_has_timeout(t->proc, in.nr) || !slept_look(t, &t->slept))
		return;
	bool has_clock = t->slept.ns;
	/* It may have come to another call, or to the end of this one. */
	if (in.nr == SYS_recvmsg && look(t, &in) && read_room(t, &in, &m) &&
	    (!has_clock || (slept_look(t, &now) && now.ns == t->slept.ns &&
			    now.nr_sleeps == t->slept.nr_sleeps)))
		note_room(t, &in, &m);
}

void mend_note_entry(struct task *t, const struct user_regs_struct *regs)
{
	struct place in = {.nr = arch.syscall_nr(regs),
			   .sp = arch.sp(regs),
			   .pc = arch.pc(regs)};
	struct msghdr m;

	for (int i = 0; i < 6; i++)
		in.args[i] = arch.syscall_arg(regs, i);
	if (read_room(t, &in, &m))
		note_room(t, &in, &m);
}
