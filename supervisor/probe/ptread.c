#include "supervisor/probe/ptread.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "supervisor/probe/bpfload.h"

#define ENTRY_ACCESSED	   (1ULL << 5)
#define GIB_SHIFT	   30
#define DIRECT_MAP_4_LEVEL 0xffff888000000000ULL
#define DIRECT_MAP_5_LEVEL 0xff11000000000000ULL

/* The object file, from bpf-objects.S; empty without clang at build time. */
extern const char ptread_object_start[], ptread_object_end[];

struct ptread {
	unsigned nr_users;
	struct bpf_object *obj;
	int scan_fd, peek_fd, locate_fd, piped_fd; /* owned by obj */
	struct ptread_io *io;
	uint64_t base;
	uint64_t phys_mask;
	unsigned nr_levels;
};

static struct ptread *shared;

static int run(int prog_fd, struct ptread_arg *arg)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = arg,
		    .ctx_size_in = sizeof(*arg));
	int r = bpf_prog_test_run_opts(prog_fd, &opts);
	if (r < 0)
		return SMCO_SYS;
	return arg->status == PTREAD_NO_MM ? SMCO_GONE : 0;
}

static struct ptread_arg arg_for(const struct ptread *pt, int fd)
{
	return (struct ptread_arg){.fd = fd,
				   .base = pt->base,
				   .phys_mask = pt->phys_mask,
				   .nr_levels = pt->nr_levels};
}

static int load(struct ptread *pt, struct smco_err *err)
{
	int r = bpfload(ptread_object_start, ptread_object_end, "accessed bits",
			"BPF program type \"syscall\" and bpf_loop, Linux 5.17",
			&pt->obj, err);
	if (r)
		return r;
	pt->scan_fd = bpfload_prog(pt->obj, "ptread_scan");
	pt->peek_fd = bpfload_prog(pt->obj, "ptread_peek");
	pt->locate_fd = bpfload_prog(pt->obj, "ptread_locate");
	pt->piped_fd = bpfload_prog(pt->obj, "ptread_piped");
	int map_fd = bpf_object__find_map_fd_by_name(pt->obj, "io");
	void *mem = mmap(NULL, sizeof(*pt->io), PROT_READ | PROT_WRITE,
			 MAP_SHARED, map_fd, 0);
	if (mem == MAP_FAILED)
		return smco_fail(err, SMCO_SYS, errno, "cannot map BPF map");
	pt->io = mem;
	return 0;
}

/* How page table entries look: levels and physical address bits. */
static void read_cpuinfo(struct ptread *pt)
{
	unsigned bits = 46;
	pt->nr_levels = 4;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	FILE *f = fopen("/proc/cpuinfo", "re");
	while (f && getline(&line, &size, f) > 0 && line[0] != '\n') {
		unsigned n;
		if (sscanf(line, "address sizes : %u bits physical", &n) == 1 &&
		    n >= 32 && n <= 52)
			bits = n;
		/* The kernel hides the flag when it does not use it. */
		if (!strncmp(line, "flags", 5) && strstr(line, " la57"))
			pt->nr_levels = 5;
	}
	if (f)
		fclose(f);
	pt->phys_mask = ((1ULL << bits) - 1) & ~(TPAGE_SIZE - 1);
}

/* End of physical memory in GiB, rounded up; 64 TiB where it is hidden. */
static uint32_t ram_gib(void)
{
	unsigned long long from, to, end = 0;
	char line[256];
	FILE *f = fopen("/proc/iomem", "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx", &from, &to) == 2 &&
		    strstr(line, "System RAM") && to > end)
			end = to;
	if (f)
		fclose(f);
	end = (end >> GIB_SHIFT) + 1;
	return end > 1 && end < 65536 ? (uint32_t)end : 65536;
}

/* The constant where there is no randomisation, else search. 0 = none. */
static uint64_t locate(struct ptread *pt, int fd)
{
	struct ptread_arg arg = arg_for(pt, fd);
	arg.base = pt->nr_levels == 5 ? DIRECT_MAP_5_LEVEL : DIRECT_MAP_4_LEVEL;
	arg.nr = 1;
	if (!run(pt->locate_fd, &arg) && arg.status == PTREAD_OK)
		return arg.base;
	arg.base = 0;
	arg.nr = ram_gib() + 1;
	if (!run(pt->locate_fd, &arg) && arg.status == PTREAD_OK)
		return arg.base;
	return 0;
}

