/* Signal frames, see sigframe.h. */
#include "supervisor/probe/sigframe.h"

#include <string.h>

#define SCAN_BYTES (64U << 10)
/* Of rip in the frame, behind the return address that is the restorer's. */
#define UC_RIP_OFF 168

/* Every libc's restorer is the same two instructions. */
static bool is_restorer(struct tproc *p, taddr_t pc)
{
	static const uint8_t sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0,
					    0,	  0,	0x0f, 0x05};
	uint8_t code[sizeof(sigreturn)];
	return tmem_read(p, pc, code, sizeof(code)) == 0 &&
	       !memcmp(code, sigreturn, sizeof(code));
}

size_t sigframes_find(struct tproc *p, taddr_t rsp, taddr_t lo, taddr_t hi,
		      void (*fn)(void *ctx, taddr_t slot, taddr_t pc),
		      void *ctx)
{
	static uint64_t words[SCAN_BYTES / 8];
	size_t found = 0;
	rsp &= ~7ULL;
	size_t nr = tmem_read_readable(p, rsp, words, sizeof(words)) / 8;
	for (size_t i = UC_RIP_OFF / 8 + 1; i < nr; i++) {
		if (words[i] < lo || words[i] >= hi ||
		    !is_restorer(p, words[i - UC_RIP_OFF / 8 - 1]))
			continue;
		found++;
		if (fn)
			fn(ctx, rsp + 8 * i, words[i]);
	}
	return found;
}

bool sigframes_leads_to(struct task *t, taddr_t lo, taddr_t hi)
{
	taddr_t pc, sp;
	int r = task_get_place(t, &pc, &sp);
	if (r == SMCO_GONE)
		return false;
	return r < 0 || (pc >= lo && pc < hi) ||
	       (task_in_handler(t) &&
		sigframes_find(task_proc(t), sp, lo, hi, NULL, NULL));
}
