/*
 * The table says what most calls touch; the few whose arguments mean
 * different things for different values are decided here. Values are those
 * of the x86-64 system call interface, which does not change.
 */
#include "supervisor/probe/sysargs.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define NR_MAX		480
#define IOV_MAX_KERNEL	1024 /* UIO_MAXIOV: more is EINVAL */
#define RANGES_MAX	8192 /* beyond: give up, call it unknown */
#define PATH_MAX_KERNEL 4096
/* What rt_sigreturn may read above the stack pointer: the frame and the
 * largest xsave area. */
#define SIGFRAME_MAX (16 << 10)

enum kind {
	K_NONE,
	K_FIX,
	K_BUF,
	K_ARR,
	K_STR,
	K_IOV,
	K_MSG,
	K_MMSG,
	K_VAL,
	K_BITS,
};

enum desc_class {
	D_UNKNOWN, /* zero: calls that are not in the table */
	D_KNOWN,
	D_SPECIAL,
	D_COPY,
	D_ALONE,
	D_ASYNC,
	D_EXIT,
};

struct desc_arg {
	uint8_t arg;
	uint8_t kind;
	uint8_t what;
	uint16_t n;
};

struct desc {
	uint8_t class;
	struct desc_arg a[5];
};

static const struct desc table[NR_MAX] = {
#include "supervisor/probe/sysargs_table.inc"
};

struct walk {
	const uint64_t *args;
	sysargs_read_fn read;
	void *ctx;
	struct sysranges *out;
	bool overflow;
};

void sysranges_deinit(struct sysranges *r)
{
	free(r->v);
	memset(r, 0, sizeof(*r));
}

static void add(struct walk *w, taddr_t start, uint64_t len, unsigned what)
{
	struct sysranges *r = w->out;
	if (!start || !len || start == UINT64_MAX)
		return;
	if (r->nr == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 16;
		struct sysrange *v = cap > RANGES_MAX
					     ? NULL
					     : realloc(r->v, cap * sizeof(*v));
		if (!v) {
			w->overflow = true;
			return;
		}
		r->v = v;
		r->cap = cap;
	}
	taddr_t end = start + len < start ? UINT64_MAX : start + len;
	r->v[r->nr++] = (struct sysrange){start, end, what};
}

static bool get(struct walk *w, taddr_t addr, void *buf, size_t len)
{
	return w->read(w->ctx, addr, buf, len) == len;
}

/* The length argument is a size_t for buffers, an int for counts. */
static uint64_t count_arg(struct walk *w, unsigned n)
{
	int32_t v = (int32_t)w->args[n & 7];
	return v < 0 ? 0 : (uint64_t)v;
}

static void walk_iov(struct walk *w, taddr_t addr, uint64_t nr, unsigned what)
{
	struct iovec iov[64];
	if (nr > IOV_MAX_KERNEL)
		return; /* EINVAL before anything is touched */
	add(w, addr, nr * sizeof(iov[0]), SYSARG_READ);
	while (nr && !w->overflow) {
		size_t n = nr < 64 ? nr : 64;
		n = w->read(w->ctx, addr, iov, n * sizeof(iov[0])) /
		    sizeof(iov[0]);
		for (size_t i = 0; i < n; i++)
			add(w, (taddr_t)(uintptr_t)iov[i].iov_base,
			    iov[i].iov_len, what);
		if (!n)
			return;
		addr += n * sizeof(iov[0]);
		nr -= n;
	}
}

static void walk_msg(struct walk *w, taddr_t addr, unsigned what)
{
	struct msghdr m;
	unsigned self =
		what & SYSARG_WRITE ? SYSARG_READ | SYSARG_WRITE : SYSARG_READ;
	add(w, addr, sizeof(m), self);
	if (!get(w, addr, &m, sizeof(m)))
		return;
	add(w, (taddr_t)(uintptr_t)m.msg_name, m.msg_namelen, what);
	add(w, (taddr_t)(uintptr_t)m.msg_control, m.msg_controllen, self);
	walk_iov(w, (taddr_t)(uintptr_t)m.msg_iov, m.msg_iovlen, what);
}

