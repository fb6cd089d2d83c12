/*
 * Waits that are made again and may come too late. A thread in FUTEX_WAIT has
 * seen its word and waits. A stop takes it out of the kernel's queue; before it
 * is there again the word may be changed and a wake be sent, and the call that
 * is made again finds another value: EAGAIN, where it would have been woken and
 * returned 0. The same holds for System V queues that are removed meanwhile.
 *
 * The error that says so is known, and cannot be any other: the call was let
 * wait before. So it is made again in code of ours, which replaces that error
 * (whole.c), with no stop more than before. Who has been let go is on its own,
 * in the microseconds until it waits again.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

#ifndef SYS_futex_wait
#define SYS_futex_wait 455 /* Linux 6.7 */
#endif

static bool is_futex_wait(const struct user_regs_struct *regs)
{
	unsigned op = arch.syscall_arg(regs, 1) & FUTEX_CMD_MASK;
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET;
}

static bool find_late(const struct user_regs_struct *regs,
		      struct arch_whole_late *ret)
{
	*ret = (struct arch_whole_late){.error = EAGAIN};
	switch (arch.syscall_nr(regs)) {
	case SYS_futex:
		return is_futex_wait(regs);
	case SYS_futex_wait:
		return true;
	case SYS_restart_syscall: /* of its kind only a futex says EAGAIN */
		return true;
	case SYS_futex_waitv:
		ret->is_vector = true;
		return true;
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
		ret->error = EINVAL;
		ret->ret = -EIDRM;
		return true;
	default:
		return false;
	}
}

bool late_may_be(const struct user_regs_struct *regs)
{
	struct arch_whole_late late;

	return find_late(regs, &late) &&
	       (arch.restart_pending(regs) ||
		(late.error == EINVAL && arch.syscall_ret(regs) == -EINTR));
}

void late_at_stop(struct task *t, struct user_regs_struct *regs)
{
	struct arch_whole_late late;

	if (late_may_be(regs) && !whole_is_inside(t, regs) &&
	    find_late(regs, &late))
		whole_again(t, regs, &late);
}

/* --- leaving --- */

void late_go_home(struct task *t)
{
	struct user_regs_struct regs;

	whole_end(t);
	if (task_get_regs(t, &regs) < 0)
		return;
	t->mend.sp = arch.sp(&regs);
	t->mend.inside = false;
	if (arch.restart_pending(&regs)) {
		t->again.pc = arch.pc(&regs);
		t->again.sp = arch.sp(&regs);
	}
}

static bool has_changed(struct task *t, taddr_t word, uint32_t from)
{
	uint32_t now;
	return tmem_read(t->proc, word, &now, sizeof(now)) == 0 && now != from;
}

/* Who waits in System V object @id waited in something that was there. */
static bool is_removed(const struct task *t, int id, bool is_sem)
{
	struct msqid_ds msg;
	struct semid_ds sem;
	union {
		int val;
		struct semid_ds *buf;
	} arg = {.buf = &sem};
	if (proc_shares_namespace(t->tid, "ipc") <= 0)
		return false;
	/* EACCES: it is there, and not ours to read. */
	return (is_sem ? semctl(id, 0, IPC_STAT, arg)
		       : msgctl(id, IPC_STAT, &msg)) < 0 &&
	       (errno == EINVAL || errno == EIDRM);
}

/* What the call would say if it was made now, without waiting; false: it would
 * wait. */
static bool says_now(struct task *t, const struct user_regs_struct *regs,
		     int64_t *ret)
{
	struct futex_waitv v;
	uint64_t nr = arch.syscall_arg(regs, 1);

	*ret = 0;
	switch (arch.syscall_nr(regs)) {
	case SYS_futex:
		return is_futex_wait(regs) &&
		       has_changed(t, arch.syscall_arg(regs, 0),
				   (uint32_t)arch.syscall_arg(regs, 2));
	case SYS_futex_wait:
		return has_changed(t, arch.syscall_arg(regs, 0),
				   (uint32_t)arch.syscall_arg(regs, 1));
	case SYS_futex_waitv:
		for (uint64_t i = 0; i < nr && i < FUTEX_WAITV_MAX; i++) {
			taddr_t at = arch.syscall_arg(regs, 0) + i * sizeof(v);
			if (tmem_read(t->proc, at, &v, sizeof(v)) == 0 &&
			    has_changed(t, v.uaddr, (uint32_t)v.val)) {
				*ret = (int64_t)i;
				return true;
			}
		}
		return false;
	case SYS_semop:
	case SYS_semtimedop:
		*ret = -EIDRM;
		return is_removed(t, (int)arch.syscall_arg(regs, 0), true);
	case SYS_msgrcv:
	case SYS_msgsnd:
		*ret = -EIDRM;
		return is_removed(t, (int)arch.syscall_arg(regs, 0), false);
	default:
		return false;
	}
}

void late_at_detach(struct task *t)
{
	struct user_regs_struct regs;
	int64_t ret;

	if (task_get_regs(t, &regs) < 0 || !arch.restart_pending(&regs) ||
	    whole_is_inside(t, &regs) || !says_now(t, &regs, &ret))
		return;
	arch.set_syscall_ret(&regs, ret);
	task_set_regs(t, &regs);
}
