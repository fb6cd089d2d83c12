/*
 * What is said of all passings by those that were timed, of programs whose
 * passings are of different lengths: as many runs of each, with other random
 * numbers, as tell a right estimate from a wrong one. The program, its sensors
 * and the time are made up; memory, slices, lengths and the ledger are those
 * of a session.
 */
#include <math.h>
#include <stdlib.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"
#include "t/unit/phase-shm.h"

#define USEC	5 /* of a look, for each monitor beside this one */
#define TICK_NS (10 * NSEC_PER_MSEC)
#define RUNS	256

static struct mark_shm *make_shm(void)
{
	struct mark_shm *shm = phase_shm();
	if (shm) /* a tick is a nanosecond */
		shm->clock = (struct tsc_map){.ns_per_tick = 1};
	return shm;
}

struct scene {
	struct phases ph;
	struct phase phase;
	struct shared sh;
	uint64_t now_ns, tick_ns, again_ns, look_ns;
	uint64_t true_ns;
	uint16_t took_ns; /* a record */
};

static void ignore(void *ctx, const struct record *r)
{
	(void)ctx;
	(void)r;
}

static uint32_t pid_of(void *ctx, uint32_t tid)
{
	(void)ctx;
	return tid;
}

/* As the monitor's tick. */
static void look(struct scene *s)
{
	struct mark_record r;
	uint64_t nr = 0;
	ledger_advance(s->ph.ledger, s->now_ns, s->now_ns - s->look_ns);
	for (; mark_shm_next(s->sh.shm, &r); nr++)
		phase_times_take(&s->ph, &s->sh, &r);
	ledger_charge(s->ph.ledger, LEDGER_OTHER, PHASES_MONITOR,
		      nr * MARK_RECORD_NS + USEC * NSEC_PER_USEC);
	phase_gaps_look(&s->ph, &s->sh);
	phase_slices_look(&s->ph, &s->sh);
	phase_still_leave(&s->ph, &s->sh);
	phase_still_look(&s->ph, &s->sh, s->now_ns);
	s->again_ns = phase_still_again_ns(&s->ph, s->now_ns);
	s->look_ns = s->now_ns;
	s->tick_ns = s->now_ns + TICK_NS - phase_draw(&s->ph, TICK_NS / 2);
}

static void look_again(struct scene *s)
{
	phase_still_look_again(&s->ph, &s->sh, s->now_ns);
	s->again_ns = 0;
}

static void run_for(struct scene *s, uint64_t ns)
{
	uint64_t end_ns = s->now_ns + ns;
	for (;;) {
		bool again = s->again_ns && s->again_ns < s->tick_ns;
		s->now_ns = again ? s->again_ns : s->tick_ns;
		if (s->now_ns > end_ns)
			break;
		if (again)
			look_again(s);
		else
			look(s);
	}
	s->now_ns = end_ns;
}

/* What the stub does (mark-stub.c). */
static void pass_at(struct scene *s, enum mark_kind kind, uint32_t tid,
		    unsigned depth)
{
	struct mark_data *d = s->sh.shm->data;
	struct mark_channel *c = &d->channel[0];
	d->count[kind == MARK_END]++;
	if (!c->run)
		return;
	int32_t had = c->tokens--;
	if (had <= 0) {
		c->run = 0;
		return;
	}
	if (had > c->from)
		return;
	struct mark_slot *slot = &d->ring[d->head % MARK_RING];
	*slot = (struct mark_slot){.tsc = s->now_ns,
				   .tid = tid,
				   .took = s->took_ns,
				   .what = kind,
				   .run = c->run,
				   .level =
					   (int32_t)(d->count[0] - d->count[1]),
				   .sp = 0x1000 - depth * 16,
				   .seq = d->head + 1};
	d->head++;
	run_for(s, s->ph.timing_ns + s->took_ns);
}

static void pass(struct scene *s, enum mark_kind kind, uint32_t tid)
{
	pass_at(s, kind, tid, 1);
}

/* @gap_ns of something else before it. */
static void call(struct scene *s, uint64_t length_ns, uint64_t gap_ns)
{
	run_for(s, gap_ns);
	pass(s, MARK_BEGIN, 1);
	run_for(s, length_ns);
	pass(s, MARK_END, 1);
	s->true_ns += length_ns;
}

