/*
 * The agent in this very process: admission, the books, semantics of the
 * functions it stands in for, the ring when it is full or has a hole, stacks,
 * signal handlers that allocate or jump away.
 */
#pragma GCC optimize("no-omit-frame-pointer")
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "t/unit/hook-self.h"
#include "t/unit/tap.h"

#define MANY 20000

static struct heap_event seen[MANY];
static unsigned nr_seen;

static void hear(void *ctx, const struct heap_event *ev)
{
	(void)ctx;
	if (nr_seen < MANY)
		seen[nr_seen++] = *ev;
}

static unsigned drain(void)
{
	nr_seen = 0;
	hook_shm_drain(&self.shm, hear, NULL);
	return nr_seen;
}

static void tokens(int n)
{
	self.shm.ctl->tokens = n;
}

/* The compiler must not know what these are. */
static void *(*volatile malloc_)(size_t) = malloc;
static void *(*volatile calloc_)(size_t, size_t) = calloc;
static void *(*volatile realloc_)(void *, size_t) = realloc;
static void (*volatile free_)(void *) = free;

/* Ticks that the agent says it took where blocks are made, grow to @bytes and
 * go; a time would be no test, but nobody copies 128 bytes in a tick. */
#define GROWN 256
static uint64_t ticks_of_growing(size_t bytes)
{
	uint64_t before = self.shm.ctl->agent_tsc;
	for (int i = 0; i < GROWN; i++) {
		tokens(3);
		void *p = malloc_(200000);
		p = realloc_(p, bytes);
		free_(p);
		drain();
	}
	return self.shm.ctl->agent_tsc - before;
}

static void copies_are_charged(void)
{
	uint64_t in_place = ticks_of_growing(200001);
	uint64_t copied = ticks_of_growing(250000);
	check(copied > in_place + (uint64_t)GROWN * 200000 / 128);
}

static void admission(void)
{
	void *p[8];
	drain();
	tokens(3);
	uint64_t skipped = self.shm.ctl->nr_skipped;
	uint64_t bytes = self.shm.ctl->skipped_bytes;
	for (int i = 0; i < 8; i++)
		p[i] = malloc_(10000);
	check_int(drain(), 3);
	check_int(self.shm.ctl->nr_skipped - skipped, 5);
	check_int(self.shm.ctl->skipped_bytes - bytes, 50000);
	for (int i = 0; i < 8; i++)
		free_(p[i]);
	check_int(drain(), 3); /* of these the free, and of no other */
	check_int(seen[0].kind, HEAP_FREE);
	check_int(seen[0].addr, (taddr_t)p[0]);
	self.shm.ctl->always_bytes = 1 << 20;
	tokens(0);
	p[0] = malloc_(1 << 20);
	check_int(drain(), 1);
	check_int(seen[0].size, 1 << 20);
	free_(p[0]);
	self.shm.ctl->always_bytes = UINT64_MAX;
	/* Below the cutoff nothing happens, at it something does. */
	tokens(100);
	free_(malloc_(8191));
	check_int(drain(), 1); /* the free of before */
	free_(malloc_(8192));
	check_int(drain(), 2);
}