static void walk_mmsg(struct walk *w, taddr_t addr, uint64_t nr, unsigned what)
{
	if (nr > IOV_MAX_KERNEL)
		nr = IOV_MAX_KERNEL; /* the kernel cuts it there too */
	add(w, addr, nr * sizeof(struct mmsghdr), SYSARG_READ | SYSARG_WRITE);
	for (uint64_t i = 0; i < nr && !w->overflow; i++)
		walk_msg(w, addr + i * sizeof(struct mmsghdr), what);
}

static void walk_arg(struct walk *w, const struct desc_arg *d)
{
	const uint64_t *a = w->args;
	taddr_t addr = a[d->arg];
	uint32_t len;
	switch ((enum kind)d->kind) {
	case K_NONE:
		return;
	case K_FIX:
		add(w, addr, d->n, d->what);
		return;
	case K_BUF:
		add(w, addr, a[d->n], d->what);
		return;
	case K_ARR:
		add(w, addr, count_arg(w, d->n) * (d->n >> 3), d->what);
		return;
	case K_STR:
		add(w, addr, PATH_MAX_KERNEL, d->what | SYSARG_STRING);
		return;
	case K_IOV:
		walk_iov(w, addr, a[d->n], d->what);
		return;
	case K_MSG:
		walk_msg(w, addr, d->what);
		return;
	case K_MMSG:
		walk_mmsg(w, addr, (uint32_t)a[d->n], d->what);
		return;
	case K_VAL:
		if (addr && get(w, a[d->n], &len, sizeof(len)))
			add(w, addr, len, d->what);
		return;
	case K_BITS:
		add(w, addr, (count_arg(w, d->n) + 63) / 64 * 8, d->what);
		return;
	}
}

static enum sysargs_class special_fcntl(struct walk *w)
{
	switch ((uint32_t)w->args[1]) {
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		add(w, w->args[2], 32, SYSARG_READ | SYSARG_WRITE);
		return SYSARGS_KNOWN;
	case F_SETOWN_EX:
	case F_GETOWN_EX:
	case F_GET_RW_HINT:
	case F_SET_RW_HINT:
	case F_GET_FILE_RW_HINT:
	case F_SET_FILE_RW_HINT:
		add(w, w->args[2], 8, SYSARG_READ | SYSARG_WRITE);
		return SYSARGS_KNOWN;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_GETFD:
	case F_SETFD:
	case F_GETFL:
	case F_SETFL:
	case F_GETOWN:
	case F_SETOWN:
	case F_GETSIG:
	case F_SETSIG:
	case F_GETLEASE:
	case F_SETLEASE:
	case F_NOTIFY:
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
	case F_ADD_SEALS:
	case F_GET_SEALS:
		return SYSARGS_KNOWN;
	default:
		return SYSARGS_UNKNOWN;
	}
}

static enum sysargs_class special_ioctl(struct walk *w)
{
	switch ((uint32_t)w->args[1]) {
	case TCGETS:
		add(w, w->args[2], 60, SYSARG_WRITE);
		return SYSARGS_KNOWN;
	case TIOCGWINSZ:
		add(w, w->args[2], 8, SYSARG_WRITE);
		return SYSARGS_KNOWN;
	case FIONREAD:
	case TIOCGPGRP:
		add(w, w->args[2], 4, SYSARG_WRITE);
		return SYSARGS_KNOWN;
	case FIONBIO:
	case FIOASYNC:
		add(w, w->args[2], 4, SYSARG_READ);
		return SYSARGS_KNOWN;
	case FIOCLEX:
	case FIONCLEX:
		return SYSARGS_KNOWN;
	default:
		return SYSARGS_UNKNOWN; /* a driver's own */
	}
}

