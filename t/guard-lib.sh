# shellcheck shell=bash disable=SC2154 # $opt is the test's
# Sourced by t/t300*-*.sh after test-lib.sh.

drive=$BUILD/t/drive/guard-drive
[ -n "$SMCO_TEST_BUILT" ] || make -s -C "$SRC" O="$O" "$O/t/drive/guard-drive" >build.out 2>&1 || cat build.out

# same FIXTURE [ARGUMENT...] - output and status guarded and not; driver
# options in $opt.
same() {
	local f=$1 want got
	shift
	"$FIXTURES/$f" "$@" >"$f.plain" 2>&1
	want=$?
	# shellcheck disable=SC2086
	"$drive" $opt "$FIXTURES/$f" "$@" >"$f.guarded" 2>"$f.err"
	got=$?
	cat "$f.err"
	[ $want = $got ] || {
		echo "status $got, without guards $want"
		return 1
	}
	diff "$f.plain" "$f.guarded"
}
# counted FIXTURE WHAT MINIMUM - from the driver's summary of the last run.
counted() {
	local n
	n=$(sed -n "s/.*\<$2 \([0-9]*\).*/\1/p" "$1.err")
	echo "$2: ${n:-none}"
	[ "${n:-0}" -ge "$3" ]
}

# killed MECHANISM N [AS...]
killed() {
	local i us status bad=0 mechanism=$1 nr=$2
	shift 2
	for ((i = 0; i < nr; i++)); do
		us=$(((RANDOM * 32768 + RANDOM) % 100000 + 1))
		timeout 60 "$@" "$drive" -m "$mechanism" -a -k $us \
			"$FIXTURES/guard_threads" 120 >out 2>err
		status=$?
		if [ $status -ne 0 ] || ! grep -q '^wrong 0$' out; then
			bad=$((bad + 1))
			echo "killed after $us us, status $status: $(cat out err)"
		fi
	done
	echo "$bad of $nr went wrong"
	[ $bad -eq 0 ]
}
