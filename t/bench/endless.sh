# shellcheck shell=bash disable=SC2034 # its variables are for the benches
# Sourced by t/bench/beside.sh and turns.sh, after workloads.sh: programs that go
# on until they are ended, and say how far they are.

# start_NAME [SUPERVISOR...]: an endless program, and in the file "all" how far it
# is, line by line: monotonic clock, its own CPU time and, where one line is not a
# step, steps. Its process is $pid, what stands with it $load, what says how far it
# is $follower. What prepare_endless NAME has made is in the directory $MADE.
start_many-blocks() {
	"$@" "$BUILD/t/fixtures/many-blocks" 100000 100000000 lines >all 2>err &
	find_program "$@"
}
start_touch-4g() {
	"$@" "$BUILD/t/fixtures/touch-4g" 4 100000000 lines >all 2>err &
	find_program "$@"
}
start_python() {
	"$@" /usr/bin/python3 "$SRC/t/bench/index-laps.py" "$MADE/text" >all \
		2>err &
	find_program "$@"
}
prepare_endless_sqlite() {
	prepare_sqlite
	[ -e db ] || sqlite3 -batch -init fill.sql db .quit >out
	perl -e 'print "PRAGMA cache_size = -262144;\n";
		for (1 .. 1000000) {
			my $k = $_ * 7919 % 990000;
			printf "SELECT sum(length(v)) FROM t WHERE k BETWEEN %d AND %d;\n",
				$k, $k + 500;
		}' >queries.sql
}
start_sqlite() {
	"$@" /usr/bin/sqlite3 -batch "$MADE/db" <"$MADE/queries.sql" >out 2>err &
	find_program "$@"
	follow syscr &
	follower=$!
}
start_redis() {
	REDIS_PORT=$((REDIS_PORT + 1))
	"$@" "$MADE/redis-server" --port "$REDIS_PORT" --save '' --appendonly no \
		--bind 127.0.0.1 --daemonize no >out 2>err &
	find_program "$@"
	until redis-cli -p "$REDIS_PORT" ping >/dev/null 2>&1; do
		kill -0 "$pid" || fail "redis-server has ended"
		sleep 0.05
	done
	redis-benchmark -p "$REDIS_PORT" -q -t set -n 50000 -r 50000 -d 10000 \
		-c 20 >>out
	redis-benchmark -p "$REDIS_PORT" -q -l -t set -r 50000 -d 10000 -c 20 \
		>load 2>&1 &
	load=$!
	follow syscw &
	follower=$!
}

# prepare_endless NAME - in the current directory.
prepare_endless() {
	MADE=$PWD
	if declare -F "prepare_endless_$1" >/dev/null; then
		"prepare_endless_$1"
	else
		"prepare_$1"
	fi
}

# find_program [SUPERVISOR...] - of the last one started.
find_program() {
	pid=$! supervisor='' load='' follower=''
	[ $# -gt 0 ] || return 0
	supervisor=$pid
	# Not one of those that it tries things on before, which end at once.
	local exe
	until pid=$(pgrep -P $supervisor) && exe=$(readlink "/proc/$pid/exe") &&
		[ "$exe" != "$(readlink "/proc/$supervisor/exe")" ]; do
		kill -0 $supervisor || fail "smco-trace has ended"
		sleep 0.01
	done
}

# follow COUNTER - twenty times a second how many system calls of a kind (syscr,
# syscw of /proc/PID/io) $pid has made: its steps.
follow() {
	exec perl -MTime::HiRes=sleep,clock_gettime,CLOCK_MONOTONIC -e '
		my ($pid, $counter) = @ARGV;
		$| = 1;
		sub text { open my $f, "<", "/proc/$pid/$_[0]" or exit; local $/; <$f> }
		for (;; sleep 0.05) {
			my ($steps) = text("io") =~ /^$counter: (\d+)/m;
			my ($ns) = split " ", text("schedstat");
			printf "%.6f %.6f %d\n", clock_gettime(CLOCK_MONOTONIC),
				$ns / 1e9, $steps;
		}' "$pid" "$1" >all
}