static void semantics(void)
{
	void *p = NULL;
	tokens(1000);
	errno = 0;
	check(malloc_((size_t)1 << 60) == NULL);
	check_int(errno, ENOMEM);
	errno = 0;
	check(malloc_(SIZE_MAX) == NULL);
	check_int(errno, ENOMEM);
	errno = 0;
	check(calloc_(SIZE_MAX / 2, 4) == NULL);
	check_int(errno, ENOMEM);
	check_int(posix_memalign(&p, 24, 10000), EINVAL);
	check_int(posix_memalign(&p, 64, 10000), 0);
	errno = 77;
	free_(p);
	check_int(errno, 77);
	drain();
	p = malloc_(50000);
	memset(p, 7, 50000);
	errno = 0;
	check(realloc_(p, (size_t)1 << 39) == NULL);
	check_int(errno, ENOMEM);
	check_int(((char *)p)[49999], 7);
	/* The block is still there, and known: given up and taken back. */
	check_int(drain(), 3);
	check_int(seen[2].kind, HEAP_REALLOC);
	check_int(seen[2].addr, (taddr_t)p);
	check_int(seen[2].size, 50000);
	p = realloc_(p, 100);
	check_int(((char *)p)[99], 7);
	check_int(drain(), 1);
	check_int(seen[0].kind, HEAP_FREE);
	free_(p);
	check(realloc_(NULL, 20000) != NULL);
	check_int(drain(), 1);
	char *z = malloc_(40000);
	memset(z, 1, 40000);
	free_(z);
	z = calloc_(4, 10000);
	unsigned dirty = 0;
	for (int i = 0; i < 40000; i++)
		dirty += z[i] != 0;
	check_int(dirty, 0);
	check(malloc_usable_size(z) >= 40000);
	free_(z);
	drain();
}

static void own_pages(void)
{
	char *p[200], *small[200];
	unsigned shared = 0, not_own = 0;
	tokens(1000);
	for (int i = 0; i < 200; i++) {
		p[i] = malloc_(8192 + i * 97);
		small[i] = malloc_(100);
	}
	check_int(drain(), 200);
	for (int i = 0; i < 200; i++)
		not_own += !seen[i].own_pages;
	check_int(not_own, 0);
	for (int i = 0; i < 200; i++)
		for (int k = 0; k < 200; k++)
			shared += (uintptr_t)small[k] / 4096 >=
					  (uintptr_t)p[i] / 4096 &&
				  (uintptr_t)small[k] / 4096 <=
					  (uintptr_t)(p[i] + 8191 + i * 97) /
						  4096;
	check_int(shared, 0);
	for (int i = 0; i < 200; i++)
		free_(p[i]);
	check_int(drain(), 200);
}

/* Of 100 blocks, where having pages of their own may cost no more than so much
 * together: how many have them. */
static unsigned nr_own_of_100(size_t size)
{
	char *p[100];
	unsigned nr = 0;
	tokens(1000);
	for (int i = 0; i < 100; i++)
		p[i] = malloc_(size);
	check_int(drain(), 100);
	for (int i = 0; i < 100; i++) {
		nr += seen[i].own_pages;
		free_(p[i]);
	}
	check_int(drain(), 100);
	return nr;
}

/* What one costs is its page's head and what is left of its last page. */
static void few_own_pages(void)
{
	const unsigned each = 4096 + 4088;
	self.shm.ctl->small_spare = 10 * each >> 10;
	self.shm.ctl->large_spare = 20 * each >> 10;
	/* Some have whole pages by chance. */
	check_range(nr_own_of_100(8200), 10, 15);
	check_range(nr_own_of_100(8200), 10, 15); /* given back */
	check_range(nr_own_of_100(69640), 20, 25);
	self.shm.ctl->large_spare = 0;
	check_range(nr_own_of_100(69640), 0, 5);
	check_range(nr_own_of_100(8200), 10, 15);
	self.shm.ctl->small_spare = 0;
	check_range(nr_own_of_100(8200), 0, 5);
	self.shm.ctl->large_spare = UINT32_MAX;
	check_int(nr_own_of_100(69640), 100);
	self.shm.ctl->small_spare = 16 << 10;
}

static void *nothing(void *arg)
{
	return arg;
}

