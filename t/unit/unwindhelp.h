/*
 * unwindhelp.h - sample the stacks of running programs, by the table and by
 * libdwfl, and compare. Shared by the test and the benchmark.
 */
#ifndef UNWINDHELP_H
#define UNWINDHELP_H

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/user.h>
#include <time.h>

#include "reports/base.h"
#include "symhelp.h"

#define MAX_FRAMES 256

static inline void regs_from_user(struct sym_regs *r,
				  const struct user_regs_struct *u)
{
	*r = (struct sym_regs){{u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi,
				u->rbp, u->rsp, u->r8, u->r9, u->r10, u->r11,
				u->r12, u->r13, u->r14, u->r15, u->rip}};
}

/* Stop @pid wherever it is; false if it ended. Signals are passed on. */
static inline bool stop(pid_t pid)
{
	int st;
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		return false;
	for (;;) {
		if (waitpid(pid, &st, __WALL) != pid || !WIFSTOPPED(st))
			return false;
		if (st >> 16 == PTRACE_EVENT_STOP)
			return true;
		ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(st));
	}
}

/* Forward signals while @pid runs for @ns; false if it ended. */
static inline bool run_for(pid_t pid, uint64_t ns)
{
	uint64_t end = smco_now_ns() + ns;
	while (smco_now_ns() < end) {
		int st;
		pid_t got = waitpid(pid, &st, __WALL | WNOHANG);
		if (got == pid && !WIFSTOPPED(st))
			return false;
		if (got == pid)
			ptrace(PTRACE_CONT, pid, 0,
			       st >> 16 ? 0 : WSTOPSIG(st));
		else
			nanosleep(&(struct timespec){0, 200000}, NULL);
	}
	return true;
}

struct comparison {
	size_t samples, same, complete;
	size_t ref_complete; /* by libdwfl */
	size_t lost;	     /* differ, and neither way leads out */
	size_t same_slots;   /* among same */
	size_t frames;	     /* of all samples */
	uint64_t table_ns, dwfl_ns;
	uint64_t again_ns; /* the same stacks by the table, all warm */
};

static inline void print_stack(struct sym_space *s, const char *what,
			       const taddr_t *f, const taddr_t *slots, size_t n)
{
	printf("# %s:\n", what);
	for (size_t i = 0; i < n && i < 40; i++) {
		struct sym_name name[SYM_MAX_INLINE];
		struct sym_place at = sym_pin(s, f[i]);
		struct sym_module_info info;
		sym_module_info(s, at.module, &info);
		size_t k = sym_name(s, at, i > 0, name);
		printf("#   %2zu %#lx @%#lx %s+%#lx %s\n", i, f[i], slots[i],
		       name[k - 1].function, name[k - 1].func_offset,
		       base_name(info.path));
	}
}

/* libdwfl cannot tell all of them: 0. */
static inline bool same_slots(const taddr_t *a, const taddr_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] != b[i] && b[i])
			return false;
	return true;
}

/*
 * Frames up to the first that is in no module. In the last instructions of
 * an exception's landing the information is wrong; both then walk into data,
 * and what they take for frames there is not compared.
 */
static inline size_t real_frames(struct sym_space *s, const taddr_t *f,
				 size_t n)
{
	size_t i = 1;
	while (i < n && sym_pin(s, f[i]).module)
		i++;
	return i;
}

/* One stopped stack, both ways. */
static inline void compare_stack(struct comparison *c, struct sym_space *s,
				 const struct sym_regs *regs, bool verbose)
{
	static taddr_t a[MAX_FRAMES], b[MAX_FRAMES];
	static taddr_t sa[MAX_FRAMES], sb[MAX_FRAMES];
	bool done, done_b;
	uint64_t t0 = smco_now_ns();
	size_t n = sym_unwind(s, regs, a, sa, MAX_FRAMES, &done);
	uint64_t t1 = smco_now_ns();
	n = sym_unwind(s, regs, a, sa, MAX_FRAMES, &done);
	uint64_t t2 = smco_now_ns();
	size_t m = sym_unwind_dwfl(s, regs, b, sb, MAX_FRAMES, &done_b);
	uint64_t t3 = smco_now_ns();
	c->samples++;
	c->frames += n;
	c->complete += done;
	c->ref_complete += done_b;
	c->table_ns += t1 - t0;
	c->again_ns += t2 - t1;
	c->dwfl_ns += t3 - t2;
	n = real_frames(s, a, n);
	m = real_frames(s, b, m);
	bool is_same = n == m && !memcmp(a, b, n * sizeof(*a));
	c->lost += !is_same && !done && !done_b;
	if (is_same) {
		c->same++;
		if (same_slots(sa, sb, n))
			c->same_slots++;
		else if (verbose)
			print_stack(s, "slots differ, table", a, sa, n),
				print_stack(s, "libdwfl", b, sb, m);
	} else if (verbose) {
		print_stack(s, "table", a, sa, n);
		print_stack(s, "libdwfl", b, sb, m);
	}
}

/* Bring @s up to date if the mappings of executable memory changed. */
static inline void update_if_changed(struct sym_space *s, pid_t pid)
{
	static struct maps now;
	static uint64_t last_hash;
	static struct sym_space *last;
	uint64_t h = 1;
	maps_read(&now, pid);
	for (size_t i = 0; i < now.nr; i++)
		if (now.map[i].exec)
			h = (h ^ now.map[i].start) * 31 + now.map[i].end;
	if (s == last && h == last_hash)
		return;
	sym_space_update(s, now.map, now.nr, NULL);
	sym_prepare_unwind(s);
	last = s;
	last_hash = h;
}

