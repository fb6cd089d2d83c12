/*
 * internal.h - what the files of this room share: the structures behind the
 * opaque types of tracee.h and the steps between "a wait status came" and "the
 * caller has an event". supervisor/INTERNALS.md tells the story.
 *
 * Invariants:
 * - a task is resumed in one place only, task_restart();
 * - a task in state TASK_STOPPED is there for exactly one of these reasons:
 *   it is queued (status not acted upon), held (handed to the caller), or its
 *   tproc has stop_depth > 0; with none of the three it is restarted;
 * - struct task and struct tproc live until the event that reports their end
 *   has been handed out and tracer_next() is called again.
 */
#ifndef SMCO_TRACEE_INTERNAL_H
#define SMCO_TRACEE_INTERNAL_H

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "supervisor/tracee/arch.h"
#include "supervisor/tracee/aside.h"
#include "supervisor/tracee/likely.h"
#include "supervisor/tracee/spare.h"
#include "supervisor/tracee/stop.h"
#include "supervisor/tracee/tracee.h"

#define TASK_HASH_SIZE 1024

enum task_state {
	TASK_RUNNING,	/* not in a ptrace-stop, as far as is known */
	TASK_STOPPED,	/* in a ptrace-stop, .status says which */
	TASK_LISTENING, /* in a group-stop, PTRACE_LISTEN done */
	TASK_DEAD,	/* reaped, or gone by another thread's exec */
};

/* A thread that was asleep, as seen before it was interrupted. */
struct slept {
	uint64_t ns; /* the clock of @cpu when it fell asleep, 0 = unknown */
	uint64_t migrations;
	uint64_t nr_sleeps;
	int cpu;
};

/* The scheduler's clock of a CPU at a moment of CLOCK_MONOTONIC. */
struct cpu_clock {
	int cpu;
	uint64_t ns; /* 0 = unknown */
	uint64_t at_ns;
};

struct task {
	struct tracer *tr;
	pid_t tid;
	pid_t tgid;
	struct tproc *proc; /* NULL until the creator's event was seen */
	struct task *next;  /* in proc->tasks */
	struct task *hash_next;
	struct task *queue_next;
	enum task_state state;
	int status;	  /* wait status of the stop or of the end */
	bool queued;	  /* in tracer.queue: status not acted upon */
	bool held;	  /* handed to the caller, tracer_resume() pending */
	bool is_new;	  /* its first stop has not been acted upon */
	bool announced;	  /* the caller has heard of it */
	bool interrupted; /* PTRACE_INTERRUPT sent, no stop seen since */
	bool begins_interrupted; /* a syscall-enter-stop swallowed that */
	bool in_vfork;		 /* in the kernel until its STOP_VFORK_DONE */
	bool quiet; /* cannot stop now, but runs no user code before it does */
	bool was_blocked;      /* INTERRUPT found it waiting in the kernel */
	bool group_clock;      /* this stop is charged by tproc_cont() */
	unsigned long options; /* of ptrace, as last set; 0 = not known */
	bool no_signal;	       /* detach: the signal of this stop was ours */
	bool block_fault; /* detach: block SIGSEGV once its fault was met */
	int deliver;	  /* signal to deliver on restart */
	uint64_t stop_ns;
	uint64_t nr_stops;
	pid_t made_by; /* 0 = not known */
	/* A leader: its process was born under our eyes, and no thread of it
	 * has made another process. */
	bool is_childless;
	/* hold_creators: who made it and stands until it goes on; and the
	 * other way round. NULL = nobody. */
	struct task *creator, *created;
	bool uring_had_any; /* results, when its wait was cut short */
	bool caught_valid;
	uint64_t caught; /* in this stop: signals that have handlers */
	bool regs_valid;
	struct user_regs_struct regs;
	bool may_wait;	    /* was seen in a wait that needs mending */
	bool looked_at;	    /* since when, before PTRACE_INTERRUPT */
	bool in_group_stop; /* a stop signal ended its wait, as it always does;
			     * task_set_in_group_stop() */
	struct mend { /* a wait with an end, cut short by a stop; mend.c */
		const struct waiting_call *call; /* NULL = none */
		taddr_t sp;
		uint64_t end_ns;
		uint64_t arg; /* the time-out argument as the program gave it */
		int expired;  /* what it returns when its time is over */
		bool replaced;	 /* the register holds ours now */
		bool inside;	 /* the code of whole.c makes it */
		bool has_expiry; /* it is stopped at its end; mend-expiry.c */
	} mend;
	struct { /* the call that was going to be made again; mend.c */
		taddr_t pc;
		taddr_t sp;
		long nr;
		int64_t ret;
	} again;
	struct slept slept; /* when it was last interrupted */
	unsigned nr_looks;  /* at what it waits in, before PTRACE_INTERRUPT */
	struct { /* of the recvmsg it was last seen in; mend-look.c */
		taddr_t msg; /* 0 = none */
		taddr_t sp;
		taddr_t control;
		uint64_t len;
	} room;
	taddr_t rseq; /* 0 = none, 1 = not asked yet */
	/* As it sees them itself, in its PID namespace; 0 = not asked yet. */
	pid_t own_tid, own_tgid;
	bool has_no_filter; /* of seccomp, but ours; known in this stop */
	bool no_handler;    /* no signal's is running in it; false: not known */
	/* debugreg.c: ids of what its debug registers watch, and of what it is
	 * not to be told of any more. */
	uint32_t watch[TWATCH_MOST], watch_over[TWATCH_MOST];
	bool blocks_trap; /* SIGTRAP, when they were set */
	unsigned after;	  /* after_add()'s */
	/* It was borrowed and did not come back in time (loan.c): what it gets
	 * at its next stop. .quiet until then. */
	struct loan *owed;
};

