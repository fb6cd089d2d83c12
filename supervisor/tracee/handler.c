/*
 * Is a signal handler running in a thread, or waiting for another one there?
 * Where it returns to is in a frame on the stack, and reading a thousand stacks
 * takes milliseconds in which their threads stand. But no handler begins
 * without the stop of its signal, which we see: so a stack without a frame has
 * none until a signal is delivered to its thread. Who sleeps is looked at
 * before anybody is stopped.
 *
 * A frame that lies there all the time from before a look to after it is seen
 * by it, whatever its thread does meanwhile. One that was not there before
 * came with a signal.
 */
#include "supervisor/tracee/internal.h"

/* Of a stack, above its pointer. */
#define LOOK_BYTES (256UL << 10)

/* False: none is there. */
static bool has_frame(struct tproc *p, taddr_t sp)
{
	static uint64_t words[LOOK_BYTES / 8];
	size_t nr = tmem_read_readable(p, sp & ~7ULL, words, sizeof(words)) / 8;
	return nr == 0 || arch.has_frame(words, nr);
}

static void look_from(struct task *t, taddr_t sp)
{
	t->no_handler = !has_frame(t->proc, sp);
}

void handler_look(struct task *t)
{
	taddr_t pc, sp;
	if (!t->no_handler && proc_place(t, &pc, &sp) == 0)
		look_from(t, sp);
}

bool task_in_handler(struct task *t)
{
	struct user_regs_struct regs;
	if (!t->no_handler && task_get_regs(t, &regs) == 0)
		look_from(t, arch.sp(&regs));
	return !t->no_handler;
}
