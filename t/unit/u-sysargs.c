/* Which memory each kind of system call names, checked call by call against
 * ranges written down by hand; then random arguments. */
#include "t/unit/tap.h"
#include "supervisor/probe/sysargs.h"

#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define A(p) ((uint64_t)(uintptr_t)(p))
#define RD   SYSARG_READ
#define WR   SYSARG_WRITE

static char mem[65536]; /* the caller's memory: real addresses, bounded */

static size_t read_mem(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < A(mem) || addr >= A(mem) + sizeof(mem))
		return 0;
	size_t room = A(mem) + sizeof(mem) - addr;
	if (len > room)
		len = room;
	memcpy(buf, (void *)(uintptr_t)addr, len);
	return len;
}

static struct sysranges r;

static enum sysargs_class run(long nr, uint64_t a, uint64_t b, uint64_t c,
			      uint64_t d, uint64_t e, uint64_t f)
{
	uint64_t args[6] = {a, b, c, d, e, f};
	return sysargs_get(nr, args, 0x7000, read_mem, NULL, &r);
}

static bool has(taddr_t start, uint64_t len, unsigned what)
{
	for (size_t i = 0; i < r.nr; i++)
		if (r.v[i].start == start && r.v[i].end == start + len &&
		    r.v[i].what == what)
			return true;
	for (size_t i = 0; i < r.nr; i++)
		printf("# range %#jx +%#jx what %u\n", (uintmax_t)r.v[i].start,
		       (uintmax_t)(r.v[i].end - r.v[i].start), r.v[i].what);
	return false;
}

static void buffers(void)
{
	check_int(run(SYS_read, 3, 0x1000, 10, 0, 0, 0), SYSARGS_KNOWN);
	check(r.nr == 1 && has(0x1000, 10, WR));
	run(SYS_pwrite64, 3, 0x1000, 10, 0, 0, 0);
	check(r.nr == 1 && has(0x1000, 10, RD));
	run(SYS_read, 3, 0x1000, 0, 0, 0, 0);
	check_int(r.nr, 0);
	run(SYS_read, 3, UINT64_MAX - 5, 100, 0, 0, 0);
	check(r.nr == 1 && r.v[0].end == UINT64_MAX);
	run(SYS_getrandom, 0x5000, 300, 0, 0, 0, 0);
	check(r.nr == 1 && has(0x5000, 300, WR));
	run(SYS_openat, 0, 0x2000, 0, 0, 0, 0);
	check(r.nr == 1 && has(0x2000, 4096, RD | SYSARG_STRING));
	run(SYS_newfstatat, 0, 0x2000, 0x3000, 0, 0, 0);
	check(r.nr == 2 && has(0x3000, 144, WR));
	run(SYS_sendfile, 1, 2, 0x900, 100, 0, 0);
	check(r.nr == 1 && has(0x900, 8, RD | WR));
	run(SYS_splice, 1, 0x910, 2, 0x920, 100, 0);
	check(r.nr == 2 && has(0x910, 8, RD | WR) && has(0x920, 8, RD | WR));
	run(SYS_semop, 1, 0x400, 3, 0, 0, 0);
	check(r.nr == 1 && has(0x400, 18, RD));
	run(SYS_msgsnd, 1, 0x400, 32, 0, 0, 0);
	check(r.nr == 1 && has(0x400, 40, RD));
	check_int(run(SYS_getpid, 1, 2, 3, 4, 5, 6), SYSARGS_KNOWN);
	check_int(r.nr, 0);
}