struct tpatch {
	struct tundo *undo;
	taddr_t addr;
	size_t len;
	uint64_t nr;	    /* newer ones have higher ones */
	uint8_t *old_bytes; /* both behind this */
	uint8_t *new_bytes;
};

struct tundo {
	struct tundo *next; /* older */
	struct tundo *newer;
	int (*undo)(struct tproc *p, void *arg);
	void *arg;
};

struct trange {
	taddr_t start;
	taddr_t end; /* exclusive */
};

/* See libs.c. */
struct libs {
	taddr_t at; /* the code; 0 = static, attached, or done */
	size_t len;
	taddr_t done; /* where a task stands when the signal comes */
	struct arch_raise raise;
	struct tundo *undo; /* NULL = a killed supervisor's */
};

struct tproc {
	struct tracer *tr;
	pid_t pid;
	struct tproc *next;
	struct task *tasks;
	unsigned nr_tasks;
	void *user;
	uint64_t nr_unwanted; /* stops; see tproc_nr_unwanted() */

	unsigned stop_depth;
	bool is_new; /* TEV_PROC_NEW handed out or due, all tasks held */
	bool execed; /* exec seen, TEV_PROC_NEW not handed out yet */
	bool told;   /* TEV_PROC_NEW handed out */
	bool launched;
	bool seized;	   /* and not announced yet */
	unsigned nr_tries; /* to stop all for that, in vain */
	bool split;	   /* a vfork child's new program, or the like */
	bool leaving;	   /* detached but for tasks that could not stop yet */
	enum tproc_why why;
	struct tproc *parent; /* valid while the fork event is due */
	bool end_is_due;      /* no tasks left; see tproc_gone */
	bool has_unseen;      /* its births were not followed all the time */
	bool from_before;     /* a copy of one that nobody was told of yet */
	bool is_whole_copy;   /* made by fork, of a process of one thread */
	int exit_status;
	uint64_t end_cpu_ns; /* all CPU time it used, 0 = not known */