static void mappings(void)
{
	tokens(100);
	drain();
	char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p + 8192, 8192);
	char *q = mremap(p + 32768, 32768, 1 << 20, MREMAP_MAYMOVE);
	munmap(p, 8192);
	munmap(p + 16384, 16384);
	munmap(q, 1 << 20);
	mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check_int(drain(), 7);
	check_int(seen[0].kind, HEAP_MAP);
	check_int(seen[0].size, 65536);
	check(seen[0].zero_fresh && seen[0].own_pages);
	check_int(seen[1].kind, HEAP_UNMAP);
	check_int(seen[1].addr, (taddr_t)p + 8192);
	check_int(seen[1].size, 8192);
	check_int(seen[2].kind, HEAP_UNMAP);
	check_int(seen[2].addr, (taddr_t)p + 32768);
	check_int(seen[3].kind, HEAP_REMAP);
	check_int(seen[3].addr, (taddr_t)q);
	check_int(seen[3].old_addr, (taddr_t)p + 32768);
	check_int(seen[6].addr, (taddr_t)q);
	/* Thread stacks and glibc's own large blocks are not mappings. */
	pthread_t t;
	pthread_create(&t, NULL, nothing, NULL);
	pthread_join(t, NULL);
	free_(malloc_(300000));
	drain();
	for (unsigned i = 0; i < nr_seen; i++)
		check(seen[i].kind == HEAP_ALLOC || seen[i].kind == HEAP_FREE);
}

static __attribute__((noinline)) void *deep(int n, int last)
{
	char frame[64];
	__asm__ volatile("" : : "r"(frame) : "memory");
	void *p = n ? deep(n - 1, last) : last ? malloc_(9000) : malloc_(9001);
	__asm__ volatile("" : : : "memory");
	return p;
}

/* A frame whose size differs from call to call, near the end of a stack. */
static __attribute__((noinline)) void one_alloca(unsigned bytes)
{
	volatile char *room = __builtin_alloca(bytes);
	room[0] = 1;
	free_(malloc_(9100));
}

static void *with_alloca(void *arg)
{
	unsigned seed = (uintptr_t)arg;
	for (int i = 0; i < 300; i++)
		one_alloca(1 + rand_r(&seed) % (i % 2 ? 60 : 60000));
	return NULL;
}

static void stacks(void)
{
	pthread_t t;
	drain();
	tokens(10000);
	self.shm.ctl->trap_tokens = 0;
	free_(deep(3, 0));
	drain();
	check_int(seen[0].stack, 0);
	check(seen[0].caller != 0);
	self.shm.ctl->trap_tokens = 1000;
	unsigned asked = self.nr_stacks;
	for (int i = 0; i < 20; i++)
		free_(deep(i % 4 * 8, i % 2));
	drain();
	check_int(nr_seen, 40);
	unsigned wrong = 0;
	for (int i = 0; i < 20; i++)
		for (int k = 0; k < i; k++) {
			bool same_path = i % 4 == k % 4 && i % 2 == k % 2;
			wrong += (seen[2 * i].stack == seen[2 * k].stack) !=
				 same_path;
			wrong += !seen[2 * i].stack;
		}
	check_int(wrong, 0);
	check_int(self.nr_stacks - asked, 4);
	/* Right above the stack nothing can be read. */
	pthread_attr_t attr;
	char *room = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	mprotect(room, 1 << 18, PROT_READ | PROT_WRITE);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, room, 1 << 18);
	for (long i = 1; i <= 4; i++) {
		pthread_create(&t, &attr, with_alloca, (void *)i);
		pthread_join(t, NULL);
	}
	munmap(room, 1 << 20);
	check(drain() >= 2400);
	self.shm.ctl->trap_tokens = 0;
}

static void times(void)
{
	static uint64_t before[1000], after[1000];
	unsigned wrong = 0, outside = 0;
	tokens(100000);
	drain();
	for (int i = 0; i < 1000; i++) {
		before[i] = smco_now_ns();
		free_(malloc_(9000));
		after[i] = smco_now_ns();
	}
	usleep(2000);
	check_int(drain(), 2000);
	for (int i = 0; i < 2000; i++) {
		wrong += i && seen[i].time_ns < seen[i - 1].time_ns;
		wrong += seen[i].tid != getpid();
		/* One clock is told by the other. */
		outside += seen[i].time_ns + 20000 < before[i / 2] ||
			   seen[i].time_ns > after[i / 2] + 20000;
	}
	check_int(wrong, 0);
	check_int(outside, 0);
}

