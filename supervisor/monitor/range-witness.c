#include "supervisor/monitor/range-witness.h"

#include <stdlib.h>

#include "supervisor/control/fixed.h"

#define PPM 1000000
/* With fewer the price is the laboratory's. */
#define LEAST_TRIALS 12
/* A moment in which the program mostly slept, or for which hardly anything was
 * charged, says nothing. */
#define LEAST_RUN_NS	  (200 * NSEC_PER_USEC)
#define LEAST_CHARGED_PPM 15000
/* A witness that was passed less often is none. */
#define LEAST_HITS 30
/* No witness is more certain than this. */
#define LEAST_DOUBT_PPM 20000
/* It cannot be said to go slower than that without them. */
#define SLOWEST_PPM (-2 * PPM + PPM / 10)
/* How far programs' prices are from the laboratory's, and the least that a
 * price is taken to be uncertain by; of RANGE_WITNESS_WHOLE. */
#define USUAL_SPREAD 384
#define LEAST_SPREAD 32

/* Hits in 2^32 ns. */
static uint64_t rate_of(uint64_t hits, uint64_t run_ns)
{
	return sat_u64(((u128)hits << 32) / max_u64(run_ns, 1));
}

/* By which part @a is more than @b, ppm of their mean: twice at the most. */
static int64_t more_ppm(uint64_t a, uint64_t b)
{
	i128 sum = (i128)a + b;
	return sum ? (int64_t)(((i128)a - b) * 2 * PPM / sum) : 0;
}

/* How much faster the witness went without the others, ppm; *weight_ret: the
 * less, the less it did the same before and behind that. */
static int64_t faster_ppm(const struct range_witness_trial *t,
			  const struct range_witness_hits *h,
			  uint64_t *weight_ret)
{
	const uint64_t *in = h->in;
	uint64_t before = rate_of(in[RANGE_WITNESS_BEFORE],
				  t->run_ns[RANGE_WITNESS_BEFORE]);
	uint64_t behind = rate_of(in[RANGE_WITNESS_BEHIND],
				  t->run_ns[RANGE_WITNESS_BEHIND]);
	uint64_t without = rate_of(in[RANGE_WITNESS_WITHOUT],
				   t->run_ns[RANGE_WITNESS_WITHOUT]);
	int64_t drift_ppm = more_ppm(before, behind);
	u128 doubt = (u128)((i128)drift_ppm * drift_ppm) +
		     (u128)LEAST_DOUBT_PPM * LEAST_DOUBT_PPM;
	for (size_t i = 0; i < RANGE_WITNESS_SLICES; i++)
		doubt += (u128)PPM * PPM / in[i];
	*weight_ret = (uint64_t)((u128)PPM * PPM * 1000 / doubt);
	/* Not than their mean: that would be more on average, by itself. */
	return (more_ppm(without, before) + more_ppm(without, behind)) / 2;
}

static bool is_witness(const struct range_witness_hits *h)
{
	for (size_t i = 0; i < RANGE_WITNESS_SLICES; i++)
		if (h->in[i] < LEAST_HITS)
			return false;
	return true;
}

/* What of the time was charged, ppm. */
static int64_t charged_ppm(const struct range_witness_trial *t,
			   enum range_witness_slice i)
{
	u128 ps = (u128)max_u64(t->run_ns[i], 1) * 1000;
	return (int64_t)min_u64(sat_u64((u128)t->cost_ps[i] * PPM / ps), PPM);
}

static int by_price(const void *a, const void *b)
{
	const struct range_witness_seen *x = a, *y = b;
	int64_t p = (int64_t)x->lost_ppm * y->charged_ppm;
	int64_t q = (int64_t)y->lost_ppm * x->charged_ppm;
	return p < q ? -1 : p > q;
}

static int64_t price_of(const struct range_witness_seen *s)
{
	return (int64_t)s->lost_ppm * RANGE_WITNESS_WHOLE / s->charged_ppm;
}