	struct tmaps maps;     /* as of this stop; none: not read */
	struct tmaps recent;   /* from just before it; see maps-ask.c */
	struct tmaps occupied; /* as last asked for */
	int mem_fd, maps_fd;   /* -1 = not open */
	bool mem_readonly;     /* the kernel refuses to write text there */
	bool trace_syscalls;
	void (*before_signal)(struct task *t, void *arg); /* NULL = none */
	void *before_signal_arg;
	int trap_sig; /* 0 = not chosen */
	struct trange *trap_ranges;
	size_t nr_trap_ranges;

	struct {	     /* debugreg.c: by register */
		uint32_t id; /* 0 = none */
		struct twatch what;
	} watch[TWATCH_MOST];

	struct tundo *undos;
	/* Patches by address, then length, of the same the newest last; as they
	 * are if nr_indexed is not 0. */
	struct tpatch **patch_index;
	size_t nr_indexed;
	uint64_t nr_patches;  /* made so far */
	taddr_t syscall_insn; /* 0 = not looked for */
	taddr_t boot_site;    /* 0 = not looked for, 1 = none */
	bool has_boot_undo;
	taddr_t stub;	  /* batch stub, 0 = none */
	taddr_t vdso_end; /* 0 = not looked for, or there is none */
	/* Those of killed supervisors, not used yet. */
	taddr_t old_stubs[4];
	unsigned nr_old_stubs;
	taddr_t busy_stubs[4]; /* of those, where a thread was */
	unsigned nr_busy_stubs;
	taddr_t whole;	  /* code of whole.c, 0 = not yet, 1 = cannot */
	size_t whole_len; /* of it */
	bool whole_waits; /* left there only for who has not stopped yet */
	bool has_rooms;	  /* a thread was seen in such a call; mend-look.c */
	bool has_bare;	  /* signal_is_bare() of one that was sent to it */
	/* Of its leader, until a task of it runs on: proc_is_sandboxed(). */
	bool knows_filter;
	bool has_filter;
	bool stub_refused;
	unsigned nr_owed; /* tasks with .owed */
	struct libs libs;
	taddr_t r_debug; /* 0 = not found */

	bool is_urgent; /* see tproc_urgent() */
	uint64_t stop_began_ns;
	uint64_t stop_stood_ns; /* how long it took from then on, ns */
};

struct event_node {
	struct event_node *next;
	struct tevent ev;
};

struct tracer {
	struct tracer_options opts;
	pid_t tid; /* the thread that may call ptrace */
	struct tproc *procs;
	struct task *hash[TASK_HASH_SIZE];
	struct task *queue; /* oldest first */
	struct task **queue_tail;
	struct event_node *events;
	struct event_node **events_tail;
	struct task *dead_tasks; /* freed by the next tracer_next() */
	struct tproc *dead_procs;
	unsigned nr_tasks;   /* in the hash */
	uint64_t orphans_ns; /* when to look for some again */
	pid_t launched_pid;  /* our own child, 0 = none */
	pid_t left_pid;	     /* the same, left; its end is waited for */
	int (*where)(const void *ctx, pid_t tid); /* where it stopped; NULL */
	const void *where_ctx;
	uint32_t *lent;	     /* is 1 while one is let go for us; NULL */
	bool leaves_births;  /* processes that are born now are not followed */
	uint32_t last_watch; /* number given out by tproc_watch() */
	unsigned nr_foreign; /* programs left, for they have 32 bits */
	/* The status file that was read last, open: it is often the same. */
	int status_fd; /* -1 = none */
	pid_t status_tid;

	/* waiting; see wait.c */
	timer_t timer;
	bool has_timer;
	uint64_t armed_ns;    /* when the timer fires, 0 = disarmed */
	uint64_t again_ns;    /* and when after that if it is not set anew */
	volatile int *ticked; /* this thread's flag */
	unsigned nr_asleep;   /* stops to come that are slept for in any case */
	volatile int wake_asked;
	unsigned drain_in;    /* stops until the next fairness round */
	struct likely likely; /* where there are many tasks; see wait.c */
	uint64_t nr_wide;     /* waits for any task, so far */
	uint64_t expires_ns;  /* the next of mend-expiry.c; 0 = none */

