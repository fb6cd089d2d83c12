/*
 * tracee.h - the program under supervision: its processes, threads, stops,
 * signals, and every way the supervisor touches it. The only room that calls
 * ptrace. All calls must come from the one thread that created the tracer.
 *
 * Shape of use:
 *
 *	while (tracer_next(tr, deadline_ns, &ev) > 0)
 *		act(&ev);		// and tracer_resume() where it says so
 *
 * Words: a task is a thread (tid), a tproc an address space with its thread
 * group. Threads that share memory without being in one thread group (vfork
 * children, clone(CLONE_VM)) belong to the tproc whose memory they use.
 */
#ifndef SMCO_TRACEE_H
#define SMCO_TRACEE_H

#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include "reports/base.h"

struct tracer;
struct tproc;
struct task;

struct tracer_options {
	bool follow;	   /* follow fork, vfork, clone into new processes */
	bool kill_on_exit; /* PTRACE_O_EXITKILL; only ever for launched commands
			    */
	/*
	 * tracer_launch: the child that will be the command, before its exec
	 * (may be NULL). It runs nothing but our wait until this returns.
	 */
	void (*before_exec)(void *ctx, pid_t pid);
	void *before_exec_ctx;
	/* TEV_TASK_NEW leaves the task stopped before its first instruction,
	 * until tracer_resume(). */
	bool hold_new_tasks;
	/* With hold_new_tasks: who creates a task stands until that goes on for
	 * the first time, both on no CPU. Not for longer than about 100 ms: a
	 * task may be born frozen, for its creator to thaw it. */
	bool hold_creators;
	/* The event loop does not go after a task (tracer_follow_cpu) while
	 * there is an idle CPU, to which that would be moved for it. */
	bool leaves_cpus;
	/* TEV_LIBS is of no use: nothing is planted for it. */
	bool no_libs;
	/* After an exec, but the first of what was launched, TEV_LIBS comes
	 * only where tproc_await_libs() asks for it. */
	bool libs_if_asked;
	/* Does anybody whose birth was not followed run in the memory of
	 * process @pid? NULL: all births are followed. */
	bool (*is_shared)(void *ctx, pid_t pid);
	void *is_shared_ctx;
};

enum tevent_kind {
	TEV_NONE,      /* deadline reached, nothing happened */
	TEV_PROC_NEW,  /* tproc under control, all its tasks stopped; see why */
	TEV_PROC_GONE, /* last task of ev.proc ended, or see is_left; ev.proc
			* dies after this */
	TEV_TASK_NEW,  /* another thread of a known tproc; already running on
			* unless tracer_options.hold_new_tasks */
	TEV_TASK_GONE, /* a thread ended; ev.task dies after this event */
	TEV_LIBS,  /* all libraries are mapped, no constructor has run (GOTs may
		    * not be relocated); once after exec, never for static
		    * programs; stopped */
	TEV_TRAP,  /* our sensor's trap (see trap_signal); stopped */
	TEV_FAULT, /* SIGSEGV or SIGBUS about to be delivered; stopped */
	TEV_SYSCALL_IN,	 /* syscall-enter-stop, where asked for; stopped */
	TEV_SYSCALL_OUT, /* syscall-exit-stop, where asked for; stopped */
	TEV_LEFT_ENDED,	 /* what we launched, and had to leave, has ended */
	TEV_DONE,	 /* no process left */
};

enum tproc_why {
	TPROC_LAUNCHED, /* stopped after its first exec */
	TPROC_ATTACHED, /* or a copy of such a one from before it was told of */
	TPROC_FORKED,	/* copy of parent's memory, incl. everything planted */
	TPROC_EXECED,	/* same pid, new memory; what was planted is gone */
};

/*
 * Events marked "stopped" leave ev.task in a ptrace stop that ends only with
 * tracer_resume(). All signals but those above are forwarded unchanged
 * inside tracer_next(), group-stops honoured, without an event.
 */
