#include "supervisor/probe/uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

/* What the program's side of the hand-over needs, in a page of its own. */
struct scratch {
	struct sockaddr_un name;
	struct msghdr msg;
	struct iovec iov;
	char byte[8];
	char control[64];
};

static int64_t in_tracee(struct tproc *p, long nr, uint64_t a, uint64_t b,
			 uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	const uint64_t args[6] = {a, b, c, d, e, f};
	int64_t ret;
	return tproc_syscall(p, nr, args, &ret, NULL) ? -ESRCH : ret;
}

static int listen_somewhere(struct sockaddr_un *name, socklen_t *len)
{
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(name->sun_family);
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* An empty name: the kernel picks a free abstract one. */
	if (s >= 0 && (bind(s, (struct sockaddr *)name, n) || listen(s, 1))) {
		close(s);
		return -1;
	}
	*len = sizeof(*name);
	if (s >= 0)
		getsockname(s, (struct sockaddr *)name, len);
	return s;
}

static int send_fd(int sock, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c;
	struct iovec iov = {(void *)"x", 1};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.buf,
		.msg_controllen = sizeof(c.buf),
	};
	memset(&c, 0, sizeof(c));
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* The device's descriptor in the program, or a negative errno. */
static int64_t hand_over(struct tproc *p, taddr_t page, int dev)
{
	struct scratch s;
	socklen_t len;
	memset(&s, 0, sizeof(s));
	_cleanup_close_ int l = listen_somewhere(&s.name, &len);
	if (l < 0)
		return -errno;
	s.msg.msg_iov =
		(void *)(uintptr_t)(page + offsetof(struct scratch, iov));
	s.msg.msg_iovlen = 1;
	s.msg.msg_control =
		(void *)(uintptr_t)(page + offsetof(struct scratch, control));
	s.msg.msg_controllen = sizeof(s.control);
	s.iov.iov_base =
		(void *)(uintptr_t)(page + offsetof(struct scratch, byte));
	s.iov.iov_len = sizeof(s.byte);
	if (tmem_write(p, page, &s, sizeof(s)))
		return -EFAULT;
	int64_t sock = in_tracee(p, SYS_socket, AF_UNIX,
				 SOCK_STREAM | SOCK_CLOEXEC, 0, 0, 0, 0);
	if (sock < 0)
		return sock;
	/* The listener's queue takes it: connect does not wait. */
	int64_t fd =
		in_tracee(p, SYS_connect, (uint64_t)sock,
			  page + offsetof(struct scratch, name), len, 0, 0, 0);
	if (!fd) {
		_cleanup_close_ int c = accept4(l, NULL, NULL, SOCK_CLOEXEC);
		fd = c < 0 || send_fd(c, dev) ? -errno : 0;
	}
	if (!fd)
		fd = in_tracee(p, SYS_recvmsg, (uint64_t)sock,
			       page + offsetof(struct scratch, msg),
			       MSG_CMSG_CLOEXEC, 0, 0, 0);
	if (fd >= 0) {
		int got;
		fd = -EFAULT;
		if (!tmem_read(p,
			       page + offsetof(struct scratch, control) +
				       CMSG_LEN(0),
			       &got, sizeof(got)))
			fd = got;
	}
	in_tracee(p, SYS_close, (uint64_t)sock, 0, 0, 0, 0, 0);
	return fd;
}

int uffd_by_device(struct tproc *p, int64_t *fd_ret, struct smco_err *err)
{
	_cleanup_close_ int dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return smco_fail(err, SMCO_PERM, errno,
				 "userfaultfd needs CAP_SYS_PTRACE in the "
				 "program, sysctl vm.unprivileged_userfaultfd=1"
				 " or access to /dev/userfaultfd");
	int64_t page =
		in_tracee(p, SYS_mmap, 0, TPAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);
	if (page < 0) {
		*fd_ret = page;
		return 0;
	}
	int64_t fd = hand_over(p, (taddr_t)page, dev);
	if (fd >= 0) {
		*fd_ret = in_tracee(p, SYS_ioctl, (uint64_t)fd,
				    USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK,
				    0, 0, 0);
		in_tracee(p, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	} else {
		*fd_ret = fd;
	}
	in_tracee(p, SYS_munmap, (uint64_t)page, TPAGE_SIZE, 0, 0, 0, 0);
	return 0;
}