	/* clocks */
	uint64_t now_ns;     /* of the last wait status */
	struct rusage usage; /* that came with it, of one that has ended */
	uint64_t stop_sum_ns;
	uint64_t nr_stops, nr_asked;
	uint64_t nr_signals;
	uint64_t longest_stop_ns;
	const char *stops_are_for, *longest_was_for;
	uint64_t stop_cost_ns, stop_own_ns;
	unsigned nr_in_group_stop; /* of the tasks in the hash */
	uint64_t all_stand_ns;	   /* since when all are; 0 = they are not */
	uint64_t stood_ns;	   /* they were, before that */

	sigset_t child_mask; /* what launched commands get */
	struct urgent {
		unsigned nr_stand; /* processes whose threads all wait */
		bool asked;	   /* tracer_urgent() */
		bool by_deadline;  /* real time is refused; see urgent.c */
		bool had_deadline;
		int own_policy;
		struct rlimit own_limit; /* RLIMIT_RTTIME */
		bool may;		 /* as far as is known */
		bool is_on;
		bool is_relaxed;      /* tracer_relax() */
		bool gave_nice;	      /* and has its own nice value then */
		bool has_long_turns;  /* and gives way to who wakes up */
		int own_nice, nice;   /* that, and the other */
		uint64_t own_turn_ns; /* 0: nobody asks for that here */
	} urgent;
	cpu_set_t own_cpus;	  /* what the user gave us */
	struct rlimit own_nofile; /* the same; our own is at its maximum */
	int nr_cpus;
	struct cpu_clock clock[16]; /* last asked; mend-slept.c */
	struct follow {
		bool on;
		bool pinned;
		int cpu;
		uint64_t window_ns; /* start of the rate window */
		uint64_t window_stops;
		uint64_t looked_ns; /* last look where the tracee runs */
		struct spare spare;
		struct aside aside;
	} follow;
};

/* --- tracer.c: the table --- */
struct task *task_find(struct tracer *tr, pid_t tid);
struct task *task_create(struct tracer *tr, pid_t tid);
/* Counted: see tracer_stood_ns(). */
void task_set_in_group_stop(struct task *t, bool is);
void task_join(struct task *t, struct tproc *p, pid_t tgid);
/* Out of the table and its tproc; freed by the next tracer_next(). */
void task_unlink(struct task *t);
struct tproc *tproc_create(struct tracer *tr, pid_t pid);
void tproc_unlink(struct tproc *p);
void tproc_forget_memory(struct tproc *p); /* after exec, or at the end */
void tracer_free_dead(struct tracer *tr);
unsigned long trace_options(const struct tracer *tr, bool launched);

/* --- wait.c --- */
int wait_init(struct tracer *tr, struct smco_err *err);
void wait_deinit(struct tracer *tr);
/* What is there of @pid (-1: of any task); waitpid(2)'s result. All waits for
 * what gather() is given leave what the kernel tells of its CPU time in
 * tr->usage. */
pid_t wait_now(struct tracer *tr, pid_t pid, int *status);
/* wait4(@pid, __WALL) until @deadline_ns: the tid, 0 at the deadline or when
 * woken, negative errno (ECHILD). */
pid_t wait_status(struct tracer *tr, pid_t pid, uint64_t deadline_ns,
		  int *status);
/* wait_status() of any task. Where there are so many that this takes long, the
 * one that is likely to stop next is waited for first, for a moment. */
pid_t wait_any(struct tracer *tr, uint64_t deadline_ns, int *status);
/* The same of one thread (@pid > 0) that is about to stop: awake at first,
 * where it has another CPU for that. */