struct tevent {
	enum tevent_kind kind;
	struct tproc *proc;
	struct task *task;
	uint64_t stop_ns;   /* CLOCK_MONOTONIC when the stop was seen */
	enum tproc_why why; /* TEV_PROC_NEW */
	/* TPROC_FORKED: where it was copied from, NULL if that is gone.
	 * TPROC_EXECED: set if it ran in that one's memory before (a vfork
	 * child); ev.proc is new then, otherwise the same as before. */
	struct tproc *parent;
	/* TEV_TASK_NEW, TPROC_FORKED: the task that made it, NULL if that is
	 * not known or gone. It stands as hold_creators says. */
	struct task *creator;
	siginfo_t siginfo; /* TEV_FAULT, TEV_TRAP */
	int exit_status;   /* TEV_PROC_GONE, TEV_LEFT_ENDED: wait status of the
			    * leader */
	/* TEV_PROC_GONE: all CPU time that it has used, to the microsecond; 0 =
	 * not known, as where it has had children. */
	uint64_t cpu_ns;
	/* TEV_PROC_GONE: it runs on without us, as a program that cannot be
	 * supervised (32 bits). */
	bool is_left;
};

int tracer_create(struct tracer **ret, const struct tracer_options *opts,
		  struct smco_err *err);
/* So many times a process had to be left because it began a 32-bit program. */
unsigned tracer_nr_foreign(const struct tracer *tr);
/* Detaches whatever is left (see tracer_detach_all) and frees. NULL is fine. */
void tracer_destroy(struct tracer *tr);

/*
 * Start @argv (searched in PATH like execvp) under supervision. Errors: exec
 * failure is SMCO_NOTFOUND (command not found) or SMCO_PERM (not executable).
 * The TEV_PROC_NEW event follows from tracer_next().
 */
int tracer_launch(struct tracer *tr, char *const argv[], pid_t *pid_ret,
		  struct smco_err *err);
/* All threads of @pid are ours; they run on, and nobody hears of them. */
int tracer_seize(struct tracer *tr, pid_t pid, struct smco_err *err);
/* One of those that are seized: stop all its threads, TEV_PROC_NEW follows from
 * tracer_next(); or, where one of them got no CPU to stop on, let it run to be
 * asked for again. 1, 0 = there is none any more, or an error: SMCO_GONE, it
 * has ended, SMCO_BUSY, left alone. */
int tracer_stop_seized(struct tracer *tr, struct smco_err *err);
/* Both for @pid: 0 or an error. */
int tracer_attach(struct tracer *tr, pid_t pid, struct smco_err *err);

/*
 * Wait until something happens, at most until @deadline_ns (CLOCK_MONOTONIC).
 * Returns 1 with *ev filled (TEV_NONE at the deadline), 0 when no process is
 * left (TEV_DONE), negative on an unrecoverable error. tracer_wake() from a
 * signal handler or another thread ends the wait early with TEV_NONE.
 */
int tracer_next(struct tracer *tr, uint64_t deadline_ns, struct tevent *ev);
void tracer_wake(struct tracer *tr); /* async-signal-safe */

/* Has a stop signal stopped process @pid (group-stop), and no SIGCONT ended
 * that yet? False if it is not traced. */
bool tracer_is_in_group_stop(struct tracer *tr, pid_t pid);

/* How long stop signals have kept all that is traced, every thread of it, from
 * going on, ns, since the start and up to now. Not a stop of ours. */
uint64_t tracer_stood_ns(const struct tracer *tr);
/* Do they now? */
bool tracer_all_stand(const struct tracer *tr);

/*
 * Let a stopped task run. @sig 0 suppresses the signal of a TEV_FAULT or
 * TEV_TRAP; pass the signal number to deliver it unchanged. For TEV_PROC_NEW
 * and TEV_LIBS it resumes what the event stopped. The time from the stop to
 * here is charged to the stop clock (tracer_stop_ns).
 */
void tracer_resume(struct tracer *tr, struct task *task, int sig);
void tproc_resume_new(struct tproc *p); /* all tasks, after TEV_PROC_NEW */
/* While TEV_PROC_NEW of an exec is not answered, with libs_if_asked: TEV_LIBS
 * is wanted. It takes a stop and some 100 us more of this one. */
void tproc_await_libs(struct tproc *p);

/*
 * Undo everything registered, detach every task; stopped ones stay stopped,
 * running ones run on. Bounded: takes at most about 200 ms, then reports what
 * it had to leave in *err (SMCO_BUSY) and detaches all the same. Only for
 * threads that the machine is too busy to run it waits longer, up to 3 s.
 */
