/*
 * Programs go their own way: exceptions, forks, our leaving, our death.
 */
#include "t/unit/symhelp.h"
#include <elf.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include "supervisor/probe/range-live.h"
#include "t/unit/begun.h"
#include "t/unit/hog.h"
#include "symbols/pair.h"
#include "t/unit/range-run.h"

static struct range_run x;
static char prog[256], out[256];
static size_t ahead; /* what is made before, see range-run.h */

static bool build(const char *cc, const char *flags, const char *source)
{
	printf("# %s %s %s%s\n", cc, flags, source,
	       ahead ? ", made ahead" : "");
	memset(&x, 0, sizeof(x));
	x.ahead = ahead;
	snprintf(prog, sizeof(prog), "%s/prog", scratch);
	snprintf(out, sizeof(out), "%s/out", scratch);
	return check_int(
		run("%s %s -g -o $D/prog t/fixtures/range/%s -lpthread", cc,
		    flags, source),
		0);
}

static bool same_output(void)
{
	return run("$D/prog >$D/plain; cmp $D/plain $D/out") == 0;
}

/* What a hit costs is known of each window that is prepared, wherever it is
 * from, and of no other. */
static bool knows_costs(const struct ranges *r)
{
	size_t nr = 0, nr_wrong = 0;
	for (uint32_t i = 0; i < r->plan->v->nr_functions; i++) {
		const struct live_function *f = &r->function[i];
		uint32_t first, end = range_plan_windows_of(r->plan, i, &first);
		for (uint32_t w = first; w < end; w++) {
			uint32_t cost = f->window ? f->window[w - first].cost_ps
						  : UINT32_MAX;
			nr++;
			nr_wrong += r->cost_ps[w] != cost + 1;
		}
	}
	return nr && !nr_wrong;
}

static void exceptions(const char *cc, const char *flags, unsigned exact)
{
	if (!build(cc, flags, "throws.cc"))
		return;
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	check_int(x.run.exit_status, 0);
	check(same_output());
	if (check(x.r != NULL)) {
		struct range_score s = range_run_score(&x, x.r, out);
		check_int(s.wide, 0);
		check(s.exact >= exact);
		check(ahead ? !x.nr_built : x.nr_built > 0);
		check(knows_costs(x.r));
	}
	range_run_free(&x);
}

/* --- forks --- */

/* Byte for byte the file's. */
static bool is_clean(const struct run *r)
{
	char cmd[512];
	snprintf(cmd, sizeof(cmd),
		 "b=$(grep -m1 'r-xp.*prog' /proc/%d/maps) && "
		 "s=$(printf %%d 0x${b%%%%-*}) && "
		 "n=$(printf %%d 0x$(readelf -lW $D/prog | "
		 "awk '/LOAD.*R E/ {print substr($5, 3)}')) && "
		 "o=$(printf %%d 0x$(echo $b | cut -d' ' -f3)) && "
		 "cmp -n $n -i $s:$o /proc/%d/mem $D/prog",
		 tproc_pid(r->p), tproc_pid(r->p));
	return system(cmd) == 0;
}

static bool goes_out, wakes, child_is_clean;
/* The parent's go out between its fork and when that is seen to. */
static bool is_late;
static size_t nr_then, nr_since, nr_childs; /* that are in */
static bool child_knows;		    /* what hits cost */

static size_t nr_in(const struct ranges *r)
{
	size_t nr = 0;
	for (uint32_t w = 0; r && w < range_plan_nr_windows(x.plan); w++)
		nr += ranges_window_is_in(r, w);
	return nr;
}

static void forked(struct run *run, struct tproc *child)
{
	struct smco_err err = {0};
	(void)run;
	nr_then = nr_in(x.r);
	if (is_late)
		ranges_set(x.r, x.all, x.nr, false, NULL, NULL);
	nr_since = nr_in(x.r);
	if (ranges_fork(&x.child_r, x.r, child, &err) ||
	    (wakes && ranges_wake(x.child_r, &err)))
		printf("# fork: %s\n", err.msg);
	nr_childs = nr_in(x.child_r);
	child_knows = x.child_r && knows_costs(x.child_r);
	if (is_late)
		ranges_set(x.r, x.all, x.nr, true, NULL, NULL);
	/* Out and in again: what was the parent's patch is the child's. */
	const struct run of = {.p = child};
	if (!x.child_r || !goes_out)
		return;
	ranges_set(x.child_r, x.all, x.nr, false, NULL, NULL);
	child_is_clean = is_clean(&of);
	ranges_set(x.child_r, x.all, x.nr, true, NULL, NULL);
}