pid_t wait_status_soon(struct tracer *tr, pid_t pid, uint64_t deadline_ns,
		       int *status);
/*
 * PTRACE_SEIZE until about @deadline_ns: 0 or negative errno, -EINTR if it has
 * not been possible by then. It waits while a thread of @tid's process execs,
 * and that one waits until its dying siblings are reaped: by us, if they are
 * ours already.
 */
int wait_seize(struct tracer *tr, pid_t tid, unsigned long options,
	       uint64_t deadline_ns);

/* --- gather.c --- */
/* Book a wait status: the task's state, births, exec, its end. */
void gather(struct tracer *tr, pid_t tid, int status);
/* The end alone, also of one that nobody got a status of. */
void gather_end(struct task *t, int status);

/* --- event.c --- */
/* Gather what is there without waiting. */
void tracer_drain(struct tracer *tr);
/* Tasks that wait to be told of a signal of no interest here, or have just made
 * another one, go on before their turn. */
void tracer_pass_on(struct tracer *tr);
void task_enqueue(struct task *t);
void task_dequeue(struct task *t);
/* Restart unless it is held, or its tproc stopped. */
void task_release(struct task *t);
void task_restart(struct task *t);
/* Its stop is going to end now. */
void task_charge_stop(struct task *t);
struct tevent *event_push(struct tracer *tr, enum tevent_kind kind,
			  struct tproc *p, struct task *t);
void act_end(struct task *t); /* it is no more, and that is told */
/* Its last task is gone; @announced: the caller knows of it. */
void tproc_gone(struct tproc *p, bool announced);
/* Are there copies of @p that are still to be announced? */
bool tproc_has_copy_due(const struct tproc *p);
/* The fork event is not due any more; the parent's end may have waited. */
void tproc_forget_parent(struct tproc *p);
void task_drop_events(struct task *t); /* not handed out yet */
void tproc_drop_events(struct tproc *p);
static inline enum stop_kind task_kind(const struct task *t)
{
	return stop_classify(t->status);
}

/* --- quiesce.c --- */
int task_interrupt(struct task *t);
/* Wait until @t is stopped, quiet or dead; SMCO_BUSY at the deadline. */
int task_await(struct task *t, uint64_t deadline_ns);
/* All tasks of @p; one that has not stopped by then, or NULL. p->stop_depth
 * must be > 0. */
struct task *tproc_quiesce(struct tproc *p, uint64_t deadline_ns);
/* The first stop of all tasks of @p, which tproc_cont() ends; one that has not
 * stopped within @bound_ns, or NULL. */
struct task *tproc_stop_all(struct tproc *p, uint64_t bound_ns);
/* PTRACE_INTERRUPT, then @t sits in a PTRACE_EVENT_STOP. From any stop; a
 * signal of a signal-delivery-stop is lost. SMCO_BUSY: see task_next_stop(). */
int task_to_event_stop(struct task *t);
/* Let stopped @t go by @req for a call of ours. SMCO_GONE. */
int task_lend(struct task *t, int req);
/*
 * @t, which we have just let go, to its next stop: 0, SMCO_GONE, or SMCO_BUSY
 * if that takes longer than LOAN_BOUND_NS, because it is frozen (cgroups) or a
 * call waits for a disk. It has been interrupted then: stopped somewhere, or
 * .quiet and running.
 */
int task_next_stop(struct task *t, int *status_ret);

/* --- loan.c --- */
/* @t, owed something, has stopped: back to the stop in which it was borrowed.
 */
void loan_pay_back(struct task *t);
void loan_write_off(struct task *t); /* it will not stop any more */

/* --- whole-rest.c --- */
/* @t's call has returned less than it would have without a stop: how to carry
 * on with it. False if it has not, or that is not possible. */
bool whole_rest(struct task *t, const struct user_regs_struct *regs,
		struct arch_whole_rest *ret);