int tracer_detach_all(struct tracer *tr, struct smco_err *err);
/* The same for one process; no event of it follows. Dead with the next
 * tracer_next(). */
int tproc_detach(struct tproc *p, struct smco_err *err);
/*
 * The same for a while: it may be seized again. tracer_next() waits for the end
 * of what was launched (TEV_LEFT_ENDED) also while it is let go, or if it ends
 * before TEV_PROC_NEW has told that it is back.
 */
int tproc_let_go(struct tproc *p, struct smco_err *err);
/* May it be now? Not while others run in its memory, one of its threads only
 * seems to stand (tproc_stop()), a stop signal has stopped it, or somebody born
 * to it is yet to be told of. All tasks stopped. */
bool tproc_may_go(const struct tproc *p);
/*
 * For one who leaves many, one after the other: processes that were forked, or
 * have begun another program after vfork, and that nobody has been told of, are
 * left at once, and their parents go on. They would stand until it is their
 * turn.
 */
void tracer_leave_newborn(struct tracer *tr);

/* Sum of the time tasks were held in stops, ns, and their number, since the
 * start; longest single stop. Per tracer; the ledger takes differences. */
uint64_t tracer_stop_ns(const struct tracer *tr);
uint64_t tracer_nr_stops(const struct tracer *tr);
/* Of these, those that were made from here: a process was to stop, or a thread
 * to make a call. */
uint64_t tracer_nr_asked(const struct tracer *tr);
/* Of these, those in which the program was handed a signal of its own: each
 * signal stops whoever is traced. */
uint64_t tracer_nr_signals(const struct tracer *tr);
uint64_t tracer_longest_stop_ns(const struct tracer *tr);

/*
 * Are processes that are born (fork, vfork; not threads) followed? At first
 * they are. Each thread hears of it at its next stop. What is born unfollowed
 * is never stopped; it has copies of what is planted in its parent. Only with
 * tracer_options.is_shared.
 */
void tracer_follow_births(struct tracer *tr, bool follow);
/* Stops those that have not heard of it, for a moment. */
void tracer_tell_births(struct tracer *tr);

/* From now on stops are waited for and answered, or no longer: in the first
 * case this thread goes before all others on its CPU (SCHED_FIFO), where that
 * is permitted, for 50 ms without a wait at most; asking again begins anew. At
 * first it does not. */
void tracer_urgent(struct tracer *tr, bool is_urgent);
/*
 * What this thread does from now on can wait for the program, or no longer:
 * then it is not before others (SCHED_FIFO) but takes turns with them, at the
 * nice value that it was made with (0 at most), except while all threads of a
 * process stand for us. A thread that stops by itself meanwhile waits for that,
 * so for brief work, on a CPU that nobody else wanted. Returns what it was
 * before. A tracer of NULL has nothing to do.
 */
bool tracer_relax(struct tracer *tr, bool is_relaxed);

/* What stops that end from now on are for, in the user's words: "to ...", "for
 * ...". It must outlive the tracer. */
void tracer_stops_are(struct tracer *tr, const char *what_for);
/* What the longest one was for; NULL = that had not been said then. */
const char *tracer_longest_was(const struct tracer *tr);

/* From now on *@lent is 1 while a stopped task is let go only to make a call of
 * ours; its stop goes on. NULL: nobody wants to know. */
void tracer_tell_lent(struct tracer *tr, uint32_t *lent);

/* Who knows on which CPU a thread stopped last: @where(@ctx, tid) returns it,
 * or -1. Without, or if that does not know, its memory is read, whose pages
 * count as used then. @ctx must outlive the tracer. */
void tracer_tell_where(struct tracer *tr,
		       int (*where)(const void *ctx, pid_t tid),
		       const void *ctx);

/* What one stop and resume costs the tracee beyond the measured time, found
 * by calibration at tracer_create, ns. */
uint64_t tracer_stop_cost_ns(const struct tracer *tr);
/* What of that is its own CPU time, ns. */
uint64_t tracer_stop_own_ns(const struct tracer *tr);

/*
 * Place the event loop on the CPU of the task that stopped last (a stop
 * answered from another CPU costs 10-20x). Called by tracer_next itself when
 * stops come often; switched off for measurements only.
 */
