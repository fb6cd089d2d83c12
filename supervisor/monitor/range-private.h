/* range-private.h - what the files of the range monitor share. */
#ifndef SMCO_RANGE_PRIVATE_H
#define SMCO_RANGE_PRIVATE_H

#include <sched.h>

#include "supervisor/linkmap.h"
#include "supervisor/monitor/range-alone.h"
#include "supervisor/monitor/range-cache.h"
#include "supervisor/monitor/range-cheap.h"
#include "supervisor/monitor/range-duty.h"
#include "supervisor/monitor/range-monitor.h"
#include "supervisor/monitor/range-witness.h"
#include "supervisor/pace.h"
#include "supervisor/probe/range-rate.h"
#include "supervisor/probe/range-subscript.h"
#include "supervisor/probe/range.h"
#include "supervisor/probe/watch.h"
#include "symbols/pointee.h"

/* A variable that is looked at now and then. */
struct range_poll {
	uint32_t var;
	uint64_t addr; /* the file's */
	uint64_t len;  /* bytes, all elements */
	uint64_t at;   /* of what was read last, see polled */
	bool apart;    /* it may be elsewhere: range_part_static */
};

/* What a variable had when its part began. */
struct range_first {
	int64_t value;
	bool is_known;
};

/* Variables that one debug register can watch: those at one address, of one
 * width; or those that have a value where an instruction is. */
struct range_word {
	uint64_t addr; /* the file's; of one behind pointers: 0 */
	uint32_t bytes;
	uint32_t nr;
	uint32_t var[WATCH_FIELDS];
	bool is_insn;
	uint32_t first_break; /* then: of unit->breaks, as many as variables */
};

/* Variable @var is seen at instruction @word, too. */
struct range_insn_use {
	uint32_t var, word;
};

/* What is known of a program file; lives as long as the monitor. */
struct range_unit {
	struct range_unit *next;
	char *path;
	char *module_path;
	char *build_id;
	struct data_slots slots; /* exports only of a library */
	bool is_library;	 /* it was asked for as one */
	bool is_being_read;	 /* by the reader: nothing below is there yet */
	struct variables *vars;	 /* NULL: nothing to watch; see why */
	struct range_plan *plan; /* NULL: polled only */
	size_t most_windows;	 /* that the plan will have */
	/* Variables used as subscripts: the plan's. It may come to have more of
	 * them. */
	const struct range_subscript *subscripts;
	size_t nr_subscripts, most_subscripts;
	struct range_poll *polls; /* by address */
	size_t nr_polls;
	size_t poll_bytes;  /* of all together */
	uint8_t *is_polled; /* bit of each variable */
	/* Variables that are range_is_kept: few of many, so that they are gone
	 * through once, by range_polls_find, for range_firsts_find. */
	uint32_t *kept;
	size_t nr_kept;
	/* Those whose first value is looked at, for sensors see the rest; at is
	 * the number of the struct range_first. */
	struct range_poll *firsts; /* by address */
	size_t nr_firsts;
	struct range_word *words;
	size_t nr_words;
	uint8_t *beside;   /* bit of each variable: range-beside.c; or NULL */
	uint32_t *word_of; /* of each variable; UINT32_MAX: none */
	/* Sites that no sensor has room at, those of one address behind each
	 * other; those words are the last. And their variables, by number. */
	const struct range_break **breaks;
	struct range_insn_use *insn_uses;
	size_t nr_breaks, nr_insns;
	struct pointee *pointees; /* numbered behind most_subscripts */
	size_t nr_pointees;
	uint32_t first_id; /* of variables in the trace, then subscripts */
	uint8_t *told;	   /* bit of each of those: it is in the trace */
	bool is_told;	   /* all are */
	struct range_cache_key key;
	bool from_cache; /* or in it by now, or it need not be */
	size_t nr_late;	 /* functions planned since it was read */
	uint64_t
		odd_inode; /* of a mapping of that name that is not this file */
	bool no_match;	   /* the selection fits none of its variables */
	bool has_symbols;  /* and nothing else: no debug information */
	uint64_t found_paths;	 /* bit of each --watch that is there */
	struct smco_err why_not; /* of the last that is not */
	char why[340];
};

