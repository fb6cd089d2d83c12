#include "supervisor/control/primary.h"

#include <string.h>

/*
 * m_lt never goes below a quarter of the even share. At the even share n busy
 * plants use m_gt exactly; less is only needed to make up for an overshoot, and
 * the ledger sees to that too.
 */
#define SHARE_MIN_DIVISOR 4
/* One ad hoc step changes m_lt at most by this factor. */
#define ADHOC_FACTOR_MAX 8
/* Keeps products of two of them within 128 bits. */
#define RATIO_MAX ((u128)1 << 60)

void primary_init(struct primary *p, const struct control_params *params)
{
	int64_t o = params->target_overhead_ppb;
	int64_t gain = params->gain_ppb;
	if (gain <= 0)
		gain = o > 70 * (PPB / 100) ? PPB / 2 : PPB / 10;
	memset(p, 0, sizeof(*p));
	p->kind = params->kind;
	p->is_unlimited = target_is_unlimited(o);
	p->m_gt_fine = control_m_from_overhead(o) * FINE_PER_PPB;
	p->is_off = p->m_gt_fine == 0;
	p->inv_gain_ppb = sat_i64((i128)PPB * PPB / gain);
	p->interval_ns = params->interval_ns;
	if (!p->interval_ns)
		p->interval_ns = params->kind == CONTROL_ADHOC
					 ? 10 * NSEC_PER_SEC
					 : 400 * NSEC_PER_MSEC;
	p->m_lt_fine = p->m_gt_fine;
}

static int64_t even_share(const struct primary *p, uint32_t n)
{
	return p->m_gt_fine / (n ? n : 1);
}

/* Within [a quarter of the even share, m_gt], and above 0. */
static int64_t clamp_local(const struct primary *p, uint32_t n, int64_t m)
{
	int64_t lo = even_share(p, n) / SHARE_MIN_DIVISOR;
	return clamp_i64(m, lo > 0 ? lo : 1, p->m_gt_fine);
}

void primary_resize(struct primary *p, uint32_t n)
{
	if (p->is_off || p->kind == CONTROL_GLOBAL || p->is_unlimited)
		return;
	/*
	 * The ad hoc law only corrects what it has, so what is common to all
	 * of them, the start at m_gt / n, is all that n means to it.
	 */
	if (p->kind == CONTROL_ADHOC && p->total_run_ns) {
		p->m_lt_fine = clamp_local(p, n, p->m_lt_fine);
		return;
	}
	p->m_lt_fine = clamp_local(p, n, even_share(p, n) + p->offset_fine);
}

/*
 * Paper: e = m_gt - sum(p) / T, e_c += e, m_lt = m_gt / n + K_I e_c.
 * Three things are added.
 *
 * The program's time R takes the place of T. When it ran for less than T the
 * error counts in proportion, (m_gt R - sum(p)) / T: an idle interval says
 * little about what the plants will do.
 *
 * What counts is the demand, not what was granted. While the ledger holds
 * plants back, sum(p) says that all is well however far m_lt is off.
 *
 * K_I is an upper limit. A plant that is always active answers a change of
 * m_lt by that change, so a hundred of them multiply it by g = 100, and they
 * do so only when their running cycle of length L ends. An integrator of gain K
 * behind such a plant oscillates from K g (1 + L/T) of about 1.5 on; K is
 * kept at half of one over that product. With few plants or plants that are
 * seldom active it is K_I, as in the paper. g and L come from the plants'
 * last cycles, not from the events of this interval: 100 000 plants
 * added together fire together, and then for seconds none does.
 */