void tracer_follow_cpu(struct tracer *tr, bool on);
/* Once a tick: the program has waited for @waited_ns for CPUs that this thread
 * had, since the last one. It goes on on another CPU, if it may, does not
 * follow and was not in the program's way there as much (aside.h). */
void tracer_step_aside(struct tracer *tr, uint64_t waited_ns);
/* This thread goes to @cpu, which is idle, where it is not there; it may use
 * all of its own afterwards as before. False: it follows the program, or @cpu
 * is below 0 (there is none), and nothing is done. */
bool tracer_go_aside(struct tracer *tr, int cpu);
/* Where this thread may run. */
const cpu_set_t *tracer_cpus(const struct tracer *tr);

/* --- processes and tasks --- */

pid_t tproc_pid(const struct tproc *p);
/* Where the dynamic linker's struct r_debug is, for debuggers to find what is
 * loaded; 0: it has none, or none that is known. The process may run. */
taddr_t tproc_r_debug(struct tproc *p);
/* As long as the dynamic linker of a new program has not returned for the first
 * time its way leads over code of ours at *at_ret, which goes on to *home_ret.
 * For unwinders. False: it does not. */
bool tproc_linker_way(const struct tproc *p, taddr_t *at_ret,
		      taddr_t *home_ret);
/* Has a supervisor left its code for TEV_LIBS there, that was killed before the
 * libraries were? It harms nobody. The process may run. */
bool tproc_has_left_call(struct tproc *p);
/* Takes it out. All tasks stopped. SMCO_BUSY: one is in it, and it stays. */
int tproc_drop_left_call(struct tproc *p);
struct tracer *tproc_tracer(struct tproc *p);
void *tproc_user(const struct tproc *p); /* the session's own pointer */
void tproc_set_user(struct tproc *p, void *user);
unsigned tproc_nr_tasks(const struct tproc *p);
/* Was it made by fork, by a process that had no other thread? Then whatever
 * threads were in the middle of, the copy's one is in the middle of it, too. */
bool tproc_is_whole_copy(const struct tproc *p);
struct tproc *tracer_first_proc(struct tracer *tr);
struct tproc *tproc_next(struct tproc *p);
struct task *tproc_first_task(struct tproc *p);
struct task *task_next(struct task *t);
/* Stops of this one so far; each was a context switch that the program would
 * not have made. */
uint64_t task_nr_stops(const struct task *t);
/* Stops of all threads of the process so far that nobody here wants: for its
 * own signals, for births of threads. */
uint64_t tproc_nr_unwanted(const struct tproc *p);
pid_t task_tid(const struct task *t);
/* The CPU that it runs on, or did last; -1: it is gone, or it is scheduled
 * before others there, in real time or by a deadline. */
int task_cpu(const struct task *t);
/* The same of a thread that need not be one of ours, for any thread of ours. */
int thread_cpu(pid_t tid);
/* Its number as it sees it itself: another one in another PID namespace. */
pid_t task_own_tid(struct task *t);
/* In whose memory thread @tid runs, or the rest of a process whose first thread
 * @tid was; NULL: it is none of ours, or has ended altogether. */
struct tproc *tracer_proc_of(struct tracer *tr, pid_t tid);
struct tproc *task_proc(struct task *t);
/* CPU time used by all threads of the process so far, ns; 0 when gone. */
uint64_t tproc_cpu_ns(struct tproc *p);

/* Of a task at the entry of a call: has that 32 bits (int $0x80), with other
 * numbers and other registers for its arguments? */
bool task_calls_compat(struct task *t);
/* Registers of a stopped task; cached until it runs. */
int task_get_regs(struct task *t, struct user_regs_struct *ret);
/*
 * Where a task of a process whose tasks are stopped will go on in the program;
 * also one that cannot stop (waits for a disk, for a fault, for its vfork
 * child), as the kernel tells it. SMCO_GONE: nowhere, it has ended. SMCO_BUSY:
 * not known, for it is about to stop and has not got a CPU for that.
 */
int task_get_place(struct task *t, taddr_t *pc_ret, taddr_t *sp_ret);
int task_set_regs(struct task *t, const struct user_regs_struct *regs);
/*
 * May a signal handler be running in @t, so that it goes on elsewhere when that
 * returns? A stopped task's stack is looked at, up to 256 KiB of it, but only
 * if it was not before, or a signal has been delivered since.
 */
