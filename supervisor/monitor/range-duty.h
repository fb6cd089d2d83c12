/*
 * range-duty.h - which windows have their sensors in, and when. Pure: time,
 * costs and room come in as arguments.
 *
 * All that there are, are in at first; those of a large program come to be
 * little by little. A window that is passed seldom stays in; one that costs
 * something becomes a plant of a controller (control/), armed while it is in:
 * when it has cost more than its share it goes out, and comes back when the
 * controller has it due and the ledger has room. What does not run costs
 * nothing and stays in, so whatever begins is seen from its beginning. Windows
 * go in and out together, for each time is a stop.
 *
 * Those that cost least, all together a part of the target, stay in whatever is
 * owed: to see all of a hundred of them takes as much as a hundredth of a hot
 * one. So do those that cost least for what is to be expected of them, and,
 * but for the global controller, those that were passed seldom so far. When one
 * of them, or one that costs nothing, is told to have seen something that it
 * had not seen before by far, the program has begun with something else: then
 * the others get a turn, too, for what is new there may stay for a moment only.
 *
 * A window of which something is to be expected has a larger share than one
 * whose variables have long not widened (range_duty_cost, worth); all shares
 * together are as with the paper's cascade. The global controller knows no
 * shares. One that can show nothing new any more goes out for good.
 */
#ifndef SMCO_RANGE_DUTY_H
#define SMCO_RANGE_DUTY_H

#include "supervisor/control/control.h"

struct range_cheap;

struct range_duty_window {
	bool is_in;
	/* private: */
	bool exists;
	plant_t plant;	   /* PLANT_NONE: it never cost anything to speak of */
	uint64_t since_ns; /* it is in */
	uint64_t watched_ns; /* before that */
	uint64_t cycle_ns;   /* armed since */
	uint64_t cost_ps;    /* since then */
	uint64_t lately_ps;  /* see range_cheap, lately_ns */
	uint64_t rate_ppb;   /* of the time, when it was last passed */
	uint32_t part;	     /* its share, by what it is worth */
	unsigned rank;	     /* a power of two, by lately_ps and that */
	bool is_spent;	     /* nothing more is to be seen there */
	bool was_passed;     /* ever */
	bool was_planted;    /* among those of struct range_duty */
};

struct range_duty {
	struct range_duty_window *window;
	/* The decision of the last step: those that should be in. */
	bool *want;
	size_t nr;
	size_t end; /* of those that exist: of a large program few do at first,
		     * and memory of the others is not touched */
	/* Those that are not so, when it said that there are any. */
	uint32_t *changed;
	size_t nr_changed;
	/* private: */
	struct range_cheap *cheap;	/* shared */
	struct range_duty *next, *prev; /* there */
	bool is_there;			/* it counts there */
	bool was_noted;	     /* it cost something since then was halved there */
	bool is_active;	     /* or in the time before that */
	uint64_t nr_counted; /* of its plants, there */
	enum controller_kind kind;
	int64_t m_t_ppb; /* INT64_MAX: no bound */
	struct control *control;
	uint32_t *leaving;
	uint64_t last_ns;
	uint64_t run_ns;     /* not yet told to the controller */
	uint64_t told_ns;    /* when it was told last */
	uint64_t ran_ns;     /* when it was seen to run last */
	uint64_t put_in_ns;  /* when some were put in last */
	uint64_t stop_ns;    /* as the last step had it */
	uint64_t look_ns;    /* that, too, and to wake up for it */
	uint64_t taken_ns;   /* of that, what the program missed */
	uint64_t idle_ns;    /* until the next while nothing happens */
	uint64_t load_ppb;   /* what all that are in cost in the last step */
	uint64_t overrun_ps; /* by windows that had their turn, and stayed in */
	uint64_t sum_parts;  /* of all plants */
	uint64_t born_ns;
	uint64_t new_ns;    /* a window was passed that never had been before */
	unsigned nr_new;    /* steps in which some were */
	uint64_t begin_ppb; /* what those that begin cost, of the time */
	uint32_t *planted;  /* windows that ever became plants */
	size_t nr_planted;
	unsigned dear, dear_rank; /* who is below one of them stays in */
	uint64_t back_ns;	  /* when such windows came back last */
	bool is_free;		  /* looking costs the program nothing */
	bool is_young;		  /* what was never passed may well be, soon */
	bool owes;		  /* more was spent than may be */
	uint64_t news_ns;	 /* when there was news that nobody saw to; 0 */
	uint64_t next_glance_ns; /* no other before that */
	uint64_t glance_ns;	 /* until then what came in begins to run */
};

