/*
 * hook-self.h - plants the agent into the test itself, by the same plan and
 * the same image as into a tracee, without ptrace: for tests and measurements
 * of everything but the planting.
 */
#ifndef HOOK_SELF_H
#define HOOK_SELF_H

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "supervisor/probe/hook-plan.h"
#include "supervisor/probe/hook-shm.h"

extern const uint8_t agent_image_start[], agent_image_end[];

struct self {
	struct hook_plan plan;
	struct hook_shm shm;
	uint8_t *area;
	unsigned nr_stacks, nr_drains;
};
static struct self self;

static taddr_t self_find(void *ctx, const char *name, taddr_t *start,
			 taddr_t *end)
{
	void *p = dlsym(RTLD_DEFAULT, name);
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], perms[8];
	unsigned long a, b;
	(void)ctx;
	while (p && f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &a, &b, perms) == 3 &&
		    (taddr_t)p >= a && (taddr_t)p < b) {
			*start = a;
			*end = b;
		}
	if (f)
		fclose(f);
	return (taddr_t)p;
}

static size_t self_read(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	memcpy(buf, (void *)addr, len);
	return len;
}

/* Stands for the supervisor: answers the agent's traps. Walks frame pointers,
 * so only code compiled with them gets more than one frame. */
static void self_trap(int sig, siginfo_t *si, void *uc_void)
{
	ucontext_t *uc = uc_void;
	(void)sig;
	(void)si;
	if (uc->uc_mcontext.gregs[REG_RBX] != (long)AGENT_MAGIC)
		return;
	const struct agent_frame *f = (void *)uc->uc_mcontext.gregs[REG_R12];
	if (uc->uc_mcontext.gregs[REG_R13] == AGENT_TRAP_DRAIN) {
		self.nr_drains++;
		hook_shm_save(&self.shm);
		return;
	}
	taddr_t frames[40], slots[40];
	size_t nr = 1;
	uint64_t bp = f->rbp;
	frames[0] = f->ret;
	slots[0] = (taddr_t)&f->ret;
	while (nr < 40 && bp > slots[nr - 1] && bp - slots[nr - 1] < 1 << 17) {
		/* What is no frame pointer may lead anywhere. */
		uint64_t w[2];
		struct iovec here = {w, sizeof(w)}, there = {(void *)bp, 16};
		if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 16)
			break;
		frames[nr] = w[1];
		slots[nr++] = bp + 8;
		bp = w[0];
	}
	hook_shm_add_stack(&self.shm, ++self.nr_stacks, frames, slots, nr);
}

/* Text with the jumps of what is planted, or as it was. */
static void self_patch(bool is_planted)
{
	taddr_t text = self.plan.mod_start;
	size_t len = self.plan.mod_end - text;
	mprotect((void *)text, len, PROT_READ | PROT_WRITE | PROT_EXEC);
	for (unsigned i = 0; i < self.plan.nr_sites; i++) {
		const struct stub *s = &self.plan.sites[i].stub;
		if (self.plan.sites[i].planted)
			memcpy((void *)s->patch, is_planted ? s->jump : s->old,
			       STUB_JUMP_BYTES);
	}
	mprotect((void *)text, len, PROT_READ | PROT_EXEC);
}

/* With @traps somebody answers; without, the agent's signals are ignored as
 * in a program whose supervisor has died. */
static bool self_plant(uint64_t cutoff, bool traps)
{
	const struct hook_symbols syms = {.find = self_find,
					  .find_libc = self_find};
	struct smco_err err = {0};
	int fd = memfd_create("self", MFD_CLOEXEC);

	if (hook_plan_find(&self.plan, &syms, &err) ||
	    ftruncate(fd, AGENT_SHM_BYTES) ||
	    hook_shm_init(&self.shm, fd, true, &err))
		goto failed;
	uint8_t *at = (uint8_t *)(self.plan.mod_start & ~0xffffffUL);
	for (int i = 0; i < 64; i++, at -= 0x1000000) {
		self.area =
			mmap(at, AGENT_AREA_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			     -1, 0);
		if (self.area != MAP_FAILED)
			break;
	}
	if (self.area == MAP_FAILED ||
	    mmap(self.area + AGENT_SHM_OFF, AGENT_SHM_BYTES,
		 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 0) == MAP_FAILED)
		goto failed;
	if (hook_plan_build(&self.plan, (taddr_t)self.area, self_read, NULL,
			    &err))
		goto failed;
	struct agent_private *priv = &self.plan.priv;
	priv->trap_signal = SIGURG;
	taddr_t fs_base;
	__asm__("mov %%fs:0, %0" : "=r"(fs_base));
	priv->tid_offset = hook_tid_offset(fs_base, getpid(), self_read, NULL);
	priv->pid = getpid();
	if (traps) {
		struct sigaction sa = {.sa_sigaction = self_trap,
				       .sa_flags = SA_SIGINFO};
		sigfillset(&sa.sa_mask);
		sigaction(SIGURG, &sa, NULL);
	}
	memcpy(self.area, agent_image_start,
	       agent_image_end - agent_image_start);
	memcpy(self.area + AGENT_STUB_OFF, self.plan.stubs, AGENT_STUB_BYTES);
	memcpy(self.area + AGENT_PRIV_OFF, priv, sizeof(*priv));
	((struct agent_life *)(self.area + AGENT_LIFE_OFF))->alive = 1;
	madvise(self.area + AGENT_LIFE_OFF, 4096, MADV_WIPEONFORK);
	mprotect(self.area, AGENT_LIFE_OFF, PROT_READ | PROT_EXEC);
	hook_shm_set_cutoff(&self.shm, cutoff);

	self_patch(true);
	return true;
failed:
	printf("# cannot plant: %s\n", err.msg);
	return false;
}

static void self_unplant(void)
{
	self_patch(false);
}

#endif
