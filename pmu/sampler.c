#include "pmu/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pmu/open.h"
#include "pmu/overflow.h"

/* asm/perf_regs.h: AX BX CX DX SI DI BP SP IP are 0 to 8, R8 to R15 16 to 23 */
#define REGS_MASK 0xff01ffull

#define MOST_STACK_BYTES 32768

/* A new period for an event after so many samples: each begins the current
 * period anew, half of which is lost then. */
#define DITHER_SAMPLES 16
#define DITHER_CALLS   64 /* at a time: each may interrupt a CPU */

struct sampler_cpu {
	int cpu;
	int ring_fd;			   /* whose ring it is; -1 = none yet */
	struct perf_event_mmap_page *page; /* NULL = none yet */
	struct ring ring;
	struct ring_record next; /* read, and not handed out */
	bool has_next;
	bool is_dry;	/* had no more when it was asked last */
	uint64_t began; /* of .ring.tail, when all were dry last */
};

struct sampler {
	struct perf_event_attr attr;
	struct pmu_event event;
	size_t ring_bytes, page_bytes;
	struct sampler_cpu *cpu;
	size_t nr_cpus;
	int *fd; /* of all threads added, on all CPUs */
	size_t nr_fds, cap_fds;
	bool is_off;
	uint64_t mean_ns; /* of its period, a time; 0 = is left as it is */
	uint64_t dither_began_ns, dither_due_ns; /* of a round of all */
	size_t dithered;			 /* descriptors of this round */
	uint64_t random;
};

static bool is_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

static struct perf_event_attr attr_of(const struct sampler_params *p)
{
	struct perf_event_attr attr = p->event.attr;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	if (p->stack_bytes) {
		attr.sample_type |=
			PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = REGS_MASK;
		attr.sample_stack_user = p->stack_bytes;
	}
	if (!attr.exclude_kernel) {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr.exclude_callchain_user = 1;
	}
	if (p->with_address)
		attr.sample_type |= PERF_SAMPLE_ADDR;
	if (p->period || is_clock(&attr)) {
		attr.sample_period =
			p->period ? p->period : NSEC_PER_SEC / p->frequency_hz;
	} else {
		attr.freq = 1;
		attr.sample_freq = p->frequency_hz;
	}
	attr.read_format = PERF_FORMAT_LOST;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.sample_id_all = 1;
	attr.mmap = p->with_mappings;
	attr.mmap2 = p->with_mappings;
	return attr;
}

/* Linux 6.0 tells exactly what was lost. */
static void try_format(struct perf_event_attr *attr)
{
	struct perf_event_attr copy = *attr;
	copy.disabled = 1;
	int fd = pmu_open(&copy, 0, -1, -1);
	if (fd >= 0)
		close(fd);
	else if (errno == EINVAL)
		attr->read_format = 0;
}

int sampler_create(const struct sampler_params *p, struct sampler **ret,
		   struct smco_err *err)
{
	long nr = sysconf(_SC_NPROCESSORS_CONF);
	if ((!p->period && !p->frequency_hz) || p->stack_bytes % 8 ||
	    p->stack_bytes > MOST_STACK_BYTES)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "'%.60s' cannot be sampled at %ju Hz with "
				 "%u bytes of stack",
				 p->event.name, (uintmax_t)p->frequency_hz,
				 p->stack_bytes);
	struct sampler *s = calloc(1, sizeof(*s));
	if (s)
		s->cpu = calloc((size_t)nr, sizeof(*s->cpu));
	if (!s || !s->cpu) {
		free(s);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	s->nr_cpus = (size_t)nr;
	for (size_t i = 0; i < s->nr_cpus; i++)
		s->cpu[i] = (struct sampler_cpu){.cpu = (int)i, .ring_fd = -1};
	s->event = p->event;
	s->attr = attr_of(p);
	s->attr.inherit = 1;
	s->attr.inherit_thread = p->threads_only;
	s->ring_bytes = p->ring_bytes;
	s->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	try_format(&s->attr);
	if (!p->period && !s->attr.freq)
		s->mean_ns = s->attr.sample_period;
	s->random = smco_now_ns() | 1;
	*ret = s;
	return 0;
}

static void close_ring(const struct sampler *s, struct sampler_cpu *c)
{
	if (!c->page)
		return;
	ring_close(&c->ring);
	munmap(c->page, s->page_bytes + s->ring_bytes);
	c->page = NULL;
	c->ring_fd = -1;
	c->has_next = false;
}

