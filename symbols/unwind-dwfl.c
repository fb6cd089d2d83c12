/*
 * The reference: the same stacks by libdwfl, with registers and memory from
 * the caller instead of ptrace. Slow (it parses as it goes and reads word by
 * word), but somebody else's code.
 */
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/space.h"

struct reference {
	Dwfl *dwfl;
	struct sym_space *space;
	const struct sym_regs *regs;
	taddr_t *frames, *slots;
	size_t nr, max;
	bool full;
};

static int no_debuginfo(Dwfl_Module *mod, void **user, const char *name,
			Dwarf_Addr base, const char *file, const char *link,
			GElf_Word crc, char **ret)
{
	(void)mod, (void)user, (void)name, (void)base, (void)file;
	(void)link, (void)crc, (void)ret;
	return -1;
}

static int no_elf(Dwfl_Module *mod, void **user, const char *name,
		  Dwarf_Addr base, char **file, Elf **elf)
{
	(void)mod, (void)user, (void)name, (void)base, (void)file, (void)elf;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = no_elf,
	.find_debuginfo = no_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return 1;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	struct reference *ref = arg;
	(void)dwfl;
	return space_read(ref->space, addr, ret, sizeof(*ret));
}

static bool initial_registers(Dwfl_Thread *thread, void *arg)
{
	struct reference *ref = arg;
	return dwfl_thread_state_registers(thread, 0, 17, ref->regs->reg);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = memory_read,
	.set_initial_registers = initial_registers,
};

/* A descriptor that libdwfl may close. */
static int module_fd(const struct module *m)
{
	if (m->fd >= 0)
		return dup(m->fd);
	if (!m->image_len)
		return -1;
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 &&
	    write(fd, m->image, m->image_len) != (ssize_t)m->image_len) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool reported(const struct sym_space *s, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (s->ranges[j].mod == s->ranges[i].mod &&
		    s->ranges[j].bias == s->ranges[i].bias)
			return true;
	return false;
}

static struct reference *reference_create(struct sym_space *s)
{
	struct reference *ref = calloc(1, sizeof(*ref));
	if (!ref)
		return NULL;
	ref->space = s;
	ref->dwfl = dwfl_begin(&callbacks);
	if (!ref->dwfl) {
		free(ref);
		return NULL;
	}
	dwfl_report_begin(ref->dwfl);
	for (size_t i = 0; i < s->nr_ranges; i++) {
		const struct space_range *r = &s->ranges[i];
		if (!r->mod || !r->mod->is_elf || reported(s, i))
			continue;
		int fd = module_fd(r->mod);
		if (fd >= 0 &&
		    !dwfl_report_elf(ref->dwfl, r->mod->path, r->mod->path, fd,
				     r->bias, true))
			close(fd);
	}
	dwfl_report_end(ref->dwfl, NULL, NULL);
	if (!dwfl_attach_state(ref->dwfl, NULL, 1, &thread_callbacks, ref)) {
		reference_destroy(ref);
		return NULL;
	}
	return ref;
}

void reference_destroy(struct reference *ref)
{
	if (!ref)
		return;
	dwfl_end(ref->dwfl);
	free(ref);
}

static int take_frame(Dwfl_Frame *state, void *arg)
{
	struct reference *ref = arg;
	Dwarf_Addr pc;
	Dwarf_Word sp;
	bool interrupted;
	if (!dwfl_frame_pc(state, &pc, &interrupted))
		return DWARF_CB_ABORT;
	if (ref->nr == ref->max) {
		ref->full = true;
		return DWARF_CB_ABORT;
	}
	/* The return address lies just below the caller's frame; where a signal
	 * interrupted it, libdwfl does not tell. */
	bool known = ref->nr && !interrupted && !dwfl_frame_reg(state, 7, &sp);
	ref->frames[ref->nr] = pc;
	ref->slots[ref->nr++] = known ? sp - 8 : 0;
	return DWARF_CB_OK;
}

size_t sym_unwind_dwfl(struct sym_space *s, const struct sym_regs *regs,
		       taddr_t *frames, taddr_t *slots, size_t max,
		       bool *complete)
{
	*complete = false;
	if (!max)
		return 0;
	if (!s->reference)
		s->reference = reference_create(s);
	struct reference *ref = s->reference;
	if (ref) {
		ref->regs = regs;
		ref->frames = frames;
		ref->slots = slots;
		ref->nr = 0;
		ref->max = max;
		ref->full = false;
		*complete =
			!dwfl_getthread_frames(ref->dwfl, 1, take_frame, ref) &&
			!ref->full;
		if (ref->nr)
			return ref->nr;
	}
	frames[0] = regs->reg[16];
	slots[0] = 0;
	return 1;
}