/* A variable's values in one process. */
struct range_value {
	int64_t smallest, largest;
	uint64_t hits;	/* polls */
	int64_t odd;	/* RANGE_ODD_BETWEEN */
	uint32_t flags; /* enum range_flags; 0: no value yet */
	bool is_new;	/* since it was written last */
};

/* A variable's values in one process while it was in a phase: with a part of a
 * time that it was in it, those that may have been. */
struct range_phase_value {
	int64_t smallest, largest;
	int64_t sure_smallest, sure_largest;
	bool any, any_sure; /* without, the above means nothing */
	bool is_new;	    /* since it was written last */
};

/* A word in one process, over all its turns. */
struct range_turns {
	plant_t plant;
	uint64_t watched_ns;
	uint64_t hits;
};

/* What a process did in the kernel, which armed registers make dearer. */
struct range_moved {
	uint64_t bytes; /* moved by system calls */
	uint64_t faults;
	uint64_t kernel_ns; /* in clock ticks; not for hits that are known */
};

/* A debug register of each thread. */
struct range_register {
	struct watchpoint *w; /* NULL: free */
	uint32_t word;
	struct watch_what what;
	uint64_t since_ns; /* it is armed */
	uint64_t cycle_ns; /* the controller knows of it until then */
	uint64_t cycle_cost_ns;
	uint64_t armed_cost_ns; /* what it took to arm it */
};

/* A trial, and what all of them say: range-trial.c. */
struct range_trial {
	bool is_on;
	enum range_witness_slice slice; /* it is in */
	uint64_t slice_ns, until_ns;	/* how long each is, when this ends */
	uint64_t next_ns;		/* when the next trial may begin */
	uint64_t run_ns;		/* when the slice began */
	uint64_t cost_ps;		/* by the laboratory, in the slice */
	struct range_witness_trial is;
	/* Windows that are out, and those that are not. */
	uint32_t *out;
	size_t nr_out;
	struct range_trial_witness {
		uint32_t window;
		uint64_t hits; /* when the slice began */
	} * witness;
	struct range_witness_hits *hits; /* of each */
	size_t nr_witnesses;
	uint64_t random;
	struct range_witness says;
};

