/*
 * The longest stop is the longest time that a thread did not do its own work:
 * also where it was lent for calls of ours meanwhile, which the kernel sees as
 * several short stops, and where nobody saw for long that it had stopped. What
 * is said of it is of that stop.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/meter.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define NAPS   8
#define NAP_NS (10 * NSEC_PER_MSEC)

static struct timespec nap = {.tv_nsec = NAP_NS};

/* A signal stops @pid, and nobody looks for so long. */
static void stop_unseen(struct tracer *tr, pid_t pid, uint64_t ns)
{
	struct timespec unseen = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};
	struct tevent ev;
	tracer_stops_are(tr, "to pass on a signal");
	kill(pid, SIGWINCH);
	nanosleep(&unseen, NULL);
	check_int(tracer_next(tr, smco_now_ns() + NAP_NS, &ev), 1);
}

int main(void)
{
	struct tracer *tr;
	struct smco_err err = {0};
	struct puppet pup = puppet_start();
	struct meter m;
	uint64_t nr, longest_ns;

	meter_prepare(); /* or without the kernel's clock */
	struct ledger *l = ledger_create(NSEC_PER_SEC / 10);
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check(p))
		return tap_done();
	tproc_resume_new(p);
	meter_init(&m, l, tr);

	tracer_stops_are(tr, "to take a nap");
	check_int(traced_stop(p, &err), 0);
	const uint64_t args[6] = {(uintptr_t)&nap};
	for (int i = 0; i < NAPS; i++) {
		int64_t ret;
		check_int(tproc_syscall(p, SYS_nanosleep, args, &ret, &err), 0);
		check_int(ret, 0);
	}
	tproc_cont(p);

	meter_stops(&m);
	meter_get_stops(&m, &nr, &longest_ns);
	check(longest_ns >= NAPS * NAP_NS);
	check_str(meter_longest_was(&m), "to take a nap");

	uint64_t before_ns = longest_ns;
	stop_unseen(tr, pup.pid, 4 * before_ns);
	meter_stops(&m);
	meter_get_stops(&m, &nr, &longest_ns);
	if (!m.has_clock) /* nobody knows of it */
		check_str(meter_longest_was(&m), "to take a nap");
	else if (check(longest_ns > 2 * before_ns))
		check_str(meter_longest_was(&m), "which smco-trace saw late");
	tracer_destroy(tr);
	puppet_end(&pup);
	ledger_destroy(l);
	meter_unprepare();
	return tap_done();
}