/* Where the weights of those before come to @ppm. */
static int64_t price_at(const struct range_witness_seen *s, size_t nr,
			int64_t ppm)
{
	int64_t sum = 0;
	for (size_t i = 0; i + 1 < nr; i++) {
		sum += s[i].charged_ppm;
		if (sum >= ppm)
			return price_of(&s[i]);
	}
	return price_of(&s[nr - 1]);
}

/*
 * The weighted median m, its uncertainty s by where the weights are half of all
 * more and less the root of their squares' sum; then, what is known of programs
 * being 1 give or take u:  (1 / u^2 + m / s^2) / (1 / u^2 + 1 / s^2)
 */
static void settle(struct range_witness *w)
{
	struct range_witness_seen s[RANGE_WITNESS_TRIALS];
	size_t nr = min_u64(w->nr_seen, RANGE_WITNESS_TRIALS);
	int64_t sum = 0;
	uint64_t squares = 0;
	for (size_t i = 0; i < nr; i++) {
		s[i] = w->seen[i];
		sum += s[i].charged_ppm;
		squares +=
			(uint64_t)s[i].charged_ppm * (uint64_t)s[i].charged_ppm;
	}
	qsort(s, nr, sizeof(*s), by_price);
	int64_t off = (int64_t)root_u64(squares) / 2;
	int64_t doubt = (price_at(s, nr, sum / 2 + off) -
			 price_at(s, nr, sum / 2 - off)) /
			2;
	doubt = clamp_i64(doubt, LEAST_SPREAD, 64 * RANGE_WITNESS_WHOLE);
	int64_t known = (int64_t)USUAL_SPREAD * USUAL_SPREAD;
	int64_t from = price_at(s, nr, sum / 2) - RANGE_WITNESS_WHOLE;
	from = (int64_t)((i128)from * known / (known + doubt * doubt));
	w->price = (uint32_t)clamp_i64(RANGE_WITNESS_WHOLE + from,
				       RANGE_WITNESS_LEAST, RANGE_WITNESS_MOST);
}

bool range_witness_learn(struct range_witness *w,
			 const struct range_witness_trial *t,
			 const struct range_witness_hits *hits, size_t nr)
{
	i128 sum = 0, weights = 0;
	for (size_t i = 0; i < RANGE_WITNESS_SLICES; i++)
		if (t->run_ns[i] < LEAST_RUN_NS)
			return false;
	for (size_t i = 0; i < nr; i++) {
		uint64_t weight;
		if (!is_witness(&hits[i]))
			continue;
		int64_t ppm = faster_ppm(t, &hits[i], &weight);
		sum += (i128)ppm * weight;
		weights += weight;
	}
	if (!weights)
		return false;
	/* Of the mean of both: of what it takes with all of them. */
	int64_t ppm = clamp_i64((int64_t)(sum / weights), SLOWEST_PPM, 2 * PPM);
	int64_t lost = ppm * PPM / (PPM + ppm / 2);
	int64_t with = (charged_ppm(t, RANGE_WITNESS_BEFORE) +
			charged_ppm(t, RANGE_WITNESS_BEHIND)) /
		       2;
	int64_t without = charged_ppm(t, RANGE_WITNESS_WITHOUT);
	int64_t charged = with - without * (PPM - lost) / PPM;
	if (charged < LEAST_CHARGED_PPM)
		return false;
	lost = clamp_i64(lost, -4 * PPM, PPM);
	w->seen[w->nr_seen++ % RANGE_WITNESS_TRIALS] =
		(struct range_witness_seen){
			.lost_ppm = (int32_t)lost,
			.charged_ppm = (int32_t)charged,
		};
	if (w->nr_seen >= LEAST_TRIALS)
		settle(w);
	return true;
}

uint32_t range_witness_price(const struct range_witness *w)
{
	return w->price ? w->price : RANGE_WITNESS_WHOLE;
}

uint32_t range_witness_nr(const struct range_witness *w)
{
	return w->nr_seen;
}