/* Asleep: what it sees is its parent's. */
static void forks(bool follow, bool out_and_in, bool wake)
{
	int64_t lo = 0, hi = 0;
	if (!build("gcc", "-O2", "forks.c"))
		return;
	goes_out = out_and_in;
	wakes = wake;
	child_is_clean = false;
	if (follow)
		x.run.forked = forked;
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	check_int(x.run.exit_status, 0);
	check(range_run_range(&x, x.r, "work::value", &lo, &hi));
	check_int(lo, 0);
	check_int(hi, follow && !wake ? 109 : 9);
	check(range_run_range(&x, x.r, "turned::low", &lo, &hi));
	check_int(lo, follow && !wake ? -13 : -9);
	if (follow && !wake && check(x.child_r != NULL))
		check(!range_run_range(&x, x.child_r, "work::value", &lo, &hi));
	if (follow && wake && check(x.child_r != NULL)) {
		check(nr_then > 0);
		check_int(nr_since, is_late ? 0 : nr_then);
		check_int(nr_childs, nr_then);
		check(child_knows);
		lo = hi = 0;
		check(range_run_range(&x, x.child_r, "work::value", &lo, &hi));
		check_int(lo, 100);
		check_int(hi, 109);
		check(range_run_range(&x, x.child_r, "turned::low", &lo, &hi));
		check_int(lo, -13);
		check_int(child_is_clean, goes_out);
	}
	range_run_free(&x);
}

/* The stubs are written between the fork and when that is seen to: the child
 * gets its own. */
static void made_late(struct run *run, struct tproc *child)
{
	struct smco_err err = {0};
	(void)run;
	if (ranges_prepare(x.r, x.all, x.nr, &err) ||
	    ranges_fork(&x.child_r, x.r, child, &err) ||
	    ranges_wake(x.child_r, &err) ||
	    ranges_set(x.child_r, x.all, x.nr, true, NULL, &err))
		printf("# fork: %s\n", err.msg);
}

static void stubs_of_late(void)
{
	int64_t lo = 0, hi = 0;
	if (!build("gcc", "-O2", "forks.c"))
		return;
	x.start_out = x.no_stubs = true;
	x.run.forked = made_late;
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	check_int(x.run.exit_status, 0);
	if (check(x.child_r != NULL)) {
		check_int(nr_in(x.r), 0);
		check(range_run_range(&x, x.child_r, "work::value", &lo, &hi));
		check_int(lo, 100);
		check_int(hi, 109);
	}
	range_run_free(&x);
}

/* --- leaving --- */

static int gate = -1;
static unsigned nr_ticks;
static bool text_is_clean, area_is_gone, too_early;

static bool nothing_left(void)
{
	struct tmaps maps;
	bool gone = true;
	if (tmaps_read(tproc_pid(x.run.p), &maps, NULL))
		return false;
	for (size_t i = 0; i < maps.nr; i++) {
		bool ours = strstr(maps.maps[i].path, "memfd:smco-trace");
		if (ours)
			printf("# left: %jx to %jx\n",
			       (uintmax_t)maps.maps[i].start,
			       (uintmax_t)maps.maps[i].end);
		gone &= !ours;
	}
	tmaps_deinit(&maps);
	return gone;
}

/* However long it takes a busy machine until all have got a CPU to stop on. */
static bool stand(struct run *r)
{
	int ret;
	do
		ret = tproc_stop(r->p, NULL);
	while (ret == SMCO_BUSY);
	return ret == 0;
}

static bool detaches, detached_well;
static int removed;
static pid_t left_alone;

/* In a forked copy it is the engine that owns the patches, and undoes them only
 * when the stubs have gone: the text must be the program's before that. */
