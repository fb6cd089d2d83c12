/*
 * near.h - memory of ours in the tracee, close enough to a module for 32-bit
 * jumps and distances, and memory that is shared with it.
 */
#ifndef SMCO_NEAR_H
#define SMCO_NEAR_H

#include "supervisor/tracee/tracee.h"

/* SMCO_UNSUPPORTED if calls made in the process might kill it. */
int near_calls_allowed(struct tproc *p, struct smco_err *err);
/* One call in the tracee; SMCO_SYS if the kernel refuses it. All tasks
 * stopped. */
int near_call(struct tproc *p, long nr, const uint64_t args[6],
	      const char *what, int64_t *ret, struct smco_err *err);
/*
 * Maps @bytes, private, readable and writable, so that all of [start, end) is
 * within reach of all of it; nearest below, where no heap grows, or else
 * above, below the stack only where that keeps more than it may need. All tasks
 * stopped. SMCO_UNSUPPORTED: no room.
 */
int near_map(struct tproc *p, taddr_t start, taddr_t end, uint64_t bytes,
	     taddr_t *base_ret, struct smco_err *err);
/* Where near_map finds room for @bytes, most often, less the module's bias:
 * below what the file has at @start, or, where it is to be there and there is
 * no room, above its memory, which ends at @end. False: it is not to be told.
 */
bool near_likely(uint64_t start, uint64_t end, uint64_t bytes,
		 taddr_t *base_ret);
int near_unmap(struct tproc *p, taddr_t base, uint64_t bytes,
	       struct smco_err *err);
/*
 * Shared memory in the tracee, at @at, where it is the end of the area that
 * begins at @base; or, if 0, anywhere. *fd_ret is the supervisor's descriptor;
 * the tracee's is closed. NEAR_NAME_BYTES at @name_at, writable, are used
 * meanwhile. Its name in /proc/PID/maps tells whose area it is, to whoever
 * comes when we have been killed (leftover.h).
 */
int near_share(struct tproc *p, taddr_t base, taddr_t name_at, taddr_t at,
	       uint64_t bytes, int prot, taddr_t *addr_ret, int *fd_ret,
	       struct smco_err *err);
#define NEAR_NAME	"smco-trace"
#define NEAR_NAME_BYTES 48
/* The base of the area that mapping @m is the end of; 0: of none. */
taddr_t near_base_of(const struct tmap *m);

#endif
