/*
 * range.h - range sensors in a running program: the smallest and largest value
 * of its integer variables, compared by code compiled into it. A hit costs
 * about a nanosecond and no stop; a function whose sensors are out costs
 * nothing.
 *
 * A plan says where a module's variables get their values and which bytes a
 * jump can take there; it is pure and shared by all processes that map the
 * module. Sensors are what one process has of a plan. Functions are those of
 * struct variables, by index, variables too.
 *
 *	range_plan_create(&plan, syms, module, vars, &err);	// any thread
 *	ranges_install(&r, p, plan, bias, &err);		// stopped
 *	ranges_set(r, functions, nr, true, &cost_ns, &err);	// in, later out
 *	ranges_read(r, var, &smallest, &largest);		// at any time
 *
 * What a thread holds in its stack never leads into a stub, but for one that a
 * signal interrupted there: a handler sees a program counter of ours (and
 * ranges_home translates it). Results are in shared memory: reading them needs
 * no system call, and stays possible when the process has gone.
 *
 * Should the supervisor die, the program goes on with what is in.
 */
#ifndef SMCO_RANGE_H
#define SMCO_RANGE_H

#include "supervisor/tracee/tracee.h"
#include "symbols/symbols.h"
#include "symbols/variable.h"

struct range_plan;
struct range_subscript;
struct ranges;

/* --- the plan --- */

/*
 * @v is of module @module of @s and must stay until the plan is destroyed; the
 * space need not. Takes about a second for 10 MB of code. SMCO_NOTFOUND: the
 * file cannot be opened any more. SMCO_FORMAT: it has no code.
 */
int range_plan_create(struct range_plan **ret, struct sym_space *s,
		      uint32_t module, const struct variables *v,
		      struct smco_err *err);
/* After all sensors that use it. NULL is fine. */
void range_plan_destroy(struct range_plan *plan);

/*
 * The same with no function planned but the first, as many as have @windows
 * together; the rest one by one when its turn comes, in a plan that is in use
 * already. A tenth of a millisecond for each, where planning all takes seconds.
 * What processes keep of a plan has room for all that will be.
 */
int range_plan_begin(struct range_plan **ret, struct sym_space *s,
		     uint32_t module, const struct variables *v, size_t windows,
		     struct smco_err *err);
/* Nothing is done if it is planned. SMCO_NOMEM. No other thread may use the
 * plan meanwhile. */
int range_plan_more(struct range_plan *plan, uint32_t function,
		    struct smco_err *err);
bool range_plan_is_planned(const struct range_plan *plan, uint32_t function);
/* The function with an instruction at the file's address @addr; UINT32_MAX:
 * none. */
uint32_t range_plan_function_at(const struct range_plan *plan, uint64_t addr);
/* The instruction of a function that ends at the file's address @addr, as they
 * follow each other from its start; NULL: there is none, or it is not clear. */
const uint8_t *range_plan_insn_before(const struct range_plan *plan,
				      uint64_t addr, size_t *len_ret);
/* All functions are. */
bool range_plan_is_whole(const struct range_plan *plan);
/* What was planned since this was called last is found by range_plan_uses from
 * now on. Moves what that has returned. */
void range_plan_settle(struct range_plan *plan);
/* The sensors of @function are made in all processes, so its code need not be
 * kept in memory: it would be decoded again. */
void range_plan_forget(struct range_plan *plan, uint32_t function);

/*
 * The stubs of the first functions, as many as have @windows together, are made
 * here, by no process' time: where one has its stubs as far from the module as
 * most have, they are only copied into it. Once. @beside (NULL: nothing), which
 * does not change the plan, is called whatever happens; of many stubs one of
 * two threads calls it, and then makes some as the other does. SMCO_NOMEM.
 */
int range_plan_make(struct range_plan *plan, size_t windows,
		    void (*beside)(void *ctx), void *ctx, struct smco_err *err);

struct range_function_info {
	uint32_t nr_sites;   /* pairs of a place in the code and a variable */
	uint32_t nr_served;  /* of them, those that a sensor can be at */
	uint32_t nr_windows; /* jumps; 0: nothing to put in */
	uint32_t nr_unreadable; /* places of variables nobody may read */
	uint32_t nr_pinned;  /* sites refused: what is there cannot be moved */
	uint32_t nr_no_room; /* sites refused: less than five bytes */
	const char *refused; /* why the whole function is left alone; or NULL */
};
const struct range_function_info *
range_plan_function(const struct range_plan *plan, uint32_t function);

