#!/bin/bash
# make bench-attach [GIB=10] [RESULTS=file]
#
# What it takes to come and to go: a process with 1000 threads that sleep, one
# with 32 that run, one with 10 GB resident (if this machine has them). By the
# engine alone, and by smco-trace for a second. Says what it measured and never
# whether that is good.
#
# longest: the longest stop any thread saw
# extra:   the whole run of smco-trace, from start to end, beside its -d 1
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${GIB:=10}" "${REPS:=5}"

# engine - "attach detach longest" in ms, one line per repetition
engine() {
	local i
	for ((i = 0; i < REPS; i++)); do
		"$BUILD/t/drive/engine-drive" -d 20 -p $pid 2>&1 | perl -ne \
			'print "$1 $2 $3\n" if /attach (\S+) ms, detach (\S+) ms, longest stop (\S+) ms/'
	done
}

# whole - "longest extra" in ms, one line per repetition
whole() {
	local i
	for ((i = 0; i < REPS; i++)); do
		perl -MTime::HiRes=time -MJSON::PP -e '
			my ($build, $pid) = @ARGV;
			my $t = time;
			system("$build/smco-trace", "-q", "-d", "1", "-o",
				"t.trace", "-p", $pid) and die "smco-trace";
			my $extra = (time() - $t - 1) * 1e3;
			local $/;
			my $d = decode_json(`$build/smco-report --json t.trace`);
			printf "%.1f %.0f\n",
				$d->{overhead}{longest_stop_ns} / 1e6, $extra;
		' "$BUILD" $pid || fail "smco-trace failed"
	done
}

# median COLUMN FILE, and the greatest in brackets
median() {
	perl -ane 'push @v, $F['"$1"']; END { @v = sort { $a <=> $b } @v;
		printf "%s (%s)", $v[@v / 2], $v[-1] }' "$2"
}

row() {
	engine >engine.out
	whole >whole.out
	printf '| %s | %s | %s | %s | %s | %s |\n' "$1" \
		"$(median 0 engine.out)" "$(median 1 engine.out)" \
		"$(median 2 engine.out)" "$(median 0 whole.out)" \
		"$(median 1 whole.out)" | tee -a "$RESULTS"
	kill $pid
	wait $pid 2>/dev/null || :
}

# start COMMAND... - in the background, until it says that it is ready
start() {
	"$@" >out &
	pid=$!
	until grep -q ready out; do
		kill -0 $pid || fail "$* has ended"
		sleep 0.05
	done
}

cpu=$(sed -n 's/^model name\t: //p;T;q' /proc/cpuinfo)
{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs ($cpu), Linux $(uname -r)," \
		"load $(cut -d ' ' -f 1 /proc/loadavg)"
	echo
	echo "Attach and detach, ms, medians of $REPS (and the greatest)."
	echo
	echo "| process | attach | detach | longest | smco-trace longest | extra |"
	echo "| --- | --- | --- | --- | --- | --- |"
} | tee -a "$RESULTS"
start "$BUILD/t/fixtures/many_threads" 1000
row "1000 threads that sleep"
start "$BUILD/t/fixtures/many_threads" 32 run
row "32 threads that run"
if [ "$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -gt \
	$((GIB + 3)) ]; then
	start "$BUILD/t/fixtures/touch-4g" "$GIB" 1000000
	row "$GIB GB resident"
else
	echo "not enough memory for a process of $GIB GB" >&2
fi
