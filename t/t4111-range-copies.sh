#!/bin/bash
# Ranges of forked copies: those that end soon see for their parent, and what is
# dear there is out in the next ones; those that live on have their own.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8
cat >copies.c <<'E2'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <time.h>
#include <sys/wait.h>

volatile unsigned sink;

__attribute__((noinline)) void serve(int request)
{
	for (int round = 0; round < 300000; round++)
		sink += (unsigned)(request ^ round);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void step(int level)
{
	sink += (unsigned)level;
}

static void say(const char *path)
{
	FILE *f = fopen(path, "w");
	if (!f || fprintf(f, "%d\n", getpid()) < 0 || fclose(f))
		exit(1);
}

static void stay(int level, double s, const char *path)
{
	say(path);
	for (double until = now() + s; now() < until; usleep(1000))
		step(level);
}

int main(int nr, char **arg)
{
	int requests = atoi(arg[1]);
	if (nr > 2 && fork() > 0)
		return 0; /* a daemon's parent */
	for (int i = 1; i <= requests; i++) {
		if (fork() == 0) {
			serve(i);
			_exit(0);
		}
		wait(NULL);
	}
	if (fork() == 0) {
		sleep(2); /* by then it has them */
		stay(1234, 1, "copy.pid");
		_exit(0);
	}
	stay(77, 1, "parent.pid");
	wait(NULL);
	FILE *f = fopen("finished", "w");
	return !f || fclose(f);
}
E2
"${CC:-cc}" -g -O0 -o copies copies.c || exit 1

# run ARGUMENTS... - without end until the last copy's
run() {
	rm -f run.trace* finished ./*.pid
	timeout 60 smco-trace -q -m range -t 10 -o run.trace -- ./copies "$@" &&
		test -e finished && found >found.txt
	cat found.txt
}

# Beside others each end of one costs more, and their parent is let go for a while
# (t0018): so not in each run.
short_ones_see() {
	for _ in 1 2 3 4 5; do
		run 300 || return 1
		grep '^serve::request 1 300$' found.txt && return
	done
	return 1
}
ok "what copies saw that ended soon is said" short_ones_see

# level PID - of this process
level() {
	smco-report --ranges --csv --process "$1" run.trace | tr -d '\r"' |
		awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			$at["variable"] == "step::level" && $at["smallest"] != "" {
				print $at["smallest"], $at["largest"] }'
}
# own_ranges ARGUMENTS...
own_ranges() {
	run "$@" || return 1
	level "$(cat copy.pid)" | tee levels
	level "$(cat parent.pid)" | tee -a levels
	[ "$(cat levels)" = "1234 1234
77 77" ]
}
ok "one that lives on has its own" own_ranges 3
ok "also when its parent has ended" own_ranges 3 daemon

# Both compute all the time: what is out in the parent soon costs in the copy.
cat >both.c <<'E2'
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile unsigned sink;
__attribute__((noinline)) static void compute(void)
{
	struct timespec t;
	do {
		for (int round = 0; round < 10000; round++)
			sink += (unsigned)round;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_nsec < 70000000);
}

__attribute__((noinline)) static void step(int level)
{
	sink += (unsigned)level;
}

int main(void)
{
	if (fork() == 0) {
		compute();
		step(1234);
		printf("%d\n", getpid());
		return 0;
	}
	compute();
	wait(NULL);
	step(77);
	return 0;
}
E2
"${CC:-cc}" -g -O0 -o both both.c || exit 1
wakes_early() {
	timeout 60 smco-trace -q -m range -t 10 -o run.trace -- ./both >pid &&
		level "$(cat pid)" | grep '^1234 1234$'
}
ok "a copy that costs what its parent does not has its own before long" \
	wakes_early

# Several libraries that compute in turn: all of them cost.
for i in 0 1 2 3; do
	cat >lib$i.c <<E2
volatile unsigned sink$i;
__attribute__((noinline)) void compute$i(void)
{
	for (int round = 0; round < 20000; round++)
		sink$i += (unsigned)round;
}
E2
	"${CC:-cc}" -g -O0 -shared -fPIC -o libhot$i.so lib$i.c || exit 1
done
cat >many.c <<'E2'
void compute0(void);
void compute1(void);
void compute2(void);
void compute3(void);

int main(void)
{
	for (int i = 0; i < 5000; i++) {
		compute0();
		compute1();
		compute2();
		compute3();
	}
	return 0;
}
E2
"${CC:-cc}" -g -O0 -o many many.c -L. -lhot0 -lhot1 -lhot2 -lhot3 \
	-Wl,-rpath,"$PWD" || exit 1
one_stop() {
	SMCO_DEBUG=range timeout 60 smco-trace -q -m range -t 10 -o run.trace \
		-- ./many 2>log || return 1
	grep 'windows of [2-9] files change' log | head -1 | grep .
}
ok "windows of several files go in and out in one stop" one_stop

# On a busy machine that may be before the copy runs for the first time.
cat >daemon.c <<'E2'
#include <time.h>
#include <unistd.h>

volatile unsigned sink;
__attribute__((noinline)) static void step(int level)
{
	sink += (unsigned)level;
}

int main(void)
{
	const struct timespec ms = {0, 1000000};
	if (fork() > 0)
		_exit(0);
	for (int i = 0; i < 300; i++) {
		step(77);
		nanosleep(&ms, NULL);
	}
	return 0;
}
E2
"${CC:-cc}" -g -O0 -o daemon daemon.c || exit 1
beside_load() {
	local i bad=0
	for ((i = 0; i < 4 * $(nproc); i++)); do
		perl -e '$SIG{ALRM} = sub { exit }; alarm 100; 1 while 1' &
	done
	for i in 1 2 3 4 5 6 7 8; do
		timeout 60 smco-trace -q -m range -t 50 -o run.trace -- ./daemon &&
			found >found.txt && grep '^step::level 77 77$' found.txt || bad=1
	done
	# shellcheck disable=SC2046 # words
	kill $(jobs -p)
	return $bad
}
ok "a daemon's, whose parent ends at once, beside load" beside_load
done_testing