/* 1 accessed, 0 not, negative: the page is not what it should be. */
static int peek_accessed(struct ptread *pt, int fd, const void *page)
{
	struct ptread_arg arg = arg_for(pt, fd);
	arg.va = (uintptr_t)page;
	memset(pt->io->content, 0, sizeof(pt->io->content));
	if (run(pt->peek_fd, &arg) || arg.leaf_bytes != TPAGE_SIZE)
		return -1;
	return !!(arg.pte & ENTRY_ACCESSED);
}

/* The whole chain on a page of ours. NULL if it holds, else what does not. */
static const char *verify_page(struct ptread *pt, int fd, volatile char *page)
{
	char content[sizeof(pt->io->content)];
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = page[i] = (char)(i * 37 + 11);
	if (peek_accessed(pt, fd, (const void *)page) != 1)
		return "the entry of a page just written has no accessed bit";
	if (memcmp(pt->io->content, content, sizeof(content)))
		return "the entry leads to another page's bytes";
	/* Somebody may touch it in between (an idle page scanner); the bit
	 * must be seen clear once. */
	int accessed = 1;
	for (int i = 0; i < 100 && accessed == 1; i++) {
		if (madvise((void *)page, TPAGE_SIZE, MADV_COLD))
			return "madvise(MADV_COLD) fails (Linux 5.4)";
		accessed = peek_accessed(pt, fd, (const void *)page);
	}
	if (accessed)
		return "MADV_COLD does not clear the accessed bit";
	(void)page[0];
	if (peek_accessed(pt, fd, (const void *)page) != 1)
		return "a load does not set the accessed bit";
	return NULL;
}

/* Frame number of the small page at @page of ours; 0 = there is none. */
static uint64_t frame_of(struct ptread *pt, int fd, const void *page)
{
	struct ptread_arg arg = arg_for(pt, fd);
	arg.va = (uintptr_t)page;
	if (run(pt->peek_fd, &arg) || arg.leaf_bytes != TPAGE_SIZE)
		return 0;
	return (arg.pte & pt->phys_mask) / TPAGE_SIZE;
}

/*
 * Where the kernel's array of struct page begins, from two pages at @mem in the
 * pipe @fds: the frame of one says where, the other must agree.
 */
static uint64_t vmemmap_of(struct ptread *pt, int fd, const int fds[2],
			   char *mem)
{
	struct iovec iov = {.iov_base = mem, .iov_len = 2 * TPAGE_SIZE};
	struct ptread_arg arg = arg_for(pt, fds[0]);
	mem[0] = mem[TPAGE_SIZE] = 1;
	/* In the pipe they do not move. */
	if (vmsplice(fds[1], &iov, 1, SPLICE_F_NONBLOCK) != 2 * TPAGE_SIZE ||
	    run(pt->piped_fd, &arg) || arg.status != PTREAD_OK ||
	    !arg.page_bytes)
		return 0;
	uint64_t frame[] = {frame_of(pt, fd, mem),
			    frame_of(pt, fd, mem + TPAGE_SIZE)};
	uint64_t base = arg.page[0] - frame[0] * arg.page_bytes;
	if (!frame[0] || !frame[1] || frame[0] == frame[1] ||
	    base + frame[1] * arg.page_bytes != arg.page[1] || !(base >> 63) ||
	    base & ((1ULL << GIB_SHIFT) - 1))
		return 0;
	return base;
}

static uint64_t find_vmemmap(struct ptread *pt, int fd)
{
	uint64_t base = 0;
	int fds[2];
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return 0;
	char *mem = mmap(NULL, 2 * TPAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem != MAP_FAILED) {
		madvise(mem, 2 * TPAGE_SIZE, MADV_NOHUGEPAGE);
		base = vmemmap_of(pt, fd, fds, mem);
		munmap(mem, 2 * TPAGE_SIZE);
	}
	close(fds[0]);
	close(fds[1]);
	smco_debug("bits", "array of pages at %#llx%s",
		   (unsigned long long)base,
		   base ? "" : ": what others clear is not seen");
	return base;
}

