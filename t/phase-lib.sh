# Shared by the tests of phases; after test-lib.sh.
# shellcheck shell=bash

trace() { # NAME OPTIONS... -- COMMAND
	local name=$1
	shift
	smco-trace -q -o "$name.trace" "$@" >"$name.out" 2>"$name.err" || {
		cat "$name.err"
		return 1
	}
}
column() { # NAME PHASE COLUMN
	smco-report --phases --csv --where "phase == \"$2\"" "$1.trace" | tr -d '\r' |
		awk -F, -v c="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) n = i } NR == 2 { print $n }'
}
# has_begun PID FILE - it runs FILE, no longer a copy of this shell, and is past its linker.
has_begun() { [ "/proc/$1/exe" -ef "$2" ] && [ "$(awk '{ print $14 }' "/proc/$1/stat")" -ge 3 ]; }
is() { # GOT WANTED
	echo "$1, wanted $2"
	[ "$1" = "$2" ]
}
refused() { # TEXT OPTIONS...
	local text=$1
	shift
	test_exit 125 smco-trace -o bad.trace "$@" >out 2>err && cat err && grep -qF -- "$text" err
}
