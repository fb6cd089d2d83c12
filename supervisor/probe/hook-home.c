/* Stacks that lead through a sensor, see hook.h. */
#include <string.h>

#include "supervisor/probe/hook-private.h"

extern const uint8_t agent_image_start[];

/* As far as the agent's own frames reach. */
#define OWN_BYTES 4096
#define NO_SITE	  UINT64_MAX

bool hook_leave_stub(const struct hooks *h, struct user_regs_struct *regs)
{
	for (unsigned i = 0; i < h->plan.nr_sites; i++) {
		unsigned pop;
		if (!h->plan.sites[i].planted)
			continue;
		taddr_t to =
			stub_home_pc(&h->plan.sites[i].stub, regs->rip, &pop);
		if (!to)
			continue;
		regs->rip = to;
		regs->rsp += pop;
		return true;
	}
	return false;
}

bool hooks_home(const struct hooks *h, struct user_regs_struct *regs)
{
	taddr_t stubs = h->base + AGENT_STUB_OFF;
	return regs->rip - stubs < AGENT_STUB_BYTES && hook_leave_stub(h, regs);
}

static const struct agent_header *header(void)
{
	static struct agent_header hdr;
	if (!hdr.magic)
		memcpy(&hdr, agent_image_start, sizeof(hdr));
	return &hdr;
}

bool hooks_have(const struct hooks *h, taddr_t pc)
{
	return pc - (h->base + AGENT_IMAGE_OFF) < header()->text_bytes;
}

static bool read_all(const struct hook_stack *stack, taddr_t at, void *buf,
		     size_t len)
{
	return stack->read(stack->ctx, at, buf, len) == len;
}

/* The frame at @at: @regs become those at the function's entry. */
static bool leave_frame(const struct hooks *h, const struct hook_stack *stack,
			taddr_t at, struct user_regs_struct *regs,
			uint64_t *site_ret)
{
	struct agent_frame f;
	if (!read_all(stack, at, &f, sizeof(f)) || hooks_have(h, f.ret) ||
	    f.site >= h->plan.nr_sites ||
	    f.state & ~(uint64_t)(AGENT_FRAME_RESULT | AGENT_FRAME_MASK))
		return false;
	hook_frame_regs(regs, at, &f);
	*site_ret = f.site;
	return true;
}

/* How many words agent_entry has pushed when it is @bytes further on. */
static unsigned nr_pushed(const uint8_t *code, size_t bytes)
{
	unsigned nr = 0;
	for (size_t i = 0; i < bytes; nr++) {
		if (code[i] == 0x41 && (code[i + 1] & 0xf8) == 0x50)
			i += 2; /* push r8 to r15 */
		else if ((code[i] & 0xf8) == 0x50)
			i++;
		else if (code[i] == 0x6a)
			i += 2;
		else
			break;
	}
	return nr;
}

/* From within agent_entry, whose frame is in the making or being left. */
static bool leave_entry(const struct hooks *h, const struct hook_stack *stack,
			struct user_regs_struct *regs, uint64_t *site_ret)
{
	const struct agent_header *hdr = header();
	const uint8_t *image = agent_image_start;
	uint64_t off = regs->rip - (h->base + AGENT_IMAGE_OFF);
	if (off < hdr->framed_off) {
		regs->rsp += 8 * nr_pushed(image + hdr->entry_off,
					   off - hdr->entry_off);
		if (!read_all(stack, regs->rsp, site_ret, sizeof(*site_ret)))
			return false;
		regs->rsp += 8;
		return *site_ret < h->plan.nr_sites;
	}
	if (off < hdr->unframed_off)
		return leave_frame(h, stack, regs->rbp, regs, site_ret);
	/* ret; jmp *%r11: all is as it was, but which site nobody says. So it
	 * is as if the function had returned. */
	if (image[off] == 0xc3 ||
	    (image[off] == 0x41 && image[off + 1] == 0xff)) {
		*site_ret = NO_SITE;
		regs->rsp += 8;
		return read_all(stack, regs->rsp - 8, &regs->rip,
				sizeof(regs->rip));
	}
	return leave_frame(h, stack, regs->rsp, regs, site_ret);
}

/* From C code of the agent: where the stack has the way back to agent_entry,
 * there is a frame, or, for C is called with an aligned stack, a word on. */
static bool leave_c(const struct hooks *h, const struct hook_stack *stack,
		    taddr_t from, struct user_regs_struct *regs,
		    uint64_t *site_ret)
{
	uint64_t word[OWN_BYTES / 8];
	taddr_t back = h->base + AGENT_IMAGE_OFF + header()->return_off;
	size_t nr = stack->read(stack->ctx, from, word, sizeof(word)) / 8;
	for (size_t i = 0; i < nr; i++) {
		taddr_t at = from + (i + 1) * 8;
		if (word[i] == back &&
		    (leave_frame(h, stack, at, regs, site_ret) ||
		     leave_frame(h, stack, at + 8, regs, site_ret)))
			return true;
	}
	return false;
}

bool hooks_leave(const struct hooks *h, const struct hook_stack *stack,
		 const taddr_t *lowest, struct user_regs_struct *regs)
{
	uint64_t site, off = regs->rip - (h->base + AGENT_IMAGE_OFF);
	struct user_regs_struct at = *regs;
	bool in_entry = off - header()->entry_off <
			header()->entry_end - header()->entry_off;
	bool left = !lowest && in_entry
			    ? leave_entry(h, stack, &at, &site)
			    : leave_c(h, stack, lowest ? *lowest : at.rsp, &at,
				      &site);
	if (!left)
		return false;
	if (site != NO_SITE)
		at.rip = h->plan.sites[site].addr;
	*regs = at;
	return true;
}