static void waiting(void)
{
	run(SYS_poll, 0x4000, 3, 0, 0, 0, 0);
	check(r.nr == 1 && has(0x4000, 24, RD | WR));
	run(SYS_poll, 0x4000, 0xffffffff, 0, 0, 0, 0);
	check_int(r.nr, 0);
	run(SYS_epoll_wait, 1, 0x4000, 5, 0, 0, 0);
	check(r.nr == 1 && has(0x4000, 60, WR));
	run(SYS_select, 65, 0x100, 0x200, 0, 0x300, 0);
	check(r.nr == 3 && has(0x100, 16, RD | WR) && has(0x200, 16, RD | WR) &&
	      has(0x300, 16, RD | WR));
	uint64_t set[2] = {0x8800, 8};
	memcpy(mem, set, 16);
	run(SYS_pselect6, 0, 0, 0, 0, 0, A(mem));
	check(r.nr == 2 && has(A(mem), 16, RD) && has(0x8800, 8, RD));
	run(SYS_futex, 0x100, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0x200, 0, 0);
	check(r.nr == 2 && has(0x100, 4, RD | WR) && has(0x200, 16, RD));
	/* a[3] is a number here, not an address */
	run(SYS_futex, 0x100, FUTEX_CMP_REQUEUE_PRIVATE, 1, 0x200, 0x300, 0);
	check(r.nr == 2 && has(0x100, 4, RD | WR) && has(0x300, 4, RD | WR));
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} v[2] = {{0, 0x7700, 2, 0}, {0, 0x7800, 2, 0}};
	memcpy(mem, v, sizeof(v));
	run(449, A(mem), 2, 0, 0, 0, 0);
	check(r.nr == 3 && has(0x7700, 8, RD | WR) && has(0x7800, 8, RD | WR));
}

static void vectors(void)
{
	struct iovec *iov = (struct iovec *)mem;
	for (int i = 0; i < 200; i++)
		iov[i] = (struct iovec){(void *)(uintptr_t)(0x10000 + i * 64),
					(size_t)i};
	check_int(run(SYS_writev, 1, A(iov), 200, 0, 0, 0), SYSARGS_KNOWN);
	check_int(r.nr, 200); /* 199 buffers that are not empty, the array */
	check(has(A(iov), 200 * 16, RD) && has(0x10000 + 199 * 64, 199, RD));
	run(SYS_preadv2, 1, A(iov), 2, 0, 0, 0);
	check(has(0x10040, 1, WR));
	run(SYS_readv, 1, A(iov), 1025, 0, 0, 0);
	check_int(r.nr, 0); /* EINVAL */
	/* an array that runs out of readable memory */
	run(SYS_readv, 1, A(mem) + sizeof(mem) - 32, 10, 0, 0, 0);
	check(r.nr <= 3);

	struct msghdr *m = (struct msghdr *)(mem + 8192);
	*m = (struct msghdr){.msg_name = (void *)0x600,
			     .msg_namelen = 16,
			     .msg_iov = iov + 10,
			     .msg_iovlen = 1,
			     .msg_control = (void *)0x700,
			     .msg_controllen = 24};
	run(SYS_recvmsg, 1, A(m), 0, 0, 0, 0);
	check_int(r.nr, 5);
	check(has(A(m), sizeof(*m), RD | WR) && has(0x600, 16, WR) &&
	      has(0x700, 24, RD | WR) && has(0x10000 + 640, 10, WR));
	run(SYS_sendmsg, 1, A(m), 0, 0, 0, 0);
	check(has(0x600, 16, RD) && has(0x10000 + 640, 10, RD));
	struct mmsghdr *mm = (struct mmsghdr *)(mem + 16384);
	mm[0].msg_hdr = mm[1].msg_hdr = *m;
	mm[1].msg_hdr.msg_iov = iov + 20;
	run(SYS_recvmmsg, 1, A(mm), 2, 0, 0x5500, 0);
	check(has(A(mm), 2 * sizeof(*mm), RD | WR) &&
	      has(0x10000 + 640, 10, WR) && has(0x10000 + 1280, 20, WR) &&
	      has(0x5500, 16, RD | WR));
}