bool task_in_handler(struct task *t);

/*
 * Stop every task of @p (PTRACE_INTERRUPT) and wait until all are stopped;
 * signals and events that come meanwhile are kept for tracer_next(). Calls
 * nest. On return true for each task: registers can be read, text patched.
 * SMCO_BUSY: one does not stop, or somebody whose birth was not followed runs
 * in its memory.
 */
int tproc_stop(struct tproc *p, struct smco_err *err);
/*
 * The same for what may as well be done another time: SMCO_BUSY, and all run
 * on, if one has not got a CPU to stop on within 10 ms. Threads that stopped
 * at once would wait for it.
 */
int tproc_stop_briefly(struct tproc *p, struct smco_err *err);
void tproc_cont(struct tproc *p);
/*
 * Inside a stop, however deep: let everybody run for @ns, so that a thread
 * leaves a place that is to go, then stop all again. SMCO_BUSY: one has got no
 * CPU to stop on (task_get_place() says that of it); the others stand, and it
 * runs no instruction of the program before it does.
 */
int tproc_let_run(struct tproc *p, uint64_t ns, struct smco_err *err);
/*
 * The same in short rounds until a place is empty that nobody enters any more.
 * @is_empty is asked while all are stopped. False: somebody stayed, after 40
 * rounds of 2 ms. Rounds in which a task that computes got no CPU do not count
 * and get longer; 3 s in all. Of a process that has ended all is empty. In
 * TEV_PROC_NEW, where nobody can be let run, it is asked once.
 */
bool tproc_vacate(struct tproc *p, bool (*is_empty)(void *ctx), void *ctx);
/*
 * Stop one running task where it is; it goes on with tracer_resume(t, 0).
 * SMCO_BUSY when it does not stop soon, or stopped for a reason of its own
 * first, which comes as an event.
 */
int task_stop(struct task *t);

/* --- memory: the only reader and writer of tracee memory --- */

/* Whole or error SMCO_FAULT/SMCO_GONE. Works on running tasks. tmem_write
 * also writes read-only mappings (text), by /proc/PID/mem or ptrace. */
int tmem_read(struct tproc *p, taddr_t addr, void *buf, size_t len);
int tmem_write(struct tproc *p, taddr_t addr, const void *buf, size_t len);
/* Up to @len bytes; returns how many were readable from @addr on (>= 0). */
size_t tmem_read_some(struct tproc *p, taddr_t addr, void *buf, size_t len);
/* The same, but it ends where the program itself could not read on: a stack's
 * guard page, which the others read as zeros. */
size_t tmem_read_readable(struct tproc *p, taddr_t addr, void *buf, size_t len);
/* The words at @nr addresses, in a few calls. All or an error, as tmem_read().
 */
int tmem_read_words(struct tproc *p, const taddr_t *at, size_t nr,
		    uint32_t *ret);

struct tmap { /* one line of /proc/PID/maps */
	taddr_t start;
	taddr_t end;	 /* exclusive */
	uint64_t offset; /* file offset of start */
	uint64_t inode;	 /* 0 = anonymous */
	uint32_t prot;	 /* PROT_READ | PROT_WRITE | PROT_EXEC */
	bool shared;
	bool deleted; /* the name ended in " (deleted)" (stripped) */
	char *path;   /* "" if none, "[heap]", "[stack]", "[vdso]", ... */
};
struct tmaps {
	struct tmap *maps; /* sorted by start */
	size_t nr;
};
int tmaps_read(pid_t pid, struct tmaps *ret, struct smco_err *err);
void tmaps_deinit(struct tmaps *m);
/*
 * Those of @p, from a file that is opened once: who makes itself not dumpable
 * (prctl(2)) lets an ordinary user open it no more, but what is open still
 * reads.
 */
int tproc_read_maps(struct tproc *p, struct tmaps *ret, struct smco_err *err);
/*
 * The same for @p, read once as long as all of its tasks stand: what calls of
 * ours have mapped since the first time in such a stop is not in it. @p owns
 * it; valid until a task of @p goes on or this is asked again.
 */
int tproc_get_maps(struct tproc *p, const struct tmaps **ret,
		   struct smco_err *err);
