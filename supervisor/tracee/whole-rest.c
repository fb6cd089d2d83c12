/*
 * Which calls a stop cuts short, and what is left of them then. Seen on Linux
 * 6.18 with PTRACE_INTERRUPT (t/fixtures/whole_calls.c does them all): write,
 * writev, send, sendmsg to a blocking pipe, socket or terminal; recv, recvmsg
 * with MSG_WAITALL; reads of /dev/zero and the random devices; getrandom;
 * sendfile but to a pipe; copy_file_range; splice from a pipe to no pipe;
 * sendmmsg, recvmmsg; io_getevents. What is short by nature (splice and
 * sendfile to a pipe, vmsplice, tee: as much as fits at once) is none of these.
 */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

#define MEM_MAJOR	1
#define MEM_ZERO	5
#define MEM_RANDOM	8
#define MEM_URANDOM	9
#define TTY_MAJOR	4
#define TTYAUX_MAJOR	5
#define PTS_MAJOR_FIRST 136
#define PTS_MAJOR_LAST	143

/* The kernel's own limit for one call (MAX_RW_COUNT). */
#define MOST_BYTES (INT32_MAX & ~(uint64_t)(TPAGE_SIZE - 1))
#define MOST_IOV   1024 /* entries of a vector, messages of a call */

/* What a send begins, or what is counted, once: the rest is sent without. */
#define SEND_ONCE (MSG_ZEROCOPY | MSG_FASTOPEN)
#define RECV_ONCE (MSG_DONTWAIT | MSG_OOB | MSG_PEEK | MSG_ERRQUEUE)

/* --- what a descriptor is --- */

static bool is_tty(dev_t dev)
{
	unsigned m = major(dev);
	return m == TTY_MAJOR || m == TTYAUX_MAJOR ||
	       (m >= PTS_MAJOR_FIRST && m <= PTS_MAJOR_LAST);
}

static bool stat_fd(const struct task *t, uint64_t fd, struct stat *st)
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), t->tid, "fd/%d", (int)fd);
	return stat(path, st) == 0;
}

static bool is_nonblocking(const struct task *t, uint64_t fd)
{
	char buf[256];
	uint64_t flags;
	return !proc_fdinfo(t->tid, (int)fd, buf, sizeof(buf)) ||
	       !proc_field_u64(buf, "flags", 8, &flags) || (flags & O_NONBLOCK);
}

/* Bytes without end. */
static bool is_memory(const struct task *t, uint64_t fd)
{
	struct stat st;
	if (!stat_fd(t, fd, &st) || !S_ISCHR(st.st_mode) ||
	    major(st.st_rdev) != MEM_MAJOR)
		return false;
	unsigned m = minor(st.st_rdev);
	return m == MEM_ZERO || m == MEM_RANDOM || m == MEM_URANDOM;
}