static void sockets(void)
{
	*(uint32_t *)mem = 28;
	run(SYS_recvfrom, 1, 0x800, 100, 0, 0x900, A(mem));
	check(r.nr == 3 && has(0x800, 100, WR) && has(0x900, 28, WR) &&
	      has(A(mem), 4, RD | WR));
	run(SYS_accept, 1, 0, 0, 0, 0, 0);
	check_int(r.nr, 0);
	check_int(
		run(SYS_getsockopt, 1, SOL_SOCKET, SO_ERROR, 0x900, A(mem), 0),
		SYSARGS_KNOWN);
	check(has(0x900, 28, RD | WR));
	check_int(run(SYS_setsockopt, 1, SOL_SOCKET, SO_ATTACH_FILTER, 1, 1, 0),
		  SYSARGS_UNKNOWN);
	check_int(run(SYS_getsockopt, 1, 6, 35, 0x900, A(mem), 0),
		  SYSARGS_UNKNOWN);
}

static void mappings(void)
{
	run(SYS_munmap, 0x10000, 8192, 0, 0, 0, 0);
	check(r.nr == 1 && has(0x10000, 8192, SYSARG_MAP));
	run(SYS_mmap, 0x10000, 8192, 0, MAP_PRIVATE, 0, 0);
	check_int(r.nr, 0);
	run(SYS_mmap, 0x10000, 8192, 0, MAP_PRIVATE | MAP_FIXED, 0, 0);
	check(r.nr == 1 && has(0x10000, 8192, SYSARG_MAP));
	run(SYS_mremap, 0x10000, 8192, 4096, MREMAP_FIXED | MREMAP_MAYMOVE,
	    0x90000, 0);
	check(r.nr == 2 && has(0x10000, 8192, SYSARG_MAP) &&
	      has(0x90000, 4096, SYSARG_MAP));
	run(SYS_brk, 0, 0, 0, 0, 0, 0);
	check_int(r.nr, 0);
	run(SYS_brk, 0x55550000, 0, 0, 0, 0, 0);
	check(r.nr == 1 && r.v[0].what == SYSARG_MAP);
}

static void kept(void)
{
	stack_t ss = {.ss_sp = (void *)0x40000, .ss_size = 8192};
	memcpy(mem, &ss, sizeof(ss));
	run(SYS_sigaltstack, A(mem), 0x50, 0, 0, 0, 0);
	check(has(0x40000, 8192, RD | WR | SYSARG_KEEP));
	ss.ss_flags = SS_DISABLE;
	memcpy(mem, &ss, sizeof(ss));
	run(SYS_sigaltstack, A(mem), 0x50, 0, 0, 0, 0);
	check_int(r.nr, 2);
	run(SYS_set_robust_list, 0x600, 24, 0, 0, 0, 0);
	check(has(0x600, 24, RD | WR | SYSARG_KEEP));
	run(SYS_rt_sigreturn, 0, 0, 0, 0, 0, 0);
	check(r.nr == 1 && r.v[0].start == 0x7000);
}