/*
 * Those of @p that code may be in, as they are now: the mappings of files, and
 * executable ones ([vsyscall] perhaps left out, which is the kernel's). To be
 * freed; a few questions where there may be thousands of others. In the stop
 * that it was attached by, one that came just before it may be missing.
 */
int tproc_code_maps(struct tproc *p, struct tmaps *ret, struct smco_err *err);
/*
 * As tproc_get_maps(), but perhaps from just before all came to stand (when
 * attached to): reading thousands then would keep them waiting. Who relies on
 * one asks tproc_has_map() about it, a pointer into the list, in the same stop:
 * is all of it there, just so?
 */
int tproc_recent_maps(struct tproc *p, const struct tmaps **ret,
		      struct smco_err *err);
bool tproc_has_map(struct tproc *p, const struct tmap *m);
/*
 * As tproc_recent_maps(), for who wants to know where there is room: paths may
 * be left out but those that the kernel gives ([heap], [stack]). For programs
 * with hundreds of libraries, of which all else is read in a stop for nothing.
 * Valid until it is asked again.
 */
int tproc_occupied(struct tproc *p, const struct tmaps **ret,
		   struct smco_err *err);
/* The next question reads them anew: calls of ours have changed them. */
void tproc_forget_maps(struct tproc *p);
const struct tmap *tmaps_find(const struct tmaps *m, taddr_t addr);

/* --- changes --- */

/*
 * Run a system call in the tracee. Needs one stopped task: inside an event,
 * between tproc_stop/tproc_cont, or in TEV_PROC_NEW. *ret gets the kernel's
 * value (negative errno on failure of the call itself). SMCO_UNSUPPORTED: a
 * seccomp filter that is not ours, too, might kill it for that.
 */
int tproc_syscall(struct tproc *p, long nr, const uint64_t args[6],
		  int64_t *ret, struct smco_err *err);
/* Is that so of @p's leader? */
bool tproc_is_sandboxed(struct tproc *p);
/*
 * Does a stopped thread of @p have its calls sent to itself as SIGSYS
 * (PR_SET_SYSCALL_USER_DISPATCH)? Ours would be, too: no thread is borrowed
 * that does. Before Linux 6.4 nobody tells: false.
 */
bool tproc_diverts_calls(struct tproc *p);
#define DIVERTS_CALLS                                                          \
	"its threads have system calls sent to themselves "                    \
	"(PR_SET_SYSCALL_USER_DISPATCH), and would have ours"
/* @p's descriptor @fd as one of ours, the caller's; -1 with errno. @p may run.
 * Where the first thread has ended, before Linux 6.9, files only, opened
 * anew. */
int tproc_take_fd(struct tproc *p, int fd);
struct tsyscall {
	long nr;
	uint64_t args[6];
	int64_t ret; /* out */
};
/* The same for @n calls in one resume (batch stub where it is installed); of 0
 * only the stub is made, if it is not there. */
int tproc_syscalls(struct tproc *p, struct tsyscall *calls, size_t n,
		   struct smco_err *err);

/*
 * Run code that is already in the tracee in one stopped task, at @pc with
 * stack pointer @sp, all signals blocked but tproc_trap_signal(), whose number
 * is the first argument. The code ends by raising that signal for its own
 * thread (tgkill); registers and signal mask are then as they were. @before,
 * if any, is told first what the program's registers and mask would be if it
 * went on now, so that the code can find back without us should we die.
 */
struct task_run {
	taddr_t pc;
	taddr_t sp;
	void (*before)(void *ctx, const struct user_regs_struct *back,
		       uint64_t mask);
	void *ctx;
};
int task_run(struct task *t, const struct task_run *run, struct smco_err *err);

/*
 * The signals a stopped task has blocked (bit n-1 for signal n). Set it to
 * mend what a fault in a thread that blocks SIGSEGV does to the mask.
 */
int task_get_sigmask(struct task *t, uint64_t *ret);
int task_set_sigmask(struct task *t, uint64_t mask);

/*
 * Where a stopped task's area for restartable sequences lies, which the kernel
 * writes to on its own; *len_ret is 0 if it has none.
 */
int task_get_rseq(struct task *t, taddr_t *start_ret, uint64_t *len_ret);

