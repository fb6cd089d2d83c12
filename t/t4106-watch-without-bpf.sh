#!/bin/bash
# Watchpoints where BPF is not permitted: what the kernel tells of each hit.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8
source=$SRC/t/fixtures/range
"${CC:-cc}" -O1 -shared -fPIC -o deny.so "$SRC/t/fixtures/preload/deny.c" ||
	exit 1

# without WHAT OPTIONS... -- COMMAND... - what it prints, sorted, is the truth
without() {
	local what=$1
	shift
	timeout 60 env DENY="$what" LD_PRELOAD="$PWD/deny.so" \
		"$BUILD/smco-trace" -q -m range -o run.trace "$@" >out || return 1
	sort out >truth
	found >found.txt
	smco-report run.trace | tr -s '\n ' ' ' >summary
	grep -o 'watchpoints: .*' summary | cut -c1-200
}
build() {
	local name=$1
	shift
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -g -o "$name" "$source/$name.c" \
		-lpthread "$@"
}
by_watchpoint() { smco-report --ranges --csv --where 'how == "watchpoint"' run.trace; }

build pointed -O0 || exit 1
without bpf -t unlimited -- ./pointed >said
if prereq_WATCHPOINTS; then
	said() { cat said && grep -q 'ms for arming, without BPF: ' said; }
	ok "it is said" said
	exact() {
		without bpf -t unlimited --var number --var large --var half \
			--var still -- ./pointed || return 1
		grep -E '^(number|large|half|still) ' truth >some && mv some truth
		by_watchpoint | tee table
		[ "$(wc -l <table)" = 5 ] && compare exact
	}
	ok "plain stores: exact, through pointers, by threads and a child" exact
	# stores FLAGS... - by instructions of all kinds
	stores() {
		build stores "$@" &&
			without bpf -t unlimited --var 'wide' --var word --var half \
				--var byte -- ./stores 300 && compare within &&
			by_watchpoint | tee table && [ "$(wc -l <table)" = 5 ] &&
			without bpf -t unlimited --var 'pack.*' -- ./stores 300 &&
			compare within && by_watchpoint | tee table &&
			[ "$(wc -l <table)" = 4 ]
	}
	stores_each() { stores -O0 && stores -O2 && stores -O3 -march=native; }
	ok "stores of all kinds: no value that it did not have" stores_each
	behind() { # of what pointers lead to nobody would say in time that they do
		build behind -O0 && without bpf -t unlimited \
			--watch 'server.conf->in->limit' \
			--watch 'server.conf->level' -- ./behind && compare within &&
			by_watchpoint | tee table && [ "$(wc -l <table)" = 1 ]
	}
	ok "--watch: looked at now and then, nothing that is there no more" behind
fi

limited() {
	without bpf -t 10 -- ./pointed 300 && compare within
	[ $? -ne 1 ]
}
ok "with a limit: no value that it did not have" limited
none() {
	without bpf,perf -t unlimited -- ./pointed 100 && compare within &&
		grep -q 'watchpoints: none, looked at now and then: ' summary
}
ok "without perf events: none, and why" none

killed() {
	env DENY=bpf LD_PRELOAD="$PWD/deny.so" "$BUILD/smco-trace" -q -m range \
		-t unlimited -o run.trace -- ./pointed 400 >out &
	local pid=$!
	wait_for 60 pgrep -x -P $pid pointed
	sleep 0.2
	[ ! -s out ] && kill -9 $pid
	wait $pid
	wait_for 60 grep -q '^four ' out && [ "$(wc -l <out)" = 11 ]
}
ok "killed: the program goes on to its end" killed

# Where only the program's own level is permitted, what the kernel writes is not
# seen.
# as_other OPTIONS... - to setpriv
as_other() {
	chmod 755 . && mkdir -p -m 777 open && cp pointed open &&
		cp "$BUILD/smco-trace" open && (cd open && chmod 755 pointed smco-trace &&
		timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups "$@" \
			./smco-trace -q -m range -t unlimited -o run.trace \
			--var number --var large --var half --var still -- \
			./pointed 100 >../out) || return 1
	cp open/run.trace . && smco-report run.trace | tr -s '\n ' ' ' >summary
	sort out | grep -E '^(number|large|half|still) ' >truth
	found >found.txt
	grep -o 'watchpoints: .*' summary | cut -c1-300
	by_watchpoint
}
exact_five() { [ "$(by_watchpoint | wc -l)" = 5 ] && compare exact; }
ordinary() {
	as_other || return 1
	prereq_WATCHPOINTS || {
		grep -q 'watchpoints: none.*debug registers do not fire' summary
		return
	}
	case $(cat /proc/sys/kernel/perf_event_paranoid) in
	2) exact_five && grep -q 'what the kernel writes is not seen' summary ;;
	[3-9]) grep -q 'watchpoints: none.*perf_event_paranoid is .*set it to 1' summary ;;
	*) exact_five && grep -q 'ms for arming, without BPF: ' summary ;;
	esac
}
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --clear-groups true; then
	ok "an ordinary user: where perf may watch his own programs" ordinary
	perfmon=(--inh-caps=+perfmon --ambient-caps=+perfmon)
	permitted() {
		as_other "${perfmon[@]}" && exact_five &&
			grep -q 'ms for arming, without BPF: ' summary &&
			! grep -q 'what the kernel writes is not seen' summary
	}
	if prereq_WATCHPOINTS && setpriv --reuid=65534 "${perfmon[@]}" true; then
		ok "with CAP_PERFMON alone" permitted
	fi
fi

done_testing