/* What one process has of one file: its program, or a library. */
struct range_part {
	struct range_part *next;
	struct range_proc *owner; /* NULL: it is gone */
	struct tproc *proc;	  /* the same */
	bool can_go;		  /* a library that may be unloaded */
	/* Then: what says that it is there, when it was asked last; and the
	 * first bytes of its build-id in memory, at 0: there is none. */
	struct linkmap_word place[LINKMAP_WORDS];
	struct linkmap_word build_id;
	taddr_t text; /* its mapping, and the file's inode */
	uint64_t inode;
	/* A library that was unloaded: nothing of it is in memory. It may come
	 * back, elsewhere perhaps. */
	bool is_unloaded;
	uint32_t pid;
	struct range_unit *unit;
	struct ranges *ranges; /* NULL: polled only */
	/* A copy's that had no memory of its own yet (range-asleep.c): whose
	 * ranges become wider by what its sensors see; NULL: that is gone. And
	 * how many see for this one. */
	bool is_asleep;
	struct range_part *sees_for;
	unsigned nr_asleep;
	uint64_t bias;
	struct range_duty duty; /* of unit->most_windows */
	uint64_t *hits;		/* of each window so far */
	/* Those before had their turn to be planned and put in, and so had
	 * those with a bit: their windows are the duty's. */
	uint32_t next_function;
	uint8_t *had_turn;
	uint64_t next_start_ns;	   /* when the next may be */
	uint64_t run_ns;	   /* its processor time, when it was asked */
	uint64_t asked_ns;	   /* and when that was */
	uint64_t stop_ns;	   /* of a change, lately */
	uint64_t took_ns;	   /* the same, with the wait for it */
	unsigned nr_refused;	   /* changes in a row, for want of a CPU */
	bool has_stepped;	   /* in this step of its process */
	bool changes;		   /* and its duty wants other windows in */
	uint64_t look_ns;	   /* CPU time of a step, lately */
	uint64_t charged_ns;	   /* when hits were charged last */
	struct range_rate rate;	   /* what they cost */
	struct range_trial trial;  /* what of that the program loses */
	unsigned next_task;	   /* where that is measured */
	unsigned nr_threads;	   /* by then */
	struct range_value *value; /* of unit->vars, then subscripts */
	/* With phases: what sensors saw since the last step, of unit->vars, and
	 * in each phase one after the other; NULL: nothing yet. */
	struct range_value *fresh;
	struct range_phase_value *in_phase;
	uint64_t next_phases_ns;
	uint8_t *polled;	   /* what unit->polls had when read last */
	struct range_first *first; /* of unit->firsts, by their at */
	taddr_t *export; /* where each of unit->slots' is; 0: not known yet */
	/* Watchpoints; NULL: none. */
	struct control *turn_control;
	struct range_turns *turns; /* of unit->words, the first nr_turns */
	size_t nr_turns;
	struct range_register reg[WATCH_REGISTERS];
	unsigned nr_regs;      /* that it can have */
	uint64_t run_watch_ns; /* its processor time, as the control knows */
	uint64_t watch_due_ns;
	struct range_moved moved; /* as it was asked last */
	uint64_t hits_own_ns;	  /* and what of that hits were, so far */
	/* No register before that time: range_watch_rest_ns. */
	uint64_t rest_until_ns;
	uint64_t watch_tick_ns;	   /* the last */
	uint64_t born_ns, died_ns; /* died: 0 while it lives */
	uint32_t next_told;	   /* of values that are told once more */
	uint64_t next_poll_ns;
	/* How many share what these may take of the target. */
	unsigned nr_sharing;
};

/* Why a part ends. */
enum range_end {
	RANGE_LEFT,	/* all tasks are stopped, what was in goes out */
	RANGE_UNLOADED, /* its memory is not there any more, or not its own */
	RANGE_GONE,	/* nor is the process's: nothing is touched */
};

/* A process: range-process.c. */
struct range_proc {
	struct range_proc *next;
	struct tproc *proc;
	char *path;		  /* of its program */
	struct range_part **part; /* the monitor's; the program's first */
	size_t nr, cap;
	struct linkmap linkmap;
	bool is_behind; /* files came or went, and not all is done */
	bool is_begun;	/* what is put in at its start holds the command up */
	bool is_late;	/* its program is not watched yet, but will be */
	uint64_t next_look_ns;
	/* When it is old enough for memory of its own; UINT64_MAX: it has it.
	 */
	uint64_t wake_ns;
	/* What copies that are asleep cost in windows that are out here, since
	 * some woke. */
	uint64_t stray_ps;
	bool is_crowded;  /* more parts have words than there are registers */
	size_t nr_shares; /* that were given out then */
	uint64_t next_share_ns;
};

struct range_monitor {
	struct range_params p;
	struct ledger *ledger;
	struct range_unit *units;
	struct range_proc *procs;
	struct range_part *parts;    /* also of processes that are gone */
	struct range_reader *reader; /* NULL: nothing is read now */
	cpu_set_t cpus;		     /* where it may run */
	int cache_dir;		     /* -1: none */
	uint32_t next_id;
	uint64_t next_tick_ns;
	uint64_t next_emit_ns;
	struct taken taken;	  /* of what looking takes */
	struct range_cheap cheap; /* of all parts */
	/* CPU time from the end of one tick to the beginning of the next, of
	 * late, and when the last one ended. */
	uint64_t wake_ns, left_cpu_ns;
	uint32_t told_reasons;		 /* 1 << enum var_reason, and others */
	uint8_t *buf;			 /* for polling */
	struct watchpoints *watchpoints; /* NULL: none needed, or to be had */
	bool watch_tried;
	bool may_ask;	  /* only perf events are refused */
	uint64_t arm_ns;  /* what it takes to arm a word, or disarm it */
	uint64_t nr_hits; /* of watchpoints, all processes */
	bool has_library; /* one that was expected is selected */
	uint64_t hits_ns; /* what they have cost */
	/* Why perf's are not to be had, or nobody's; and, by ptrace, why one
	 * process has none. */
	char why_no_watch[320], why_not_all[320];
	/* For a step: of as many windows as the largest unit has. */
	struct range_news *news;
	struct range_duty_cost *cost;
	size_t max_windows;
};