struct range_duty_cost {
	uint32_t window;
	uint64_t cost_ps;
	/* What is to be expected of it, of CONTROL_WHOLE; 0: nothing at all. */
	uint32_t worth;
	bool news;     /* a variable there has at least doubled its range */
	uint64_t hits; /* how often it was passed so far, in all */
};
struct range_duty_state {
	uint64_t now_ns;
	uint64_t run_ns;	/* the process's own, since the last step */
	uint64_t base_ns;	/* ledger_base_ns */
	int64_t room_ns;	/* ledger_room_ns */
	int64_t window_room_ns; /* ledger_window_room_ns */
	uint64_t stop_ns;	/* what it costs to put some in, or out */
	uint64_t took_ns;	/* from when it was wanted until it was so */
	uint64_t look_ns;	/* what a step took lately */
	uint64_t wake_ns;	/* and to wake up for that, and sleep again */
	uint32_t taken_ppk;	/* of TAKEN_ALL of that, the program missed */
	unsigned nr_threads;	/* that may have run; 1 at least */
};

/* @nr windows at most, none yet; @cheap is all zero at first and outlives all
 * that share it, whose costs are of the same ledger. @d stays where it is until
 * deinit. SMCO_NOMEM, and then deinit does no harm. */
int range_duty_init(struct range_duty *d, struct range_cheap *cheap,
		    enum controller_kind kind, int64_t target_overhead_ppb,
		    size_t nr, uint64_t now_ns);
void range_duty_deinit(struct range_duty *d);

/* There is a window @i, and it is in, or out: then it is due at once. */
void range_duty_add(struct range_duty *d, uint32_t i, bool in, uint64_t now_ns);
/* All windows are out, and nothing costs anything until the next step. */
void range_duty_rest(struct range_duty *d, uint64_t now_ns);
/* Those that are in turns. */
uint32_t range_duty_nr_plants(const struct range_duty *d);
/* What @d's windows cost, none of which has cost anything yet, @from knows. */
void range_duty_inherit(struct range_duty *d, const struct range_duty *from);
/* Windows that @from has out, or knows to be dear, are wanted out: true if any
 * is in, as with range_duty_step. They are due when there is room. */
bool range_duty_follow(struct range_duty *d, const struct range_duty *from,
		       uint64_t now_ns);
/* Window @i is in, or out, from now on: whether it was wanted so or not. */
void range_duty_put(struct range_duty *d, uint32_t i, bool in, uint64_t now_ns);

/* For a trial (range-witness.h): what is in costs something, of a target that
 * is large, but not so much that nobody may look away for a moment. */
bool range_duty_may_try(const struct range_duty *d);
/* Of @windows, @nr of them, those that have turns are wanted in, or out, for a
 * moment, and have their turn all the same: true if any was not so. */
bool range_duty_try(struct range_duty *d, const uint32_t *windows, size_t nr,
		    bool in);
/* What was spent until now counts for no step. */
void range_duty_skip(struct range_duty *d, uint64_t now_ns);

/* range-bound.c. What a hit costs is known within a factor, but all together,
 * @sum_ps, cannot have taken longer than there was time, for each thread: at
 * most so much of it is theirs. The sum then. */
uint64_t range_duty_bound(struct range_duty_cost *cost, size_t nr,
			  uint64_t sum_ps, uint64_t most_ns);

/*
 * Decide. @cost is what windows cost since the last step, each at most once.
 * True if what is wanted differs from what is.
 */
bool range_duty_step(struct range_duty *d, const struct range_duty_cost *cost,
		     size_t nr, const struct range_duty_state *s);
/* When the next step should be. */
uint64_t range_duty_due_ns(const struct range_duty *d);
/* From when on it may be, if others have theirs: waking up takes more than
 * looking does. */
uint64_t range_duty_early_ns(const struct range_duty *d);
/* How long window @i was in until @now_ns. One that is spent counts as if it
 * still were: nothing is missed there. */
uint64_t range_duty_watched_ns(const struct range_duty *d, uint32_t i,
			       uint64_t now_ns);

#endif