/* How a program to be sampled is started; the pid to sample. */
typedef pid_t (*start_fn)(void);

static inline pid_t spawn(const char *const argv[])
{
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	return pid;
}

static inline void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) == -1 && errno == EINTR)
		;
}

/* Take @want samples; starts the program again when it ends. */
static inline void sample(struct comparison *c, start_fn start, size_t want,
			  bool verbose)
{
	unsigned seed = 1;
	for (unsigned starts = 0; c->samples < want && starts < 50; starts++) {
		pid_t pid = start();
		if (pid <= 0)
			return;
		run_for(pid, 50 * NSEC_PER_MSEC);
		if (ptrace(PTRACE_SEIZE, pid, 0, 0)) {
			reap(pid);
			continue;
		}
		char root[64];
		snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
		struct sym_space *s =
			sym_space_create(pid, root, read_pid, &pid);
		while (c->samples < want &&
		       run_for(pid, (500 + (uint64_t)(rand_r(&seed) % 1500)) *
					    NSEC_PER_USEC) &&
		       stop(pid)) {
			struct user_regs_struct u;
			struct sym_regs regs;
			ptrace(PTRACE_GETREGS, pid, 0, &u);
			regs_from_user(&regs, &u);
			update_if_changed(s, pid);
			compare_stack(c, s, &regs, verbose);
			ptrace(PTRACE_CONT, pid, 0, 0);
		}
		reap(pid);
		sym_space_destroy(s);
	}
}

/* --- the programs --- */

static inline bool have(const char *program)
{
	return !run("command -v %s >/dev/null", program);
}

static inline pid_t start_bzip2(void)
{
	char file[160];
	snprintf(file, sizeof(file), "%s/data", scratch);
	if (access(file, R_OK) &&
	    run("cat /usr/lib/x86_64-linux-gnu/lib[a-g]*.so.? "
		"/usr/bin/[a-g]* 2>/dev/null | head -c 30000000 >\"$D\"/data"))
		return -1;
	return spawn((const char *[]){"bzip2", "-9c", file, NULL});
}

static inline int free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(fd, (struct sockaddr *)&a, len))
		return 0;
	getsockname(fd, (struct sockaddr *)&a, &len);
	close(fd);
	return ntohs(a.sin_port);
}

static pid_t redis_load;
/* The package redis-tools has the server, too, under another of its names. */
static inline pid_t start_redis(void)
{
	char file[160], port[16];
	snprintf(file, sizeof(file), "%s/redis-server", scratch);
	if (access(file, X_OK) &&
	    run("ln -s \"$(command -v redis-server || "
		"command -v redis-check-rdb)\" \"$D\"/redis-server"))
		return -1;
	snprintf(port, sizeof(port), "%d", free_port());
	if (redis_load > 0)
		reap(redis_load);
	pid_t pid = spawn((const char *[]){file, "--port", port, "--save", "",
					   "--bind", "127.0.0.1", "--dir",
					   scratch, NULL});
	nanosleep(&(struct timespec){0, 300000000}, NULL);
	redis_load = spawn((const char *[]){
		"redis-benchmark", "-p", port, "-q", "-n", "100000", "-l", "-t",
		"set,get,lpush,lrange_100,mset,zadd,spop", NULL});
	return pid;
}

static inline pid_t start_python(void)
{
	char file[160];
	snprintf(file, sizeof(file), "%s/load.py", scratch);
	FILE *f = fopen(file, "w");
	fputs("import json, re\n"
	      "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
	      "class A:\n"
	      "    def __init__(self, v): self.v = v\n"
	      "    def __lt__(self, o): return self.v < o.v\n"
	      "    def __repr__(self): return 'A(%d)' % self.v\n"
	      "def gen(n):\n"
	      "    for i in range(n): yield A((i * 7919) % n)\n"
	      "while True:\n"
	      "    fib(14)\n"
	      "    repr(sorted(gen(500)))\n"
	      "    d = {str(i): [i] * 20 for i in range(200)}\n"
	      "    s = json.dumps(d); json.loads(s)\n"
	      "    re.sub(r'(\\d+), (\\d+)', lambda m: m.group(2), s)\n"
	      "    try: {}['x']\n"
	      "    except KeyError: pass\n",
	      f);
	fclose(f);
	return spawn((const char *[]){"/usr/bin/python3", file, NULL});
}

static inline pid_t start_cxx(void)
{
	char file[160];
	snprintf(file, sizeof(file), "%s/cxx", scratch);
	if (access(file, X_OK) && run("c++ -O2 -o \"$D\"/cxx " FIX "/cxx.cc"))
		return -1;
	return spawn((const char *[]){file, NULL});
}

static const struct sampled_program {
	const char *name;
	const char *needs;
	start_fn start;
} sampled_programs[] = {
	{"bzip2", "bzip2", start_bzip2},
	{"redis-server", "redis-benchmark", start_redis},
	{"python3", "/usr/bin/python3", start_python},
	{"C++", "c++", start_cxx},
};

#endif