static bool begin(struct scene *s, int64_t target_ppb, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	s->sh.shm = make_shm();
	s->sh.pid = 1;
	s->phase.name.function = "f";
	s->ph.phase = &s->phase;
	s->ph.shared = &s->sh;
	s->ph.p.nr = 1;
	s->ph.p.emit = ignore;
	s->ph.p.pid_of = pid_of;
	s->ph.ledger = ledger_create(target_ppb);
	s->ph.random = seed;
	s->now_ns = s->look_ns = s->tick_ns = NSEC_PER_SEC;
	ledger_advance(s->ph.ledger, s->now_ns, 0);
	if (s->sh.shm)
		look(s);
	return s->sh.shm != NULL;
}

/* What is said, of what was. */
static double end(struct scene *s, double *share_ret)
{
	look(s);
	uint64_t said = phase_slices_about_ns(&s->ph, 0, s->now_ns);
	*share_ret = (double)s->phase.nr_seen / (double)phases_count(&s->ph, 0);
	phase_times_free(&s->ph);
	phase_still_free(&s->sh);
	ledger_destroy(s->ph.ledger);
	mark_shm_unref(s->sh.shm);
	return (double)said / (double)s->true_ns;
}

/* Passings of each second are like those of any other. */
struct rhythm {
	const char *name;
	unsigned calls;
	unsigned every;	   /* so manyth one is long; */
	bool is_by_chance; /* or one of so many */
	uint64_t long_ns, short_ns, gap_ns;
	int64_t target_ppb;
	double least_share, most_share; /* timed */
	uint64_t timing_ns;
	uint16_t took_ns;
};

static double one_run(const struct rhythm *r, uint64_t seed, double *share)
{
	static struct scene s;
	uint64_t x = seed * 2654435761u + 12345;
	if (!begin(&s, r->target_ppb, seed))
		return 0;
	s.ph.timing_ns = r->timing_ns;
	s.took_ns = r->took_ns;
	for (unsigned i = 0; i < r->calls; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		bool is_long = r->is_by_chance ? (x >> 33) % r->every == 0
					       : i % r->every == 7;
		call(&s, is_long ? r->long_ns : r->short_ns, r->gap_ns);
	}
	return end(&s, share);
}

/*
 * Threads one of which is in a long passing nearly always, while the others
 * have many short ones.
 */
#define THREADS 4
struct thread {
	uint64_t next_ns, long_ns, gap_ns;
	bool is_in;
};

static double threads_run(const struct rhythm *r, uint64_t seed, double *share)
{
	static struct scene s;
	struct thread t[THREADS];
	if (!begin(&s, r->target_ppb, seed))
		return 0;
	s.sh.is_shared = true;
	for (unsigned i = 0; i < THREADS; i++)
		t[i] = (struct thread){s.now_ns + i * 1000,
				       i ? r->short_ns : r->long_ns,
				       r->gap_ns + i * 777, false};
	for (unsigned i = 0; i < r->calls * 2; i++) {
		unsigned k = 0;
		for (unsigned n = 1; n < THREADS; n++)
			if (t[n].next_ns < t[k].next_ns)
				k = n;
		run_for(&s, t[k].next_ns - s.now_ns);
		pass(&s, t[k].is_in ? MARK_END : MARK_BEGIN, k + 1);
		t[k].is_in = !t[k].is_in;
		t[k].next_ns += t[k].is_in ? t[k].long_ns : t[k].gap_ns;
		s.true_ns += t[k].is_in ? t[k].long_ns : 0;
	}
	return end(&s, share);
}

/* So long at the level that it is at: all that can be known of it. */
static void note(struct scene *s, struct phase_levels *all, uint64_t ns)
{
	const uint64_t *count = s->sh.shm->data->count;
	int64_t level = (int64_t)(count[0] - count[1]);
	const struct phase_inside more = {(double)ns, {0, 0}};
	s->true_ns += (uint64_t)phase_levels_leave(all, level).ns;
	phase_levels_add(all, level, &more);
}

/*
 * A function that calls itself, mostly for a short time: as an interpreter's
 * loop. Each so manyth time, if any, longjmp leads from deep within back to
 * the outermost call.
 */
