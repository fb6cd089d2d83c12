# shellcheck shell=bash disable=SC2034 # its variables are for the tests
# Sourced by t/tNNNN-topic.sh. TAP on stdout, a scratch directory per test
# that is kept when something failed.
#
#	. "$(dirname "$0")/test-lib.sh"
#	ok "exit status is passed through" test_exit 7 smco-trace -q -- sh -c 'exit 7'
#	done_testing

SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
O=${O:-build}
case $O in /*) BUILD=$O ;; *) BUILD=$SRC/$O ;; esac
PATH=$BUILD:$PATH
FIXTURES=$BUILD/t/fixtures
SCRATCH=$(mktemp -d)
TAP_NR=0
TAP_FAILED=0
cd "$SCRATCH" || exit 1
# What a test that fails leaves behind would run beside all others.
# shellcheck disable=SC2046 # words
trap 'kill -9 $(jobs -p) 2>/dev/null' EXIT
export NO_COLOR=1
# What a test keeps is its own.
export SMCO_CACHE_DIR=$SCRATCH/cache

is_chosen() { [[ " ${SMCO_TEST_ONLY:-$1} " = *" $1 "* ]]; }

# ok DESCRIPTION COMMAND... - passes if the command succeeds. SMCO_TEST_ONLY="2 5"
# leaves out all but these.
ok() {
	local what=$1
	shift
	TAP_NR=$((TAP_NR + 1))
	is_chosen $TAP_NR || {
		echo "ok $TAP_NR # SKIP not one of $SMCO_TEST_ONLY"
		return
	}
	if "$@" >"$SCRATCH/ok.$TAP_NR.out" 2>&1; then
		echo "ok $TAP_NR - $what"
	else
		echo "not ok $TAP_NR - $what (status $?)"
		echo "# $*"
		tail -n 30 "$SCRATCH/ok.$TAP_NR.out" | awk '{ print "# " $0 }'
		TAP_FAILED=$((TAP_FAILED + 1))
	fi
}

# soon DESCRIPTION COMMAND... - begins at once, in a directory of its own, beside
# what follows.
# told - as "ok" tells it, what was begun so, when it has ended. For what waits
# most of its time.
SOON=()
SOON_PID=()
soon() {
	local nr=$((TAP_NR + ${#SOON[@]} + 1))
	SOON+=("$1")
	shift
	is_chosen $nr || return
	mkdir "$SCRATCH/soon.$nr"
	(
		trap 'kill -9 $(jobs -p) 2>/dev/null' EXIT
		cd "$SCRATCH/soon.$nr" && "$@"
	) >"$SCRATCH/soon.$nr.out" 2>&1 &
	SOON_PID[nr]=$!
}
told() {
	local what
	for what in "${SOON[@]}"; do ok "$what" came $((TAP_NR + 1)); done
	SOON=()
}
came() {
	local status
	wait "${SOON_PID[$1]}"
	status=$?
	cat "$SCRATCH/soon.$1.out"
	return $status
}

# test_exit STATUS COMMAND... - the command ends with exactly that status.
test_exit() {
	local want=$1 got
	shift
	"$@"
	got=$?
	[ "$got" -eq "$want" ] || {
		echo "exit status $got, want $want"
		return 1
	}
}

# absent FILE... - none of them is there.
absent() { ! ls -d -- "$@" 2>/dev/null; }

# need PREREQ - skip the whole test, with the reason, if PREREQ is missing;
# those in SMCO_TEST_REQUIRE_PREREQ must not be.
need() {
	local p
	for p in "$@"; do
		if ! "prereq_$p" >/dev/null 2>&1; then
			case " $SMCO_TEST_REQUIRE_PREREQ " in
			*" $p "*) echo "not ok 1 - prerequisite $p is required here" ;;
			*) echo "1..0 # SKIP no $p here" && exit 0 ;;
			esac
			exit 1
		fi
	done
}
prereq_ROOT() { [ "$(id -u)" = 0 ]; }
# PTRACE_SEIZE of a child of our own, by its x86-64 numbers.
prereq_PTRACE() {
	perl -e 'my $p = fork; unless ($p) { sleep 9; exit }
		my $r = syscall(101, 0x4206, $p, 0, 0);
		kill 9, $p; waitpid $p, 0; exit $r != 0'
}
# Perf may use the debug registers, and they fire.
prereq_WATCHPOINTS() { "$FIXTURES/debug-registers"; }
# The kernel tells of single mappings (PROCMAP_QUERY, Linux 6.11).
prereq_PROCMAP() {
	perl -e 'open(my $f, "<", "/proc/self/maps") or exit 1;
		my $ask = pack("Q13", 104, 16);
		exit !ioctl($f, 0xc0686611, $ask)'
}

# lengths_by_bits - the share of naps whose lengths are as said (nap-check.pl):
# all, but where DAMON takes accessed bits away, and gives old ones back.
lengths_by_bits() {
	if pgrep '^kdamond' >/dev/null; then
		echo 0.98
	else
		echo 1
	fi
}

# pause SECONDS - as sleep does, without a process: nothing ever comes from that
# pipe, and nobody inherits it.
pause() {
	[ -p "$SCRATCH/nothing-comes" ] || mkfifo "$SCRATCH/nothing-comes"
	read -rt "$1" <>"$SCRATCH/nothing-comes"
	true
}

# wait_for SECONDS COMMAND... - until it succeeds. On a machine with nothing else
# to do it does within that time: how much longer it takes on others is nothing
# that a test is about. What is long in coming is asked for less often: the
# programs that ask need the CPU that it may be waiting for.
wait_for() {
	local end=$((SECONDS + 10 * $1)) ms=20
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || {
			echo "waited in vain for: $*"
			return 1
		}
		pause "0.0$ms"
		ms=$((ms < 90 ? ms + 10 : ms))
	done
}

done_testing() {
	echo "1..$TAP_NR"
	if [ $TAP_FAILED -eq 0 ]; then
		cd / && rm -rf "$SCRATCH"
	else
		echo "# kept: $SCRATCH"
		exit 1
	fi
}

# report_refuses STATUS PATTERN ARGUMENT... - smco-report shows nothing, and says
# why in one line.
report_refuses() {
	local status=$1 pattern=$2
	shift 2
	test_exit "$status" smco-report "$@" >out 2>err </dev/null || return 1
	cat err
	[ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q -- "$pattern" err
}

# columns_in_manual SECTION MIN - the columns of a CSV in the file "table", more
# than MIN of them, are what the manual lists for smco-report --SECTION.
columns_in_manual() {
	local c
	sed 's/\\-/-/g' "$SRC/reports/smco-report.1" | sed -n "/^\.SS \"--$1\"/,/^\.S[SH]/p" >part
	head -n 1 table | tr -d '\r' | tr ',' '\n' | sed 's/_ns$//; s/_ppb$//' >names
	while read -r c; do grep -qxF -- ".B $c" part || { echo "$c" && return 1; }; done <names
	[ "$(wc -l <names)" -gt "$2" ]
}
