/*
 * range-sim.h - a program whose windows cost known rates, under
 * range_duty_step() and a ledger; all of its time is made up.
 */
#ifndef SMCO_T_RANGE_SIM_H
#define SMCO_T_RANGE_SIM_H

#include "supervisor/monitor/range-cheap.h"
#include "supervisor/pace.h"
#include "t/unit/tap.h"

#define NR	40
#define STOP_NS (60 * NSEC_PER_USEC)
/* In each step, of what costs something and is not rare. */
#define SIM_HITS 1000000
#define RUN_NS	 (20 * NSEC_PER_SEC)

static uint64_t look_ns;	       /* of each look, but for waking up */
static uint64_t wake_ns;	       /* that */
static int64_t owed_ns;		       /* by others */
static uint32_t taken_ppk = TAKEN_ALL; /* of that, from the program */
static bool is_asleep;
static unsigned nr_waiting; /* others, for the CPU that it has in turn */

struct sim {
	struct range_duty duty;
	struct ledger *ledger;
	struct range_cheap cheap;
	struct sim *of;	       /* whose both are: others of one program */
	uint64_t rate_ppb[NR]; /* what it would cost, were it in */
	uint32_t worth[NR];
	bool news[NR];	   /* in the next step */
	bool is_rare[NR];  /* one pass a step, whatever it costs */
	uint64_t hits[NR]; /* so far; others are passed often */
	uint64_t burst_ns; /* window 0 costs only in every second of these */
	uint64_t now_ns, spent_ns;
	uint64_t took_ns;     /* a change */
	uint64_t most_in_ppb; /* what those put in at once cost */
	unsigned nr_stops, nr_steps;
};

/* Of the same program as @of, or NULL. */
static inline void sim_init_of(struct sim *s, struct sim *of,
			       enum controller_kind kind, int64_t target)
{
	*s = (struct sim){.now_ns = NSEC_PER_SEC, .of = of ? of : s};
	if (!of)
		s->ledger = ledger_create(target);
	check_int(range_duty_init(&s->duty, &s->of->cheap, kind, target, NR,
				  s->now_ns),
		  0);
	if (!of)
		ledger_advance(s->ledger, s->now_ns, 0);
	for (uint32_t i = 0; i < NR; i++) {
		/* From a millionth to 30 % of the time. */
		s->rate_ppb[i] = 1000ull << (i * 18 / NR);
		s->worth[i] = CONTROL_WHOLE;
		range_duty_add(&s->duty, i, true, s->now_ns);
	}
}

static inline void sim_init(struct sim *s, enum controller_kind kind,
			    int64_t target)
{
	sim_init_of(s, NULL, kind, target);
}

static inline void sim_end(struct sim *s)
{
	range_duty_deinit(&s->duty);
	ledger_destroy(s->ledger);
}

static inline bool is_in(const struct sim *s, size_t i)
{
	return s->duty.window[i].is_in;
}

static inline uint64_t rate_now(const struct sim *s, size_t i)
{
	if (!i && s->burst_ns && s->now_ns / s->burst_ns % 2)
		return 0;
	return s->rate_ppb[i];
}

/* A step at @due_ns, since the last of which it has run for @run_ns. */
static inline void sim_step_at(struct sim *s, uint64_t due_ns, uint64_t run_ns)
{
	struct ledger *ledger = s->of->ledger;
	uint64_t sum_ns = 0;
	struct range_duty_cost cost[NR];
	size_t nr = 0;
	for (uint32_t i = 0; i < NR; i++) {
		uint64_t ps = run_ns * rate_now(s, i) / 1000000;
		if (!is_in(s, i) || !ps)
			continue;
		s->hits[i] += s->is_rare[i] ? 1 : SIM_HITS;
		cost[nr++] = (struct range_duty_cost){.window = i,
						      .cost_ps = ps,
						      .worth = s->worth[i],
						      .news = s->news[i],
						      .hits = s->hits[i]};
		s->news[i] = false;
		sum_ns += ps / 1000;
	}
	s->now_ns = due_ns;
	ledger_charge(ledger, LEDGER_AGENT, 2, sum_ns);
	const struct range_duty_state state = {
		.now_ns = s->now_ns,
		.run_ns = is_asleep ? 0 : run_ns,
		.base_ns = ledger_base_ns(ledger),
		.room_ns = ledger_room_ns(ledger) - owed_ns,
		.window_room_ns = ledger_window_room_ns(ledger),
		.stop_ns = STOP_NS,
		.took_ns = s->took_ns,
		.look_ns = look_ns,
		.wake_ns = wake_ns,
		.taken_ppk = taken_ppk,
		.nr_threads = 1,
	};
	unsigned nr_others = 0;
	bool differs = false,
	     said = range_duty_step(&s->duty, cost, nr, &state);
	for (uint32_t i = 0; i < NR; i++) {
		differs |= s->duty.want[i] != is_in(s, i);
		nr_others += s->duty.want[i] != is_in(s, i);
	}
	uint64_t in_ppb = 0;
	for (uint32_t i = 0; i < NR; i++)
		if (s->duty.want[i] && !is_in(s, i))
			in_ppb += s->rate_ppb[i];
	if (in_ppb > s->most_in_ppb)
		s->most_in_ppb = in_ppb;
	/* Said are those, each once, and nobody else. */
	for (size_t k = 0; said && k < s->duty.nr_changed; k++) {
		uint32_t i = s->duty.changed[k];
		nr_others -= s->duty.want[i] != is_in(s, i);
		range_duty_put(&s->duty, i, s->duty.want[i], s->now_ns);
	}
	if (nr_others)
		check_int(nr_others, 0);
	if (said != differs)
		check(said == differs);
	uint64_t stops_ns = differs ? STOP_NS : 0;
	s->nr_stops += differs;
	s->nr_steps++;
	ledger_charge(ledger, LEDGER_STOP, 2, stops_ns);
	s->spent_ns += sum_ns + stops_ns;
}

static inline void sim_step(struct sim *s)
{
	uint64_t due_ns = range_duty_due_ns(&s->duty);
	uint64_t run_ns = (due_ns - s->now_ns) / (nr_waiting + 1);
	ledger_advance(s->ledger, due_ns, run_ns);
	sim_step_at(s, due_ns, run_ns);
}

static inline void sim_run(struct sim *s)
{
	uint64_t end_ns = s->now_ns + RUN_NS;
	while (s->now_ns < end_ns)
		sim_step(s);
}

static inline double watched(const struct sim *s, size_t i)
{
	return (double)range_duty_watched_ns(&s->duty, (uint32_t)i, s->now_ns) /
	       (double)RUN_NS;
}

#endif