static enum sysargs_class special_sockopt(struct walk *w, bool set)
{
	uint32_t level = (uint32_t)w->args[1], opt = (uint32_t)w->args[2];
	/* Filters and netfilter tables hold pointers, zero-copy receive an
	 * address. */
	if (level == SOL_SOCKET)
		return set && (opt == SO_ATTACH_FILTER ||
			       opt == SO_ATTACH_REUSEPORT_CBPF)
			       ? SYSARGS_UNKNOWN
			       : SYSARGS_KNOWN;
	if (level == 6 /* IPPROTO_TCP */)
		return !set && opt == 35 ? SYSARGS_UNKNOWN : SYSARGS_KNOWN;
	if (level == 0 /* IPPROTO_IP */ || level == 41 /* IPPROTO_IPV6 */)
		return opt >= 64 ? SYSARGS_UNKNOWN : SYSARGS_KNOWN;
	if (level == SOL_NETLINK || level == 17 /* IPPROTO_UDP */)
		return SYSARGS_KNOWN;
	return SYSARGS_UNKNOWN;
}

static enum sysargs_class special_mmap(struct walk *w)
{
	if ((uint32_t)w->args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		add(w, w->args[0], w->args[1], SYSARG_MAP);
	return SYSARGS_KNOWN;
}

static enum sysargs_class special_mremap(struct walk *w)
{
	if ((uint32_t)w->args[3] & MREMAP_FIXED)
		add(w, w->args[4], w->args[2], SYSARG_MAP);
	/* Old length 0 copies a shared mapping; growing in place touches what
	 * lies behind no more than the old range does. */
	return SYSARGS_KNOWN;
}

static enum sysargs_class special_brk(struct walk *w)
{
	/* Everything above the new end may go; the break's area is never
	 * larger than this, and mappings far above it are left alone. */
	add(w, w->args[0], 1ULL << 40, SYSARG_MAP);
	return SYSARGS_KNOWN;
}

static enum sysargs_class special_clone(struct walk *w, uint64_t flags,
					taddr_t stack_top, taddr_t tls,
					taddr_t parent_tid, taddr_t child_tid)
{
	if (!(flags & CLONE_VM) || !(flags & CLONE_THREAD) ||
	    !(flags & CLONE_SIGHAND))
		return SYSARGS_COPY;
	/* Signals may be delivered there, rseq and lists lie there. */
	if (stack_top)
		add(w, stack_top - 1, 1, SYSARG_STACK);
	if (flags & CLONE_SETTLS)
		add(w, tls, THREAD_AREA_BYTES, SYSARG_KEEP);
	if (flags & (CLONE_PARENT_SETTID | CLONE_PIDFD))
		add(w, parent_tid, 4, SYSARG_WRITE);
	if (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID))
		add(w, child_tid, 4, SYSARG_READ | SYSARG_WRITE | SYSARG_KEEP);
	return SYSARGS_KNOWN;
}

static enum sysargs_class special_clone3(struct walk *w)
{
	struct clone_args c;
	uint64_t len = w->args[1];
	memset(&c, 0, sizeof(c));
	if (len > sizeof(c))
		return SYSARGS_COPY; /* newer than this code */
	add(w, w->args[0], len, SYSARG_READ);
	if (len < 64 || !get(w, w->args[0], &c, len))
		return SYSARGS_KNOWN; /* EINVAL or EFAULT */
	if (c.set_tid)
		add(w, c.set_tid, 4 * 32, SYSARG_READ);
	if (c.flags & CLONE_PIDFD)
		add(w, c.pidfd, 4, SYSARG_WRITE);
	return special_clone(w, c.flags & ~(uint64_t)CLONE_PIDFD,
			     c.stack + c.stack_size, c.tls, c.parent_tid,
			     c.child_tid);
}

