/*
 * A copy of a stack, from its stack pointer on, tells the same as the stack
 * itself: at each instruction of functions of the C library, their beginnings
 * and ends among them.
 */
#include "unwindhelp.h"

#define STEPS  20000
#define COPIED 16384

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* What the stepped process does. */
static void work(void)
{
	char text[64];
	for (;;) {
		int *v = malloc(20 * sizeof(*v));
		for (int i = 0; i < 20; i++)
			v[i] = i * 7 % 20;
		qsort(v, 20, sizeof(*v), compare);
		snprintf(text, sizeof(text), "%d %g", v[3], 1.0 / v[5]);
		v = realloc(v, 200000);
		free(v);
	}
}

static pid_t start(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		work();
	}
	waitpid(pid, NULL, 0);
	return pid;
}

static bool step(pid_t pid)
{
	int st;
	return !ptrace(PTRACE_SINGLESTEP, pid, 0, 0) &&
	       waitpid(pid, &st, 0) == pid && WIFSTOPPED(st);
}

/* One stop, both ways. */
static bool same(struct sym_space *s, pid_t pid, bool *complete_ret)
{
	static uint8_t bytes[COPIED];
	taddr_t a[MAX_FRAMES], b[MAX_FRAMES], sa[MAX_FRAMES], sb[MAX_FRAMES];
	struct user_regs_struct u;
	struct sym_regs regs;
	bool whole;
	ptrace(PTRACE_GETREGS, pid, 0, &u);
	regs_from_user(&regs, &u);
	ssize_t len = read_pid(&pid, u.rsp, bytes, sizeof(bytes));
	const struct sym_stack copy = {u.rsp, bytes, len > 0 ? (size_t)len : 0};
	size_t n = sym_unwind(s, &regs, a, sa, MAX_FRAMES, complete_ret);
	size_t m = sym_unwind_copy(s, &regs, &copy, b, sb, MAX_FRAMES, &whole);
	bool is_same = n == m && whole == *complete_ret &&
		       !memcmp(a, b, n * sizeof(*a)) &&
		       !memcmp(sa, sb, n * sizeof(*sa));
	if (!is_same) {
		print_stack(s, "the stack", a, sa, n);
		print_stack(s, "its copy", b, sb, m);
	}
	return is_same;
}

int main(void)
{
	size_t nr_same = 0, nr_complete = 0, nr = 0;
	pid_t pid = start();
	struct sym_space *s = sym_space_create(pid, "/", read_pid, &pid);
	make_scratch();
	update_if_changed(s, pid);
	for (; nr < STEPS && step(pid); nr++) {
		bool complete;
		nr_same += same(s, pid, &complete);
		nr_complete += complete;
	}
	check_int(nr, STEPS);
	check_int(nr_same, STEPS);
	check_msg(nr_complete > STEPS / 100 * 99,
		  "%zu of them reach the outermost frame", nr_complete);
	reap(pid);
	sym_space_destroy(s);
	return finish();
}
