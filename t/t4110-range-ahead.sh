#!/bin/bash
# Stubs are made before a program begins, also for one that has a place of its
# own and leaves no room below it.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8
build() {
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -g -O0 -o "$1" "${@:2}" \
		"$SRC/t/fixtures/ranges.c" -lpthread || exit 1
}
build anywhere -fPIE -pie
build low -fno-pie -no-pie -Wl,-Ttext-segment=0x20000

# made_before PROGRAM [OPTIONS...] - they were, and are right
made_before() {
	SMCO_DEBUG=range timeout 60 smco-trace -m range -t unlimited \
		-o run.trace "${@:2}" -- "./$1" >out 2>err || return 1
	sort out >truth
	found >found.txt
	grep "for stubs at" err
	grep -q "for stubs at.*made before" err && compare exact
}
ok "below a program that can be anywhere" made_before anywhere
ok "above one for which there is no room below" made_before low

# All that it has in memory is below them, what it has no bytes of in the file
# as well.
is_above() {
	local at end
	at=$(sed -n 's/.*for stubs at 0x\([0-9a-f]*\).*/\1/p' err)
	end=$(readelf -lW low | awk '$1 == "LOAD" { print $3, $6 }' | tail -n 1)
	[ $((16#$at)) -ge $((${end% *} + ${end#* })) ]
}
ok "above all of its memory" is_above
done_testing