/* So many windows go in before the program begins: some 4 us each, so all of
 * most programs. Others are planned when their turn comes. And so many where
 * somebody stands for it: what is begun by the program, or by dlopen. */
#define RANGE_FIRST_WINDOWS 16384
#define RANGE_NEXT_WINDOWS  2048

#define RANGE_POLL_BYTES (64u << 10) /* read at once */
#define RANGE_POLL_MOST	 (4u << 20)  /* all variables together */

/* range-unit.c: known already, or NULL */
struct range_unit *range_unit_find(const struct range_monitor *m,
				   const char *path);
/* Reads it, if it is not known. NULL: no memory. */
struct range_unit *range_unit_get(struct range_monitor *m, const char *path,
				  const char *open_path, bool is_library);
/* In three steps: the second may be another thread's. NULL: no memory. */
struct range_unit *range_unit_new(struct range_monitor *m, const char *path,
				  bool is_library);
void range_unit_read(const struct range_monitor *m, struct range_unit *u,
		     const char *open_path);
void range_unit_ready(struct range_monitor *m, struct range_unit *u);
void range_unit_destroy(struct range_unit *u);
/* Plan function @f, if that was not done when the file was read. False: no
 * memory, so it has no windows. */
bool range_unit_plan(struct range_unit *u, uint32_t f);
/* Those that were read, into the cache. */
void range_units_keep(struct range_monitor *m);
/* range-start.c: functions come in, the first in the stop in which the part
 * begins, of @most windows; then some when there is room. */
void range_start_first(struct range_part *rp, size_t most);
void range_start_some(struct range_part *rp, uint64_t now_ns, int64_t room_ns);
/* A copy of @parent has what that has; its duty knows of it when it wakes. */
void range_start_fork(struct range_part *rp, const struct range_part *parent);
void range_start_wake(const struct range_monitor *m, struct range_part *rp,
		      const struct range_part *parent);
/* range-poll.c */
int range_polls_find(struct range_unit *u);
void range_polls_sort(struct range_poll *polls, size_t nr);
/* Is variable @i in memory for good, where it is known, and can it change? */
bool range_is_kept(const struct range_unit *u, uint32_t i);
/* What is at @bytes. */
int64_t range_value_at(const struct var_type *t, const uint8_t *bytes);
/* range-elements.c: of all elements of a variable of type @t at @bytes, one at
 * least: the smallest and the largest value. */
void range_elements(const struct var_type *t, const uint8_t *bytes,
		    int64_t *smallest_ret, int64_t *largest_ret);
/* @see is told what each of @polls, @nr by address, has now; not of those that
 * cannot be read. @buf has RANGE_POLL_BYTES. */
typedef void range_poll_see(struct range_part *rp, const struct range_poll *p,
			    const uint8_t *now);
void range_polls_read(struct range_part *rp, const struct range_poll *polls,
		      size_t nr, range_poll_see *see, uint8_t *buf);
/* range-first.c. SMCO_NOMEM. */
int range_firsts_find(struct range_unit *u);
/* The part begins: what is there now is a value of those, too. */
void range_firsts_look(struct range_monitor *m, struct range_part *rp);
/* Of those that sensors have seen since. */
void range_firsts_collect(struct range_part *rp);
/* Nothing more will be seen, and all was collected: of those of which nothing
 * was, it is the range. */
