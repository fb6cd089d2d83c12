/* phase-shm.h - memory that marks count in, without a program. */
#ifndef SMCO_T_PHASE_SHM_H
#define SMCO_T_PHASE_SHM_H

#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/probe/mark-private.h"
#include "t/unit/tap.h"

/* To be destroyed; NULL, and that is said, if it cannot be had. */
static inline struct mark_shm *phase_shm(void)
{
	int fd = memfd_create("marks", MFD_CLOEXEC);
	struct mark_shm *shm = NULL;
	if (fd >= 0 && !ftruncate(fd, MARK_DATA_BYTES))
		shm = mark_shm_create(fd, NULL);
	if (fd >= 0)
		close(fd);
	if (!shm)
		check(shm != NULL);
	return shm;
}

#endif
