/*
 * Waits in io_uring_enter. Interrupted, it does not say so once anything has
 * come or was submitted, and returns before the number of results is there that
 * it was to wait for. So that number is looked at.
 */
#include <linux/io_uring.h>
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

/* The kernel says nothing of a ring while somebody submits: some µs. */
#define MOST_LOOKS 50

/* How many results are there in ring @fd, and how many can be. */
static bool count_results(const struct task *t, uint64_t fd, uint64_t *ret,
			  uint64_t *most_ret)
{
	uint64_t mask, head, tail;
	char buf[2048];

	for (int i = 0; i < MOST_LOOKS; i++) {
		if (!proc_fdinfo(t->tid, (int)fd, buf, sizeof(buf)))
			return false;
		if (!proc_field_u64(buf, "CqMask", 16, &mask) ||
		    !proc_field_u64(buf, "CqHead", 10, &head) ||
		    !proc_field_u64(buf, "CqTail", 10, &tail))
			continue;
		*ret = (uint32_t)(tail - head);
		*most_ret = mask + 1;
		return true;
	}
	return false;
}

/*
 * With a registered ring the first argument is no descriptor, and which ring
 * that is only the kernel knows. So it is asked: the call that is made again
 * ends at once if all results are there.
 */
bool uring_lacks(const struct task *t, const uint64_t args[6])
{
	uint64_t there, most, wanted = (uint32_t)args[2];

	if (!(args[3] & IORING_ENTER_GETEVENTS))
		return false;
	if (args[3] & IORING_ENTER_REGISTERED_RING)
		return wanted > 0;
	return count_results(t, args[0], &there, &most) &&
	       there < (wanted < most ? wanted : most);
}

static bool is_registered(const struct user_regs_struct *regs)
{
	return arch.syscall_arg(regs, 3) & IORING_ENTER_REGISTERED_RING;
}

bool uring_waits(const struct user_regs_struct *regs)
{
	return arch.syscall_nr(regs) == SYS_io_uring_enter &&
	       (uint32_t)arch.syscall_arg(regs, 1) == 0;
}

bool uring_is_cut(const struct task *t, const struct user_regs_struct *regs,
		  bool interrupted)
{
	uint64_t args[6];

	if (!uring_waits(regs) || arch.syscall_ret(regs) != 0 ||
	    (is_registered(regs) && !interrupted))
		return false;
	for (int i = 0; i < 6; i++)
		args[i] = arch.syscall_arg(regs, i);
	return uring_lacks(t, args);
}

bool uring_has_any(const struct task *t, const struct user_regs_struct *regs)
{
	uint64_t there, most;

	if (is_registered(regs))
		return t->uring_had_any;
	return count_results(t, arch.syscall_arg(regs, 0), &there, &most) &&
	       there > 0;
}
