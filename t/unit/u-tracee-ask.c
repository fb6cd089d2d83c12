/*
 * Single mappings as the kernel tells them are those of /proc/PID/maps; a
 * process that is attached to has that read before it stands, and not again
 * unless what was read is no longer so. Without the kernel's help all is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "supervisor/probe/heapwalk.h"
#include "supervisor/probe/near.h"
#include "supervisor/tracee/internal.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define BYTES	  (3 * TPAGE_SIZE)
#define BLOCK	  (1 << 20)
#define ASK_BYTES 104

static taddr_t block, private;

static void map(int prot, int flags, int fd)
{
	mmap(NULL, BYTES, prot, flags, fd, TPAGE_SIZE);
}

/* One of each kind; returns a block that has a mapping of its own. */
static long act_map(long unused, long unused2)
{
	static const char *const names[] = {"a b", "c\nd", "e (deleted)", "f"};
	(void)unused, (void)unused2;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int fd = open(names[i], O_RDWR | O_CREAT, 0600);
		if (ftruncate(fd, 2 * BYTES))
			return 0;
		map(PROT_READ, MAP_PRIVATE, fd);
		map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
		if (i == 3)
			unlink(names[i]);
	}
	int fd = memfd_create("m", 0);
	if (ftruncate(fd, 2 * BYTES))
		return 0;
	map(PROT_READ | PROT_EXEC, MAP_SHARED, fd);
	map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map(PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	return (long)malloc(BLOCK);
}

static long act_private(long unused, long unused2)
{
	(void)unused, (void)unused2;
	/* Apart from all others, which it would be one mapping with. */
	return (long)mmap((void *)0x200000000000, BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			  0);
}

static bool is_same(const struct tmap *a, const struct tmap *b)
{
	return a->start == b->start && a->end == b->end &&
	       a->offset == b->offset && a->inode == b->inode &&
	       a->prot == b->prot && a->shared == b->shared &&
	       a->deleted == b->deleted && !strcmp(a->path, b->path);
}

/* The kernel's, in each process. */
static bool is_gate(const struct tmap *m)
{
	return !strcmp(m->path, "[vsyscall]");
}

/* Those for code are those of all that code may be in. */
static void check_code(struct tproc *p)
{
	struct tmaps all, code;
	size_t nr = 0, nr_same = 0;
	check_int(tproc_read_maps(p, &all, NULL), 0);
	check_int(tproc_code_maps(p, &code, NULL), 0);
	for (size_t i = 0; i < all.nr; i++) {
		const struct tmap *m = &all.maps[i];
		const struct tmap *is = tmaps_find(&code, m->start);
		if ((!m->inode && !(m->prot & PROT_EXEC)) || is_gate(m))
			continue;
		nr++;
		if (check_msg(is != NULL, "mapping %#lx", m->start))
			nr_same += is_same(m, is);
	}
	check_int(nr_same, nr);
	check(nr >= 12);
	tmaps_deinit(&all);
	tmaps_deinit(&code);
}

static void found(void *ctx, const struct heap_block *b)
{
	if (b->addr == block)
		++*(unsigned *)ctx;
}

#ifdef __SANITIZE_ADDRESS__
#define NR_BLOCKS 0 /* its heap is not glibc's */
#else
#define NR_BLOCKS 1
#endif

static unsigned nr_found(struct tproc *p)
{
	bool complete = false;
	unsigned nr = 0;
	check_int(heapwalk(p, 4096, 0, 0, NSEC_PER_SEC, found, &nr, &complete,
			   NULL),
		  0);
	check(complete);
	return nr;
}

/* By a call of ours, beside it: one mapping now. */
static void add(struct tproc *p)
{
	const uint64_t args[6] = {
		private + BYTES, BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		(uint64_t)-1};
	int64_t ret = -1;
	check_int(tproc_syscall(p, SYS_mmap, args, &ret, NULL), 0);
	check(ret == (int64_t)args[0]);
}

static void protect(struct tproc *p)
{
	const uint64_t args[6] = {private, BYTES, PROT_READ};
	int64_t ret = -1;
	check_int(tproc_syscall(p, SYS_mprotect, args, &ret, NULL), 0);
	check_int(ret, 0);
}

/* It stands since it was attached to. */
static void test_recent(struct tproc *p)
{
	const struct tmaps *maps;
	size_t nr = 0, nr_there = 0;
	check_int(tproc_recent_maps(p, &maps, NULL), 0);
	const struct tmap *mine = tmaps_find(maps, private);
	for (size_t i = 0; i < maps->nr; i++) {
		nr += !is_gate(&maps->maps[i]);
		nr_there += tproc_has_map(p, &maps->maps[i]);
	}
	check(nr > 20 && mine);
	check_int(nr_there, nr);
	check_code(p);
	check_int(nr_found(p), NR_BLOCKS);

	taddr_t base = 0;
	struct smco_err err = {0};
	const struct tmap *vdso = &maps->maps[maps->nr - 1];
	while (vdso > maps->maps && strcmp(vdso->path, "[vdso]") != 0)
		vdso--;
	check_msg(near_map(p, vdso->start, vdso->end, 64 * TPAGE_SIZE, &base,
			   &err) == 0,
		  "mapped: %s", err.msg);
	check_int(near_unmap(p, base, 64 * TPAGE_SIZE, NULL), 0);
	tproc_forget_maps(p);

	add(p);
	check(tproc_has_map(p, mine));
	check_int(nr_found(p), NR_BLOCKS);
	check_int(p->maps.nr, 0); /* not read since it stands */
	protect(p);
	check(!tproc_has_map(p, mine));
	check_int(nr_found(p), NR_BLOCKS);
	check(p->maps.nr > 0);
}

/* As a kernel before 6.11 does. */
static bool refuse_to_tell(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, ASK_BYTES), 0,
			 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {ARRAY_SIZE(code), code};
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

static void test_without(struct tproc *p)
{
	const struct tmaps *maps;
	check_int(p->recent.nr, 0);
	check_code(p);
	check_int(tproc_recent_maps(p, &maps, NULL), 0);
	check(maps == &p->maps && maps->nr > 20);
	check(tproc_has_map(p, &maps->maps[0]));
	check_int(nr_found(p), NR_BLOCKS);
}

static void attach_and(void (*test)(struct tproc *p), struct tracer *tr,
		       pid_t pid)
{
	struct smco_err err = {0};
	struct tproc *p = traced_attach(tr, pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return;
	test(p);
	tproc_resume_new(p);
	check_int(p->recent.nr, 0);
	check_int(tproc_detach(p, &err), 0);
}

static bool kernel_tells(void)
{
	uint64_t a[ASK_BYTES / 8] = {ASK_BYTES, 16};
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool ret =
		!ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, ASK_BYTES), a);
	close(fd);
	return ret;
}

int main(void)
{
	struct tracer *tr = NULL;
	if (!check_int(chdir(scratch_dir()), 0))
		return tap_done();
	struct puppet pup = puppet_start();
	block = (taddr_t)puppet_do(&pup, act_map, 0, 0);
	private = (taddr_t)puppet_do(&pup, act_private, 0, 0);
	check(block && private == 0x200000000000);
	if (!check_int(tracer_create(&tr, NULL, NULL), 0))
		return tap_done();
	if (kernel_tells())
		attach_and(test_recent, tr, pup.pid);
	else
		tap_skip("Linux before 6.11");
	if (check(refuse_to_tell() && !kernel_tells()))
		attach_and(test_without, tr, pup.pid);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
