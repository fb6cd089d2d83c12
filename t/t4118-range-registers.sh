#!/bin/bash
# Variables that gcc -O0 says to be in one register for all of their block: what
# others have in the register is none of their values.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

cat >truth <<'END'
blocks::c 97 122
blocks::low -3 4
blocks::wide 97 133040906960896
divide::flag 0 2
down::depth 0 8
down::left 200 1000
loops::i -5 10
loops::sum 0 45
varying::last 0 1
END

# registers HOW WITHOUT COMPILER FLAGS... - all but those WITHOUT are found, HOW
# much of them; 2: none
registers() {
	local how=$1 without=$2
	shift 2
	"$@" -g -o registers "$SRC/t/fixtures/range/registers.c" || return 1
	./registers >plain
	smco-trace -q -m range -t unlimited -o run.trace -- ./registers >out ||
		return 1
	found >found.txt
	cp truth all
	grep -vE "^($without) " all >truth
	cmp plain out && compare "$how"
	local status=$?
	mv all truth
	return $status
}

# Where the stack moves by what is not known before, nothing is believed.
ok "gcc -O0" registers exact varying::last gcc -O0 -fno-omit-frame-pointer
no_varying() { ! grep -q '^varying::last ' found.txt; }
ok "nothing of a function whose stack moves" no_varying
ok "gcc -O0, not said that it is" registers exact varying::last gcc \
	-fno-omit-frame-pointer -gdwarf-4
# By which optimised code is not judged.
none_false() { registers within none "$@" || [ $? -eq 2 ]; }
ok "gcc -O1" none_false gcc -O1
ok "gcc -O1 without tracking" none_false gcc -O1 -fno-var-tracking \
	-fno-omit-frame-pointer
if type -P clang >/dev/null; then
	ok "clang -O0" registers exact none clang -O0
	ok "clang -O1" registers within none clang -O1
fi
done_testing