void range_firsts_settle(struct range_part *rp);
/* Look at all of them once. */
void range_poll(struct range_monitor *m, struct range_part *rp,
		uint64_t now_ns);
/* range-pointee.c: members behind pointers. Numbers of variables, subscripts
 * and these are below: */
size_t range_unit_nr(const struct range_unit *u);
/* NULL: @i is none of them. */
const struct pointee *range_pointee_at(const struct range_unit *u, uint32_t i);
/* Of a variable, or of one of these. */
const struct var_type *range_type_at(const struct range_unit *u, uint32_t i);
/* SMCO_NOMEM; one that is not there is no error. */
int range_pointees_find(struct range_unit *u, const struct range_select *select,
			struct sym_space *space, struct smco_err *err);
void range_pointees_free(struct range_unit *u);
/* Where it is now, to @what's address and more of its pointers. False: nowhere,
 * or where no register can watch. */
bool range_pointee_follow(const struct range_part *rp, const struct pointee *p,
			  struct watch_what *what);
/* The value of number @i that is at @what, if it still is there. */
void range_pointee_look(struct range_part *rp, uint32_t i,
			const struct watch_what *what);
/* That of all. */
void range_pointees_poll(struct range_part *rp);
/* range-standing.c: what @rp's process has done in the kernel so far. */
struct range_moved range_watch_moved(const struct range_part *rp);
/* Charges what being armed has cost since the last time, if any was; ns. */
uint64_t range_watch_standing(struct range_monitor *m, struct range_part *rp);
/* Did they cost too much by that, @ns since the last look? Then all have to
 * leave for a while. */
bool range_watch_must_rest(const struct range_monitor *m, struct range_part *rp,
			   uint64_t ns, uint64_t now_ns);
/* How long no register may be armed after they cost @cost_ns by
 * being so: a part of the target, @m_t_ppb of the time. 0 without a bound. */
uint64_t range_watch_rest_ns(uint64_t cost_ns, int64_t m_t_ppb);
/* range-watch.c: and how long after one look at them, by which the program lost
 * @lost_ns, all that share it together, the next one is due while nothing
 * happens. */
uint64_t range_watch_gap_ns(uint64_t lost_ns, int64_t m_t_ppb);
/* To the ledger what this thread did to arm since its CPU clock said
 * @since_cpu_ns: that interrupts the program for a part of it. What it only
 * waited for, as for every CPU to have let go of an event, nobody else lost.
 * Returns ns. */
uint64_t range_watch_charge(struct range_monitor *m, uint64_t since_cpu_ns);
/* range-words.c: which words, after range_polls_find: SMCO_NOMEM */
int range_words_find(struct range_unit *u);
/* Those of function @f, which was planned after that: the same. */
int range_words_more(struct range_unit *u, uint32_t f);
void range_words_free(struct range_unit *u);
/* What a register has to be told to watch @word; false: it is nowhere now. */
bool range_word_what(struct range_part *rp, uint32_t word,
		     struct watch_what *ret);
/* The instructions at which variable @var is seen, but by no sensor. */
const struct range_insn_use *range_insn_uses(const struct range_unit *u,
					     uint32_t var, size_t *nr_ret);
/* Before they are needed. */
void range_watch_open(struct range_monitor *m);
/* In a process: the first get their turn; if it @may_come_often (a forked copy,
 * a library that is loaded again), if there is room. Without memory none does.
 */
void range_watch_start(struct range_monitor *m, struct range_part *rp,
		       bool may_come_often);
/* Functions were planned meanwhile, with words of their own. */
void range_watch_more(struct range_monitor *m, struct range_part *rp);
/* At most @nr registers at a time from now on. */
void range_watch_allow(struct range_monitor *m, struct range_part *rp,
		       unsigned nr);
/* How long a word has one at the least where others wait: arming takes time. */
uint64_t range_watch_turn_ns(const struct range_monitor *m);
/* A thread came, before its first instruction, or has ended. */
void range_watch_task_new(struct range_monitor *m, struct range_part *rp,
			  pid_t tid);