static double deep_run(const struct rhythm *r, uint64_t seed, double *share)
{
	static struct scene s;
	unsigned depth = 0, left = 0;
	uint64_t x = seed * 2654435761u + 12345;
	struct phase_levels all = {.nr = 0};
	uint64_t inside_ns = 0;
	if (!begin(&s, r->target_ppb, seed))
		return 0;
	for (unsigned i = 0; i < r->calls; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		unsigned by = (unsigned)(x >> 33);
		uint64_t ns = by % 5003 == 7 ? r->long_ns : r->short_ns;
		bool deeper = depth < 2 || (depth < 9 && by % 2);
		if (depth > 2 && by % 1009 == 5 && r->every &&
		    ++left % r->every == 0)
			depth = 1;
		if (!depth)
			ns = by % 2 ? r->gap_ns : r->gap_ns / 3;
		if (depth && by % 997 < depth)
			deeper = false;
		run_for(&s, ns);
		inside_ns += depth ? ns : 0;
		note(&s, &all, ns);
		depth += deeper ? 1 : 0;
		pass_at(&s, deeper ? MARK_BEGIN : MARK_END, 1, depth);
		depth -= deeper ? 0 : 1;
	}
	while (depth)
		pass_at(&s, MARK_END, 1, depth--);
	note(&s, &all, 0);
	look(&s);
	if (getenv("DBG") && r->every)
		printf("# inside %lu true %lu A %.0f still %.0f %.0f nr %lu c "
		       "%ld levels %u weight %.0f passed %lu\n",
		       inside_ns, s.true_ns, s.phase.weighted_ns,
		       s.phase.still.ns,
		       s.phase.still.part[0] * (double)s.phase.near_ns /
			       (double)s.phase.near.sum_ns,
		       s.phase.nr_recorded,
		       (long)(s.sh.shm->data->count[0] -
			      s.sh.shm->data->count[1]),
		       s.sh.still[0][0].levels.nr, s.phase.weight,
		       phase_passed(&s.ph, 0));
	if ((double)s.true_ns < (double)inside_ns * (r->every ? 0.8 : 1))
		check_int(s.true_ns, inside_ns);
	return end(&s, share);
}

/*
 * The mean of all runs is as near to the truth as chance allows: five standard
 * errors, which a right one exceeds less than once in a million times; and that
 * is near enough to tell. SLACK is for where slices that are extended end.
 */
#define SLACK 0.004
static void check_rhythm(const struct rhythm *r,
			 double (*run)(const struct rhythm *r, uint64_t seed,
				       double *share))
{
	double sum = 0, squares = 0, shares = 0;
	for (uint64_t i = 1; i <= RUNS; i++) {
		double share, said = run(r, i * 1000003, &share);
		sum += said;
		squares += said * said;
		shares += share / RUNS;
	}
	double mean = sum / RUNS;
	double error = sqrt(fmax(squares / RUNS - mean * mean, 0) / (RUNS - 1));
	printf("# %s: said %.4f of the truth, +- %.4f (of one %.3f), %.3f %% "
	       "timed\n",
	       r->name, mean, error, error * sqrt(RUNS), shares * 100);
	check_range(error, 0, 0.03);
	check_range(mean, 1 - 5 * error - SLACK, 1 + 5 * error + SLACK);
	check_range(shares, r->least_share, r->most_share);
}

#define PPM INT64_C(1000)

static const struct rhythm rhythms[] = {
	{"each 50th long, a look within it", 40000, 50, false, 3000000, 20000,
	 10000, 600 * PPM, 0.005, 0.5, 0, 0},
	{"the same with room for most", 40000, 50, false, 3000000, 20000, 10000,
	 2500 * PPM, 0.05, 0.999, 0, 0},
	{"the same, nearly all timed", 40000, 50, false, 3000000, 20000, 10000,
	 6000 * PPM, 0.8, 0.98, 0, 0},
	{"one of 50 long", 40000, 50, true, 3000000, 20000, 10000, 600 * PPM,
	 0.005, 0.5, 0, 0},
	{"each 300th long", 60000, 300, false, 5000000, 5000, 5000, 1000 * PPM,
	 0.002, 0.5, 0, 0},
	{"each 3000th long", 600000, 3000, false, 5000000, 1000, 500,
	 5000 * PPM, 0.001, 0.5, 0, 0},
	{"more between two looks than can be counted up to", 2000000, 40, false,
	 20000, 200, 300, 2000 * PPM, 0.001, 0.1, 0, 0},
	{"all alike", 40000, 1000000, false, 0, 20000, 10000, 600 * PPM, 0.005,
	 0.5, 0, 0},
	{"as short as a record takes", 2000000, 1000000, false, 0, 40, 300,
	 2000 * PPM, 0.001, 0.1, 15, 25},
};

