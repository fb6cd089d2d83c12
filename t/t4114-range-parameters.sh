#!/bin/bash
# Parameters that the caller puts on the stack have their values where the
# function begins, though nothing in it assigns them.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

cat >truth <<'END'
again::left 50 100
by_value::x.first 0 999
by_value::x.fourth 7 7
by_value::x.second -999 0
by_value::x.third -200 799
many::eighth -999 0
many::ninth 0 255
many::seventh -5 2997
stays::by -300 -298
stays::n 10 1009
END

# parameters COMPILER FLAGS... - all of them, and nothing else. clang -O0 accesses
# objects through their address: what is in memory that no instruction names is
# not believed.
parameters() {
	"$@" -g -o on-stack "$SRC/t/fixtures/range/on-stack.c" || return 1
	./on-stack >plain
	smco-trace -q -m range -t unlimited -o run.trace -- ./on-stack >out ||
		return 1
	found >found.txt
	local part=
	case "$*" in clang\ -O0*) part=many ;; esac
	cmp plain out && compare exact $part
}

for compiler in "${CC:-cc}" clang; do
	type -P "$compiler" >/dev/null || continue
	for flags in "-O0 -fno-omit-frame-pointer" "-O0 -fomit-frame-pointer" \
		-O1 -O2; do
		# shellcheck disable=SC2086 # words
		ok "$compiler $flags" parameters "$compiler" $flags
	done
done
done_testing