/*
 * Overwrite text while all tasks are stopped (tproc_stop). The old bytes are
 * registered for undo before anything is written. No program counter may lie
 * inside (addr, addr+len): SMCO_BUSY then and nothing is written, unless @fix
 * moves it: fix(ctx, pc) returns the new pc, which may be the same, or 0 to
 * refuse.
 */
struct tpatch;
int tproc_patch(struct tproc *p, taddr_t addr, const void *bytes, size_t len,
		taddr_t (*fix)(void *ctx, taddr_t pc), void *ctx,
		struct tpatch **ret, struct smco_err *err);
/* Restore the bytes; same conditions. Frees @patch. */
int tproc_unpatch(struct tproc *p, struct tpatch *patch,
		  taddr_t (*fix)(void *ctx, taddr_t pc), void *ctx,
		  struct smco_err *err);

/* May these bytes be overwritten, as far as program counters go? 0 or
 * SMCO_BUSY, with the address in @err; with @move, those that @fix moves are
 * moved. */
int tproc_clear_text(struct tproc *p, taddr_t addr, size_t len,
		     taddr_t (*fix)(void *ctx, taddr_t pc), void *ctx,
		     bool move, struct smco_err *err);

/*
 * Many changes in one stop. Each is registered for undo before it is made, and
 * program counters are moved as by tproc_patch() when it is; what is in their
 * way is the caller's to see (tproc_clear_text).
 */
struct tpatch_change {
	taddr_t addr;
	size_t len;
	struct tpatch **patch; /* what there is; NULL: none so far */
	taddr_t (*fix)(void *ctx, taddr_t pc);
	void *ctx; /* for @fix */
	int ret;   /* 0: made, or left; SMCO_BUSY: others have changed it */
};

enum tpatch_how {
	TPATCH_WRITE,	/* a new patch, or other bytes for the one there is:
			 * those that it restores stay */
	TPATCH_RESTORE, /* *patch is undone and freed, and NULL */
	TPATCH_LEAVE,	/* nothing is done */
};

struct tpatch_ops {
	/* @bytes, as they are, become what is to be there. */
	enum tpatch_how (*compose)(void *ctx, struct tpatch_change *c,
				   uint8_t *bytes);
	/* May what lies between changes be written again as it was read a
	 * moment ago? Else each change is written by itself. */
	bool (*may_write)(void *ctx, taddr_t addr, const uint8_t *bytes,
			  size_t len);
};

/* Those near each other are read in one call, and written in one. Returns the
 * first error; all others are made. */
int tproc_patch_all(struct tproc *p, struct tpatch_change *change, size_t nr,
		    const struct tpatch_ops *ops, void *ctx,
		    struct smco_err *err);

/* The newest patch of exactly these bytes, NULL if there is none: a forked
 * process has copies of its own. */
struct tpatch *tproc_patch_at(struct tproc *p, taddr_t addr, size_t len);
/* The bytes that it will put back, as many as it has written. */
const uint8_t *tpatch_old(const struct tpatch *patch);
/* Those that it has written: in a forked copy, what it was born with. */
const uint8_t *tpatch_new(const struct tpatch *patch);

/*
 * Register something that must be undone before this process is left alone.
 * Run in reverse order, all tasks stopped, by detach. Forgotten by exec; a
 * forked process starts with copies only of patches (see TPROC_FORKED).
 */
struct tundo;
struct tundo *tproc_undo_push(struct tproc *p,
			      int (*undo)(struct tproc *p, void *arg),
			      void *arg);
void tproc_undo_drop(struct tproc *p, struct tundo *u);

/* The signal that sensors raise for themselves: its default is ignore and
 * the program neither handles nor blocks it; chosen at start. */
int tproc_trap_signal(struct tproc *p);
/*
 * Code that raises the trap signal: only one raised (tgkill, sigqueue) with
 * the pc in one of these ranges, [start, end], is a TEV_TRAP; all others are
 * the program's. Forgotten by exec, copied by fork. tproc_clear_trap_range()
 * takes exactly such a range out again.
 */
int tproc_set_trap_range(struct tproc *p, taddr_t start, taddr_t end);
void tproc_clear_trap_range(struct tproc *p, taddr_t start, taddr_t end);

