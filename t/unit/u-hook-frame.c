/*
 * A thread is in a signal handler that has interrupted malloc in its first
 * instructions, where a jump is put meanwhile: it returns to what they are
 * now, and back to the function itself if the jump goes before that.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <ucontext.h>

#include "t/unit/hook-copy.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define TRAP_FLAG 0x100
#define BYTES	  1000
#define JUMP	  5

static struct tracer *tr;
static struct {
	volatile int there, go;
} * shared;
static uintptr_t entry;

/* One instruction of malloc was made, the next one is in the same five bytes.
 */
static void on_step(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;
	uintptr_t at = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
	(void)sig;
	(void)si;
	if (at <= entry || at >= entry + JUMP)
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	shared->there = 1;
	while (!shared->go)
		usleep(1000);
}

static long act_malloc(long unused, long unused2)
{
	struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	(void)unused;
	(void)unused2;
	sigaction(SIGTRAP, &sa, NULL);
	void *(*volatile fn)(size_t) = (void *(*)(size_t))entry;
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG)
			 : "cc", "memory");
	return copy_uses(fn(BYTES), BYTES);
}

static struct tproc *attach_in_handler(struct puppet *pup)
{
	struct smco_err err = {0};
	shared->there = shared->go = 0;
	*pup = puppet_start();
	puppet_begin(pup, act_malloc, 0, 0);
	while (!shared->there || puppet_state(pup->pid) != 'S')
		usleep(1000);
	struct tproc *p = traced_attach(tr, pup->pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		exit(tap_done());
	check(task_in_handler(tproc_first_task(p)));
	return p;
}

static struct hooks *plant(struct tproc *p)
{
	const struct hook_symbols syms = {.find = copy_find};
	struct smco_err err = {0};
	struct hooks *h = NULL;
	check_int(hooks_plant(p, &syms, 1 << 20, &h, &err), 0);
	printf("# %s\n", h ? hooks_describe(h) : err.msg);
	return h;
}

static void returns_under_sensors(void)
{
	struct puppet pup;
	struct tproc *p = attach_in_handler(&pup);
	struct hooks *h = plant(p);
	tproc_resume_new(p);
	shared->go = 1;
	check_int(traced_wait(tr, &pup), BYTES);
	if (h)
		hooks_remove(h, NULL);
	hooks_destroy(h);
	check_int(tproc_detach(p, NULL), 0);
	puppet_end(&pup);
}

static void returns_when_they_are_gone(void)
{
	struct puppet pup;
	struct tproc *p = attach_in_handler(&pup);
	struct hooks *h = plant(p);
	if (h)
		hooks_remove(h, NULL);
	hooks_destroy(h);
	check_int(tproc_detach(p, NULL), 0);
	check(!copy_has_area(pup.pid));
	shared->go = 1;
	check_int(puppet_wait(&pup), BYTES);
	puppet_end(&pup);
}

int main(void)
{
	struct smco_err err = {0};
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	entry = (uintptr_t)dlsym(RTLD_DEFAULT, "malloc");
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	returns_under_sensors();
	returns_when_they_are_gone();
	tracer_destroy(tr);
	return tap_done();
}
