/*
 * A fork under the sensors: the child gets a ring of its own, both keep exact
 * books, also of blocks allocated before; and a child that is not followed
 * writes nothing into its parent's ring, nor one that sleeps, of which nothing
 * is read for that. Woken, it keeps exact books of what it has allocated since.
 */
#include "supervisor/probe/hook-private.h"
#include "supervisor/tracee/internal.h"
#include "t/unit/hook-run.h"
#include "t/unit/scratch.h"

static struct run r, child;

/* What a fork leads to is said by now in @r. The parent's books are exact. */
static void run_fixture(void)
{
	char prog[512];
	snprintf(prog, sizeof(prog), "%s", fixture("hook-fork"));
	char *argv[] = {prog, (char *)scratch_path("parent"),
			(char *)scratch_path("child"), NULL};

	child.exit_status = -1;
	r.cutoff = 8192;
	r.tokens = 1u << 29;
	check(run_to_end(&r, argv));
	check_int(r.exit_status, 0);
	check(run_live_set_is_exact(&r, argv[1]));
	check_int(r.double_allocs + r.free_unknown, 0);
	check_int(r.nr_events, r.stats.nr_recorded);
}

/* The child's are, too. */
static void check_child(void)
{
	hooks_drain(child.h, run_hear, &child);
	hooks_get_stats(child.h, &child.stats);
	hooks_destroy(child.h);
	printf("# child: %u events\n", child.nr_events);
	check_int(child.exit_status, 0);
	check(run_live_set_is_exact(&child, scratch_path("child")));
	check_int(child.double_allocs, 0);
	check_int(child.nr_events, child.stats.nr_recorded);
	check(child.nr_events > 1000);
}

static void run_fork_fixture(bool follow)
{
	memset(&r, 0, sizeof(r));
	memset(&child, 0, sizeof(child));
	if (follow)
		r.child = &child;
	run_fixture();
	if (!follow)
		return;
	check_child();
	check_int(child.free_unknown, 0);
}

static enum sleeper {
	SLEEPS,
	WAKES,
	HAS_NONE, /* copied before they were planted */
	LACKS_IT, /* the same, and the books do not say so */
	OF_MANY,  /* its parent had threads */
} sleeper;

static uint32_t nr_inside(struct tproc *p)
{
	uint32_t nr = UINT32_MAX;
	check_int(tmem_read(p,
			    r.h->base + AGENT_PRIV_OFF +
				    offsetof(struct agent_private, inside),
			    &nr, sizeof(nr)),
		  0);
	return nr;
}

/* One more than there is, a thread of its parent's. */
static void add_inside(struct tproc *p)
{
	uint32_t nr = nr_inside(p) + 1;
	check_int(tmem_write(p,
			     r.h->base + AGENT_PRIV_OFF +
				     offsetof(struct agent_private, inside),
			     &nr, sizeof(nr)),
		  0);
	check(p->is_whole_copy);
	p->is_whole_copy = false;
}

/* Its text is as it was before the sensors were planted. */
static void take_text_back(struct tproc *p)
{
	for (unsigned i = 0; i < r.h->plan.nr_sites; i++) {
		const struct stub *s = &r.h->plan.sites[i].stub;
		if (r.h->plan.sites[i].planted)
			check_int(tmem_write(p, s->patch, s->old,
					     STUB_JUMP_BYTES),
				  0);
	}
}

static void count(void *ctx, const struct heap_event *ev)
{
	(void)ev;
	++*(unsigned *)ctx;
}

static void put_to_sleep(struct run *run, struct tproc *p)
{
	struct smco_err err = {0};
	hooks_drain(run->h, run_hear, run);
	child.p = p;
	child.tr = run->tr;
	if (sleeper == HAS_NONE || sleeper == LACKS_IT)
		take_text_back(p);
	if (sleeper == HAS_NONE)
		undo_forget_all(p);
	if (sleeper == OF_MANY)
		add_inside(p);
	int rc = hooks_copy(run->h, p, &child.h, &err);
	check_int(rc, sleeper == HAS_NONE ? SMCO_NOTFOUND : 0);
	if (sleeper == SLEEPS)
		check_int(p->mem_fd, -1);
	if (sleeper == OF_MANY)
		check_int(nr_inside(p), 0);
	if (sleeper == LACKS_IT) {
		check_int(hooks_wake(child.h, &err), SMCO_NOTFOUND);
		child.h = NULL;
	}
	if (sleeper != WAKES)
		return;
	check_int(hooks_wake(child.h, &err), 0);
	/* Its table of blocks is the parent's: so is what says where to look.
	 */
	check(!memcmp(child.h->shm.filter, run->h->shm.filter,
		      AGENT_FILTER_SLOTS));
	check(child.h->shm.cutoff == run->h->shm.cutoff);
	/* What it shares with its parent is not its own. */
	unsigned nr_own = 0;
	check_int(hooks_adopt(child.h, 8192, true, count, &nr_own, &err), 0);
	check_int(nr_own, 0);
	hooks_set_tokens(child.h, run->tokens);
	run->child = &child; /* for its requests of stacks and its end */
}

static void run_sleeper(enum sleeper what)
{
	memset(&r, 0, sizeof(r));
	memset(&child, 0, sizeof(child));
	r.forked = put_to_sleep;
	sleeper = what;
	run_fixture();
	if (what == WAKES)
		check_child(); /* all that it had before it has freed */
	else
		hooks_destroy(child.h);
}

int main(void)
{
	run_fork_fixture(true);
	run_fork_fixture(false);
	run_sleeper(SLEEPS);
	run_sleeper(WAKES);
	run_sleeper(HAS_NONE);
	run_sleeper(LACKS_IT);
	run_sleeper(OF_MANY);
	return tap_done();
}
