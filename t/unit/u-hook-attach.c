/*
 * Attach to a program that already has blocks: they are all found, their
 * frees are seen; and after the sensors have been taken out everything is as
 * it was before: text, mappings, no thread in a place that is gone.
 */
#include <time.h>

#include "t/unit/hook-run.h"

struct child {
	pid_t pid;
	FILE *in, *out;
};

static void spawn(struct child *c, const char *prog)
{
	int to[2], from[2];
	if (pipe(to) || pipe(from))
		return;
	c->pid = fork();
	if (c->pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl(prog, prog, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	c->in = fdopen(to[1], "w");
	c->out = fdopen(from[0], "r");
	setvbuf(c->in, NULL, _IONBF, 0);
}

/* Lets the tracee run until it has said @line. */
static bool run_until(struct run *r, struct child *c, const char *line)
{
	char buf[256];
	struct tevent ev;
	struct smco_err err = {0};
	uint64_t end = smco_now_ns() + 120 * NSEC_PER_SEC;
	int fd = fileno(c->out);
	size_t got = 0;
	while (smco_now_ns() < end) {
		if (tracer_next(r->tr, smco_now_ns() + NSEC_PER_MSEC, &ev) > 0)
			run_event(r, &ev, &err);
		/* Only whole lines are there to be read, see _IOLBF. */
		fd_set set;
		struct timeval tv = {0, 0};
		FD_ZERO(&set);
		FD_SET(fd, &set);
		if (select(fd + 1, &set, NULL, NULL, &tv) != 1)
			continue;
		ssize_t n = read(fd, buf + got, sizeof(buf) - 1 - got);
		if (n <= 0)
			return false;
		got += n;
		buf[got] = '\0';
		if (strstr(buf, line))
			return true;
	}
	return false;
}

static char *read_maps(pid_t pid)
{
	char path[64], *buf = calloc(1, 1 << 18);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "r");
	if (!f)
		return buf;
	size_t n = fread(buf, 1, (1 << 18) - 1, f);
	buf[n] = '\0';
	fclose(f);
	return buf;
}

static uint64_t text_sum(struct run *r)
{
	static uint8_t buf[4096];
	uint64_t sum = 0;
	taddr_t start = 0, end = 0;
	run_find(r, "malloc", &start, &end);
	for (taddr_t at = start; at < end; at += sizeof(buf)) {
		if (tmem_read(r->p, at, buf, sizeof(buf)))
			return 0;
		for (size_t i = 0; i < sizeof(buf); i++)
			sum = sum * 31 + buf[i];
	}
	return sum;
}

static bool attach(struct run *r, pid_t pid)
{
	struct smco_err err = {0};
	struct tevent ev;
	if (tracer_create(&r->tr, &(struct tracer_options){0}, &err) ||
	    tracer_attach(r->tr, pid, &err)) {
		printf("# %s\n", err.msg);
		return false;
	}
	while (!r->p)
		if (tracer_next(r->tr, smco_now_ns() + NSEC_PER_SEC, &ev) <= 0)
			return false;
		else if (ev.kind == TEV_PROC_NEW)
			r->p = ev.proc;
	return true;
}

/* A thread may get no CPU to stop on for longer than is waited. */
static bool stand(struct run *r)
{
	int ret;
	do
		ret = tproc_stop(r->p, NULL);
	while (ret == SMCO_BUSY);
	return ret == 0;
}

struct held {
	unsigned long addr;
	size_t size;
};

/* What the walk may take of the CPU. */
#define WALK_NS (6 * NSEC_PER_MSEC)

/* @cpu_ns: that adopting took. */
static void adopted_and_freed(struct run *r, struct child *c,
			      const struct held *held, unsigned nr,
			      uint64_t cpu_ns)
{
	unsigned missing = 0, small = 0, adopted = r->nr_live;
	for (unsigned i = 0; i < nr; i++) {
		struct book_entry *e = book_find(r, held[i].addr);
		missing += !e->addr;
		if (!e->addr)
			printf("# missing %lx %zu\n", held[i].addr,
			       held[i].size);
		small += e->addr && e->size < held[i].size;
	}
	printf("# %u held, %u found, %u missing\n", nr, adopted, missing);
	/* It has so much CPU time and no more, which sanitizers may use up, or
	 * what a hypervisor takes away: that counts as CPU time, too. */
	bool in_part = strstr(hooks_describe(r->h), "only in part") != NULL;
	check(!in_part || cpu_ns >= WALK_NS);
	check(nr > 200);
	check(!missing || in_part);
	check_int(small, 0);
	/* A few a little smaller than the cutoff are, by what is usable. */
	check((adopted >= nr || in_part) && adopted < nr + 5);
	tproc_resume_new(r->p);
	fputs("f\n", c->in);
	check(run_until(r, c, "freed"));
	unsigned left = 0;
	for (unsigned i = 0; i < nr; i++)
		left += book_find(r, held[i].addr)->addr != 0;
	check_int(left, 0);
	check_int(r->free_unknown, 0);
}

int main(void)
{
	static struct run r;
	static struct held held[4000];
	struct child c;
	char line[128], prog[512];
	unsigned nr = 0;
	struct smco_err err = {0};

	snprintf(prog, sizeof(prog), "%s", fixture("hook-held"));
	signal(SIGPIPE, SIG_IGN);
	spawn(&c, prog);
	setvbuf(c.out, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), c.out) && strcmp(line, "ready\n"))
		if (sscanf(line, "%lx %zu", &held[nr].addr, &held[nr].size) ==
		    2)
			nr++;
	r.cutoff = 8192;
	r.tokens = 1u << 29;
	if (!check(attach(&r, c.pid)))
		return tap_done();
	_cleanup_free_ char *before = read_maps(c.pid);
	run_update_syms(&r);
	uint64_t sum = text_sum(&r);
	check_int(run_plant(&r, &err), 0);
	check(text_sum(&r) != sum);
	uint64_t t0 = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	check_int(hooks_adopt(r.h, 8192, false, run_hear, &r, &err), 0);
	uint64_t cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - t0;
	printf("# adopted in %lu us; %s\n", (long)cpu_ns / 1000,
	       hooks_describe(r.h));
	adopted_and_freed(&r, &c, held, nr, cpu_ns);

	/* Out and in again while it allocates as fast as it can. */
	fputs("c\n", c.in);
	unsigned left = 0, unequal = 0, not_planted = 0;
	for (int i = 0; i < 50; i++) {
		struct tevent ev;
		uint64_t end = smco_now_ns() + 10 * NSEC_PER_MSEC;
		while (smco_now_ns() < end)
			if (tracer_next(r.tr, end, &ev) > 0)
				run_event(&r, &ev, &err);
		/* Also inside somebody's stop, as at the end of a session. */
		bool nested = i % 2 && stand(&r);
		do /* it does nothing where they do not stand in time */
			hooks_remove(r.h, NULL);
		while (r.h->planted);
		if (nested)
			tproc_cont(r.p);
		left += r.h->left;
		unequal += text_sum(&r) != sum;
		hooks_destroy(r.h);
		r.h = NULL;
		if (stand(&r)) {
			not_planted += run_plant(&r, &err) != 0;
			tproc_cont(r.p);
		}
		if (!r.h)
			break;
	}
	check_int(left, 0);
	check_int(unequal, 0);
	check_int(not_planted, 0);
	/* The same while a thread waits in a trap for its answer. */
	unsigned nr_waiting = 0;
	for (int i = 0; i < 10 && r.h; i++) {
		struct tevent ev = {0};
		while (ev.kind != TEV_TRAP &&
		       tracer_next(r.tr, smco_now_ns() + NSEC_PER_SEC, &ev) > 0)
			if (ev.kind != TEV_TRAP)
				run_event(&r, &ev, &err);
		nr_waiting += ev.kind == TEV_TRAP;
		do /* it does nothing where they do not stand in time */
			hooks_remove(r.h, NULL);
		while (r.h->planted);
		left += r.h->left;
		hooks_destroy(r.h);
		r.h = NULL;
		if (ev.task)
			tracer_resume(r.tr, ev.task, 0);
		if (stand(&r)) {
			not_planted += run_plant(&r, &err) != 0;
			tproc_cont(r.p);
		}
	}
	check_int(nr_waiting, 10);
	check_int(left, 0);
	fputs("n\n", c.in);
	check(run_until(&r, &c, "churned"));

	check_int(tracer_detach_all(r.tr, &err), 0);
	hooks_destroy(r.h);
	usleep(1000);
	_cleanup_free_ char *after = read_maps(c.pid);
	check(!strstr(after, "memfd:smco"));
	fputs("x\n", c.in);
	check(fgets(line, sizeof(line), c.out) != NULL);
	check_str(line, "EXIT-SUCCESS\n");
	int status = -1;
	waitpid(c.pid, &status, 0);
	check_int(status, 0);
	sym_space_destroy(r.syms);
	fclose(c.in);
	fclose(c.out);
	tracer_destroy(r.tr);
	return tap_done();
}