struct range_var_info {
	uint32_t nr_sites;  /* in all functions */
	uint32_t nr_served; /* 0: no sensor ever sees it */
	bool shared_out; /* its address is known to others: what they write is
			  * seen when the program itself reads it */
};
const struct range_var_info *range_plan_variable(const struct range_plan *plan,
						 uint32_t var);

/* Sites of @function where no jump has room, for breakpoints: range-break.h. */
struct range_break;
const struct range_break *range_plan_breaks(const struct range_plan *plan,
					    uint32_t function, size_t *nr_ret);

/* A window is a place where one jump leads to the sensors of one or more
 * sites: what goes in and out. They have numbers below this; some numbers are
 * of none. */
size_t range_plan_nr_windows(const struct range_plan *plan);
/* What that, and the number of subscripts, come to at the most. */
size_t range_plan_most_windows(const struct range_plan *plan);
size_t range_plan_most_subscripts(const struct range_plan *plan);
/* Those of a function: from *first_ret to before what is returned. */
uint32_t range_plan_windows_of(const struct range_plan *plan, uint32_t function,
			       uint32_t *first_ret);
/* UINT32_MAX: not the number of a window. */
uint32_t range_plan_function_of(const struct range_plan *plan, uint32_t window);
/* A site of a variable in a window: one there more than once is so here, too.
 */
struct range_use {
	uint32_t var;
	uint32_t window;
};
const struct range_use *range_plan_uses(const struct range_plan *plan,
					uint32_t var, size_t *nr_ret);
/* Does the file have the byte at @addr of its memory? Otherwise it begins with
 * 0, whatever the linker does. */
bool range_plan_in_file(const struct range_plan *plan, uint64_t addr);
/* Variables that are used as subscripts (range-subscript.h), by number. In
 * range_plan_uses those numbers follow the variables'. */
const struct range_subscript *
range_plan_subscripts(const struct range_plan *plan, size_t *nr_ret);

/* --- in a process --- */

/*
 * Makes room for the sensors of @plan in @p, near the module, whose addresses
 * are the file's plus @bias. Nothing is patched yet. All tasks stopped.
 * Registered for undo: detach takes everything out.
 */
int ranges_install(struct ranges **ret, struct tproc *p,
		   const struct range_plan *plan, uint64_t bias,
		   struct smco_err *err);
/*
 * Others may have put jumps into the text: where a window holds one, its stub
 * leads there, and what the window has behind it is not seen. As they are when
 * the stubs of a function are made.
 */
void ranges_heed_others(struct ranges *r);
/* Variables, by number, of which something is not seen for that, so far. */
const uint32_t *ranges_beside(const struct ranges *r, size_t *nr_ret);
/*
 * A forked copy, with what was in in the parent when it forked. What its
 * sensors see goes to the memory that the parent's write to, and is the
 * parent's, until ranges_wake gives it memory of its own, with empty ranges;
 * nothing is called in it before that. All tasks of @child stopped.
 */
int ranges_fork(struct ranges **ret, struct ranges *parent, struct tproc *child,
		struct smco_err *err);
/* All tasks stopped. On error it sees for the parent as before. */
int ranges_wake(struct ranges *r, struct smco_err *err);

/* From now on @is_there is asked in each stop before text is changed: if it, or
 * the bytes that the module begins with, says no, nothing is, and SMCO_GONE
 * returned. For modules that may be unloaded. */
void ranges_guard(struct ranges *r, bool (*is_there)(void *ctx), void *ctx);

/*
 * Sensors of @functions in or out, in one short stop. Those that are already
 * so, or have no windows, are skipped. *cost_ns_ret (may be NULL) is how long
 * the process was stopped. A function in which a thread stands so that it
 * cannot be patched, or whose code is not the file's any more, is left as it
 * is and SMCO_BUSY returned at the end: the others are done.
 */
int ranges_set(struct ranges *r, const uint32_t *functions, size_t nr, bool in,
	       uint64_t *cost_ns_ret, struct smco_err *err);
/* All its windows are. */
bool ranges_is_in(const struct ranges *r, uint32_t function);
/*
 * The same window by window: @windows, @nr of them, become as @want, which has
 * range_plan_nr_windows, says; all others stay. Those that are as wanted
 * already, or whose function was never prepared, cost nothing. Windows that
 * cannot be patched now stay as they are, and SMCO_BUSY is returned; all do
 * where a thread gets no CPU to stop on (tproc_stop_briefly): who does not want
 * that stops all tasks before.
 */
