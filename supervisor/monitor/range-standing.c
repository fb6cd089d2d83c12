/* What registers cost by being armed, and when they have to rest for it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* What registers may cost by being armed, a part of the target. */
#define STANDING_SHARE 4

struct range_moved range_watch_moved(const struct range_part *rp)
{
	char path[PROCFS_PATH], text[1024];
	unsigned long long in = 0, out = 0, faults = 0, ticks = 0;
	procfs_path(path, sizeof(path), rp->pid, "io");
	if (smco_slurp(path, text, sizeof(text)) > 0)
		(void)sscanf(text, "rchar: %llu wchar: %llu", &in, &out);
	procfs_path(path, sizeof(path), rp->pid, "stat");
	if (smco_slurp(path, text, sizeof(text)) > 0) {
		const char *at = strrchr(text, ')');
		if (at)
			(void)sscanf(at + 1,
				     " %*c %*d %*d %*d %*d %*d %*u %llu"
				     " %*u %*u %*u %*u %llu",
				     &faults, &ticks);
	}
	return (struct range_moved){
		.bytes = in + out,
		.faults = faults,
		.kernel_ns = max_u64(
			sat_sub_u64(ticks * NSEC_PER_SEC /
					    (uint64_t)sysconf(_SC_CLK_TCK),
				    rp->hits_own_ns),
			rp->moved.kernel_ns),
	};
}

uint64_t range_watch_rest_ns(uint64_t cost_ns, int64_t m_t_ppb)
{
	return m_t_ppb > 0 ? sat_u64((u128)cost_ns * STANDING_SHARE * PPB /
				     (uint64_t)m_t_ppb)
			   : 0;
}

uint64_t range_watch_standing(struct range_monitor *m, struct range_part *rp)
{
	bool any = false; /* breakpoints cost nothing but hits */
	for (unsigned i = 0; i < WATCH_REGISTERS; i++)
		any |= rp->reg[i].w && !rp->reg[i].what.is_insn;
	struct range_moved now = range_watch_moved(rp), was = rp->moved;
	uint64_t ns = watchpoints_standing_ns(
		m->watchpoints, sat_sub_u64(now.bytes, was.bytes),
		sat_sub_u64(now.faults, was.faults));
	/* Nobody tells of hits there: all of it may have been that. */
	if (!watchpoints_see_kernel(m->watchpoints))
		ns = max_u64(ns, sat_sub_u64(now.kernel_ns, was.kernel_ns));
	rp->moved = now;
	if (!any)
		return 0;
	ledger_charge(m->ledger, LEDGER_TOUCH, RANGE_WATCH_MONITOR, ns);
	return ns;
}

bool range_watch_must_rest(const struct range_monitor *m, struct range_part *rp,
			   uint64_t ns, uint64_t now_ns)
{
	int64_t target = m->p.target_overhead_ppb;
	if (target_is_unlimited(target))
		return false;
	uint64_t rest_ns =
		range_watch_rest_ns(ns, control_m_from_overhead(target));
	if (rest_ns > now_ns - rp->watch_tick_ns)
		rp->rest_until_ns = now_ns + rest_ns;
	return now_ns < rp->rest_until_ns;
}
