/*
 * hook-area.h - a place for the agent in the tracee: found near the module it
 * serves, mapped, its shared part's descriptor taken, and unmapped.
 */
#ifndef SMCO_HOOK_AREA_H
#define SMCO_HOOK_AREA_H

#include "supervisor/probe/agent_abi.h"
#include "supervisor/tracee/tracee.h"

/*
 * Maps AGENT_AREA_BYTES, readable and writable, so that everything in [start,
 * end) is within reach of a 32-bit jump. All tasks stopped. *fd_ret is the
 * supervisor's descriptor of the shared part; the tracee's is closed.
 */
int hook_area_map(struct tproc *p, taddr_t start, taddr_t end,
		  taddr_t *base_ret, int *fd_ret, struct smco_err *err);
/* New shared memory at the same address, for a forked copy. */
int hook_area_renew(struct tproc *p, taddr_t base, int *fd_ret,
		    struct smco_err *err);
/* @bytes more of shared memory, read-only for the tracee, anywhere. */
int hook_area_more(struct tproc *p, taddr_t base, uint64_t bytes,
		   taddr_t *addr_ret, int *fd_ret, struct smco_err *err);
/* Text read-only and executable, life page not inherited by forks. */
int hook_area_protect(struct tproc *p, taddr_t base, struct smco_err *err);
int hook_area_unmap(struct tproc *p, taddr_t base, struct smco_err *err);

#endif
