/*
 * What passes between a write that meets a guard and the moment at which the
 * reader has its message. Whom a thread wakes is most likely on another CPU,
 * that sleeps: in a virtual machine that took 40 us of the thread's own CPU
 * time, of 100 us in all, where what follows took 80. Of that no clock of ours
 * tells.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reports/median.h"
#include "supervisor/probe/uffd-private.h"

#define ROUNDS	    33
#define ENOUGH	    8 /* of them */
#define PATIENCE_MS 200
#define MOST_NS	    (50 * NSEC_PER_MSEC)
#define COMPUTE_NS  (50 * NSEC_PER_USEC) /* between hits */
#define USUAL_NS    (50 * NSEC_PER_USEC)

#define NEAR_NS (5 * NSEC_PER_USEC)

static const struct uffd_cost usual = {USUAL_NS, NEAR_NS, 2 * USUAL_NS};
static struct uffd_cost known = {USUAL_NS, NEAR_NS, 2 * USUAL_NS};

struct trial {
	int fd;
	int cpu;		    /* the reader's; -1 = any */
	char *mem;		    /* ROUNDS pages */
	volatile uint64_t heard_ns; /* when; 0 = not yet */
};

struct passes {
	uint64_t heard_ns;
	uint64_t whole_ns;
};

static struct uffdio_range all_of(const struct trial *t)
{
	return (struct uffdio_range){(uintptr_t)t->mem, ROUNDS * TPAGE_SIZE};
}

static void stay_on(int cpu)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* One of @may beside @cpu; -1 = there is none. */
static int other_than(int cpu, const cpu_set_t *may)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (i != cpu && CPU_ISSET((unsigned)i, may))
			return i;
	return -1;
}

/* A round for each message. At its end, and where none comes for long, nobody
 * waits for another one. */
static void *read_all(void *arg)
{
	struct trial *t = arg;
	struct pollfd p = {t->fd, POLLIN, 0};
	struct uffd_msg m;
	if (t->cpu >= 0)
		stay_on(t->cpu);
	for (int i = 0; i < ROUNDS && poll(&p, 1, PATIENCE_MS) == 1; i++) {
		if (read(t->fd, &m, sizeof(m)) != sizeof(m))
			break;
		t->heard_ns = smco_now_ns();
		taddr_t page = m.arg.pagefault.address & ~(TPAGE_SIZE - 1);
		struct uffdio_writeprotect wp = {.range = {page, TPAGE_SIZE}};
		if (ioctl(t->fd, UFFDIO_WRITEPROTECT, &wp))
			break;
	}
	struct uffdio_range all = all_of(t);
	ioctl(t->fd, UFFDIO_UNREGISTER, &all);
	ioctl(t->fd, UFFDIO_WAKE, &all);
	return NULL;
}

static bool guard_all(struct trial *t)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
	struct uffdio_register r = {.range = all_of(t),
				    .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect wp = {.range = r.range,
					 .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	madvise(t->mem, ROUNDS * TPAGE_SIZE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < ROUNDS; i++)
		t->mem[i * TPAGE_SIZE] = 1;
	return !ioctl(t->fd, UFFDIO_API, &api) &&
	       !ioctl(t->fd, UFFDIO_REGISTER, &r) &&
	       !ioctl(t->fd, UFFDIO_WRITEPROTECT, &wp);
}

static void compute(uint64_t ns)
{
	uint64_t end_ns = smco_now_ns() + ns;
	while (smco_now_ns() < end_ns)
		;
}

/* False: it cannot be told. */
static bool touch_all(struct trial *t, struct passes *ret)
{
	int64_t heard[ROUNDS], whole[ROUNDS];
	size_t nr = 0;
	uint64_t end_ns = smco_now_ns() + MOST_NS;
	for (size_t i = 0; i < ROUNDS && smco_now_ns() < end_ns; i++) {
		compute(COMPUTE_NS);
		t->heard_ns = 0;
		uint64_t start_ns = smco_now_ns();
		((volatile char *)t->mem)[i * TPAGE_SIZE] = 2;
		if (t->heard_ns <= start_ns)
			continue;
		whole[nr] = (int64_t)(smco_now_ns() - start_ns);
		heard[nr++] = (int64_t)(t->heard_ns - start_ns);
	}
	/* Few are what others leave of the CPUs at this moment: charged with
	 * one of 190 ms, a program that was touched eight times a second had
	 * lost a quarter of its time. */
	if (nr < ENOUGH)
		return false;
	ret->heard_ns = (uint64_t)median_i64(heard, nr);
	ret->whole_ns = (uint64_t)median_i64(whole, nr);
	return true;
}

static bool measure_guarded(struct trial *t, struct passes *ret)
{
	pthread_t reader;
	sigset_t every, old;
	if (!guard_all(t))
		return false;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &old);
	int failed = pthread_create(&reader, NULL, read_all, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return false;
	bool is_told = touch_all(t, ret);
	/* Of what is left, too, it is told, so that it ends now. */
	for (size_t i = 0; i < ROUNDS; i++)
		((volatile char *)t->mem)[i * TPAGE_SIZE] = 3;
	pthread_join(reader, NULL);
	return is_told;
}

/* From this CPU, with the reader on @reader_cpu. */
static bool measure_from(int reader_cpu, struct passes *ret)
{
	struct trial t = {.cpu = reader_cpu,
			  .mem = mmap(NULL, ROUNDS * TPAGE_SIZE,
				      PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
	if (t.mem == MAP_FAILED)
		return false;
	t.fd = (int)syscall(SYS_userfaultfd,
			    O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	bool is_told = t.fd >= 0 && measure_guarded(&t, ret);
	if (t.fd >= 0)
		close(t.fd);
	munmap(t.mem, ROUNDS * TPAGE_SIZE);
	return is_told;
}

void uffd_cost_measure(void)
{
	cpu_set_t may;
	int cpu = sched_getcpu();
	if (cpu < 0 || sched_getaffinity(0, sizeof(may), &may))
		return;
	struct passes far, near;
	known = usual;
	stay_on(cpu);
	if (measure_from(other_than(cpu, &may), &far)) {
		known.heard_ns = far.heard_ns;
		known.whole_ns = far.whole_ns;
	}
	if (measure_from(cpu, &near))
		known.near_ns = near.heard_ns;
	sched_setaffinity(0, sizeof(may), &may);
	smco_debug("uffd",
		   "measured: %llu ns until a hit is heard of, %llu all, %llu "
		   "heard of on the same CPU",
		   (unsigned long long)known.heard_ns,
		   (unsigned long long)known.whole_ns,
		   (unsigned long long)known.near_ns);
}

struct uffd_cost uffd_cost(void)
{
	return known;
}

void uffd_cost_know(const struct uffd_cost *cost)
{
	known = *cost;
}
