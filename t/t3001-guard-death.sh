#!/bin/bash
# kill -9 of the supervisor at a random moment, while threads run into guards
# all the time: they go on, with right results. SMCO_TEST_KILLS=200 for more.
. "$(dirname "$0")/test-lib.sh"

. "$SRC/t/guard-lib.sh"

ok "mprotect" killed mprotect "${SMCO_TEST_KILLS:-40}"
# Their helper has no right to run at once.
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if prereq_ROOT && "${as_nobody[@]}" test -x "$drive"; then
	ok "an ordinary user's" killed mprotect "${SMCO_TEST_KILLS:-40}" \
		"${as_nobody[@]}"
fi

done_testing
