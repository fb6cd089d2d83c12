/*
 * What happens at the entry of each hooked function, once its near stub has
 * decided that the call is not one of the many small ones.
 */
#include "call.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>

/* prctl, or syscall with seccomp: from then on the time stamp counter is a
 * fault for who calls, and for the threads that he makes. */
static bool forbids_clock(const struct agent_frame *f)
{
	if (agent_priv.sites[f->site].kind == AK_SYSCALL)
		return f->args[1] == SECCOMP_SET_MODE_STRICT;
	return (uint32_t)f->args[0] == PR_SET_TSC
		       ? f->args[1] == PR_TSC_SIGSEGV
		       : f->args[1] == SECCOMP_MODE_STRICT;
}

/*
 * A seccomp filter is coming. From now on a call that the program itself would
 * not make may be its death: none is made, no more stacks are asked for. If the
 * kernel refuses the filter all is as before: programs find out in this way
 * which kinds there are (libseccomp, qemu, browsers). So it is of a thread that
 * has its calls sent to itself (PR_SET_SYSCALL_USER_DISPATCH).
 */
static struct agent_result do_filter(struct agent_frame *f)
{
	bool is_filter = (uint32_t)f->args[0] != PR_SET_TSC;
	bool is_strict = forbids_clock(f);
	add(&agent_priv.no_calls, is_filter);
	add(&agent_priv.no_clock, is_strict);
	uint64_t r = ((fn6 *)orig_of(f))(f->args[0], f->args[1], f->args[2],
					 f->args[3], f->args[4], f->args[5]);
	result_is(f, r);
	if ((int32_t)r == -1) {
		add(&agent_priv.no_calls, -is_filter);
		add(&agent_priv.no_clock, -is_strict);
	}
	return give(r);
}

struct agent_result agent_dispatch(struct agent_frame *f)
{
	struct timing t;
	struct agent_result res;
	uint64_t size;

	if (unlikely(!load(&agent_life.alive)))
		return pass(f);
	timing_start(&t);
	switch (agent_priv.sites[f->site].kind) {
	case AK_MALLOC:
	case AK_NEW_NOTHROW:
	case AK_NEW_ALIGN_NOTHROW:
		res = block_alloc(f, &t, 1, f->args[0]);
		break;
	case AK_VALLOC:
	case AK_PVALLOC:
		res = block_alloc(f, &t, PAGE, f->args[0]);
		break;
	case AK_MEMALIGN:
		res = block_alloc(f, &t, f->args[0], f->args[1]);
		break;
	case AK_CALLOC:
		res = block_calloc(f, &t);
		break;
	case AK_POSIX_MEMALIGN:
		res = block_posix_memalign(f, &t);
		break;
	case AK_NEW:
		res = block_new(f, &t, 0);
		break;
	case AK_NEW_ALIGN:
		res = block_new(f, &t, f->args[1]);
		break;
	case AK_FREE:
		res = block_free(f);
		break;
	case AK_REALLOC:
		res = block_realloc(f, &t, f->args[1]);
		break;
	case AK_REALLOCARRAY:
		if (__builtin_mul_overflow(f->args[1], f->args[2], &size))
			size = ABSURD; /* fails; the block stays tracked */
		res = size == ABSURD ? pass(f) : block_realloc(f, &t, size);
		break;
	case AK_MMAP:
		res = map_mmap(f, &t);
		break;
	case AK_MUNMAP:
		res = map_munmap(f);
		break;
	case AK_MREMAP:
		res = map_mremap(f, &t);
		break;
	case AK_PRCTL:
		res = do_filter(f);
		break;
	case AK_SYSCALL:
		res = f->args[1] > SECCOMP_SET_MODE_FILTER ? pass(f)
							   : do_filter(f);
		break;
	case AK_IOCTL:
		/* Before it can register memory: what is guarded by another
		 * would be refused. */
		agent_ask(f, AGENT_TRAP_UFFD);
		res = pass(f);
		break;
	default:
		res = pass(f);
	}
	timing_end(&t);
	return res;
}
