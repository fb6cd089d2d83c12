/* How much memory a process's control groups leave it: which group it is, by
 * what the kernel writes, and what the files of such a group say. */
#include "supervisor/memory-room.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/unit/scratch.h"
#include "t/unit/tap.h"

#define MIB (1ULL << 20)

static const char mounts[] =
	"24 1 0:22 / /proc rw - proc proc rw\n"
	"31 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	"32 24 0:27 / /sys/fs/cgroup/my\\040memory rw - cgroup cgroup "
	"rw,memory\n"
	"33 24 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup "
	"rw,memory\n"
	"34 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
static const char inside[] =
	"33 24 0:28 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup "
	"rw,memory\n";

static void check_dir(const char *groups, const char *list, const char *want)
{
	static struct memory_group g;
	bool found = memory_group_find(groups, list, &g);
	check_str(found ? g.dir : "", want);
}

static void test_find(void)
{
	check_dir("4:memory:/a/b\n1:cpu:/\n0::/\n", mounts,
		  "/sys/fs/cgroup/memory/a/b");
	check_dir("0::/two\n4:hugetlb,memory:/one\n", mounts,
		  "/sys/fs/cgroup/memory/one");
	check_dir("1:cpu:/a\n0::/user.slice/x\n", mounts,
		  "/sys/fs/cgroup/unified/user.slice/x");
	check_dir("0::/\n", mounts, "/sys/fs/cgroup/unified");
	check_dir("4:memoryless:/a\n", mounts, "");
	check_dir("4:name=memory,x:/a\n", mounts, "");
	/* In a container: what is mounted is what it may see. */
	check_dir("4:memory:/docker/ab/x\n", inside, "/sys/fs/cgroup/memory/x");
	check_dir("4:memory:/docker/ab\n", inside, "/sys/fs/cgroup/memory");
	check_dir("4:memory:/docker/abc\n", inside, "");
	/* Outside of the namespace. */
	check_dir("0::/../../other\n", mounts, "");
	check_dir("", mounts, "");
	check_dir("0::/a\n", "", "");
	check_dir("0::/a\n", "34 24 0:29 / - cgroup2\n", "");
}

static void put(const char *dir, const char *file, const char *text)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	FILE *f = fopen(path, "w");
	if (!f)
		exit(1);
	fputs(text, f);
	fclose(f);
}

static struct memory_room room_of(const char *top, const char *dir, bool is_v2)
{
	static struct memory_group g;
	struct memory_room room;
	snprintf(g.dir, sizeof(g.dir), "%s", dir);
	g.top_len = strlen(top);
	g.is_v2 = is_v2;
	memory_group_room(&g, &room);
	return room;
}

static void test_v2(const char *top)
{
	char a[600], b[700];
	snprintf(a, sizeof(a), "%s/a", top);
	snprintf(b, sizeof(b), "%s/b", a);
	mkdir(a, 0700);
	mkdir(b, 0700);
	struct memory_room r = room_of(top, b, true);
	check_int(r.left_bytes == UINT64_MAX && r.limit_bytes == UINT64_MAX, 1);
	put(b, "memory.max", "max\n");
	put(b, "memory.high", "max\n");
	put(b, "memory.current", "1048576\n");
	r = room_of(top, b, true);
	check_int(r.limit_bytes == UINT64_MAX, 1);
	put(b, "memory.max", "104857600\n");
	r = room_of(top, b, true);
	check_int(r.limit_bytes, 100 * MIB);
	check_int(r.left_bytes, 99 * MIB);
	/* Beyond it the program is held up. */
	put(b, "memory.high", "52428800\n");
	check_int(room_of(top, b, true).left_bytes, 49 * MIB);
	/* Those above have less left. */
	put(a, "memory.max", "20971520\n");
	put(a, "memory.current", "18874368\n");
	r = room_of(top, b, true);
	check_int(r.limit_bytes, 20 * MIB);
	check_int(r.left_bytes, 2 * MIB);
	/* What files had and nobody uses can be had. */
	put(a, "memory.stat",
	    "anon 1\nworkingset_inactive_file 9\ninactive_file 8388608\n");
	check_int(room_of(top, b, true).left_bytes, 10 * MIB);
	/* More than is there. */
	put(a, "memory.current", "99999999\n");
	put(a, "memory.stat", "inactive_file 1\n");
	check_int(room_of(top, b, true).left_bytes, 0);
	/* The topmost one is not left. */
	check_int(room_of(a, b, true).left_bytes, 0);
	check_int(room_of(b, b, true).left_bytes, 49 * MIB);
}