static void forget_after_a_while(struct run *r)
{
	unsigned nr = 0, in = 0;
	if (!x.r || ++nr_ticks != 60 || !stand(r))
		return;
	for (uint32_t i = 0; i < x.nr; i++) {
		struct live_function *f = &x.r->function[i];
		for (size_t k = 0; k < f->nr_spans; k++) {
			nr += f->span[k].patch != NULL;
			f->span[k].patch = NULL;
		}
		range_put_out(x.r, f, NULL);
	}
	too_early = nr && is_clean(r);
	range_restore_text(x.r);
	for (uint32_t i = 0; i < x.nr; i++)
		in += ranges_is_in(x.r, i);
	text_is_clean = nr && !in && is_clean(r);
	tproc_cont(r->p);
	close(gate);
	gate = -1;
}

static void leave_after_a_while(struct run *r)
{
	if (!x.r || ++nr_ticks != 60)
		return;
	left_alone = tproc_pid(r->p);
	if (detaches)
		detached_well = tproc_detach(r->p, NULL) == 0;
	else if (stand(r)) {
		removed = ranges_remove(x.r, NULL);
		tproc_cont(r->p);
	}
	area_is_gone = nothing_left();
	text_is_clean = is_clean(r);
	close(gate);
	gate = -1;
}

static bool open_gate(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) || dup2(ends[0], 0) < 0)
		return false;
	close(ends[0]);
	gate = ends[1];
	return true;
}

static void leaving(bool by_detach)
{
	nr_ticks = 0;
	removed = 1;
	detaches = by_detach;
	text_is_clean = area_is_gone = false;
	char input[] = "-";
	if (!build("gcc", "-O2", "churn.c") || !check(open_gate()))
		return;
	x.run.tick = leave_after_a_while;
	x.run.tick_ms = 2;
	check(range_run_to_end(&x, (char *[]){prog, input, NULL}, out));
	/* No event of it follows a detach, but it is our child. */
	if (by_detach && waitpid(left_alone, &x.run.exit_status, 0) < 0)
		x.run.exit_status = -1;
	check_int(x.run.exit_status, 0);
	check(!by_detach || detached_well);
	check(by_detach || removed == 0);
	check(text_is_clean);
	check(area_is_gone);
	check_int(run("grep -q '^0 wrong' $D/out"), 0);
	/* Results can still be read. */
	int64_t lo = 0, hi = 0;
	check(range_run_range(&x, x.r, "pick::what", &lo, &hi));
	check(lo >= 0 && hi <= 5);
	range_run_free(&x);
}

/* --- leaving while a thread does not stop in time --- */

static int cpus[2], when_busy;
static bool was_busy;

static void leave_beside_a_hog(struct run *r)
{
	if (!x.r || ++nr_ticks != 60)
		return;
	left_alone = tproc_pid(r->p);
	bind_to(cpus[0]);
	for (struct task *t = tproc_first_task(r->p); t; t = task_next(t))
		bind_lowly(task_tid(t), cpus[1]);
	pid_t other = hog_met(r->p, cpus[1]);
	when_busy = 1; /* where there is no hog */
	if (other > 0) {
		when_busy = ranges_remove(x.r, NULL);
		was_busy = !is_clean(r);
		ranges_destroy(x.r);
		x.r = NULL;
		hog_end(other);
	}
	for (struct task *t = tproc_first_task(r->p); t; t = task_next(t))
		lift(task_tid(t));
	detached_well = tproc_detach(r->p, NULL) == 0;
	area_is_gone = nothing_left();
	text_is_clean = is_clean(r);
	close(gate);
	gate = -1;
}

/* Nothing is lost of what could not be taken out: detach does it. */
static void leave_late(void)
{
	nr_ticks = 0;
	when_busy = 0;
	was_busy = detached_well = text_is_clean = area_is_gone = false;
	char input[] = "-";
	if (!build("gcc", "-O2", "churn.c") || !check(open_gate()))
		return;
	x.run.tick = leave_beside_a_hog;
	x.run.tick_ms = 2;
	check(range_run_to_end(&x, (char *[]){prog, input, NULL}, out));
	bind_to_both(cpus);
	if (waitpid(left_alone, &x.run.exit_status, 0) < 0)
		x.run.exit_status = -1;
	check_int(x.run.exit_status, 0);
	check(was_busy == (when_busy == SMCO_BUSY));
	check(detached_well);
	check(text_is_clean);
	check(area_is_gone);
	check_int(run("grep -q '^0 wrong' $D/out"), 0);
	range_run_free(&x);
}

