#include "supervisor/control/duty.h"

#include "supervisor/control/control.h"
#include "supervisor/control/fixed.h"

/* A block is armed some time after the spell began. */
#define ARMING_NS (20 * NSEC_PER_MSEC)
/* Where no spell can be paid for, one part of the window in this many goes
 * into finding out whether that is still so: after a second, then ever more
 * seldom, for the one that said so may have met a busy moment. */
#define PROBE_PART     16
#define PROBE_FIRST_NS NSEC_PER_SEC
#define PROBE_LAST_NS  (16 * NSEC_PER_SEC)
/* Nothing is known of the first one: it begins soon, with an eighth of what a
 * window may cost at most, or what a spell does that takes a quarter. */
#define FIRST_PART  8
#define FIRST_SHARE 4

void duty_init(struct duty *d, uint64_t nap_ns, uint64_t now_ns)
{
	*d = (struct duty){
		.hold_ns = nap_ns + nap_ns / 10 + ARMING_NS,
		.since_ns = now_ns,
		.probe_ns = PROBE_FIRST_NS,
	};
}

static void learn_rate(struct duty *d, const struct duty_state *s)
{
	uint64_t lasted = s->now_ns - d->since_ns;
	uint64_t cost = sat_sub_u64(s->spent_ns, d->spent_ns);
	if (!lasted)
		return;
	uint64_t rate = sat_u64((u128)cost * PPB / lasted);
	bool adds_up = d->has_rate && !d->is_probe;
	d->rate_ppb = adds_up ? d->rate_ppb / 2 + rate / 2 : rate;
	d->has_rate = true;
}

static void end(struct duty *d, const struct duty_state *s)
{
	learn_rate(d, s);
	d->is_on = false;
	d->since_ns = s->now_ns;
}

static bool may_stay(const struct duty *d, const struct duty_state *s)
{
	uint64_t cost = sat_sub_u64(s->spent_ns, d->spent_ns);
	if (s->window_room_ns < 0)
		return false;
	if (d->is_probe)
		return cost < (uint64_t)s->window_most_ns / PROBE_PART;
	return s->room_ns > 0 || s->now_ns - d->since_ns < d->hold_ns;
}

/* The whole spell is paid for before it begins. */
static bool may_begin(struct duty *d, const struct duty_state *s)
{
	int64_t most = s->window_most_ns > 0 ? s->window_most_ns : 0;
	int64_t need = sat_i64((i128)min_u64((uint64_t)most / FIRST_PART,
					     d->hold_ns / FIRST_SHARE));
	d->is_probe = false;
	if (s->room_ns <= 0 || !most)
		return false;
	/* A sixteenth more than the last ones: it varies. */
	if (d->has_rate)
		need = sat_i64((i128)d->rate_ppb * d->hold_ns / PPB * 17 / 16);
	if (need <= most) {
		d->probe_ns = PROBE_FIRST_NS;
		return s->window_room_ns >= need;
	}
	d->is_probe = s->now_ns - d->since_ns >= d->probe_ns &&
		      s->window_room_ns >= most / PROBE_PART;
	if (d->is_probe && d->probe_ns < PROBE_LAST_NS)
		d->probe_ns *= 2;
	return d->is_probe;
}

bool duty_step(struct duty *d, const struct duty_state *s)
{
	if (d->is_on && !may_stay(d, s)) {
		end(d, s);
	} else if (!d->is_on && may_begin(d, s)) {
		d->is_on = true;
		d->since_ns = s->now_ns;
		d->spent_ns = s->spent_ns;
	}
	return d->is_on;
}
