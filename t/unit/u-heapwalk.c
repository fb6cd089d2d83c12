/*
 * Chunk headers in a thread's stack are no blocks: whatever it looks like, a
 * mapping with a stack pointer in it is passed by.
 */
#include <pthread.h>

#include "supervisor/probe/heapwalk.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define PAGE	     4096UL
#define STACK_BYTES  (16 * PAGE)
#define BIG	     (1UL << 20)
#define CHUNK_HEADER 16

/* At the same addresses in the puppet. */
static char *stack_mem, *block_mem;

/* Between two guards, lest it become part of another mapping. */
static char *map_apart(size_t bytes)
{
	char *mem = mmap(NULL, bytes + 2 * PAGE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check_int(mprotect(mem + PAGE, bytes, PROT_READ | PROT_WRITE), 0);
	return mem + PAGE;
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A header as malloc leaves it in front of a chunk with a mapping of its own.
 */
static void forge_chunk(char *mem, size_t bytes)
{
	const uint64_t header[2] = {0, bytes | 2};
	memcpy(mem, header, sizeof(header));
}

/* A thread on that stack, and a block, which malloc need not be glibc's for. */
static long act_start(long unused, long unused2)
{
	pthread_attr_t attr;
	pthread_t t;
	(void)unused;
	(void)unused2;
	forge_chunk(stack_mem, STACK_BYTES);
	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack_mem, STACK_BYTES) ||
	    pthread_create(&t, &attr, idle, NULL))
		return 0;
	forge_chunk(block_mem, BIG);
	return (long)(block_mem + CHUNK_HEADER);
}

struct seen {
	taddr_t block;
	unsigned nr_blocks, nr_forged;
};

static void note(void *ctx, const struct heap_block *b)
{
	struct seen *s = ctx;
	const taddr_t start = (uintptr_t)stack_mem;
	s->nr_blocks += b->addr == s->block;
	s->nr_forged += b->addr >= start && b->addr < start + STACK_BYTES;
}

int main(void)
{
	struct smco_err err = {0};
	struct tracer *tr;
	struct seen seen = {0};
	bool complete = false;

	stack_mem = map_apart(STACK_BYTES);
	block_mem = map_apart(BIG);
	struct puppet p = puppet_start();
	seen.block = (taddr_t)puppet_do(&p, act_start, 0, 0);
	check(seen.block != 0);
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	struct tproc *proc = traced_attach(tr, p.pid, &err);
	if (!check(proc != NULL)) {
		printf("# %s\n", err.msg);
		return tap_done();
	}
	check_int(heapwalk(proc, 8192, 0, 0, NSEC_PER_SEC, note, &seen,
			   &complete, &err),
		  0);
	check(complete);
	check_int(seen.nr_blocks, 1);
	check_int(seen.nr_forged, 0);
	tracer_destroy(tr);
	puppet_end(&p);
	return tap_done();
}