static void step_cascade(struct primary *p, uint32_t n,
			 const struct primary_sample *s)
{
	uint64_t t = max_u64(s->elapsed_ns, 1);
	uint64_t r = max_u64(s->run_ns, t);
	uint64_t demand = max_u64(s->demand_ns, s->p_ns);
	u128 used = (u128)demand * FINE_ONE / r;
	if (used > INT64_MAX)
		used = INT64_MAX;
	i128 wanted = (i128)p->m_gt_fine * s->run_ns / r;
	i128 e = wanted - (i128)used;

	u128 active = (u128)s->active_ppb * FINE_PER_PPB;
	if (active < used)
		active = used;
	/* The peak fades by a quarter per interval: plants come in crowds. */
	p->active_fine -= p->active_fine / 4;
	if (active < (uint64_t)p->active_fine)
		active = (uint64_t)p->active_fine;
	p->active_fine = (int64_t)min_u64(sat_u64(active), INT64_MAX);
	u128 g = active * PPB / (uint64_t)p->m_lt_fine;
	u128 lag = PPB;
	if (s->active_ppb)
		lag += (u128)s->active_p_ns * PPB / s->active_ppb * PPB / t;
	if (g > RATIO_MAX)
		g = RATIO_MAX;
	if (lag > RATIO_MAX)
		lag = RATIO_MAX;
	u128 inv = 2 * g * lag / PPB;
	if (inv < (uint64_t)p->inv_gain_ppb)
		inv = (uint64_t)p->inv_gain_ppb;

	/* |e| < 2^63 and 10^9 < 2^30: the product fits. */
	i128 offset = p->offset_fine + e * PPB / (i128)inv;
	int64_t share = even_share(p, n);
	p->m_lt_fine = clamp_local(p, n, sat_i64(share + offset));
	/* Anti-windup: what the clamp cut off is not remembered. */
	p->offset_fine = p->m_lt_fine - share;
}

/* m_lt *= m_gt / observed, the observed percentage being the whole run's. */
static void step_adhoc(struct primary *p, uint32_t n)
{
	if (!p->total_run_ns)
		return;
	u128 observed = (u128)p->total_p_ns * FINE_ONE / p->total_run_ns;
	u128 lo = (u128)p->m_gt_fine / ADHOC_FACTOR_MAX;
	u128 hi = (u128)p->m_gt_fine * ADHOC_FACTOR_MAX;
	if (observed < lo)
		observed = lo;
	if (observed > hi)
		observed = hi;
	if (!observed)
		observed = 1;
	u128 m = (u128)p->m_lt_fine * (uint64_t)p->m_gt_fine / observed;
	p->m_lt_fine =
		clamp_local(p, n, (int64_t)min_u64(sat_u64(m), INT64_MAX));
}

void primary_step(struct primary *p, uint32_t n, const struct primary_sample *s)
{
	if (p->is_off || p->is_unlimited)
		return;
	switch (p->kind) {
	case CONTROL_CASCADE:
		step_cascade(p, n, s);
		break;
	case CONTROL_ADHOC:
		step_adhoc(p, n);
		break;
	case CONTROL_GLOBAL:
		break;
	}
}

bool primary_is_on(const struct primary *p)
{
	if (p->is_off)
		return false;
	if (p->kind != CONTROL_GLOBAL || p->is_unlimited)
		return true;
	return (u128)p->total_p_ns * FINE_ONE <=
	       (u128)p->total_run_ns * (uint64_t)p->m_gt_fine;
}

uint64_t primary_delay_ns(const struct primary *p, uint64_t tau_ns,
			  uint64_t p_ns, uint32_t part)
{
	if (p->is_off)
		return UINT64_MAX;
	if (p->kind == CONTROL_GLOBAL || p->is_unlimited)
		return 0;
	uint64_t m =
		(uint64_t)((u128)(uint64_t)p->m_lt_fine * part / CONTROL_WHOLE);
	uint64_t cycle;
	m = max_u64(m, 1);
	if (p_ns < UINT64_MAX / FINE_ONE) /* 18 us: 64 bits will do */
		cycle = (p_ns * FINE_ONE + m - 1) / m;
	else
		cycle = sat_u64(((u128)p_ns * FINE_ONE + m - 1) / m);
	return sat_sub_u64(cycle, sat_add_u64(tau_ns, p_ns));
}