/* Nobody drains: the program goes on, all is counted, and it mutes itself
 * until somebody does. */
static void full_ring(void)
{
	signal(SIGURG, SIG_DFL);
	drain();
	tokens(1000000);
	uint64_t lost = self.shm.ctl->nr_lost;
	void *p = malloc_(9000);
	for (int i = 0; i < AGENT_RING_SLOTS; i++)
		free_(malloc_(9000));
	check_int(self.shm.ctl->head - self.shm.ctl->tail, AGENT_RING_SLOTS);
	check(self.shm.ctl->nr_lost > lost);
	check_int(self.shm.ctl->mute, 1);
	free_(p);
	check_int(drain(), AGENT_RING_SLOTS);
	check_int(self.shm.ctl->mute, 0);
	free_(malloc_(9000));
	check_int(drain(), 2);
	/* With somebody: nothing lost, nothing doubled. */
	struct sigaction sa = {.sa_sigaction = self_trap,
			       .sa_flags = SA_SIGINFO};
	sigfillset(&sa.sa_mask);
	sigaction(SIGURG, &sa, NULL);
	lost = self.shm.ctl->nr_lost;
	drain();
	for (int i = 0; i < AGENT_RING_SLOTS; i++)
		free_(malloc_(9000));
	check(self.nr_drains > 0);
	check_int(drain(), 2 * AGENT_RING_SLOTS);
	check_int(self.shm.ctl->nr_lost, lost);
}

static void hole_in_ring(void)
{
	tokens(1000);
	drain();
	uint64_t given_up = self.shm.nr_given_up;
	free_(malloc_(9000));
	/* A thread that has reserved a place and died. */
	self.shm.ctl->head++;
	free_(malloc_(9001));
	check_int(drain(), 2);
	check_int(drain(), 0);
	usleep(1050000);
	check_int(drain(), 2);
	check_int(self.shm.nr_given_up - given_up, 1);
	check_int(self.shm.tail, self.shm.ctl->head);
}

