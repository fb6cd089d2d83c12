# Shared by the tests of ranges; after test-lib.sh.
# shellcheck shell=bash

# found - "VARIABLE SMALLEST LARGEST" as the report of run.trace has them
found() {
	smco-report --ranges --csv run.trace | tr -d '\r"' |
		awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			$at["smallest"] != "" { print $at["variable"],
				$at["smallest"], $at["largest"] }' | sort
}

# compare exact|within [PART] - the lines of the file truth, all whose name has
# PART, with what was found of those variables in found.txt; 2: of none
compare() {
	awk -v how="$1" -v part="${2:-}" 'NR == FNR {
			if (part == "" || index($1, part)) { lo[$1] = $2; hi[$1] = $3 } next }
		$1 in lo { n++
			if ($2 < lo[$1] || $3 > hi[$1] || (how == "exact" &&
			    ($2 != lo[$1] || $3 != hi[$1]))) {
				print $0, "but was", lo[$1], hi[$1]; bad++ }
			delete lo[$1] }
		END { for (v in lo) if (how == "exact") {
				print "not seen:", v; bad++ }
			print n + 0, "compared"; exit bad ? 1 : !n ? 2 : 0 }' \
		truth found.txt
}

# watch PROGRAM OPTIONS... -- ARGUMENTS... - what PROGRAM prints, sorted, is the
# truth, of run.trace. WITH is a command to run smco-trace by.
watch() {
	local program=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	timeout 160 "${WITH[@]}" smco-trace -q -m range -o run.trace \
		"${options[@]}" -- "$program" "$@" >out || return 1
	sort out >truth
}
WITH=(env)

# run_until CHECK COMMAND... - the command, whose program goes on until there is
# the file "enough" (until.h), until CHECK holds of run.trace as it is by then.
run_until() {
	local check=$1 pid status=0
	shift
	rm -f enough run.trace
	"$@" &
	pid=$!
	wait_for 10 "$check" || status=1
	touch enough
	wait $pid && return $status
}
