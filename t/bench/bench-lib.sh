# shellcheck shell=bash disable=SC2034 # its variables are for the benches
# Sourced by t/bench/*.sh: where things are; a directory of their own, removed
# at the end with the program that $pid stands for and the $others, which may
# stand still ($BENCH_SCRATCH stays).

SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
case ${O:=build} in /*) BUILD=$O ;; *) BUILD=$SRC/$O ;; esac
: "${RESULTS:=$SRC/t/bench/RESULTS.md}"
pid=
others=
SCRATCH=${BENCH_SCRATCH:-$(mktemp -d)}
mkdir -p "$SCRATCH"
cd "$SCRATCH" || exit 1

# What is measured goes before all other work on the machine, where there is a
# group of processes to say so in (control groups, of either version): both
# sides of a pair alike, and each process in it as before beside the others.
GROUPS_AT=/sys/fs/cgroup
group=
go_first() {
	local file weight
	if [ -w "$GROUPS_AT/cpu/cpu.shares" ] || [ -w "$GROUPS_AT/cpu/tasks" ]; then
		group=$GROUPS_AT/cpu/smco-bench file=cpu.shares weight=262144
	else
		group=$GROUPS_AT/smco-bench file=cpu.weight weight=10000
		echo +cpu >"$GROUPS_AT/cgroup.subtree_control"
	fi
	mkdir -p "$group" && echo $weight >"$group/$file" || return
	# Where groups have real time of their own (CONFIG_RT_GROUP_SCHED) a new
	# one has none. It gets some, so that smco-trace may what it may outside.
	[ ! -w "$group/cpu.rt_runtime_us" ] ||
		echo 500000 >"$group/cpu.rt_runtime_us"
	echo $$ >"$group/cgroup.procs"
}
go_first 2>/dev/null || group=
leave_group() {
	[ -z "$group" ] || echo $$ >"${group%/*}/cgroup.procs"
	[ -z "$group" ] || rmdir "$group"
}
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null
	[ -z "$others" ] || { kill $others; kill -CONT $others; } 2>/dev/null
	leave_group 2>/dev/null
	[ -n "$BENCH_SCRATCH" ] || rm -rf "$SCRATCH"' EXIT
export LC_ALL=C

# warm - WARM MB are used and given back, half of what is free at most: a guest that
# has given free memory back to its host waits when it is used again, and who
# begins second more than the first one, by up to 12 % of a run of 10 s.
warm() {
	perl -e '
	open my $f, "<", "/proc/meminfo" or exit;
	my ($kb) = join("", <$f>) =~ /^MemAvailable:\s+(\d+)/m;
	my $bytes = $ARGV[0] << 20;
	$bytes = $kb << 9 if $kb && $bytes > $kb << 9;
	my $mem = "";
	vec($mem, $bytes - 1, 8) = 1 if $bytes;' "$WARM"
}

fail() {
	echo "bench: $*" >&2
	[ ! -s err ] || tail -n 5 err >&2
	exit 1
}