/* --- whole-pull.c --- */
/* Of the @rest->done messages at @at, on a stream: are some not full, and later
 * ones have got what belongs to them? Sets .pull, .pull_nr and .done; *last_ret
 * is the last that counts then. False: that cannot be mended. */
bool whole_find_pull(struct task *t, taddr_t at, struct arch_whole_rest *rest,
		     struct mmsghdr *last_ret);
/* Moves those bytes to where they belong. */
bool whole_pull(struct task *t, const struct arch_whole_rest *rest);

/* --- whole.c --- */
/* Threads may be in the code that was left by one who was here before us. */
void whole_find(struct tproc *p);
/* Its call was cut short in the middle and should not have been. */
bool whole_is_cut(struct task *t, const struct user_regs_struct *regs);
/* Is @pc in the code, if there is any in @p? */
bool whole_has(const struct tproc *p, taddr_t pc);
bool whole_is_inside(struct task *t, const struct user_regs_struct *regs);
/* Let it carry on with the rest; true if it does. */
bool whole_carry_on(struct task *t, const struct user_regs_struct *regs);
/*
 * One in there at the end of recvmmsg with @was, which is to fill messages:
 * where in one it was cut the code does not see. It goes home with what has
 * been done by now; *@ret as if the call had ended there. False: it is in no
 * such call.
 */
bool whole_go_home(struct task *t, const struct user_regs_struct *was,
		   struct user_regs_struct *ret);
/* The call that the kernel is about to make again is made in there; see
 * arch_whole_again(). *@regs are what it has then; false: as they were. */
bool whole_again(struct task *t, struct user_regs_struct *regs,
		 const struct arch_whole_late *late);
/* A handler is going to run: that does end the call, with what is done. Of a
 * mere wait the kernel decides at its own place, as ever. */
void whole_end(struct task *t);
/* Its process was left before it stopped: the last one takes the code out. */
void whole_leave(struct task *t);
void whole_inherit(struct tproc *child, struct tproc *parent);

/* --- maps.c, maps-ask.c --- */
/* @path ended in " (deleted)", and does so no more. */
bool tmap_strip_deleted(char *path);
int tproc_open_maps(struct tproc *p); /* 0: .maps_fd is open */
/* All tasks are about to stand: reads all mappings for tproc_recent_maps(),
 * where single ones can be asked for afterwards. */
void tproc_look_ahead(struct tproc *p);

/* --- birth.c --- */
void note_birth(struct task *parent);
void note_exec(struct task *t);
/* @t goes on for the first time, or never: so does its creator. */
void birth_over(struct task *t);
/* A stopped task nobody announced: who made it? And who stands for one that
 * does not come? */
void adopt_orphans(struct tracer *tr);
/* follow=false: take everything out of the copy and let it go. */
void leave_child(struct tproc *child);

/* --- unseen.c --- */
/* Stopped @t is about to go on: are its births to be followed? */
void unseen_sync(struct task *t);
/*
 * Nobody whose birth was not followed runs in @p's memory, or has soon left it.
 * @stands: all tasks of @p do, and none comes; otherwise one may. False: one
 * stays.
 */
bool unseen_is_out(const struct tproc *p, bool stands);
/* The same, for so long; all stand. */
bool unseen_await(const struct tproc *p, uint64_t until_ns);

/* --- detach.c --- */
/* From a stop. One that enters a system call may have to leave that first:
 * then it runs on, and its next stop ends here again (proc->leaving). */
void task_detach(struct task *t);
/* The new program that @t has begun is not to be supervised, or cannot be (32
 * bits): let it go, and tell of that if its process was told of. */
void tproc_leave_program(struct task *t);
/* The supervisor's side of a tproc that is no longer ours. */
void tproc_discard(struct tproc *p);
/* What was launched, and has been let go since or is not told of again yet, has
 * ended. */
void tproc_tell_left_end(struct tproc *p, int status);
/* The same once the last task of a leaving one is gone. */
void tproc_discard_if_left(struct tproc *p);