void sampler_destroy(struct sampler *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_cpus; i++)
		close_ring(s, &s->cpu[i]);
	while (s->nr_fds)
		close(s->fd[--s->nr_fds]);
	free(s->fd);
	free(s->cpu);
	free(s);
}

/* ----------------------------------------------------------------- open --- */

static void *map_ring(const struct sampler *s, int fd)
{
	return mmap(NULL, s->page_bytes + s->ring_bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
}

/* The first event on a CPU brings its ring, the others write into that. */
static int give_ring(struct sampler *s, struct sampler_cpu *c, int fd,
		     bool may_shrink, struct smco_err *err)
{
	if (c->page) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->ring_fd))
			return smco_fail(err, SMCO_SYS, errno,
					 "a ring for two threads");
		return 0;
	}
	void *page = map_ring(s, fd);
	/* Memory that may be locked is scarce for those without privileges. */
	while (page == MAP_FAILED && may_shrink &&
	       s->ring_bytes > s->page_bytes &&
	       (errno == EPERM || errno == ENOMEM)) {
		s->ring_bytes /= 2;
		page = map_ring(s, fd);
	}
	if (page == MAP_FAILED)
		return smco_fail(err, SMCO_SYS, errno,
				 "no memory for samples (ulimit -l, "
				 "kernel.perf_event_mlock_kb)");
	struct ring_format format = ring_format_of(&s->attr);
	int rc = ring_open_live(&c->ring, &format, page, err);
	if (rc) {
		munmap(page, s->page_bytes + s->ring_bytes);
		return rc;
	}
	c->page = page;
	c->ring_fd = fd;
	return 0;
}

static bool grow(struct sampler *s)
{
	if (s->nr_fds + s->nr_cpus <= s->cap_fds)
		return true;
	size_t cap = s->cap_fds * 2 + s->nr_cpus;
	int *fd = realloc(s->fd, cap * sizeof(*fd));
	if (!fd)
		return false;
	s->fd = fd;
	s->cap_fds = cap;
	return true;
}

static bool has_rings(const struct sampler *s)
{
	for (size_t i = 0; i < s->nr_cpus; i++)
		if (s->cpu[i].page)
			return true;
	return false;
}

/* Back to @nr descriptors, and the rings of those that go. */
static void take_back(struct sampler *s, size_t nr)
{
	while (s->nr_fds > nr) {
		int fd = s->fd[--s->nr_fds];
		for (size_t i = 0; i < s->nr_cpus; i++)
			if (s->cpu[i].ring_fd == fd)
				close_ring(s, &s->cpu[i]);
		close(fd);
	}
}

static int open_on(struct sampler *s, struct sampler_cpu *c,
		   struct perf_event_attr *attr, pid_t tid, bool may_shrink,
		   struct smco_err *err)
{
	int fd = pmu_open(attr, tid, c->cpu, -1);
	if (fd < 0 && errno == ENODEV)
		return 0; /* the CPU is off */
	if (fd < 0)
		return pmu_explain(&s->event, errno, err);
	int rc = give_ring(s, c, fd, may_shrink, err);
	if (rc)
		close(fd);
	else
		s->fd[s->nr_fds++] = fd;
	return rc;
}

int sampler_add(struct sampler *s, pid_t tid, bool on_exec,
		struct smco_err *err)
{
	struct perf_event_attr attr = s->attr;
	size_t before = s->nr_fds;
	bool first = !has_rings(s);
	if (!grow(s))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	attr.disabled = on_exec || s->is_off;
	attr.enable_on_exec = on_exec;
	for (size_t i = 0; i < s->nr_cpus; i++) {
		/* All rings are of one size: the first decides. */
		bool may_shrink = first && !has_rings(s);
		int rc = open_on(s, &s->cpu[i], &attr, tid, may_shrink, err);
		if (rc) {
			take_back(s, before);
			return rc;
		}
	}
	return 0;
}

size_t sampler_ring_bytes(const struct sampler *s)
{
	return s->ring_bytes;
}