/* A child that nobody has prepared keeps quiet. */
static void unprepared_child(void)
{
	tokens(1000);
	drain();
	void *p = malloc_(9000);
	pid_t pid = fork();
	if (pid == 0) {
		free_(p);
		for (int i = 0; i < 10; i++)
			malloc_(9000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	check_int(drain(), 1);
	free_(p);
	check_int(drain(), 1);
}

/*
 * A program that shuts itself in: one system call of the agent's would be its
 * death. Here: everything but exit_group kills.
 */
static void sandboxed(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = {.len = 4, .filter = filter};
	struct agent_life *life = (void *)(self.area + AGENT_LIFE_OFF);
	for (int by_syscall = 0; by_syscall < 2; by_syscall++) {
		uint64_t before = self.shm.ctl->head;
		int status = -1;
		pid_t pid = fork();
		if (pid == 0) {
			life->alive = 1;
			tokens(1000000);
			self.shm.ctl->trap_tokens = 1000;
			/* So much that nothing needs brk or mmap later. */
			free_(deep(20, 0));
			prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			int r = by_syscall
					? (int)syscall(SYS_seccomp,
						       SECCOMP_SET_MODE_FILTER,
						       0, &prog)
					: prctl(PR_SET_SECCOMP,
						SECCOMP_MODE_FILTER, &prog);
			for (int i = 0; i < 3 * AGENT_RING_SLOTS; i++)
				free_(deep(i % 20, 1));
			_exit(r ? 1 : 7);
		}
		waitpid(pid, &status, 0);
		check_int(status, 7 << 8);
		check(self.shm.ctl->head > before + AGENT_RING_SLOTS / 2);
		self.shm.ctl->trap_tokens = 0;
		while (drain())
			;
	}
}

static void put(uint32_t tid, uint64_t kind, uint64_t flags, taddr_t addr,
		taddr_t old)
{
	struct agent_ctl *c = self.shm.ctl;
	self.shm.ring[c->head % AGENT_RING_SLOTS] = (struct agent_record){
		.seq = c->head + 1,
		.addr = addr,
		.size = 9000,
		.old_addr = old,
		.tid = tid,
		.caller = kind << 56 | flags << 48,
	};
	c->head++;
}

/* A block moved by realloc, whose old place somebody else gets meanwhile: what
 * becomes of it must not be told as if it took that place along. */
static void moves(void)
{
	drain();
	put(1, AR_FREE, ARF_REALLOC, 0x1000, 0);
	put(2, AR_FREE, ARF_REALLOC, 0x5000, 0);
	put(3, AR_ALLOC, 0, 0x1000, 0);
	put(1, AR_REALLOC, 0, 0x9000, 0x1000);
	put(2, AR_REALLOC, 0, 0xa000, 0x5000);
	put(4, 99, 0, 0, 0); /* what the agent never writes */
	check_int(drain(), 5);
	check_int(seen[3].kind, HEAP_ALLOC);
	check_int(seen[3].addr, 0x9000);
	check_int(seen[4].kind, HEAP_REALLOC);
	check_int(seen[4].old_addr, 0x5000);
}

static sigjmp_buf out;
static volatile unsigned nr_handled, jumping;
static void allocating_handler(int sig)
{
	(void)sig;
	nr_handled++;
	void *p = malloc(20000);
	free(p);
	if (jumping)
		siglongjmp(out, 1);
}

static void interrupted(bool jump)
{
	struct itimerval every = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = allocating_handler};
	volatile uint64_t start = smco_now_ns();
	volatile uint64_t end = start + 300 * NSEC_PER_MSEC;
	sigaction(SIGALRM, &sa, NULL);
	tokens(100000000);
	drain();
	jumping = jump;
	nr_handled = 0;
	static volatile unsigned rounds;
	rounds = 0;
	if (!sigsetjmp(out, 1))
		setitimer(ITIMER_REAL, &every, NULL);
	/* Longer where others have the CPU. */
	while (smco_now_ns() < end ||
	       (nr_handled <= 20 &&
		smco_now_ns() < start + 60 * NSEC_PER_SEC)) {
		/* Interrupting malloc itself by malloc is the program's
		 * own fault: only mmap and munmap are interrupted here. */
		void *p = mmap(NULL, 16384, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(p, 16384);
		rounds++;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	usleep(1000);
	printf("# %u rounds, %u signals\n", rounds, nr_handled);
	check(nr_handled > 20);
	/* Places that were reserved when the thread jumped away. */
	end = smco_now_ns() + 60 * NSEC_PER_SEC;
	while (self.shm.tail != self.shm.ctl->head && smco_now_ns() < end)
		if (!drain())
			usleep(10000);
	printf("# %lu given up\n", (long)self.shm.nr_given_up);
	tokens(100);
	free_(malloc_(9000));
	check_int(drain(), 2);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 1024);
#ifdef __SANITIZE_ADDRESS__
	tap_skip("the sanitizer's malloc is in the way");
	return tap_done();
#endif
	if (!check(self_plant(UINT64_MAX, true)))
		return tap_done();
	/* The supervisor's memory is this process's own: what it needs in a
	 * trap is allocated beforehand, unrecorded. */
	self.shm.saved_cap = 64 * AGENT_RING_SLOTS;
	self.shm.saved = malloc(self.shm.saved_cap * sizeof(*seen));
	self.shm.ctl->small_spare = 16 << 10;
	self.shm.ctl->large_spare = UINT32_MAX;
	hook_shm_set_cutoff(&self.shm, 8192);
	admission();
	copies_are_charged();
	semantics();
	own_pages();
	few_own_pages();
	mappings();
	stacks();
	times();
	full_ring();
	hole_in_ring();
	moves();
	unprepared_child();
	sandboxed();
	interrupted(false);
	interrupted(true);
	self_unplant();
	return tap_done();
}