static void busy(void)
{
	if (!hog_prepare() || !two_cpus(cpus)) {
		tap_skip("one CPU only");
		return;
	}
	/* It may get its turn all the same. */
	for (int i = 0; i < HOG_TRIES && when_busy == 0; i++)
		leave_late();
	if (when_busy > 0)
		tap_skip("no real time here");
	else
		check_int(when_busy, SMCO_BUSY);
}

static void forgetting(void)
{
	nr_ticks = 0;
	text_is_clean = false;
	too_early = true;
	char input[] = "-";
	if (!build("gcc", "-O2", "churn.c") || !check(open_gate()))
		return;
	x.run.tick = forget_after_a_while;
	x.run.tick_ms = 2;
	check(range_run_to_end(&x, (char *[]){prog, input, NULL}, out));
	check_int(x.run.exit_status, 0);
	check(!too_early);
	check(text_is_clean);
	check_int(run("grep -q '^0 wrong' $D/out"), 0);
	range_run_free(&x);
}

/* --- where a jump of two bytes leads --- */

static unsigned nr_relays, nr_sent_back, nr_at_home, nr_spoiled_in;
static taddr_t spoiled;

/* A thread that has come to padding, and no further, goes back when it is
 * padding again; is at home where it came from. */
static void stand_at_relay(struct run *r, const struct live_window *w)
{
	struct task *t = tproc_first_task(r->p);
	struct user_regs_struct was, now;
	/* One that is not in the kernel. */
	while (t && (task_get_regs(t, &was) || (int64_t)was.orig_rax >= 0))
		t = task_next(t);
	if (!t)
		return;
	now = was;
	now.rip = w->relay;
	nr_relays++;
	task_set_regs(t, &now);
	nr_at_home += ranges_home(x.r, &now) && now.rip == w->addr;
	ranges_set(x.r, x.all, x.nr, false, NULL, NULL);
	nr_sent_back += task_get_regs(t, &now) == 0 && now.rip == w->addr;
	text_is_clean &= spoiled || is_clean(r);
	/* Somebody else's padding by now is theirs. */
	const uint8_t other = 0x90;
	if (w->relay_old[4] == 0xcc && !spoiled) {
		spoiled = w->relay;
		tmem_write(r->p, w->relay + 4, &other, 1);
	}
	ranges_set(x.r, x.all, x.nr, true, NULL, NULL);
	nr_spoiled_in += spoiled == w->relay && w->in;
	task_set_regs(t, &was);
}

static void stand_after_a_while(struct run *r)
{
	if (!x.r || ++nr_ticks != 60 || !stand(r))
		return;
	for (uint32_t i = 0; i < x.nr; i++)
		for (size_t k = 0; k < x.r->function[i].nr_windows; k++)
			if (x.r->function[i].window[k].relay)
				stand_at_relay(r, &x.r->function[i].window[k]);
	tproc_cont(r->p);
	close(gate);
	gate = -1;
}

static void standing(void)
{
	nr_ticks = nr_relays = nr_sent_back = nr_at_home = nr_spoiled_in = 0;
	spoiled = 0;
	text_is_clean = true;
	char input[] = "-";
	if (!build("gcc", "-O2", "churn.c") || !check(open_gate()))
		return;
	x.run.tick = stand_after_a_while;
	x.run.tick_ms = 2;
	check(range_run_to_end(&x, (char *[]){prog, input, NULL}, out));
	check_int(x.run.exit_status, 0);
	check(nr_relays > 0);
	check_int(nr_at_home, nr_relays);
	check_int(nr_sent_back, nr_relays);
	check(text_is_clean);
	check(spoiled != 0);
	check_int(nr_spoiled_in, 0);
	check_int(run("grep -q '^0 wrong' $D/out"), 0);
	range_run_free(&x);
}

/* --- what may be unloaded --- */