void range_watch_task_gone(struct range_part *rp, pid_t tid);
/* Who is next; tasks may run. */
void range_watch_tick(struct range_monitor *m, struct range_part *rp,
		      uint64_t now_ns);
/* What was seen so far, to rp->value. */
void range_watch_collect(struct range_part *rp);
/* For good; the results are in rp->value. Does not touch the tproc, or by
 * ptrace only what it knows of it. */
void range_watch_stop(struct range_monitor *m, struct range_part *rp);
/* Until when @reg saw what was written, as of now. */
uint64_t range_seen_until(const struct range_register *reg, uint64_t now_ns);
/* range-watched.c: how long variable @var was watched, and how often it was
 * written then; 0 where it is none of these. */
uint64_t range_watch_ns(const struct range_part *rp, uint32_t var,
			uint64_t now_ns, uint64_t *hits_ret);
/* How long all the places that assign @var were watched, by sensors and
 * breakpoints, on average, and how many values they gave it meanwhile.
 * *by_insn_ret: breakpoints were among that. */
uint64_t range_sites_ns(const struct range_part *rp, uint32_t var,
			uint64_t end_ns, uint64_t *hits_ret, bool *by_insn_ret);
/* Breakpoints are to be had. */
bool range_have_insns(const struct range_monitor *m);
/* For the trace: how, and what it cost. */
void range_watch_tell(struct range_monitor *m);
/* range-phases.c: @rp has variables, no values yet. Nothing without phases. */
void range_phases_begin(const struct range_monitor *m, struct range_part *rp);
/* What is fresh to the phases; before its process is forgotten. */
void range_phases_step(struct range_monitor *m, struct range_part *rp);
/* For the trace: what is new. False: not all of it had room. */
bool range_phases_emit(struct range_monitor *m, struct range_part *rp,
		       uint64_t now_ns);
/* range-beside.c: which variables phases hide something of: of @rp, while its
 * sensors are there; at the end, for the trace. */
void range_beside_take(struct range_part *rp);
void range_beside_tell(struct range_monitor *m);
/* range-emit.c: false: it had no room */
bool range_emit_record(struct range_monitor *m, uint32_t event, uint32_t id,
		       uint64_t now_ns, const void *payload, size_t len);
/* Take in a value. */
void range_value_add(struct range_value *v, const struct var_type *t,
		     int64_t smallest, int64_t largest, uint32_t flags);
/* range-part.c: all tasks stopped, the file is in @maps. NULL: it is not, or
 * memory is out. */
struct range_part *range_part_create(struct range_monitor *m,
				     struct range_proc *p, struct range_unit *u,
				     bool can_go, const struct tmaps *maps);
/* A copy of it, asleep. */
struct range_part *range_part_fork(struct range_monitor *m,
				   struct range_part *parent,
				   struct range_proc *p);
/* range-asleep.c: @rp sees for @parent, or for whom that does. */
void range_sleep(struct range_part *rp, struct range_part *parent);
/* It has memory of its own from now on. All tasks stopped. */
void range_wake(struct range_monitor *m, struct range_part *rp);
/* Copies that see for @rp have cost @ps more where it has no sensors in: if
 * all its process's files together come to more than it takes to wake them,
 * they are due. */
void range_stray(struct range_monitor *m, struct range_part *rp, uint64_t ps);
/* Nothing sees for @rp any more, nor does that for another. */
void range_sleep_end(struct range_monitor *m, struct range_part *rp);
/* Processor time that the copies that see for @rp have had since this was asked
 * last. */
uint64_t range_asleep_ns(const struct range_monitor *m, struct range_part *rp);
/* Copies of @p that are old enough. Tasks run. */
void range_proc_wake(struct range_monitor *m, struct range_proc *p,
		     uint64_t now_ns);
/* A library that was unloaded is back. */
bool range_part_reopen(struct range_monitor *m, struct range_part *rp,
		       const struct tmaps *maps);