static void classes(void)
{
	const uint64_t thread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
	check_int(run(SYS_fork, 0, 0, 0, 0, 0, 0), SYSARGS_COPY);
	check_int(run(SYS_execve, 1, 1, 1, 0, 0, 0), SYSARGS_COPY);
	check_int(run(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0), SYSARGS_COPY);
	check_int(run(SYS_clone, CLONE_VM | CLONE_VFORK, 0, 0, 0, 0, 0),
		  SYSARGS_COPY);
	check_int(run(SYS_clone, thread | CLONE_CHILD_CLEARTID, 0, 0, 0x900, 0,
		      0),
		  SYSARGS_KNOWN);
	check(has(0x900, 4, RD | WR | SYSARG_KEEP));
	struct clone_args c = {.flags = thread | CLONE_PARENT_SETTID,
			       .parent_tid = 0xa00};
	memcpy(mem, &c, sizeof(c));
	check_int(run(SYS_clone3, A(mem), sizeof(c), 0, 0, 0, 0),
		  SYSARGS_KNOWN);
	check(has(0xa00, 4, WR));
	c.flags = 0;
	memcpy(mem, &c, sizeof(c));
	check_int(run(SYS_clone3, A(mem), sizeof(c), 0, 0, 0, 0), SYSARGS_COPY);
	check_int(run(SYS_rt_sigaction, SIGSEGV, 0, 0x10, 8, 0, 0),
		  SYSARGS_SIGNAL);
	check_int(run(SYS_rt_sigaction, SIGINT, 0, 0x10, 8, 0, 0),
		  SYSARGS_KNOWN);
	check_int(run(SYS_prctl, PR_SET_PTRACER, 77, 0, 0, 0, 0),
		  SYSARGS_SHOWN);
	check_int(run(SYS_prctl, PR_SET_PTRACER, 0, 0, 0, 0, 0), SYSARGS_KNOWN);
	check_int(run(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, 0, 0),
		  SYSARGS_DIVERT);
	check_int(run(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0, 0),
		  SYSARGS_KNOWN);
	check_int(run(SYS_unshare, 0, 0, 0, 0, 0, 0), SYSARGS_ALONE);
	check_int(run(425, 0, 0, 0, 0, 0, 0), SYSARGS_ASYNC);
	check_int(run(SYS_io_submit, 0, 0, 0, 0, 0, 0), SYSARGS_ASYNC);
	/* what poll or futex, what nanosleep, what clock_nanosleep had */
	check_int(run(SYS_restart_syscall, 0x1000, 3, 0, 0, 0, 0),
		  SYSARGS_KNOWN);
	check(has(0x1000, 24, RD | WR) && has(0x1000, 4, RD | WR));
	run(SYS_restart_syscall, 0x1000, 0x7fff0000, 0, 0x9000, 0, 0);
	check(has(0x7fff0000, 16, WR) && has(0x9000, 16, WR) &&
	      has(0x1000, 4, RD | WR));
	check_int(run(SYS_exit, 0, 0, 0, 0, 0, 0), SYSARGS_EXIT);
	check_int(run(SYS_process_vm_readv, 0, 0, 0, 0, 0, 0), SYSARGS_UNKNOWN);
	check_int(run(SYS_ioctl, 1, 0xdeadbeef, 0x10, 0, 0, 0),
		  SYSARGS_UNKNOWN);
	check_int(run(SYS_ioctl, 1, FIONREAD, 0x10, 0, 0, 0), SYSARGS_KNOWN);
	check_int(run(99999, 0, 0, 0, 0, 0, 0), SYSARGS_UNKNOWN);
	check_int(run(-1, 0, 0, 0, 0, 0, 0), SYSARGS_UNKNOWN);
	check(sysargs_in_flight(SYS_read, (uint64_t)-512));
	check(sysargs_in_flight(SYS_read, (uint64_t)-516));
	check(!sysargs_in_flight(SYS_read, (uint64_t)-4));
	check(!sysargs_in_flight(-1, (uint64_t)-512));
}

/* Whatever the arguments: it ends, its ranges are ordered and bounded. */
static void random_args(void)
{
	bool good = true;
	srandom(42);
	for (int i = 0; i < 200000; i++) {
		uint64_t a[6];
		for (int k = 0; k < 6; k++)
			switch (random() & 3) {
			case 0:
				a[k] = A(mem) + (uint64_t)random() % 66000;
				break;
			case 1:
				a[k] = (uint64_t)random() % 2000;
				break;
			case 2:
				a[k] = (uint64_t)random() << 33;
				break;
			default:
				a[k] = UINT64_MAX - (uint64_t)random() % 99;
			}
		mem[random() % (long)sizeof(mem)] = (char)random();
		sysargs_get(random() % 500, a, a[0], read_mem, NULL, &r);
		for (size_t k = 0; k < r.nr; k++)
			good &= r.v[k].start < r.v[k].end && r.v[k].what;
		good &= r.nr <= 8192;
	}
	check(good);
}

int main(void)
{
	buffers();
	waiting();
	vectors();
	sockets();
	mappings();
	kept();
	classes();
	random_args();
	sysranges_deinit(&r);
	return tap_done();
}
