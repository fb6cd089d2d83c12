#!/bin/bash
# Ranges of the variables of shared libraries, also of those that come and go.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8
source=$SRC/t/fixtures/range

# library NAME FILE FLAGS...
library() {
	local name=$1 file=$2
	shift 2
	"${CC:-cc}" -std=gnu11 -g -fPIC -shared -DNAME="$name" "$@" -o "$file" \
		"$source/library.c"
}

# program FLAGS... - with a library, and one to be loaded
program() {
	library near libnear.so "$@" && library later later.so "$@" &&
		"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -g "$@" -o libraries \
			"$source/libraries.c" -L. -lnear "-Wl,-rpath,$PWD"
}

# ranges ROUNDS "MS [UNTIL]" OPTIONS... - the program loads and unloads so often
ranges() {
	local rounds=$1 times
	read -ra times <<<"$2"
	shift 2
	timeout 160 smco-trace -q -m range -o run.trace "$@" -- \
		./libraries "$PWD/later.so" "$rounds" "${times[@]}" >out || return 1
	sort out >truth
	found >found.txt
	grep -x 'kept 0 0' truth
}

build_plugins() {
	local file=$source/plugin.c
	"${CC:-cc}" -g -fPIC -shared -DNAME=first -DKIND=1 -o first.so "$file" &&
		"${CC:-cc}" -g -fPIC -shared -DNAME=other -DKIND=2 -o other.so \
			"$file" &&
		"${CC:-cc}" -D_GNU_SOURCE -g -o plugins "$source/plugins.c"
}
# plugins ROUNDS "MS [UNTIL]" OPTIONS... - two that lie in memory the same way, in
# turn
plugins() {
	local rounds=$1 times
	read -ra times <<<"$2"
	shift 2
	timeout 160 smco-trace -q -m range "$@" -o run.trace -- ./plugins \
		"$PWD/first.so" "$PWD/other.so" "$rounds" "${times[@]}" >out ||
		return 1
	sort out >truth
	found >found.txt
	cat truth found.txt
	grep -qx "same $rounds 0" truth
}
# By now, in run.trace:
is_exact() { found >found.txt && compare exact "$1"; }
is_told() { # something
	found >found.txt && compare within "$1"
	[ $? -ne 2 ]
}

# by_watchpoint - both were seen by one
by_watchpoint() {
	smco-report --ranges --csv run.trace | tr -d '\r"' |
		awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			$at["variable"] ~ /^(inner|outer)_first$/ &&
			$at["how"] ~ /watchpoint/ { n++ }
			END { exit n != 2 }'
}

program -O0 || exit 1
near_exact() { ranges 0 0 -t unlimited && compare exact _near; }
ok "a library's variables, -O0, no limit: exactly the ranges that it had" near_exact

# What it exports the program has a copy of, and writes there (given_near).
# later_exact ROUNDS
later_exact() {
	./libraries "$PWD/later.so" 1 0 | sort >truth &&
		run_until later_seen ranges "$1" "100 enough" -t unlimited &&
		compare exact _near && compare exact _later
}
later_seen() { is_exact _later; }
ok "one that is loaded later: exactly, once it is watched" later_exact 1
ok "unloaded and loaded again, its place used in between" later_exact 4

limited() {
	ranges 8 50 -t 10 "$@" && compare within _later
	[ $? -ne 1 ] && compare within _near
	[ $? -ne 1 ]
}
ok "with a limit: no value that it did not have, what is there is kept" limited
fast() { program -O2 && limited -t unlimited && limited -t 2; }
ok "-O2: no value that it did not have" fast

# modules - those of variables with a value
modules() {
	smco-report --ranges --csv --where 'smallest <= 0 || smallest > 0' run.trace |
		tr -d '\r"' | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++)
			at[$i] = i; next } { print $at["module"] }' |
		sed 's,.*/,,' | sort -u | tr '\n' ' '
}
said() {
	program -O0 && ranges 0 0 -t unlimited && modules >said && cat said &&
		[ "$(cat said)" = "libnear.so libraries " ]
}
ok "the report says which library" said