static int verify(struct ptread *pt, struct smco_err *err)
{
	_cleanup_close_ int fd =
		open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return smco_fail(err, SMCO_SYS, errno,
				 "cannot open /proc/self/pagemap");
	read_cpuinfo(pt);
	pt->base = locate(pt, fd);
	if (!pt->base)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "accessed bits: the kernel's map of physical "
				 "memory was not found (%u-level page tables, "
				 "%u GiB searched)",
				 pt->nr_levels, ram_gib());
	/* A page with neighbours that are never touched stays a small page. */
	char *mem = mmap(NULL, 3 * TPAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return smco_fail(err, SMCO_NOMEM, errno, "cannot map a page");
	const char *why = "no small page to be had";
	if (!madvise(mem, 3 * TPAGE_SIZE, MADV_NOHUGEPAGE) || errno == EINVAL)
		why = verify_page(pt, fd, mem + TPAGE_SIZE);
	munmap(mem, 3 * TPAGE_SIZE);
	smco_debug("bits", "direct map at %#llx, %u levels: %s",
		   (unsigned long long)pt->base, pt->nr_levels,
		   why ? why : "verified");
	if (why)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "accessed bits do not work here: %s", why);
	pt->io->phys_mask = pt->phys_mask;
	pt->io->vmemmap = find_vmemmap(pt, fd);
	return 0;
}

static void destroy(struct ptread *pt)
{
	if (pt->io)
		munmap(pt->io, sizeof(*pt->io));
	bpf_object__close(pt->obj);
	free(pt);
}

int ptread_get(struct ptread **ret, struct smco_err *err)
{
	if (shared) {
		shared->nr_users++;
		*ret = shared;
		return 0;
	}
	struct ptread *pt = calloc(1, sizeof(*pt));
	if (!pt)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	int r = load(pt, err);
	if (!r)
		r = verify(pt, err);
	if (r) {
		destroy(pt);
		return r;
	}
	pt->nr_users = 1;
	*ret = shared = pt;
	return 0;
}

void ptread_put(struct ptread *pt)
{
	if (!pt || --pt->nr_users)
		return;
	shared = NULL;
	destroy(pt);
}

struct ptread_slot *ptread_slots(struct ptread *pt)
{
	return pt->io->slots;
}

bool ptread_sees_aged(const struct ptread *pt)
{
	return pt->io->vmemmap != 0;
}

/* Kernel: MAX_RT_PRIO. */
#define FIRST_NORMAL_PRIO 100

/*
 * Nobody who wakes up gets our CPU while the kernel reads for us, where it is
 * not preemptible: so it reads some 40 us at a time. To ask what is aged takes
 * as long as to look at so many pages.
 */
#define BRIEF_PAGES 8192
#define AGED_PAGES  16

/* So many slots from @first on take one call. */
static size_t brief_nr(const struct ptread_slot *slots, size_t first, size_t nr)
{
	uint64_t pages = 0;
	size_t i = first;
	for (; i < nr && pages < BRIEF_PAGES; i++)
		pages += (slots[i].end - slots[i].start) / TPAGE_SIZE *
			 (slots[i].want_aged ? AGED_PAGES : 1);
	return i - first;
}

/* All slots, some at a time; who runs is asked with the last. */
static int scan_all(struct ptread *pt, size_t nr, struct ptread_arg *arg)
{
	uint32_t want_running = arg->want_running;
	size_t done = 0;
	do {
		size_t some = brief_nr(pt->io->slots, done, nr);
		arg->first = (uint32_t)done;
		arg->nr = (uint32_t)some;
		done += some;
		arg->want_running = done == nr ? want_running : 0;
		int r = run(pt->scan_fd, arg);
		if (r)
			return r;
		if (arg->status != PTREAD_OK)
			return SMCO_SYS;
	} while (done < nr);
	return 0;
}

int ptread_scan(struct ptread *pt, int pagemap_fd, size_t nr,
		struct ptread_mm *mm)
{
	struct ptread_arg arg = arg_for(pt, pagemap_fd);
	for (size_t i = 0; i < nr; i++) {
		struct ptread_slot *s = &pt->io->slots[i];
		s->first_touched = s->touched_end = 0;
		s->nr_present = s->nr_touched = s->nr_huge = s->flags = 0;
		s->nr_aged = s->nr_pinned = 0;
	}
	arg.want_running = mm && mm->want_running;
	arg.displaced = mm ? mm->displaced_tid : 0;
	int r = scan_all(pt, nr, &arg);
	for (size_t i = 0; i < nr; i++)
		pt->io->slots[i].want_aged = 0;
	if (r)
		return r;
	if (mm) {
		mm->task_size = arg.task_size;
		mm->nr_running = arg.nr_running;
		mm->running_cpu = arg.running_prio < FIRST_NORMAL_PRIO
					  ? -1
					  : arg.running_cpu;
		mm->running_tid = arg.running_tid;
		mm->is_displaced = arg.is_displaced;
		mm->cpu_mask = arg.cpu_mask;
	}
	return 0;
}
