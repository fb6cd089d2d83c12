/* Injected mappings, see hook-area.h. */
#include "supervisor/probe/hook-area.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "supervisor/probe/near.h"

/* There is room for a name behind what the agent keeps in its life page. */
#define NAME_OFF (AGENT_LIFE_OFF + 64)

int hook_area_renew(struct tproc *p, taddr_t base, int *fd_ret,
		    struct smco_err *err)
{
	taddr_t addr;
	return near_share(p, base, base + NAME_OFF, base + AGENT_SHM_OFF,
			  AGENT_SHM_BYTES, PROT_READ | PROT_WRITE, &addr,
			  fd_ret, err);
}

int hook_area_more(struct tproc *p, taddr_t base, uint64_t bytes,
		   taddr_t *addr_ret, int *fd_ret, struct smco_err *err)
{
	return near_share(p, base, base + NAME_OFF, 0, bytes, PROT_READ,
			  addr_ret, fd_ret, err);
}

int hook_area_map(struct tproc *p, taddr_t start, taddr_t end,
		  taddr_t *base_ret, int *fd_ret, struct smco_err *err)
{
	int r = near_map(p, start, end, AGENT_AREA_BYTES, base_ret, err);
	if (r == 0)
		r = hook_area_renew(p, *base_ret, fd_ret, err);
	else
		return r;
	if (r)
		hook_area_unmap(p, *base_ret, NULL);
	return r;
}

int hook_area_protect(struct tproc *p, taddr_t base, struct smco_err *err)
{
	/* Without the second a child that is not followed keeps recording
	 * until its tokens end: not fatal. */
	struct tsyscall calls[] = {
		{.nr = SYS_mprotect,
		 .args = {base, AGENT_LIFE_OFF, PROT_READ | PROT_EXEC}},
		{.nr = SYS_madvise,
		 .args = {base + AGENT_LIFE_OFF, TPAGE_SIZE, MADV_WIPEONFORK}},
	};
	int r = tproc_syscalls(p, calls, ARRAY_SIZE(calls), err);
	if (r == 0 && calls[0].ret < 0)
		r = smco_fail(err, SMCO_SYS, (int)-calls[0].ret,
			      "mprotect to executable in the monitored "
			      "process");
	return r;
}

int hook_area_unmap(struct tproc *p, taddr_t base, struct smco_err *err)
{
	return near_unmap(p, base, AGENT_AREA_BYTES, err);
}