static enum sysargs_class special_prctl(struct walk *w)
{
	switch ((uint32_t)w->args[0]) {
	case PR_SET_NAME:
		add(w, w->args[1], 16, SYSARG_READ);
		return SYSARGS_KNOWN;
	case PR_GET_NAME:
		add(w, w->args[1], 16, SYSARG_WRITE);
		return SYSARGS_KNOWN;
	case PR_GET_PDEATHSIG:
	case PR_GET_CHILD_SUBREAPER:
		add(w, w->args[1], 4, SYSARG_WRITE);
		return SYSARGS_KNOWN;
	case PR_SET_VMA:
		add(w, w->args[2], w->args[3], SYSARG_MAP);
		add(w, w->args[4], 80, SYSARG_READ | SYSARG_STRING);
		return SYSARGS_KNOWN;
	case PR_SET_PDEATHSIG:
	case PR_GET_DUMPABLE:
	case PR_SET_DUMPABLE:
	case PR_GET_KEEPCAPS:
	case PR_SET_KEEPCAPS:
	case PR_CAPBSET_READ:
	case PR_CAPBSET_DROP:
	case PR_SET_TIMERSLACK:
	case PR_GET_TIMERSLACK:
	case PR_SET_CHILD_SUBREAPER:
	case PR_SET_NO_NEW_PRIVS:
	case PR_GET_NO_NEW_PRIVS:
	case PR_GET_SECCOMP:
	case PR_SET_THP_DISABLE:
	case PR_GET_THP_DISABLE:
	case PR_CAP_AMBIENT:
		return SYSARGS_KNOWN;
	case PR_SET_PTRACER:
		return w->args[1] ? SYSARGS_SHOWN : SYSARGS_KNOWN;
	case PR_SET_SYSCALL_USER_DISPATCH:
		return w->args[1] ? SYSARGS_DIVERT : SYSARGS_KNOWN;
	default:
		return SYSARGS_UNKNOWN;
	}
}

static enum sysargs_class special_arch_prctl(struct walk *w)
{
	switch ((uint32_t)w->args[0]) {
	case 0x1001: /* ARCH_SET_GS */
	case 0x1002: /* ARCH_SET_FS */
		return SYSARGS_KNOWN;
	case 0x1003: /* ARCH_GET_FS */
	case 0x1004: /* ARCH_GET_GS */
		add(w, w->args[1], 8, SYSARG_WRITE);
		return SYSARGS_KNOWN;
	default:
		return SYSARGS_UNKNOWN;
	}
}

static enum sysargs_class special_futex(struct walk *w)
{
	const uint64_t *a = w->args;
	const unsigned rw = SYSARG_READ | SYSARG_WRITE;
	add(w, a[0], 4, rw);
	switch ((uint32_t)a[1] & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		add(w, a[3], 16, SYSARG_READ);
		return SYSARGS_KNOWN;
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
	case FUTEX_UNLOCK_PI:
	case FUTEX_TRYLOCK_PI:
	case FUTEX_FD:
		return SYSARGS_KNOWN;
	case FUTEX_WAIT_REQUEUE_PI:
		add(w, a[3], 16, SYSARG_READ);
		add(w, a[4], 4, rw);
		return SYSARGS_KNOWN;
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_CMP_REQUEUE_PI:
	case FUTEX_WAKE_OP:
		add(w, a[4], 4, rw);
		return SYSARGS_KNOWN;
	default:
		return SYSARGS_UNKNOWN;
	}
}

static enum sysargs_class special_futex_waitv(struct walk *w)
{
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} v;
	uint64_t nr = count_arg(w, 1);
	for (uint64_t i = 0; i < nr && i < 128; i++) {
		if (!get(w, w->args[0] + i * sizeof(v), &v, sizeof(v)))
			break;
		add(w, v.uaddr, 8, SYSARG_READ | SYSARG_WRITE);
	}
	return SYSARGS_KNOWN;
}

static enum sysargs_class special_pselect(struct walk *w)
{
	uint64_t set[2]; /* address and size of the signal mask */
	if (w->args[5] && get(w, w->args[5], set, sizeof(set)))
		add(w, set[0], set[1], SYSARG_READ);
	return SYSARGS_KNOWN;
}

static enum sysargs_class special_sigaltstack(struct walk *w)
{
	stack_t ss;
	if (w->args[0] && get(w, w->args[0], &ss, sizeof(ss)) &&
	    !(ss.ss_flags & SS_DISABLE))
		add(w, (taddr_t)(uintptr_t)ss.ss_sp, ss.ss_size,
		    SYSARG_READ | SYSARG_WRITE | SYSARG_KEEP);
	return SYSARGS_KNOWN;
}

/* The length says bytes of text; a long stands before them. */
static enum sysargs_class special_msg(struct walk *w, unsigned what)
{
	if (w->args[2] <= UINT32_MAX)
		add(w, w->args[1], w->args[2] + 8, what);
	return SYSARGS_KNOWN;
}

/*
 * Goes on with nanosleep, clock_nanosleep, poll or futex; which one is known
 * to the kernel alone, but the registers still hold its arguments.
 */
