/*
 * memory-room.h - how much more memory a process may have before the limits of
 * its control groups make the kernel look for somebody to kill.
 *
 * Its group and all above it count, as far as they can be seen: in a container
 * with a view of its own that is up to the container's. Of version 1 the memory
 * controller's limit, of version 2 memory.max and memory.high, beyond which the
 * program is held up. What the kernel keeps of files and nobody has used lately
 * can be had. Swap is not counted on. What of a group cannot be read limits
 * nothing.
 */
#ifndef SMCO_MEMORY_ROOM_H
#define SMCO_MEMORY_ROOM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of the tightest; both UINT64_MAX = there is no limit. */
struct memory_room {
	uint64_t limit_bytes;
	uint64_t left_bytes;
};

/* Where the group is that counts a process's memory. */
struct memory_group {
	char dir[PATH_MAX];
	size_t top_len; /* of its name, which is that of the topmost to see */
	bool is_v2;
};

/*
 * @groups is what /proc/PID/cgroup has, @mounts our own mountinfo. False: it is
 * in none that could be seen from here.
 */
bool memory_group_find(const char *groups, const char *mounts,
		       struct memory_group *ret);
/* Reads its files, and those of all above it. */
void memory_group_room(const struct memory_group *g, struct memory_room *ret);
/* The same of the whole machine, swap included. */
void memory_machine_room(struct memory_room *ret);

/* Those groups that processes of a session are in, each looked at once a second
 * at the most. */
struct memory_rooms;

/* NULL: out of memory. */
struct memory_rooms *memory_rooms_create(void);
/* NULL is fine. */
void memory_rooms_destroy(struct memory_rooms *m);
/* Which of them @pid is in: for memory_rooms_look(), as long as it lives and
 * whatever group it is moved to. */
unsigned memory_rooms_find(struct memory_rooms *m, pid_t pid);

/* How much larger blocks may become in all to have pages of their own. */
struct memory_spare {
	uint64_t small_bytes; /* blocks below 64 KiB together */
	uint64_t large_bytes; /* the others; UINT64_MAX = does not matter */
};
/*
 * Of @which group at @now_ns. Without a limit 16 MiB, and for large blocks what
 * it takes; with one a 64th of what is left, at most; nothing where less than a
 * sixteenth of the limit is, or of the machine's memory. @room_ret, which may
 * be NULL, is the group's.
 */
struct memory_spare memory_rooms_look(struct memory_rooms *m, unsigned which,
				      uint64_t now_ns,
				      struct memory_room *room_ret);
/* The same as a function of both rooms. */
struct memory_spare memory_spare(const struct memory_room *group,
				 const struct memory_room *machine);

#endif
