#include "supervisor/own-stack.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#define STACK_BYTES (8ul << 20)
#define GUARD_BYTES (64ul << 10)

/* makecontext() hands on numbers only. */
static struct {
	int (*fn)(int argc, char **argv);
	int argc;
	char **argv;
	int ret;
} call;

static void run(void)
{
	call.ret = call.fn(call.argc, call.argv);
}

static void enlarge_threads(void)
{
	pthread_attr_t attr;
	if (pthread_attr_init(&attr))
		return;
	if (!pthread_attr_setstacksize(&attr, STACK_BYTES))
		pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

int own_stack_call(int (*fn)(int argc, char **argv), int argc, char **argv)
{
	struct rlimit limit;
	ucontext_t here, there;
	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_BYTES)
		return fn(argc, argv);
	char *stack = mmap(
		NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) ||
	    getcontext(&there))
		return fn(argc, argv);
	enlarge_threads();
	call.fn = fn;
	call.argc = argc;
	call.argv = argv;
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, run, 0);
	swapcontext(&here, &there);
	return call.ret;
}
