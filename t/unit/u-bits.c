/* Accessed bits: every touched page is seen, no other is. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/probe/access.h"
#include "t/unit/tap.h"

#define PAGES 4096

/* The mechanism asks the tracee room for the pid and, where it may not use
 * process_madvise, for calls. Tests need no tracer: these stand in. */
struct tproc {
	pid_t pid;
};
pid_t tproc_pid(const struct tproc *p)
{
	return p->pid;
}
int tproc_stop(struct tproc *p, struct smco_err *err)
{
	(void)p;
	return smco_fail(err, SMCO_UNSUPPORTED, 0, "no tracer in this test");
}
void tproc_cont(struct tproc *p)
{
	(void)p;
}
int tproc_syscalls(struct tproc *p, struct tsyscall *calls, size_t n,
		   struct smco_err *err)
{
	(void)calls;
	(void)n;
	return tproc_stop(p, err);
}

/* A child that runs one function at a time on request. */
struct puppet {
	struct tproc proc;
	int ask, answer;
};
typedef long (*act_fn)(long a, long b);
struct order {
	act_fn fn;
	long a, b;
};

static struct puppet puppet_start(void)
{
	int ask[2], answer[2];
	if (pipe(ask) || pipe(answer))
		exit(2);
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		struct order o;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(ask[0], &o, sizeof(o)) == sizeof(o)) {
			long r = o.fn(o.a, o.b);
			if (write(answer[1], &r, sizeof(r)) != sizeof(r))
				break;
		}
		_exit(0);
	}
	close(ask[0]);
	close(answer[1]);
	return (struct puppet){{pid}, ask[1], answer[0]};
}

static long puppet_do(struct puppet *p, act_fn fn, long a, long b)
{
	struct order o = {fn, a, b};
	long r = -1;
	if (write(p->ask, &o, sizeof(o)) != sizeof(o) ||
	    read(p->answer, &r, sizeof(r)) != sizeof(r))
		exit(2);
	return r;
}

static void puppet_end(struct puppet *p)
{
	kill(p->proc.pid, SIGKILL);
	waitpid(p->proc.pid, NULL, 0);
	close(p->ask);
	close(p->answer);
}

static char *mem; /* PAGES pages in the puppet */

static long act_load(long first, long stride)
{
	long sum = 0;
	for (long i = first; i < PAGES; i += stride)
		sum += *(volatile char *)(mem + i * 4096 + 8);
	return sum;
}

static long act_store(long first, long stride)
{
	for (long i = first; i < PAGES; i += stride)
		*(volatile char *)(mem + i * 4096 + 8) = 2;
	return 0;
}

/* Through a pipe: write(2) reads the page, read(2) writes it. */
static long act_syscalls(long first, long is_read)
{
	int p[2];
	char c[16] = "";
	if (pipe(p))
		return -1;
	for (long i = first; i < PAGES; i += 13) {
		char *from = is_read ? c : mem + i * 4096 + 8;
		char *to = is_read ? mem + i * 4096 + 8 : c;
		if (write(p[1], from, 16) != 16 || read(p[0], to, 16) != 16)
			return -1;
	}
	close(p[0]);
	close(p[1]);
	return 0;
}

static struct page_range *every_page(void)
{
	struct page_range *r = calloc(PAGES, sizeof(*r));
	for (size_t i = 0; i < PAGES; i++) {
		r[i].start = (uintptr_t)mem + i * 4096;
		r[i].end = r[i].start + 4096;
	}
	return r;
}

/* Reset all, let the puppet act, compare page by page. */
static void test_exact(struct access *a, struct puppet *p, const char *what,
		       act_fn fn, long first, long arg, long stride)
{
	struct page_range *r = every_page();
	int wrong_quiet = 0, wrong_touched = 0, nr = 0;

	check_int(a->ops->arm(a, r, PAGES), 0);
	check_int(puppet_do(p, fn, first, arg) < 0, 0);
	check_int(a->ops->collect(a, r, PAGES), 0);
	for (long i = 0; i < PAGES; i++) {
		bool want = i >= first && (i - first) % stride == 0;
		nr += want;
		wrong_quiet += want && !r[i].nr_touched;
		wrong_touched += !want && r[i].nr_touched;
		if (want && r[i].first_touched != r[i].start)
			wrong_quiet++;
	}
	check_msg(nr > 300 && !wrong_quiet,
		  "%s: all of %d touched pages seen (%d missed)", what, nr,
		  wrong_quiet);
	check_msg(!wrong_touched, "%s: no other page (%d)", what,
		  wrong_touched);
	free(r);
}

int main(void)
{
	mem = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(mem, PAGES * 4096, MADV_NOHUGEPAGE);
	struct puppet p = puppet_start();
	puppet_do(&p, act_store, 0, 1);
	struct access *a = NULL;
	struct smco_err err = {0};
	int r = access_bits.open(&p.proc, &a, &err);
	if (r == SMCO_PERM || r == SMCO_UNSUPPORTED) {
		printf("1..0 # SKIP %s\n", err.msg);
		return 0;
	}
	if (!check_int(r, 0)) {
		printf("# %s\n", err.msg);
		return tap_done();
	}
	test_exact(a, &p, "load", act_load, 5, 13, 13);
	test_exact(a, &p, "store", act_store, 3, 13, 13);
	test_exact(a, &p, "write(2)", act_syscalls, 7, 0, 13);
	test_exact(a, &p, "read(2)", act_syscalls, 1, 1, 13);
	printf("# first touch %" PRIu64 " ns, side cost %" PRIu64 " ns\n",
	       a->ops->touch_cost_ns(a), a->ops->side_cost_ns(a));
	a->ops->close(a);
	puppet_end(&p);
	return tap_done();
}