/* --- mem.c --- */
/* What was changed is no more: exec replaced it, or its last user has ended. */
bool tproc_memory_gone(struct tproc *p);

/* --- undo.c, patch.c, inject.c --- */
int undo_run_all(struct tproc *p, struct smco_err *err);
void undo_forget_all(struct tproc *p);
/* @u, which is none of @p's, as its newest. */
void undo_link(struct tproc *p, struct tundo *u);
/* tproc_undo_drop of one that is there: there are thousands of patches. */
void undo_drop_known(struct tproc *p, struct tundo *u);
void patch_copy_all(struct tproc *parent, struct tproc *child);
bool undo_is_patch(const struct tundo *u);
void patch_forget(struct tproc *p, struct tundo *u);
/* Of no process yet, its bytes not set; patch_free() or free(). */
struct tpatch *patch_alloc(taddr_t addr, size_t len);
/* To be undone from now on. SMCO_NOMEM. */
int patch_register(struct tproc *p, struct tpatch *patch);
void patch_free(struct tproc *p, struct tpatch *patch);

/* Take out the page where calls are run, and those of killed supervisors that
 * no thread is in any more. 0 also if no thread can be borrowed for that now:
 * p->stub is what it was then. */
int stub_remove(struct tproc *p);
/* What the first call needs to know of the mappings; best asked before the
 * tasks stand, for there may be thousands of lines. */
void inject_look(struct tproc *p);
void stub_inherit(struct tproc *child, struct tproc *parent);
/* @len bytes, below what the injection needs, in the unused end of the vdso;
 * 0 = there are not so many. */
taddr_t inject_spare_code(struct tproc *p, size_t len);
/* ARCH_RAISE_MAX bytes for libs.c; 0 = no such place. What is there is to be
 * looked at. The process may run. */
taddr_t inject_libs_place(struct tproc *p);
/* Where spare code would have been for another supervisor; 0 = nowhere. */
taddr_t inject_spare_was(struct tproc *p, size_t len);

/* --- signal.c --- */
/* Has nothing been kept of @si but its number? So it is where as many signals
 * wait as may (RLIMIT_SIGPENDING), of those that one sends, not of faults. */
bool signal_is_bare(const siginfo_t *si);
/* Has a thread with @regs, which is about to get @si, sent it itself by tgkill?
 * Where @si is bare, its being at the end of that call must do. */
bool signal_is_raised(const siginfo_t *si, const struct user_regs_struct *regs);
bool signal_is_trap(struct task *t, const siginfo_t *si);
/*
 * Is @si, which @t is about to get, a hit of a debug register: one of
 * debugreg.c's, or one that the kernel cannot account for? That is of one that
 * was taken back meanwhile; and where a virtual machine's host has lost what is
 * in DR6 by the time that the kernel reads it, which then takes the exception
 * for an INT1 of the program's (Linux, exc_debug_user). Nobody else's registers
 * are in a thread of ours. It is not to be delivered: it would kill the
 * program.
 */
bool signal_is_stray(struct task *t, const siginfo_t *si);
/* The signal to deliver when @t is let go in its present stop. */
int signal_at_detach(struct task *t);
void signal_block_fault(struct task *t); /* it stands at that */
/* @t is about to be let go. True: it has to run on to the stop of a fault that
 * it has already met, and comes back from there. */
bool signal_meet_fault(struct task *t);
/* A stop signal that is going to stop the program: it ends a wait, in any
 * case. All others do so only if they are handled. */
bool signal_stops(struct task *t, int sig);
bool signal_is_handled(struct task *t, int sig);
/* Nothing comes of it: without a tracer it would not even be sent. Of SIGCONT
 * that is not asked. */
bool signal_is_ignored(struct task *t, int sig);

/* --- handler.c --- */
/* Before @t stands: may a signal handler run in it? See task_in_handler(). */
void handler_look(struct task *t);