only() {
	ranges 0 0 -t unlimited "$@" && modules >said && cat said &&
		[ "$(cat said)" = "libnear.so " ]
}
only_each() {
	only --var 'hidden_*' && only --function work_near && only --file library.c
}
ok "--var, --function, --file that only a library has" only_each
by_name() {
	ranges 0 0 -t unlimited --library none && modules >said &&
		[ "$(cat said)" = "libraries " ] &&
		ranges 1 1000 -t unlimited --library 'libnear*' && modules >said &&
		cat said && [ "$(cat said)" = "libnear.so libraries " ]
}
ok "--library: some, or none" by_name

# wrong OPTIONS... - said in one line, and nothing runs
wrong() {
	test_exit 125 smco-trace -m range "$@" -- ./libraries >out 2>err || return 1
	cat err
	[ ! -s out ] && [ "$(wc -l <err)" = 1 ]
}
wrong_each() { wrong --var hiden_near && wrong --library 'libfar*'; }
ok "one that nobody has is an error" wrong_each
may_come() {
	ranges 1 1000 -t unlimited --var hidden_later && return 1
	ranges 1 1000 -t unlimited --var hidden_later --if-available
}
ok "--if-available waits for a library that has it" may_come

separate() {
	program -O0 && objcopy --only-keep-debug libnear.so libnear.debug &&
		strip -g libnear.so &&
		objcopy --add-gnu-debuglink=libnear.debug libnear.so &&
		near_exact
}
ok "debug information in a file of its own" separate

# Until both are watched in the last round, which has the largest value.
written() {
	./plugins "$PWD/first.so" "$PWD/other.so" 4 0 | sort >truth &&
		run_until written_seen plugins 4 "100 enough" -t unlimited \
			--var '*er_*' --if-available &&
		compare exact _first && by_watchpoint
}
written_seen() { is_exact _first && by_watchpoint; }
not_its_own() {
	build_plugins && plugins 12 60 -t 10 && compare within _first
	[ $? -ne 1 ] || return 1
	run_until first_seen plugins 12 "60 enough" -t unlimited &&
		compare within _first
}
first_seen() { is_told _first; }
ok "what is in its place then is not taken for it" not_its_own
smco-report run.trace >summary
# Seven, with four registers: each has a turn.
in_turns() {
	local i libs=()
	for i in 1 2 3 4 5 6 7; do
		"${CC:-cc}" -g -fPIC -shared -DNAME="no$i" -DKIND="$i" \
			-o "turn$i.so" "$source/plugin.c" || return 1
		libs+=("$PWD/turn$i.so")
	done
	"${CC:-cc}" -D_GNU_SOURCE -g -o many "$source/many.c" || return 1
	run_until each_seen timeout 160 smco-trace -q -m range -t unlimited \
		--var 'inner_*' --if-available -o run.trace -- ./many enough \
		"${libs[@]}" && each_seen
}
each_seen() {
	smco-report --ranges --csv --where 'how == "watchpoint"' run.trace | tee table
	[ "$(grep -c '^"\?inner_no.*,-3,7,' table)" = 7 ]
}
if prereq_WATCHPOINTS; then
	ok "more libraries than debug registers: in turn" in_turns
	ok "written through pointers: exactly, each time that it is loaded" written
fi

# Left while it loads and unloads.
attached() {
	program -O0 && rm -f enough run.trace && ./libraries "$PWD/later.so" 1 0 |
		sort >truth || return 1
	./libraries "$PWD/later.so" 3 1000 enough 1 >out &
	local pid=$! smco seen=0
	wait_for 60 grep -q later.so /proc/$pid/maps
	smco-trace -q -m range -t unlimited -o run.trace -p $pid &
	smco=$!
	wait_for 10 is_told _later || seen=1
	touch enough
	pause 1
	kill -TERM $smco && wait $smco && found >found.txt && wait $pid &&
		sort out >truth && grep -x 'kept 0 0' truth &&
		compare within _later && return $seen
}
ok "attached and left: it goes on, no wrong value" attached

killed() {
	smco-trace -q -m range -t unlimited -o run.trace -- ./libraries \
		"$PWD/later.so" 3 500 >out &
	local pid=$!
	wait_for 60 pgrep -x -P $pid libraries
	sleep 0.3
	kill -9 $pid
	wait $pid
	wait_for 60 grep -q '^CHANGED\|^kept' out && grep -x 'kept 0 0' out
}
ok "killed: the program goes on, also with what it loads then" killed

done_testing