static void test_v1(const char *top)
{
	put(top, "memory.limit_in_bytes", "9223372036854771712\n");
	put(top, "memory.usage_in_bytes", "5\n");
	check_int(room_of(top, top, false).limit_bytes == UINT64_MAX, 1);
	put(top, "memory.limit_in_bytes", "41943040\n");
	put(top, "memory.usage_in_bytes", "39845888\n");
	put(top, "memory.stat",
	    "inactive_file 5\ntotal_inactive_file 4194304\n");
	struct memory_room r = room_of(top, top, false);
	check_int(r.limit_bytes, 40 * MIB);
	check_int(r.left_bytes, 6 * MIB);
	/* Another version's. */
	check_int(room_of(top, top, true).limit_bytes == UINT64_MAX, 1);
}

static struct memory_spare spare(uint64_t limit, uint64_t left)
{
	const struct memory_room machine = {1024 * MIB, 512 * MIB};
	const struct memory_room group = {limit, left};
	return memory_spare(&group, &machine);
}

static void test_spare(void)
{
	struct memory_spare s = spare(UINT64_MAX, UINT64_MAX);
	check_int(s.small_bytes, 16 * MIB);
	check_int(s.large_bytes == UINT64_MAX, 1);
	s = spare(64 * MIB, 32 * MIB);
	check_int(s.small_bytes, MIB / 2);
	check_int(s.large_bytes, MIB / 2);
	s = spare(16384 * MIB, 8192 * MIB);
	check_int(s.small_bytes, 16 * MIB);
	check_int(s.large_bytes, 128 * MIB);
	s = spare(64 * MIB, 4 * MIB);
	check_int(s.large_bytes, MIB / 16);
	s = spare(64 * MIB, 4 * MIB - 1);
	check_int(s.small_bytes + s.large_bytes, 0);
	s = spare(0, 0);
	check_int(s.small_bytes + s.large_bytes, 0);
	const struct memory_room none = {UINT64_MAX, UINT64_MAX};
	const struct memory_room machine = {1024 * MIB, 63 * MIB};
	s = memory_spare(&none, &machine);
	check_int(s.small_bytes + s.large_bytes, 0);
	s = memory_spare(&none, &none); /* not known */
	check_int(s.small_bytes, 16 * MIB);
}

static void test_own(void)
{
	struct memory_rooms *m = memory_rooms_create();
	struct memory_room machine;
	memory_machine_room(&machine);
	check_int(machine.limit_bytes > 0 && machine.limit_bytes < UINT64_MAX,
		  1);
	check_int(machine.left_bytes > 0 && machine.left_bytes < UINT64_MAX, 1);
	unsigned which = memory_rooms_find(m, getpid());
	check_int(which, 0);
	check_int(memory_rooms_find(m, getpid()), 0);
	struct memory_room room;
	memory_rooms_look(m, which, 1, &room);
	check_int(room.left_bytes <= room.limit_bytes, 1);
	/* Who is gone has no group. */
	memory_rooms_look(m, memory_rooms_find(m, 0x7ffffff), 1, &room);
	check_int(room.limit_bytes == UINT64_MAX, 1);
	memory_rooms_destroy(m);
	memory_rooms_destroy(NULL);
}

int main(void)
{
	test_find();
	char one[512], two[512];
	snprintf(one, sizeof(one), "%s/one", scratch_dir());
	snprintf(two, sizeof(two), "%s/two", scratch_dir());
	mkdir(one, 0700);
	mkdir(two, 0700);
	test_v1(one);
	test_v2(two);
	test_spare();
	test_own();
	return tap_done();
}
