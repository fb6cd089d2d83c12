#!/bin/bash
# kill -9 of the supervisor at a random moment, while threads run into guards
# all the time: they go on, with right results. SMCO_TEST_KILLS=200 for more.
. "$(dirname "$0")/test-lib.sh"

. "$SRC/t/guard-lib.sh"

ok "mprotect" killed mprotect "${SMCO_TEST_KILLS:-40}"

done_testing
