/* The only reader and writer of tracee memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"

static int mem_fd(struct tproc *p)
{
	if (p->mem_fd >= 0 || p->execed)
		return p->mem_fd;
	/* Any live task will do; the leader may have ended. */
	for (struct task *t = tproc_first_task(p); t; t = task_next(t)) {
		char path[PROCFS_PATH];
		procfs_path(path, sizeof(path), t->tid, "mem");
		p->mem_fd = open(path, O_RDWR | O_CLOEXEC);
		if (p->mem_fd < 0)
			p->mem_fd = open(path, O_RDONLY | O_CLOEXEC);
		if (p->mem_fd >= 0)
			break;
	}
	return p->mem_fd;
}

static bool in_user_half(taddr_t addr, size_t len)
{
	return addr < 1ULL << 56 && len < 1ULL << 56;
}

/* *@gone_ret: there is no memory any more, its last user has ended. */
static size_t read_some(struct tproc *p, taddr_t addr, void *buf, size_t len,
			bool *gone_ret)
{
	size_t done = 0;
	int fd = mem_fd(p);

	*gone_ret = false;
	if (!in_user_half(addr, len))
		return 0;
	while (done < len) {
		ssize_t n;
		if (fd >= 0) {
			n = pread(fd, (char *)buf + done, len - done,
				  (off_t)(addr + done));
		} else {
			struct iovec mine = {(char *)buf + done, len - done};
			struct iovec theirs = {(void *)(uintptr_t)(addr + done),
					       len - done};
			n = process_vm_readv(p->pid, &mine, 1, &theirs, 1, 0);
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* /proc/PID/mem: an error where nothing is mapped, the
			 * end of the file where no memory is. */
			*gone_ret = n == 0 || errno == ESRCH;
			break;
		}
		done += (size_t)n;
	}
	return done;
}

size_t tmem_read_some(struct tproc *p, taddr_t addr, void *buf, size_t len)
{
	bool gone;
	return read_some(p, addr, buf, len, &gone);
}

size_t tmem_read_readable(struct tproc *p, taddr_t addr, void *buf, size_t len)
{
	struct iovec mine = {buf, len};
	struct iovec theirs = {(void *)(uintptr_t)addr, len};
	ssize_t n =
		process_vm_readv(tproc_live_tid(p), &mine, 1, &theirs, 1, 0);
	return n < 0 ? tmem_read_some(p, addr, buf, len) : (size_t)n;
}

int tmem_read(struct tproc *p, taddr_t addr, void *buf, size_t len)
{
	bool gone;
	if (read_some(p, addr, buf, len, &gone) == len)
		return 0;
	return gone || p->execed || !tproc_first_task(p) ? SMCO_GONE
							 : SMCO_FAULT;
}

int tmem_read_words(struct tproc *p, const taddr_t *at, size_t nr,
		    uint32_t *ret)
{
	struct iovec theirs[256];
	size_t done = 0;

	while (done < nr) {
		size_t some = nr - done < ARRAY_SIZE(theirs)
				      ? nr - done
				      : ARRAY_SIZE(theirs);
		struct iovec mine = {ret + done, some * sizeof(*ret)};
		for (size_t i = 0; i < some; i++)
			theirs[i] = (struct iovec){
				(void *)(uintptr_t)at[done + i], sizeof(*ret)};
		ssize_t n = process_vm_readv(tproc_live_tid(p), &mine, 1,
					     theirs, some, 0);
		if (n >= (ssize_t)sizeof(*ret)) {
			done += (size_t)n / sizeof(*ret);
			continue;
		}
		int r = tmem_read(p, at[done], ret + done, sizeof(*ret));
		if (r < 0)
			return r;
		done++;
	}
	return 0;
}

bool tproc_memory_gone(struct tproc *p)
{
	uint8_t byte;
	bool gone;
	read_some(p, 0, &byte, 1, &gone);
	return gone || p->execed;
}

static struct task *any_stopped(struct tproc *p)
{
	for (struct task *t = p->tasks; t; t = t->next)
		if (t->state == TASK_STOPPED)
			return t;
	return NULL;
}

/* Word by word through ptrace, which may write where /proc/PID/mem may not. */
static int poke(struct tproc *p, taddr_t addr, const void *buf, size_t len)
{
	struct task *t = any_stopped(p);
	if (!t)
		return SMCO_FAULT;
	const char *src = buf;
	while (len) {
		taddr_t word_addr = addr & ~7ULL;
		size_t off = addr - word_addr;
		size_t n = 8 - off < len ? 8 - off : len;
		errno = 0;
		long word = ptrace(PTRACE_PEEKTEXT, t->tid,
				   (void *)(uintptr_t)word_addr, NULL);
		if (errno)
			return errno == ESRCH ? SMCO_GONE : SMCO_FAULT;
		memcpy((char *)&word + off, src, n);
		if (ptrace(PTRACE_POKETEXT, t->tid,
			   (void *)(uintptr_t)word_addr, word) < 0)
			return errno == ESRCH ? SMCO_GONE : SMCO_FAULT;
		addr += n;
		src += n;
		len -= n;
	}
	return 0;
}

int tmem_write(struct tproc *p, taddr_t addr, const void *buf, size_t len)
{
	size_t done = 0;
	int fd = mem_fd(p);

	if (!in_user_half(addr, len))
		return SMCO_FAULT;
	while (fd >= 0 && done < len) {
		ssize_t n = pwrite(fd, (const char *)buf + done, len - done,
				   (off_t)(addr + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == len)
		return 0;
	if (!tproc_first_task(p))
		return SMCO_GONE;
	return poke(p, addr + done, (const char *)buf + done, len - done);
}