/*
 * The kernel has unblocked SIGSEGV in threads to deliver faults that were not
 * the program's. Of those that stand at one, those that @blocks says of that
 * they had blocked it block it again when they go on.
 */
void tproc_block_after_fault(struct tproc *p,
			     bool (*blocks)(struct task *t, void *arg),
			     void *arg);
/*
 * What was guarded is not any more, and nobody has been told yet of the faults
 * that tasks of @p have met: they are forgotten, and the instructions run
 * again with the tasks. A fault of the program's own comes again then, the same
 * in every detail. All tasks stopped by tproc_stop(); one whose event was
 * handed out, or that cannot stop now, is left as it is.
 */
void tproc_take_back_faults(struct tproc *p);

/* Syscall stops (PTRACE_SYSCALL) for all tasks of @p on or off. */
int tproc_trace_syscalls(struct tproc *p, bool on);
/*
 * @fn is called before a task goes on with a signal that is not ignored: the
 * kernel is about to write a frame to its stack, with nobody to ask. The task
 * is stopped, others may run. NULL: no more. Forgotten by exec.
 */
void tproc_before_signals(struct tproc *p,
			  void (*fn)(struct task *t, void *arg), void *arg);

/*
 * Debug registers by ptrace. A thread that has written to what is watched stops
 * behind the instruction; @hit is told, with @t stopped since @stop_ns, inside
 * of tracer_next() or of what lets threads run, and it goes on. Its registers
 * and memory may be read, and its watches changed; nothing else.
 *
 * Threads that come later, and others in the same memory, are watched; a forked
 * copy and the program after an exec are not. What the kernel writes is no hit.
 * No thread is left, in whatever way, before they are out of it. But when we
 * are killed they stay in for some tenths of a ms, until another process of
 * ours has seized it, if that may; a hit before that, or just then, kills the
 * program: only for who was told so.
 */
#define TWATCH_MOST 4 /* of one process, and one thread */
struct twatch {
	taddr_t addr;	/* a multiple of @bytes */
	unsigned bytes; /* 1, 2, 4 or 8 */
	void (*hit)(struct task *t, uint64_t stop_ns, void *arg);
	void *arg;
};
/*
 * Do they fire, and what does a hit cost the thread that writes, ns; of its own
 * CPU time? By a child of our own, in some ms; not while tracer_next() runs in
 * another thread. Makes the process that stands by for our death, too.
 * SMCO_UNSUPPORTED: they do not; SMCO_PERM, SMCO_SYS.
 */
int twatch_try(uint64_t *ns_ret, uint64_t *own_ns_ret, struct smco_err *err);
/*
 * In all threads, which may run: they are stopped for it (tproc_stop_briefly).
 * One that cannot stop now has it before it runs the program again. *id_ret is
 * never 0. All or none: SMCO_BUSY, no register is free; SMCO_UNSUPPORTED, see
 * tproc_may_watch(); SMCO_SYS, a thread does not stop; SMCO_GONE.
 */
int tproc_watch(struct tproc *p, const struct twatch *w, uint32_t *id_ret,
		struct smco_err *err);
/* Until tproc_unwatch(), exec, the end, or a thread that came has no register
 * free. */
bool tproc_is_watched(const struct tproc *p, uint32_t id);
/* Nobody is told any more; each thread loses it at its next stop. One that is
 * not there (any more) is no error. */
void tproc_unwatch(struct tproc *p, uint32_t id);
/* Only for this thread, which is stopped. */
void task_unwatch(struct task *t, uint32_t id);
/* A hit is a SIGTRAP, and where that is ignored, or blocked in the thread, the
 * kernel takes away the program's action for it. So nothing may be watched in
 * one that handles or ignores it: SMCO_UNSUPPORTED, else 0. It may run. */
int tproc_may_watch(struct tproc *p, struct smco_err *err);

/* How the pid is traced or not attachable: a sentence with cause, current
 * value and fix (Yama, capability, other tracer with pid, container, 32-bit).
 */
void tracer_explain_attach(pid_t pid, int sys_errno, struct smco_err *err);

/* After an exec: the program has the setuid or setgid bit or capabilities of
 * its own, and runs without what they give because we trace it and are not
 * root. Says so in *err and returns true. */
bool tproc_explain_privilege(struct tproc *p, struct smco_err *err);

#endif