int ranges_choose(struct ranges *r, const uint32_t *windows, size_t nr,
		  const bool *want, uint64_t *cost_ns_ret,
		  struct smco_err *err);
/* Functions that are not planned yet, and that threads were in when they were
 * stopped last for any of this: their number. */
#define RANGE_MOST_SEEN 16
size_t ranges_seen(const struct ranges *r, uint32_t ret[RANGE_MOST_SEEN]);
bool ranges_window_is_in(const struct ranges *r, uint32_t window);
/* It can be put in: its function is prepared. */
bool ranges_window_is_ready(const struct ranges *r, uint32_t window);
/* The same code is compiled at the first ranges_set: here ahead of time, in no
 * stop. Tasks may run. */
int ranges_prepare(struct ranges *r, const uint32_t *functions, size_t nr,
		   struct smco_err *err);

/* How many functions' stubs were made for this process alone. */
size_t ranges_nr_built(const struct ranges *r);

/* False: no value seen yet. Unsigned 64-bit values come as int64_t. */
bool ranges_read(const struct ranges *r, uint32_t var, int64_t *smallest_ret,
		 int64_t *largest_ret);
/*
 * The same since the last call of this, with no value twice: up to two values,
 * the smallest and the largest or one of them, whose number is returned. What
 * ranges_read tells begins anew, too.
 */
unsigned ranges_take(struct ranges *r, uint32_t var, int64_t ret[2]);
/* The smallest value in its enum's widest gap between two enumerators, which
 * names none. False: none was seen. */
bool ranges_read_hole(const struct ranges *r, uint32_t var, int64_t *ret);
/* The same of a subscript: what was in the brackets. */
bool ranges_read_subscript(const struct ranges *r, uint32_t subscript,
			   int64_t *smallest_ret, int64_t *largest_ret);
/* How often a window was passed so far with its sensors in; roughly, where
 * several threads count at the same time. */
uint64_t ranges_hits(const struct ranges *r, uint32_t window);
struct range_news {
	uint32_t window, function;
	uint64_t hits;	  /* since the last call that told of it */
	uint64_t cost_ps; /* what they cost, see range_cost_window */
};
/* The windows that were passed since the last call: @ret has room for
 * range_plan_nr_windows; their number is returned. */
size_t ranges_news(struct ranges *r, struct range_news *ret);
/* The same in a bounded time: of those that were passed when they were looked
 * at last, and of RANGE_GLANCE others, in turn. */
#define RANGE_GLANCE 16384
size_t ranges_glance(struct ranges *r, struct range_news *ret);

/*
 * What is to be expected of @window, of RANGE_WORTH, by how much its variables
 * have widened when they did, and how many values ago that was. @hits: since
 * this was asked last. 0: nothing, for what is assigned there are constants
 * that were seen, or values of types whose smallest and largest were. Where no
 * value ever came, as where stores go elsewhere than to an array, the less the
 * more often that was. To be asked when it was passed. *doubled_ret: one of
 * them has at least doubled its range since that was asked of it.
 */
#define RANGE_WORTH 1024
uint32_t ranges_worth(struct ranges *r, uint32_t window, uint64_t hits,
		      bool *doubled_ret);
/* It is going to be asked of all of @news, @nr of them: what is needed for that
 * is fetched into the cache, for all at once. Changes nothing. */
void ranges_worth_ahead(const struct ranges *r, const struct range_news *news,
			size_t nr);

/*
 * Is @regs->rip in a stub? Then the registers become what the function would
 * have: its own program counter, the stack pointer; what the stub has saved of
 * the others is not looked for. For unwinders. No stop needed.
 */
bool ranges_home(const struct ranges *r, struct user_regs_struct *regs);

/* Everything out, and the memory given back unless a thread stays in it. The
 * results stay readable. SMCO_BUSY: a thread does not stop in time (none does
 * where all stand already). Then all stays, for a later call, or for detach. */
int ranges_remove(struct ranges *r, struct smco_err *err);
/* After ranges_remove or detach, or when the process is gone or has exec'ed.
 * What ranges_remove could not take out is freed when detach has: the plan has
 * to be there until then. Does not touch the tproc. NULL is fine. */
void ranges_destroy(struct ranges *r);

#endif
