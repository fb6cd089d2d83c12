#!/bin/bash
# Variables whose assignments have no room for a jump: by breakpoints, which
# share the four debug registers with watchpoints.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8
source=$SRC/t/fixtures/range
"${CC:-cc}" -O1 -o no-room "$source/no-room.c" "$source/no-room.S" -lpthread ||
	exit 1
"${CC:-cc}" -O1 -shared -fPIC -o deny.so "$SRC/t/fixtures/preload/deny.c" ||
	exit 1

# seen OPTIONS... -- ARGUMENTS... - what it prints, sorted, is the truth
seen() {
	watch ./no-room "$@" || return 1
	found >found.txt
	smco-report run.trace | tr -s '\n ' ' ' >summary
}
by_breakpoint() { smco-report --ranges --csv --where 'how == "breakpoint"' run.trace | grep -v '^#'; }
only() { grep -E "^($1) " truth >some && mv some truth; }

seen -t unlimited -- 1 1 0 || exit 1
need WATCHPOINTS
if grep -q 'without BPF' summary; then
	echo "1..0 # SKIP no BPF here"
	exit 0
fi
said() {
	cat summary && grep -q 'watchpoints: 13 places without room for a jump in turn, 4 at a time' summary
}
ok "how many there are is said" said

# Four of them at a time: nothing is missed, by any thread; a child has its own.
four() {
	./no-room 3 20 0 fork >plain &&
		seen -t unlimited --var f::down --var f::twice --var f::kept \
			--var f::more -- 3 20 0 fork && cmp plain out &&
		only 'f::(down|twice|kept|more)' && by_breakpoint | tee table &&
		[ "$(wc -l <table)" = 5 ] && compare exact
}
ok "exact: registers, parts of them, memory and sums, of threads and a child" four
computed() {
	./no-room 3 20 0 fork >plain &&
		seen -t unlimited --var f::scaled --var f::thread -- 3 20 0 fork &&
		cmp plain out && only 'f::(scaled|thread)' && by_breakpoint | tee table &&
		[ "$(wc -l <table)" = 3 ] && compare exact
}
ok "exact: an expression, and each thread's own memory" computed
unrolled() { # what is said is one more
	seen -t unlimited --var f::unrolled -- 3 20 0 && only f::unrolled &&
		by_breakpoint | tee table && [ "$(wc -l <table)" = 2 ] && compare exact
}
ok "exact: a counter of an unrolled loop" unrolled
fixed() {
	seen -t unlimited --var f::fixed --var f::one --var f::two --var f::flag \
		--var g::far -- 1 5 0 && only 'f::(fixed|one|two|flag)' &&
		by_breakpoint | tee table && compare exact &&
		grep -q '^f::one,.*,breakpoint,[0-9]*,.*,5,int' table &&
		! grep -q '^g::far.*breakpoint' table
}
ok "exact: constants, three at one place; how often; nothing of what never ran" fixed
both() { # what a breakpoint reads no sensor takes
	seen -t unlimited --var f::down --var f::sum -- 3 20 0 &&
		only 'f::(down|sum)' && compare exact
}
ok "beside a sensor that needs a register" both
joins() {
	seen -t unlimited --var f::joined --var f::wrong -- 3 20 100 &&
		only f::joined && smco-report --ranges --csv run.trace | tee table &&
		compare exact && grep -q '^f::joined,.*,sensors and breakpoint,' table &&
		grep -q '^f::wrong,.*,no room for a sensor where it is assigned,' table
}
ok "behind a join: if all who come were given a value, otherwise that is said" joins
how() {
	smco-report run.trace >said && smco-report --ranges --json run.trace >rows.json &&
		smco-report --json run.trace >report.json &&
		grep -q '"breakpoint": *true' report.json rows.json
}
ok "how is said" how
# Eight variables take turns in what the places leave, and not with them. Before
# the first turn ends all is over but one number.
stay() {
	{
		for i in 1 2 3 4 5 6 7 8; do echo "int w$i;"; done
		echo "int *volatile at[] = {&w1, &w2, &w3, &w4, &w5, &w6, &w7, &w8};"
		echo "__attribute__((constructor)) static void set(void)"
		echo "{ for (int i = 0; i < 8; i++) *at[i] = i; }"
	} >words.c
	"${CC:-cc}" -O1 -g -c words.c && "${CC:-cc}" -O1 -o words words.o \
		"$source/no-room.c" "$source/no-room.S" -lpthread || return 1
	timeout 60 smco-trace -q -m range -t unlimited -o run.trace \
		--var 'w?' --var f::down --var f::twice --var f::kept \
		-- ./words 3 20 500 >out && sort out >truth && found >found.txt &&
		only 'f::(down|twice|kept)' && by_breakpoint | tee table &&
		[ "$(wc -l <table)" = 4 ] && compare exact
}
ok "without a limit three places stay where eight variables take turns" stay
each_seen() { by_breakpoint | tee table && [ "$(wc -l <table)" = 12 ]; }
turns() {
	run_until each_seen seen -t unlimited -- 1 20 enough && each_seen &&
		compare within
}
ok "more than four each have their turn" turns