static const struct rhythm threads = {
	"a long one within which others have short ones",
	300000,
	0,
	false,
	3000000,
	20000,
	10000,
	3000 * PPM,
	0.005,
	0.8,
	0,
	0};

/* Some in a hundred thousand are nearly all of the time. */
static const struct rhythm long_ones = {"one of 20000 nearly all of the time",
					200000,
					20000,
					false,
					80000000,
					100,
					300,
					600 * PPM,
					0.0002,
					0.5,
					0,
					0};

static const struct rhythm deep = {"one that calls itself",
				   400000,
				   0,
				   false,
				   2000000,
				   300,
				   3000000,
				   5000 * PPM,
				   0.0002,
				   0.5,
				   0,
				   0};
/* Some are left by longjmp: what is not known to have been inside is not told.
 */
static void left_by_longjmp(void)
{
	struct rhythm r = deep;
	double sum = 0, share;
	r.every = 30;
	for (uint64_t i = 1; i <= RUNS; i++)
		sum += deep_run(&r, i * 1000003, &share);
	check_range(sum / RUNS, 0.75, 1 + SLACK);
}

/* What comes seldom, and what there is room for, is all timed, after the first
 * look, for which there is no room yet. */
static void all_of_few(void)
{
	static struct scene s;
	double share;
	if (!begin(&s, PPB / 10, 1))
		return;
	for (unsigned i = 0; i < 3000; i++)
		call(&s, i % 50 == 7 ? 3000000 : 20000, 100000);
	check_range(end(&s, &share), 0.98, 1.02);
	check_range(share, 0.96, 1);
	if (!begin(&s, 100 * PPM, 1))
		return;
	for (unsigned i = 0; i < 1000; i++)
		call(&s, i % 50 == 7 ? 30000000 : 200000, 5000000);
	check_range(end(&s, &share), 1, 1);
	check_range(share, 1, 1);
}

/* Seldom ones after very many: they need not wait for the slice of those. */
static void few_after_many(void)
{
	static struct scene s;
	double share;
	if (!begin(&s, 1000 * PPM, 1))
		return;
	for (unsigned i = 0; i < 1000000; i++)
		call(&s, 100, 200);
	uint64_t before = 0;
	for (unsigned i = 0; i < 400; i++) {
		call(&s, 1000000, 9000000);
		if (i == 199)
			before = s.phase.nr_seen;
	}
	check_range((double)(s.phase.nr_seen - before), 198, 202);
	end(&s, &share);
}

/* What never ends is not told. */
static void endless(void)
{
	static struct scene s;
	double share;
	if (!begin(&s, 600 * PPM, 1))
		return;
	pass(&s, MARK_BEGIN, 1);
	for (unsigned i = 0; i < 20; i++) {
		run_for(&s, 100000000);
		for (unsigned k = 0; k < 1000; k++)
			call(&s, 100, 300);
	}
	check_range(end(&s, &share), 0.5, 2);
}

/* No more than threads were there. */
static void no_more(void)
{
	static struct scene s;
	if (!begin(&s, 600 * PPM, 1))
		return;
	s.ph.p.start_ns = s.now_ns;
	for (unsigned i = 0; i < 4000; i++)
		call(&s, 20000, 10);
	look(&s);
	uint64_t ns = s.now_ns - s.ph.p.start_ns;
	check_range((double)phase_slices_about_ns(&s.ph, 0, s.now_ns),
		    (double)ns * 0.99, (double)ns);
	s.sh.slice[0].in.part[0] *= 100;
	s.phase.weighted_ns *= 100;
	s.ph.nr_tasks = 2;
	check_int(phase_slices_about_ns(&s.ph, 0, s.now_ns), 2 * ns);
	double share;
	end(&s, &share);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rhythms); i++)
		check_rhythm(&rhythms[i], one_run);
	check_rhythm(&threads, threads_run);
	all_of_few();
	few_after_many();
	check_rhythm(&long_ones, one_run);
	check_rhythm(&deep, deep_run);
	left_by_longjmp();
	endless();
	no_more();
	return tap_done();
}