/* Its sensors leave. Results stay. */
void range_part_close(struct range_monitor *m, struct range_part *rp,
		      enum range_end end);
/* range-loaded.c: of a library that may be unloaded: it is at rp->bias. All
 * tasks stopped. */
void range_loaded_at(struct range_part *rp);
/* Is it in memory at this moment? In a stop, or before memory is read: a few
 * reads of the linker's list, and of the file's build-id in memory, if it has
 * one. */
bool range_loaded(struct range_part *rp);
/* Was it there all the time since that said so? After memory was read. */
bool range_loaded_still(const struct range_part *rp);
/* More pointers to @what, which say that the variable at @addr, the file's, is
 * still this library's. False: it cannot be told (without a build-id), or it is
 * not. Tasks may run. */
bool range_loaded_guard(struct range_part *rp, uint64_t addr,
			struct watch_what *what);
/*
 * Where the file's address @addr of data is: what a library exports may be in
 * the program instead, or in another library. False: nobody knows yet.
 */
bool range_part_static(const struct range_part *rp, uint64_t addr,
		       taddr_t *ret);
/* Is its file still where it was? */
bool range_part_is_mapped(const struct range_part *rp,
			  const struct tmaps *maps);
/* Time goes by for it. */
void range_part_tick(struct range_monitor *m, struct range_part *rp,
		     uint64_t now_ns);
/* range-step.c: windows become what its duty wants. All tasks stopped; by
 * waiting for that the program has lost @waited_ns, of this part's share. */
void range_part_change(struct range_part *rp, uint64_t waited_ns);
/* Is it to look at what its sensors cost, or may it, if others do? */
bool range_part_steps(const struct range_part *rp, uint64_t now_ns, bool early);
/* Returns how many were passed: m->cost, m->news. */
size_t range_part_step(struct range_monitor *m, struct range_part *rp,
		       uint64_t now_ns);
/* To the ledger what was passed since this was called last, @all or what a
 * glance shows (ranges_glance); to m->cost and m->news, how many that are. */
size_t range_part_charge(struct range_monitor *m, struct range_part *rp,
			 bool all);
/* range-trial.c: it has stepped, and nothing changes: a trial may begin. Tasks
 * run. */
void range_trial_start(struct range_monitor *m, struct range_part *rp);
/* One is on, and its slice is over: the next one begins. Tasks run. */
void range_trial_step(struct range_monitor *m, struct range_part *rp);
/* What the @nr in @cost cost by the laboratory becomes what they do by trials.
 */
void range_trial_price(struct range_part *rp, struct range_duty_cost *cost,
		       size_t nr);
void range_trial_free(struct range_trial *t);
/* What is not done before its windows are as it wanted. */
void range_part_stepped(struct range_part *rp, uint64_t now_ns,
			int64_t room_ns);
/* How many share what looking may take: those of its process, or those of all
 * that cost something lately. 1 at least. */
unsigned range_part_sharing(const struct range_monitor *m,
			    const struct range_part *rp);
uint64_t range_part_due_ns(const struct range_part *rp);
void range_part_free(struct range_part *rp);
/* range-process.c: have libraries come or gone? Tasks run. */
void range_proc_look(struct range_monitor *m, struct range_proc *p,
		     uint64_t now_ns);
/* range-step.c: all parts of @p that may step do so. */
void range_proc_step(struct range_monitor *m, struct range_proc *p,
		     uint64_t now_ns);
/* range-reader.c: a thread that reads @u, which nobody may look into meanwhile.
 * False: it could not be begun. */
bool range_reader_start(struct range_monitor *m, struct range_unit *u,
			const char *open_path);
/*
 * Is one at work? Waited for until @until_ns, in which it computes like
 * everybody, 0: not at all; otherwise only while the budget has room, and else
 * when nobody else wants to. What it has read is ready when this says no.
 */
bool range_reader_busy(struct range_monitor *m, uint64_t until_ns);
/* range-emit.c: what the sensors saw, to rp->value */
void range_collect(struct range_part *rp);

#endif
