# shellcheck shell=bash disable=SC2034 # its variables are for the benches
# Sourced by t/bench/*.sh: where things are; a directory of their own, removed
# at the end with the program that $pid stands for ($BENCH_SCRATCH stays).

SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
case ${O:=build} in /*) BUILD=$O ;; *) BUILD=$SRC/$O ;; esac
: "${RESULTS:=$SRC/t/bench/RESULTS.md}"
pid=
SCRATCH=${BENCH_SCRATCH:-$(mktemp -d)}
mkdir -p "$SCRATCH"
cd "$SCRATCH" || exit 1
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null
	[ -n "$BENCH_SCRATCH" ] || rm -rf "$SCRATCH"' EXIT
export LC_ALL=C

fail() {
	echo "bench: $*" >&2
	[ ! -s err ] || tail -n 5 err >&2
	exit 1
}
