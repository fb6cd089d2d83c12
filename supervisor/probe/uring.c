/* Registered buffers of io_urings, see uring.h. */
#include "supervisor/probe/uring.h"

#include <stdio.h>
#include <string.h>

#include "reports/procfs.h"
#include "supervisor/probe/open-fds.h"

#define LINK	"anon_inode:[io_uring]"
#define MAX_FDS 32 /* of which the buffers are asked for */

bool uring_has_fd(pid_t pid)
{
	int fd;
	return open_fds(pid, LINK, &fd, 1) > 0;
}

/* "    0: 0x7f7e20835000/1048576", of each buffer behind "UserBufs:". */
static void add_buffers_of(pid_t pid, int fd, struct addr_ranges *ret)
{
	char path[PROCFS_PATH], line[128];
	unsigned long long at, len;
	bool is_buffer = false;
	procfs_path(path, sizeof(path), procfs_holder(pid), "fdinfo/%d", fd);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (line[0] != ' ')
			is_buffer = !strncmp(line, "UserBufs:", 9);
		else if (is_buffer &&
			 sscanf(line, " %*u: 0x%llx/%llu", &at, &len) == 2 &&
			 len && at + len > at)
			addr_ranges_add(ret, at, at + len);
	}
	if (f)
		fclose(f);
}

void uring_add_buffers(struct tproc *p, const struct tmaps *maps,
		       struct addr_ranges *ret)
{
	int fd[MAX_FDS];
	bool has_ring = false;
	for (size_t i = 0; i < maps->nr && !has_ring; i++)
		has_ring = !strcmp(maps->maps[i].path, LINK);
	if (!has_ring)
		return;
	size_t nr = open_fds(tproc_pid(p), LINK, fd, MAX_FDS);
	for (size_t i = 0; i < nr; i++)
		add_buffers_of(tproc_pid(p), fd[i], ret);
}
