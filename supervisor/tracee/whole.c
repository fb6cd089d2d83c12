/*
 * Calls that are not cut short. A blocking write to a pipe or socket that a
 * stop interrupts after some bytes returns how many; without us it would have
 * returned when all were written, and not every program looks. The kernel
 * restarts only calls that have done nothing. So the thread is led to a few
 * instructions in the unused end of the vdso that carry on with the rest and
 * then return what the whole call would have (arch-*-whole.c).
 *
 * They need no supervisor: it may die or leave meanwhile. What they need to
 * know is on the thread's own stack, below what it uses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "supervisor/tracee/internal.h"

#define NONE 1 /* tproc.whole: no place for the code */

#define MEM_MAJOR	1
#define MEM_ZERO	5
#define MEM_RANDOM	8
#define MEM_URANDOM	9
#define TTY_MAJOR	4
#define TTYAUX_MAJOR	5
#define PTS_MAJOR_FIRST 136
#define PTS_MAJOR_LAST	143

static bool is_tty(unsigned major)
{
	return major == TTY_MAJOR || major == TTYAUX_MAJOR ||
	       (major >= PTS_MAJOR_FIRST && major <= PTS_MAJOR_LAST);
}

static bool is_memory(dev_t dev)
{
	unsigned m = minor(dev);
	return major(dev) == MEM_MAJOR &&
	       (m == MEM_ZERO || m == MEM_RANDOM || m == MEM_URANDOM);
}

/* Would the call have gone on by itself until all is done? */
static bool never_short(pid_t tid, long nr, int fd)
{
	char path[64], line[64];
	struct stat st;
	unsigned flags = O_NONBLOCK;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	if (stat(path, &st) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "flags: %o", &flags) == 1)
			break;
	fclose(f);
	if (nr == SYS_read)
		return S_ISCHR(st.st_mode) && is_memory(st.st_rdev);
	return !(flags & O_NONBLOCK) &&
	       (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ||
		(S_ISCHR(st.st_mode) && is_tty(major(st.st_rdev))));
}

/* Which argument is the buffer; -1: not a call of this kind. */
static int buffer_of(const struct user_regs_struct *regs)
{
	int flags = (int)arch.syscall_arg(regs, 3);

	switch (arch.syscall_nr(regs)) {
	case SYS_read:
	case SYS_write:
		return 1;
	case SYS_sendto:
		return flags & MSG_DONTWAIT ? -1 : 1;
	case SYS_recvfrom:
		return flags & MSG_WAITALL && !(flags & (MSG_DONTWAIT |
							 MSG_PEEK | MSG_OOB))
			       ? 1
			       : -1;
	case SYS_getrandom:
		return 0;
	default:
		return -1;
	}
}

/*
 * The kernel has prepared to start the call again, and was interrupted once
 * more before it did: what looks like a result is the number of the call.
 */
static bool is_about_to_call(struct task *t,
			     const struct user_regs_struct *regs)
{
	uint8_t insn[sizeof(arch.syscall_insn)];

	return arch.syscall_ret(regs) == arch.syscall_nr(regs) &&
	       (tmem_read(t->proc, arch.pc(regs), insn, arch.syscall_insn_len) <
			0 ||
		!memcmp(insn, arch.syscall_insn, arch.syscall_insn_len));
}

bool whole_is_cut(struct task *t, const struct user_regs_struct *regs)
{
	int64_t done = arch.syscall_ret(regs);
	int buf = done > 0 ? buffer_of(regs) : -1;

	if (buf < 0 || (uint64_t)done >= arch.syscall_arg(regs, buf + 1) ||
	    is_about_to_call(t, regs))
		return false;
	return buf == 0 || never_short(t->tid, arch.syscall_nr(regs),
				       (int)arch.syscall_arg(regs, 0));
}

/* --- the code --- */

bool whole_is_inside(struct task *t, const struct user_regs_struct *regs)
{
	return t->proc->whole > NONE &&
	       arch_whole_is_inside(regs, t->proc->whole);
}

static int undo_code(struct tproc *p, void *arg)
{
	static const uint8_t zeros[512];
	const uint8_t *code;
	size_t len = arch_whole_code(&code);
	taddr_t at = p->whole;
	(void)arg;

	p->whole = NONE; /* by us: it would be the next change */
	/* Whoever is in it needs it, also when we are gone. */
	for (struct task *t = tproc_first_task(p); t; t = task_next(t)) {
		struct user_regs_struct regs;
		if (task_get_regs(t, &regs) < 0 ||
		    arch_whole_is_inside(&regs, at))
			return 0;
	}
	return tmem_write(p, at, zeros, len);
}

void whole_inherit(struct tproc *child, struct tproc *parent)
{
	if (parent->whole > NONE && tproc_undo_push(child, undo_code, NULL))
		child->whole = parent->whole;
}

static bool install(struct tproc *p)
{
	uint8_t there[512];
	const uint8_t *code;
	size_t len = arch_whole_code(&code);

	if (p->whole)
		return p->whole > NONE;
	p->whole = NONE;
	taddr_t at = inject_spare_code(p, len);
	if (!at || len > sizeof(there) || tmem_read(p, at, there, len) < 0)
		return false;
	size_t zeros = 0;
	while (zeros < len && !there[zeros])
		zeros++;
	/* Else left by one who was here before us, for a thread in it. */
	if (zeros < len && memcmp(there, code, len) != 0)
		return false;
	struct tundo *u = tproc_undo_push(p, undo_code, NULL);
	if (!u)
		return false;
	if (zeros == len && tmem_write(p, at, code, len) < 0) {
		tproc_undo_drop(p, u);
		return false;
	}
	p->whole = at;
	return true;
}

bool whole_carry_on(struct task *t, const struct user_regs_struct *was)
{
	struct user_regs_struct regs = *was;
	struct arch_whole_frame frame;

	if (!install(t->proc))
		return false;
	taddr_t sp =
		arch_whole_enter(&regs, t->proc->whole, buffer_of(was), &frame);
	smco_debug("whole", "%d: call %ld did %ld of %lu", t->tid,
		   arch.syscall_nr(was), (long)arch.syscall_ret(was),
		   (unsigned long)arch.syscall_arg(was, buffer_of(was) + 1));
	/* Once the registers are set, it finds back alone. */
	return tmem_write(t->proc, sp, &frame, sizeof(frame)) == 0 &&
	       task_set_regs(t, &regs) == 0;
}

void whole_end(struct task *t)
{
	struct user_regs_struct regs;
	struct arch_whole_frame frame;

	smco_debug("whole", "%d: ended by a handler", t->tid);
	if (task_get_regs(t, &regs) == 0 &&
	    tmem_read(t->proc, arch.sp(&regs), &frame, sizeof(frame)) == 0 &&
	    arch_whole_leave(&regs, t->proc->whole, &frame))
		task_set_regs(t, &regs);
}