static bool is_file(const struct task *t, uint64_t fd)
{
	struct stat st;
	return stat_fd(t, fd, &st) &&
	       (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

static bool is_pipe(const struct task *t, uint64_t fd)
{
	struct stat st;
	return stat_fd(t, fd, &st) && S_ISFIFO(st.st_mode);
}

/* Does a write wait until all has been taken? */
static bool takes_all(const struct task *t, uint64_t fd)
{
	struct stat st;
	return stat_fd(t, fd, &st) &&
	       (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ||
		(S_ISCHR(st.st_mode) && is_tty(st.st_rdev))) &&
	       !is_nonblocking(t, fd);
}

/* --- what is left --- */

struct cut {
	struct task *t;
	long nr;
	uint64_t done;
	taddr_t sp;
	struct arch_whole_rest *rest;
};

/* A buffer in argument @buf, its length in the next. */
static bool rest_of_buffer(struct cut *c, int buf)
{
	uint64_t *len = &c->rest->args[buf + 1];
	if (*len > MOST_BYTES)
		*len = MOST_BYTES;
	if (c->done >= *len)
		return false;
	c->rest->loop = buf ? ARCH_WHOLE_BUF1 : ARCH_WHOLE_BUF0;
	c->rest->args[buf] += c->done;
	*len -= c->done;
	return true;
}

/* Only how much is counted; the kernel has moved on where. */
static bool rest_of_length(struct cut *c, int arg)
{
	uint64_t *len = &c->rest->args[arg];
	if (*len > MOST_BYTES)
		*len = MOST_BYTES;
	if (c->done >= *len)
		return false;
	c->rest->loop = arg == 3 ? ARCH_WHOLE_LEN3 : ARCH_WHOLE_LEN4;
	*len -= c->done;
	return true;
}

static bool rest_of_vector(struct cut *c, taddr_t iov, uint64_t nr,
			   enum arch_whole_loop loop)
{
	struct iovec v[MOST_IOV];
	uint64_t total = 0, before = 0;
	size_t at = 0;

	if (!nr || nr > MOST_IOV ||
	    tmem_read(c->t->proc, iov, v, nr * sizeof(*v)) < 0)
		return false;
	for (size_t i = 0; i < nr; i++) {
		if (v[i].iov_len > MOST_BYTES - total)
			return false;
		total += v[i].iov_len;
	}
	if (c->done >= total)
		return false;
	while (before + v[at].iov_len <= c->done)
		before += v[at++].iov_len;
	c->rest->loop = loop;
	c->rest->base = (uint64_t)(uintptr_t)v[at].iov_base + c->done - before;
	c->rest->len = v[at].iov_len - (c->done - before);
	c->rest->iov = iov + (at + 1) * sizeof(*v);
	c->rest->iov_end = iov + nr * sizeof(*v);
	return true;
}

/*
 * Descriptors go with the first byte, and are there by now; other control data
 * is meant for every byte. Of both the others must be together.
 */
static bool rest_of_control(struct cut *c, const struct msghdr *m)
{
	char buf[512];
	size_t len = m->msg_controllen, from = 0, to = 0;
	if (!m->msg_control || !len)
		return true;
	if (len > sizeof(buf) ||
	    tmem_read(c->t->proc, (taddr_t)(uintptr_t)m->msg_control, buf,
		      len) < 0)
		return false;
	for (size_t at = 0; at + sizeof(struct cmsghdr) <= len;) {
		struct cmsghdr h;
		memcpy(&h, buf + at, sizeof(h));
		if (h.cmsg_len < sizeof(h) || h.cmsg_len > len - at)
			return false;
		size_t next = at + CMSG_ALIGN(h.cmsg_len);
		if (h.cmsg_level != SOL_SOCKET || h.cmsg_type != SCM_RIGHTS) {
			if (to && to != at)
				return false;
			from = to ? from : at;
			to = next < len ? next : len;
		}
		at = next;
	}
	if (to) {
		c->rest->control = (taddr_t)(uintptr_t)m->msg_control + from;
		c->rest->control_len = to - from;
	}
	return true;
}

static int option(struct cut *c, int name)
{
	int v = 0;
	return task_socket_option(c->t, (int)c->rest->args[0], name, &v,
				  sizeof(v)) < 0
		       ? -1
		       : v;
}

static bool is_stream(struct cut *c)
{
	return option(c, SO_TYPE) == SOCK_STREAM;
}

static bool rest_of_sendmsg(struct cut *c)
{
	struct msghdr m;
	return tmem_read(c->t->proc, c->rest->args[1], &m, sizeof(m)) == 0 &&
	       rest_of_control(c, &m) &&
	       rest_of_vector(c, (taddr_t)(uintptr_t)m.msg_iov, m.msg_iovlen,
			      ARCH_WHOLE_MSG);
}

/*
 * As rest_of_vector(), but in one call: where control data ends it, the number
 * of bytes depends on how many were asked for. How much room there is for such
 * data the kernel has overwritten; it is known if @t was looked at before.
 */
static bool rest_with_room(struct cut *c, const struct msghdr *m,
			   bool ends_with_control)
{
	struct arch_whole_rest *r = c->rest;
	taddr_t control = (taddr_t)(uintptr_t)m->msg_control;

	if (c->t->room.msg != r->args[1] || c->t->room.sp != c->sp ||
	    c->t->room.control != control ||
	    !rest_of_vector(c, (taddr_t)(uintptr_t)m->msg_iov, m->msg_iovlen,
			    ARCH_WHOLE_ROOM))
		return false;
	size_t nr = (r->iov_end - r->iov) / sizeof(struct iovec);
	if (nr >= ARRAY_SIZE(r->vector) ||
	    tmem_read(c->t->proc, r->iov, &r->vector[1],
		      nr * sizeof(r->vector[0])) < 0)
		return false;
	r->vector[0] = (struct iovec){(void *)(uintptr_t)r->base, r->len};
	r->nr_vector = nr + 1;
	r->control = control;
	r->control_len = c->t->room.len;
	r->ends_with_control = ends_with_control;
	return true;
}

/* What a local socket brings ends a call; TCP's, which has to be asked for, is
 * about the last bytes. False: of this one that is not known. */
static bool may_bring_control(struct cut *c, bool *ret)
{
	static const int asked[] = {SO_TIMESTAMP, SO_TIMESTAMPNS,
				    SO_TIMESTAMPING};
	int domain = option(c, SO_DOMAIN);

	*ret = domain == AF_UNIX;
	if (*ret)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
		*ret = *ret || option(c, asked[i]);
	return (domain == AF_INET || domain == AF_INET6) &&
	       option(c, SO_PROTOCOL) == IPPROTO_TCP;
}

static bool rest_of_recvmsg(struct cut *c)
{
	bool is_local = option(c, SO_DOMAIN) == AF_UNIX, brings = false;
	struct msghdr m;

	/* Cut short, a local socket tells nothing of control data. */
	if (!is_stream(c) ||
	    tmem_read(c->t->proc, c->rest->args[1], &m, sizeof(m)) < 0 ||
	    (is_local && (m.msg_controllen || (m.msg_flags & MSG_CTRUNC))) ||
	    (m.msg_control && !may_bring_control(c, &brings)))
		return false;
	if (brings)
		return rest_with_room(c, &m, is_local);
	return rest_of_vector(c, (taddr_t)(uintptr_t)m.msg_iov, m.msg_iovlen,
			      ARCH_WHOLE_MSG);
}

/* The last message that counts, on a stream: has it all its bytes? */
static bool rest_of_last(struct cut *c, const struct mmsghdr *last)
{
	const struct msghdr *m = &last->msg_hdr;
	uint64_t all = c->done;

	c->done = last->msg_len;
	bool is_short = rest_of_vector(c, (taddr_t)(uintptr_t)m->msg_iov,
				       m->msg_iovlen, ARCH_WHOLE_PIECE);
	c->done = all;
	return is_short;
}

/* Control data of whole messages that follow is sent with them; of one that
 * is cut, and of those that may be, there must be none but descriptors. */
static bool control_is_simple(struct cut *c, const struct mmsghdr *m, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!rest_of_control(c, &m[i].msg_hdr) || c->rest->control_len)
			return false;
	return true;
}

/* @pulled: what the last one that counts is going to be; NULL = as it is. */
static bool rest_of_batch(struct cut *c, uint64_t last,
			  const struct mmsghdr *pulled)
{
	uint64_t *a = c->rest->args;
	bool sends = c->nr == SYS_sendmmsg;
	struct mmsghdr *m = malloc((a[2] + 1) * sizeof(*m));
	bool ok = m &&
		  tmem_read(c->t->proc, last, m, (a[2] + 1) * sizeof(*m)) == 0;

	c->rest->loop = ARCH_WHOLE_BATCH;
	if (sends || (a[3] & MSG_WAITALL)) {
		c->rest->piece_nr = sends ? SYS_sendmsg : SYS_recvmsg;
		c->rest->piece_flags =
			sends ? a[3] & ~(uint64_t)SEND_ONCE : a[3];
	}
	if (ok && sends)
		ok = control_is_simple(c, m, a[2] + 1);
	for (size_t i = 0; ok && !sends && i <= a[2]; i++)
		ok = !m[i].msg_hdr.msg_control;
	if (pulled)
		m[0] = *pulled;
	bool is_short = ok && c->rest->piece_nr && rest_of_last(c, &m[0]);
	free(m);
	return ok && (is_short || a[2] > 0);
}

/* Whole messages. A stream's last one may be cut itself. */
static bool rest_of_messages(struct cut *c)
{
	uint64_t *a = c->rest->args;
	a[2] = (uint32_t)a[2] < MOST_IOV ? (uint32_t)a[2] : MOST_IOV;
	int type = option(c, SO_TYPE);
	if (c->done > a[2] || type < 0)
		return false;
	struct mmsghdr pulled;
	bool fills = type == SOCK_STREAM && c->nr == SYS_recvmmsg &&
		     (a[3] & MSG_WAITALL);
	if (fills) {
		c->rest->done = c->done;
		if (!whole_find_pull(c->t, a[1], c->rest, &pulled))
			return false;
		c->done = c->rest->done;
	}
	a[1] += c->done * sizeof(struct mmsghdr);
	a[2] -= c->done;
	if (type == SOCK_STREAM)
		return rest_of_batch(c, a[1] - sizeof(struct mmsghdr),
				     fills ? &pulled : NULL);
	c->rest->loop = ARCH_WHOLE_MSGS;
	return a[2] > 0;
}

/* Fewer than were waited for. */
static bool rest_of_events(struct cut *c)
{
	uint64_t *a = c->rest->args;
	if (c->done >= a[1] || a[1] > a[2])
		return false;
	c->rest->loop = ARCH_WHOLE_EVENTS;
	a[1] -= c->done;
	a[2] -= c->done;
	a[3] += c->done * sizeof(struct io_event);
	return true;
}

/* All is submitted, and told by the result. It waits on, with the error that
 * ends it for nobody to see, as ever. */
static bool rest_of_wait(struct cut *c)
{
	uint64_t *a = c->rest->args;
	if (c->done != (uint32_t)a[1] || !(a[3] & IORING_ENTER_GETEVENTS) ||
	    !uring_lacks(c->t, a))
		return false;
	a[1] = 0;
	c->rest->loop = ARCH_WHOLE_BUF1; /* which is over at once */
	return true;
}

static bool rest_of_splice(struct cut *c)
{
	uint64_t *a = c->rest->args, in = a[0], out = a[2];
	if (!is_pipe(c->t, in) || is_pipe(c->t, out) ||
	    !(is_file(c->t, out) || takes_all(c->t, out)))
		return false;
	/* It has moved something: it would not wait for more. */
	a[5] |= SPLICE_F_NONBLOCK;
	return rest_of_length(c, 4);
}

bool whole_rest(struct task *t, const struct user_regs_struct *regs,
		struct arch_whole_rest *ret)
{
	struct cut c = {t, arch.syscall_nr(regs),
			(uint64_t)arch.syscall_ret(regs), arch.sp(regs), ret};
	uint64_t *a = ret->args;

	if (arch.syscall_ret(regs) <= 0)
		return false;
	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < 6; i++)
		a[i] = arch.syscall_arg(regs, i);
	switch (c.nr) {
	case SYS_getrandom:
		return rest_of_buffer(&c, 0);
	case SYS_read:
	case SYS_pread64:
		return is_memory(t, a[0]) && rest_of_buffer(&c, 1);
	case SYS_preadv2:
		return !a[5] && is_memory(t, a[0]) &&
		       rest_of_vector(&c, a[1], a[2], ARCH_WHOLE_IOV);
	case SYS_readv:
	case SYS_preadv:
		return is_memory(t, a[0]) &&
		       rest_of_vector(&c, a[1], a[2], ARCH_WHOLE_IOV);
	case SYS_write:
		return takes_all(t, a[0]) && rest_of_buffer(&c, 1);
	case SYS_pwritev2:
		return !a[5] && takes_all(t, a[0]) &&
		       rest_of_vector(&c, a[1], a[2], ARCH_WHOLE_IOV);
	case SYS_writev:
		return takes_all(t, a[0]) &&
		       rest_of_vector(&c, a[1], a[2], ARCH_WHOLE_IOV);
	case SYS_sendto:
		a[3] &= ~(uint64_t)SEND_ONCE;
		return !(a[3] & MSG_DONTWAIT) && takes_all(t, a[0]) &&
		       rest_of_buffer(&c, 1);
	case SYS_sendmsg:
		a[2] &= ~(uint64_t)SEND_ONCE;
		return !(a[2] & MSG_DONTWAIT) && takes_all(t, a[0]) &&
		       rest_of_sendmsg(&c);
	case SYS_sendmmsg:
		return !(a[3] & MSG_DONTWAIT) && takes_all(t, a[0]) &&
		       rest_of_messages(&c);
	case SYS_recvfrom:
		return (a[3] & MSG_WAITALL) && !(a[3] & RECV_ONCE) &&
		       takes_all(t, a[0]) && is_stream(&c) &&
		       rest_of_buffer(&c, 1);
	case SYS_recvmsg:
		return (a[2] & MSG_WAITALL) && !(a[2] & RECV_ONCE) &&
		       takes_all(t, a[0]) && rest_of_recvmsg(&c);
	case SYS_recvmmsg:
		return !(a[3] & (RECV_ONCE | MSG_WAITFORONE)) &&
		       takes_all(t, a[0]) && rest_of_messages(&c);
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return rest_of_events(&c);
	case SYS_io_uring_enter:
		return rest_of_wait(&c);
	case SYS_sendfile:
		return (is_file(t, a[1]) || is_memory(t, a[1])) &&
		       !is_pipe(t, a[0]) &&
		       (is_file(t, a[0]) || takes_all(t, a[0])) &&
		       rest_of_length(&c, 3);
	case SYS_copy_file_range:
		return rest_of_length(&c, 4);
	case SYS_splice:
		return rest_of_splice(&c);
	default:
		return false;
	}
}
