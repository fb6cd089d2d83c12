#include "supervisor/probe/pagestate.h"

#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <unistd.h>

#define PAGEMAP_PFN	  ((1ULL << 55) - 1)
#define PAGEMAP_EXCLUSIVE (1ULL << 56)
#define PAGEMAP_PRESENT	  (1ULL << 63)
#define PAGES_MAX	  8192
#define WAITING_MAX	  256
#define CHUNK		  512

/* One file for all processes, open as long as we run; -1 = not permitted. */
static int kpageflags(void)
{
	static int fd = -2;
	if (fd == -2)
		fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	return fd;
}

static bool is_waiting(uint64_t pfn)
{
	uint64_t flags;
	if (!pfn || kpageflags() < 0 ||
	    pread(kpageflags(), &flags, sizeof(flags),
		  (off_t)(pfn * sizeof(flags))) != sizeof(flags))
		return false;
	return !(flags >> KPF_LRU & 1);
}

enum page_owner pagestate_owner(int pagemap_fd, taddr_t addr)
{
	uint64_t page;
	if (pread(pagemap_fd, &page, sizeof(page),
		  (off_t)(addr / TPAGE_SIZE * sizeof(page))) != sizeof(page) ||
	    !(page & PAGEMAP_PRESENT))
		return PAGE_ABSENT;
	return page & PAGEMAP_EXCLUSIVE ? PAGE_OWN : PAGE_SHARED;
}

struct pagestate pagestate_get(int pagemap_fd, taddr_t start, taddr_t end)
{
	struct pagestate ret = {0};
	uint64_t buf[CHUNK];
	uint32_t nr_asked = 0;
	if (end - start > PAGES_MAX * TPAGE_SIZE)
		end = start + PAGES_MAX * TPAGE_SIZE;
	while (start < end) {
		size_t pages = (end - start) / TPAGE_SIZE;
		if (pages > CHUNK)
			pages = CHUNK;
		ssize_t got = pread(pagemap_fd, buf, pages * sizeof(*buf),
				    (off_t)(start / TPAGE_SIZE * sizeof(*buf)));
		if (got <= 0)
			break;
		for (size_t i = 0; i < (size_t)got / sizeof(*buf); i++) {
			if (!(buf[i] & PAGEMAP_PRESENT))
				continue;
			if (!(buf[i] & PAGEMAP_EXCLUSIVE))
				ret.nr_shared++;
			else if (nr_asked++ < WAITING_MAX)
				ret.nr_waiting +=
					is_waiting(buf[i] & PAGEMAP_PFN);
		}
		start += pages * TPAGE_SIZE;
	}
	return ret;
}
