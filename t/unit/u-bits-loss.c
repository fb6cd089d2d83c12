/*
 * What a program that is reset loses: a process that walks says so, and one
 * that loses a known time for each page and each range is believed.
 */
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reports/base.h"
#include "supervisor/probe/bits-loss.h"
#include "t/fixtures/own-syscall.h"
#include "t/unit/tap.h"

#define PAGE_LOSS_NS  12000
#define RANGE_LOSS_NS 30000
/* Resets of a measurement that takes what it sees for a loss. */
#define MEASUREMENT 32

struct scene {
	struct loss_walk walk;
	volatile uint64_t to_lose_ns; /* of the one who only seems to walk */
	bool is_fake;
	unsigned resets, dear; /* the first so many are, only they */
};

static struct scene *scene;

/* What MADV_COLD would make a program lose, where that is asked for. */
static long seem_to_reset(const struct iovec *v, size_t n)
{
	uint64_t ns = 0;
	long bytes = 0;
	for (size_t i = 0; i < n; i++) {
		ns += RANGE_LOSS_NS + v[i].iov_len / 4096 * PAGE_LOSS_NS;
		bytes += (long)v[i].iov_len;
	}
	if (scene->resets++ < scene->dear)
		scene->to_lose_ns = ns;
	return bytes;
}

/* The C library's, as the measured code calls it. */
long syscall(long nr, ...)
{
	long a[6];
	va_list ap;
	va_start(ap, nr);
	own_syscall_args(ap, a);
	va_end(ap);
	if (nr == SYS_process_madvise && scene && scene->is_fake)
		return seem_to_reset((const struct iovec *)a[1], (size_t)a[2]);
	return own_syscall(nr, a);
}

static void seem_to_walk(void)
{
	scene->walk.pid = getpid();
	while (!scene->walk.over) {
		uint64_t until = smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID) +
				 scene->to_lose_ns;
		scene->to_lose_ns = 0;
		while (smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
			;
		scene->walk.steps++;
	}
}

static void split(double single_ns, double in_range_ns, uint64_t range_ns,
		  uint64_t touch_ns)
{
	struct bits_loss loss;
	bits_loss_split(single_ns, in_range_ns, &loss);
	check_int((long)loss.range_ns, (long)range_ns);
	check_int((long)loss.touch_ns, (long)touch_ns);
}

/* A process that walks on our CPU, until it is told that it is over. */
static bool measure(unsigned dear, uint64_t enough_ns, struct bits_loss *ret)
{
	bool is_fake = dear;
	char *mem = mmap(NULL, LOSS_MEM_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int status = -1;
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
	*scene = (struct scene){.is_fake = is_fake, .dear = dear};
	pid_t pid = fork();
	if (!pid) {
		if (is_fake)
			seem_to_walk();
		else
			loss_walk(&scene->walk, mem);
		_exit(scene->walk.steps ? 0 : 1);
	}
	int pidfd = (int)syscall(SYS_pidfd_open, (long)pid, 0L, 0L, 0L, 0L, 0L);
	while (!scene->walk.steps)
		usleep(1000);
	bool told = loss_measure(&scene->walk, pidfd, mem, enough_ns, ret);
	check_int((long)scene->walk.over, 1);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	close(pidfd);
	munmap(mem, LOSS_MEM_BYTES);
	return told;
}

/* On a busy machine rounds differ, and too little is said then. */
static void measure_known(void)
{
	struct bits_loss loss = {0, 0};
	bool told = false;
	for (int i = 0; i < 20 && !told; i++)
		told = measure(UINT_MAX, PAGE_LOSS_NS / 2, &loss) &&
		       loss.touch_ns > PAGE_LOSS_NS / 2 &&
		       loss.touch_ns < PAGE_LOSS_NS * 2 &&
		       loss.range_ns > RANGE_LOSS_NS / 2 &&
		       loss.range_ns < RANGE_LOSS_NS * 2;
	check_msg(told, "%llu ns a page, %llu a range",
		  (unsigned long long)loss.touch_ns,
		  (unsigned long long)loss.range_ns);
}

/* What is dear for one measurement only was a busy moment. */
static void measure_moment(void)
{
	struct bits_loss loss = {0, 0};
	bool told = true;
	for (int i = 0; i < 20 && scene->resets <= MEASUREMENT; i++)
		told = measure(MEASUREMENT, PAGE_LOSS_NS / 2, &loss);
	check(scene->resets > MEASUREMENT);
	check_msg(!told || loss.range_ns < RANGE_LOSS_NS / 2, "%llu ns a range",
		  (unsigned long long)loss.range_ns);
}

static void lessen(struct bits_loss a, struct bits_loss b, uint64_t range_ns,
		   uint64_t touch_ns)
{
	bits_loss_lessen(&a, &b);
	check_int((long)a.range_ns, (long)range_ns);
	check_int((long)a.touch_ns, (long)touch_ns);
}

int main(void)
{
	struct bits_loss loss = {0};
	lessen((struct bits_loss){.range_ns = 20000, .touch_ns = 8000},
	       (struct bits_loss){.range_ns = 22000, .touch_ns = 7000}, 20000,
	       7000);
	lessen((struct bits_loss){.range_ns = 7806, .touch_ns = 0},
	       (struct bits_loss){.range_ns = 0, .touch_ns = 2000}, 0, 0);
	/* 8 us a page and 45 a range: 53 alone, 19.25 each of four. */
	split(53000, 19250, 45000, 8000);
	split(300, 300, 0, 300);
	split(200, 500, 0, 500); /* by chance: rather too much */
	split(9000, 1000, 10666, 0);
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(!measure(0, UINT64_MAX, &loss));
	measure_known();
	scene->resets = 0;
	measure_moment();
	return tap_done();
}