static enum sysargs_class special_restart(struct walk *w)
{
	const uint64_t *a = w->args;
	const unsigned rw = SYSARG_READ | SYSARG_WRITE;
	const uint64_t max_poll = 1 << 20; /* above: not a count */
	add(w, a[0], a[1] <= max_poll ? a[1] * 8 : 4, rw);
	add(w, a[0], 4, rw);
	add(w, a[1], 16, SYSARG_WRITE);
	add(w, a[3], 16, SYSARG_WRITE);
	return SYSARGS_KNOWN;
}

static enum sysargs_class special(struct walk *w, long nr, taddr_t sp)
{
	switch (nr) {
	case SYS_fcntl:
		return special_fcntl(w);
	case SYS_ioctl:
		return special_ioctl(w);
	case SYS_setsockopt:
		return special_sockopt(w, true);
	case SYS_getsockopt:
		return special_sockopt(w, false);
	case SYS_mmap:
		return special_mmap(w);
	case SYS_mremap:
		return special_mremap(w);
	case SYS_mincore:
		add(w, w->args[2], (w->args[1] + 4095) / 4096, SYSARG_WRITE);
		return SYSARGS_KNOWN;
	case SYS_brk:
		return special_brk(w);
	case SYS_clone:
		return special_clone(w, w->args[0], w->args[1], w->args[4],
				     w->args[2], w->args[3]);
	case SYS_clone3:
		return special_clone3(w);
	case SYS_prctl:
		return special_prctl(w);
	case SYS_arch_prctl:
		return special_arch_prctl(w);
	case SYS_futex:
		return special_futex(w);
	case 449:
		return special_futex_waitv(w);
	case SYS_pselect6:
		return special_pselect(w);
	case SYS_rt_sigaction:
		return (uint32_t)w->args[0] == SIGSEGV ? SYSARGS_SIGNAL
						       : SYSARGS_KNOWN;
	case SYS_rt_sigreturn:
		add(w, sp, SIGFRAME_MAX, SYSARG_READ);
		return SYSARGS_KNOWN;
	case SYS_sigaltstack:
		return special_sigaltstack(w);
	case SYS_restart_syscall:
		return special_restart(w);
	case SYS_msgsnd:
		return special_msg(w, SYSARG_READ);
	case SYS_msgrcv:
		return special_msg(w, SYSARG_WRITE);
	default:
		return SYSARGS_UNKNOWN;
	}
}

enum sysargs_class sysargs_get(long nr, const uint64_t args[6], taddr_t sp,
			       sysargs_read_fn read, void *ctx,
			       struct sysranges *ret)
{
	struct walk w = {.args = args, .read = read, .ctx = ctx, .out = ret};
	enum sysargs_class class = SYSARGS_KNOWN;
	ret->nr = 0;
	if (nr < 0 || nr >= NR_MAX)
		return SYSARGS_UNKNOWN;
	const struct desc *d = &table[nr];
	switch ((enum desc_class)d->class) {
	case D_UNKNOWN:
		return SYSARGS_UNKNOWN;
	case D_COPY:
		return SYSARGS_COPY;
	case D_ALONE:
		return SYSARGS_ALONE;
	case D_ASYNC:
		return SYSARGS_ASYNC;
	case D_EXIT:
		return SYSARGS_EXIT;
	case D_KNOWN:
	case D_SPECIAL:
		break;
	}
	for (size_t i = 0; i < ARRAY_SIZE(d->a); i++)
		walk_arg(&w, &d->a[i]);
	if (d->class == D_SPECIAL)
		class = special(&w, nr, sp);
	return w.overflow ? SYSARGS_UNKNOWN : class;
}

bool sysargs_in_flight(long nr, uint64_t result)
{
	if (nr < 0)
		return false;
	switch (-(int64_t)result) {
	case 38:  /* ENOSYS: before the call has begun */
	case 512: /* ERESTARTSYS */
	case 513: /* ERESTARTNOINTR */
	case 514: /* ERESTARTNOHAND */
	case 516: /* ERESTART_RESTARTBLOCK */
		return true;
	default:
		return false;
	}
}