# With a target the kernel switches each off in time; what is seen is true.
limited() {
	local target
	for target in 10 1; do
		./no-room 2 20 300 >plain && seen -t $target -- 2 20 300 &&
			cmp plain out && { compare within || [ $? -eq 2 ]; } || return 1
		smco-report --json run.trace >report.json
	done
}
ok "with a limit, no value that it did not have" limited
cached() {
	mkdir -p cache && export XDG_CACHE_HOME=$PWD/cache
	for _ in 1 2; do
		seen -t unlimited --var 'f::[dkm]*' --var f::twice -- 3 20 0 &&
			only 'f::(down|twice|kept|more)' && compare exact || return 1
	done
}
ok "the same from the cache" cached

# More places than are looked at before a program begins: f is one of the last.
large() {
	{
		for i in $(seq 6000); do
			echo "int f$i(int a) { int b = a + 777;"
			echo "if (b > a) a = b * 2; while (a > b) a -= b; return a; }"
		done
	} >many.c
	"${CC:-cc}" -O0 -g -c many.c && "${CC:-cc}" -O1 -o large many.o \
		"$source/no-room.c" "$source/no-room.S" -lpthread || return 1
	run_until large_seen env "XDG_CACHE_HOME=$PWD/none" timeout 160 smco-trace \
		-q -m range -t 1000 -o run.trace -- ./large 1 20 enough >out ||
		return 1
	sort out >truth
	found >found.txt
	large_seen && compare within 'f::'
}
large_seen() { by_breakpoint | tee table && [ "$(grep -c '^f::' table)" = 11 ]; }
ok "of functions that are looked at while the program runs" large

# What stayed would be in the way of who comes next, and trap for nobody.
killed() {
	local pid
	smco-trace -q -m range -t unlimited -o gone.trace -- ./no-room 1 20 5000 >out &
	local smco=$!
	wait_for 60 test -s gone.trace && pid=$(pgrep -P $smco) && sleep 0.2 &&
		kill -9 $smco || return 1
	wait $smco
	timeout 20 smco-trace -q -m range -t unlimited -d 500ms -o run.trace \
		--var 'f::[dkm]*' --var f::twice -p "$pid" || return 1
	by_breakpoint | tee table
	wait_for 60 grep -q '^f::flag 1 1' out && [ "$(wc -l <table)" = 5 ]
}
ok "killed: the program goes on to its end, all four registers are free" killed

without() {
	WITH=(env DENY=bpf "LD_PRELOAD=$PWD/deny.so")
	seen -t unlimited -- 1 20 0
	local status=$?
	WITH=(env)
	[ $status = 0 ] && ! grep -Ev "^f::(joined|sum) " found.txt &&
		smco-report --ranges --csv run.trace >table &&
		grep '^f::down,' table | grep -q 'no breakpoints to be had'
}
ok "without BPF: none, and why is said" without
done_testing
