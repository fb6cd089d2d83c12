/*
 * procfs.h - where the kernel tells of processes. Beside base.h because every
 * room that looks at a running program asks here.
 *
 * An inode of /proc is made when it is first asked for, once for each instance
 * of that file system, and stays. Who reads /proc/PID so takes work from the
 * program that asks for the same of itself later, and from the events that are
 * counted for it. So where it is permitted (CAP_SYS_ADMIN) there is an instance
 * of our own, mounted nowhere: it goes with us. It has the numbers of our own
 * PID namespace, and shows what /proc would show to the same user.
 */
#ifndef SMCO_PROCFS_H
#define SMCO_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Room for the name of any file of a process or thread that has no part which
 * somebody else has chosen. */
#define PROCFS_PATH 96

/*
 * The name by which WHAT of process or thread @pid is opened ("status",
 * "task/%d/stat"), into @buf, which is returned. For this process alone: no
 * other can open it, and nobody would understand it in a message. Any thread
 * may call it; the first call makes the instance, some 20 us.
 */
const char *procfs_path(char *buf, size_t size, pid_t pid, const char *what,
			...) __attribute__((format(printf, 4, 5)));
/*
 * The number that leads to what the threads of process @pid share, by
 * procfs_path: its memory, files, root and namespaces. That is @pid, or where
 * its first thread has ended, one of its others; @pid if there is none or we
 * may not look.
 */
pid_t procfs_holder(pid_t pid);
/* Is it our own? */
bool procfs_is_own(void);
/* Has it the numbers of another PID namespace than ours: is whom it shows as
 * @pid somebody else? So it is where a namespace was made without a /proc for
 * it, and we may not make one. False where that cannot be known. */
bool procfs_is_strange(void);

#endif