static bool is_loaded;
static int when_unloaded, when_other, when_there;

static bool says(void *ctx)
{
	return *(bool *)ctx;
}

/* A thread may stand where nothing can be changed, or not stand in time. */
static int all_out(void)
{
	int r = SMCO_BUSY;
	for (int i = 0; i < 1000 && r == SMCO_BUSY; i++)
		r = ranges_set(x.r, x.all, x.nr, false, NULL, NULL);
	return r;
}

static void unload_after_a_while(struct run *r)
{
	if (!x.r || ++nr_ticks != 60)
		return;
	const struct range_segment *s = &x.plan->img.segment[0];
	taddr_t head = s->vaddr + x.r->bias + EI_PAD;
	uint8_t other = 1, was = 0;
	is_loaded = false;
	ranges_guard(x.r, says, &is_loaded);
	when_unloaded = all_out();
	is_loaded = true;
	tmem_write(r->p, head, &other, 1);
	when_other = all_out();
	too_early = is_clean(r);
	tmem_write(r->p, head, &was, 1);
	when_there = all_out();
	text_is_clean = is_clean(r);
	close(gate);
	gate = -1;
}

static void unloading(void)
{
	nr_ticks = 0;
	text_is_clean = false;
	too_early = true;
	when_unloaded = when_other = when_there = 1;
	char input[] = "-";
	if (!build("gcc", "-O2", "churn.c") || !check(open_gate()))
		return;
	x.run.tick = unload_after_a_while;
	x.run.tick_ms = 2;
	check(range_run_to_end(&x, (char *[]){prog, input, NULL}, out));
	check_int(when_unloaded, SMCO_GONE);
	check_int(when_other, SMCO_GONE);
	check_int(when_there, 0);
	check(!too_early);
	check(text_is_clean);
	check_int(run("grep -q '^0 wrong' $D/out"), 0);
	range_run_free(&x);
}

/* --- death --- */

#define DEATHS 10
#define EARLY  3 /* of these, soon after its exec */

static void dying(void)
{
	unsigned killed = 0, ok = 0, never = 0;
	char input[] = "-";
	if (!build("gcc", "-O2", "churn.c"))
		return;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < DEATHS; i++) {
		int status = -1, bad = 0;
		bool started = false;
		pid_t pid;
		if (!open_gate())
			break;
		fflush(stdout);
		pid_t supervisor = fork();
		if (supervisor == 0) {
			close(gate);
			x.run.survives = true;
			range_run_to_end(&x, (char *[]){prog, input, NULL},
					 out);
			_exit(0);
		}
		begun_wait(supervisor, "prog", i < EARLY ? 1 : 9);
		usleep((unsigned)i * 9000);
		kill(supervisor, SIGKILL);
		usleep(50000);
		close(gate);
		while ((pid = wait(&status)) > 0) {
			if (pid == supervisor)
				killed += WIFSIGNALED(status);
			else if (status != SIGKILL) {
				started = true;
				bad = status;
			}
		}
		bool well = run("grep -q '^0 wrong' $D/out") == 0;
		ok += started && !bad && well;
		if (started && (bad || !well))
			printf("# death %d: status %#x%s\n", i, bad,
			       well ? "" : ", no good end");
		never += !started;
	}
	gate = -1;
	printf("# killed %u, never started %u, well %u\n", killed, never, ok);
	check_int(killed, DEATHS);
	check(never <= EARLY);
	check_int(ok, DEATHS - never);
}

int main(void)
{
	make_scratch();
	exceptions("g++", "-O0", 5);
	exceptions("g++", "-O2", 3);
	exceptions("clang++", "-O2", 2);
	forks(true, false, true);
	forks(true, false, false);
	forks(true, true, true);
	forks(false, false, false);
	is_late = true;
	forks(true, true, true);
	is_late = false;
	if (!ahead)
		stubs_of_late();
	leaving(false);
	leaving(true);
	forgetting();
	busy();
	standing();
	unloading();
	dying();
	ahead = SIZE_MAX;
	pair_from = 0;
	exceptions("g++", "-O0", 5);
	exceptions("g++", "-O2", 3);
	forks(true, true, true);
	leaving(true);
	standing();
	return finish();
}