/* --- libs.c --- */
void libs_start(struct tproc *p); /* at the first stop after exec */
void libs_inherit(struct tproc *child, const struct tproc *parent);
/* Is this the signal of our code? Then all libraries are mapped, the task is
 * past the code, and that is gone. */
bool libs_on_signal(struct task *t, int sig);

/* --- urgent.c --- */
/* @u is zeroed. Handles SIGXCPU in this thread from now on, unless somebody
 * else does. */
void urgent_init(struct urgent *u);
/* Puts RLIMIT_RTTIME back; safe in a child between fork and exec. */
void urgent_deinit(const struct urgent *u);
/* All threads of @p wait for us from now on, or no longer: this thread goes
 * before all others on its CPU, where that is permitted. */
void tproc_urgent(struct tproc *p, bool is_urgent);

/* --- follow.c --- */
void follow_stop(struct task *t);    /* at every stop */
void follow_rest(struct tracer *tr); /* when nothing happened */
void follow_end(struct tracer *tr);
/* Go to @cpu for a moment, until follow_return(). False: it is not ours, and
 * nothing has changed. */
bool follow_visit(struct tracer *tr, int cpu);
void follow_return(struct tracer *tr);

/* --- calibrate.c --- */
/* ns; *own_ret: the task's own CPU time of that. */
uint64_t calibrate_stop_cost(uint64_t *own_ret);

/* --- proc files --- */
/* getsockopt(SOL_SOCKET) of a descriptor of @t's; SMCO_UNSUPPORTED. */
int task_socket_option(const struct task *t, int fd, int option, void *ret,
		       socklen_t len);
/* How long a read of a terminal waits for the first byte (VTIME, where VMIN is
 * 0), ns; 0: for ever, or @fd of @t's is none. */
uint64_t task_terminal_timeout(const struct task *t, int fd);
/* Where a thread that sleeps in a system call will go on; SMCO_BUSY: it runs,
 * or that is not to be known. */
int proc_place(const struct task *t, taddr_t *pc_ret, taddr_t *sp_ret);
/* Where field @nr (proc(5)) of a stat file's text begins, NULL: nowhere. */
const char *proc_stat_field(const char *buf, int nr);
/* State letter of a thread, 0 when it does not exist. */
char task_proc_state(const struct task *t);
/* The same, and the CPU that it runs on or ran on last, -1 if not known. */
char task_proc_place(const struct task *t, int *cpu_ret);
/* A field "NAME: NUMBER" of a /proc file's text, false when not there. */
bool proc_field_u64(const char *buf, const char *field, int base,
		    uint64_t *ret);
/* What the kernel tells of a descriptor; false when nothing. */
bool proc_fdinfo(pid_t tid, int fd, char *buf, size_t size);
/* Hex or decimal field of @t's /proc/TID/status, false when not there. */
bool task_status_u64(const struct task *t, const char *field, int base,
		     uint64_t *ret);
/* The same of any thread. */
bool proc_status_u64(pid_t tid, const char *field, int base, uint64_t *ret);
bool proc_has_filter(pid_t tid); /* its system calls are filtered */
/* By more than ours are, as in a sandbox; a container's filter is ours, too. */
bool proc_has_own_filter(pid_t tid);
bool task_diverts_calls(const struct task *t); /* tproc_diverts_calls() */
/* Is its namespace ("ipc", "user") ours? -1: that may not be read. */
int proc_shares_namespace(pid_t pid, const char *kind);
/* A thread whose /proc files show the memory: not a leader that has ended. */
pid_t tproc_live_tid(struct tproc *p);
uint64_t proc_auxv(pid_t pid, uint64_t type); /* 0 = none */
bool proc_is_32bit(pid_t pid);
/* Its number as it sees it itself, 0 if that is not to be known. */
pid_t proc_own_pid(pid_t pid);
/* The same of a task's process. */
pid_t task_own_tgid(struct task *t);

#endif