void sampler_set(struct sampler *s, bool on)
{
	s->is_off = !on;
	for (size_t i = 0; i < s->nr_fds; i++)
		ioctl(s->fd[i],
		      on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* --------------------------------------------------------------- dither --- */

/* Marsaglia, "Xorshift RNGs", 2003: enough to be out of step. */
static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static uint64_t random_period(struct sampler *s)
{
	uint64_t quarter = s->mean_ns / 4;
	return s->mean_ns - quarter +
	       next_random(&s->random) % (2 * quarter + 1);
}

void sampler_dither(struct sampler *s, uint64_t now_ns)
{
	if (!s->mean_ns || s->is_off || now_ns < s->dither_due_ns)
		return;
	size_t from = s->dithered, to = s->nr_fds;
	if (!from)
		s->dither_began_ns = now_ns;
	if (to > from + DITHER_CALLS)
		to = from + DITHER_CALLS;
	for (; s->dithered < to; s->dithered++) {
		uint64_t period = random_period(s);
		ioctl(s->fd[s->dithered], PERF_EVENT_IOC_PERIOD, &period);
	}
	if (to < s->nr_fds)
		return;
	s->dithered = 0;
	s->dither_due_ns = s->dither_began_ns + DITHER_SAMPLES * s->mean_ns;
}

/* ----------------------------------------------------------------- read --- */

/* One lap, or a program that maps and faults as fast as we read would never let
 * us go. */
static void look_ahead(struct sampler_cpu *c)
{
	while (c->page && !c->has_next && !c->is_dry) {
		int rc = 0;
		if (c->ring.tail - c->began < c->ring.size)
			rc = ring_next(&c->ring, &c->next, NULL);
		c->is_dry = !rc;
		c->has_next = rc > 0 && (c->next.type == PERF_RECORD_SAMPLE ||
					 c->next.type == PERF_RECORD_MMAP2);
	}
}

bool sampler_next(struct sampler *s, struct ring_record *ret)
{
	struct sampler_cpu *first = NULL;
	for (size_t i = 0; i < s->nr_cpus; i++) {
		struct sampler_cpu *c = &s->cpu[i];
		look_ahead(c);
		if (c->has_next && (!first || c->next.time < first->next.time))
			first = c;
	}
	if (first) {
		*ret = first->next;
		first->has_next = false;
		return true;
	}
	for (size_t i = 0; i < s->nr_cpus; i++) {
		s->cpu[i].is_dry = false;
		s->cpu[i].began = s->cpu[i].ring.tail;
	}
	return false;
}

uint64_t sampler_lost(struct sampler *s, bool exact)
{
	uint64_t told = 0, lost = 0;
	for (size_t i = 0; i < s->nr_cpus; i++)
		told += s->cpu[i].page ? s->cpu[i].ring.nr_lost : 0;
	if (!exact || !s->attr.read_format)
		return told;
	for (size_t i = 0; i < s->nr_fds; i++) {
		uint64_t value[2]; /* the count, what was lost */
		if (read(s->fd[i], value, sizeof(value)) == sizeof(value))
			lost += value[1];
	}
	return lost > told ? lost : told;
}

uint64_t sampler_damaged(const struct sampler *s)
{
	uint64_t nr = 0;
	for (size_t i = 0; i < s->nr_cpus; i++)
		nr += s->cpu[i].page ? s->cpu[i].ring.nr_damaged : 0;
	return nr;
}

/* ------------------------------------------------------------ calibrate --- */

/* An interrupt and a copy of some KiB take more anywhere: what is less came
 * from others who use the machine. */
#define LEAST_COST_NS 1000

/* With as much above it on the stack as a sample copies at most: a program that
 * has less is charged for more. */
static __attribute__((noinline)) uint64_t
cost_when_deep(struct perf_event_mmap_page *page)
{
	volatile char above[MOST_STACK_BYTES];
	for (size_t i = 0; i < sizeof(above); i += 64)
		above[i] = 1;
	uint64_t cost_ns = overflow_cost_ns(page);
	above[0] = 0; /* it is there until now */
	return cost_ns;
}

uint64_t sampler_cost_ns(const struct sampler_params *p)
{
	struct sampler_params own = *p;
	struct sampler *s = NULL;
	uint64_t cost_ns = 0;
	bool by_frequency = !own.period;
	if (by_frequency)
		own.frequency_hz = NSEC_PER_SEC / OVERFLOW_PERIOD_NS;
	if (sampler_create(&own, &s, NULL))
		return 0;
	s->attr.inherit = 0;
	s->attr.inherit_thread = 0;
	s->nr_cpus = 1;
	s->cpu[0].cpu = -1;
	if (!sampler_add(s, 0, false, NULL))
		cost_ns = cost_when_deep(s->cpu[0].page);
	sampler_destroy(s);
	return cost_ns < LEAST_COST_NS ? 0 : cost_ns;
}
