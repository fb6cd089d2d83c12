#!/bin/bash
# A program that waits for a CPU longer than a stop of many threads would: its
# only thread is waited for, or it would have the next CPU with sensors in that
# were to be out.
. "$(dirname "$0")/test-lib.sh"
need PTRACE
cat >hot.c <<'C'
#include <stdio.h>
static unsigned step(unsigned n)
{
	unsigned low = n & 255, high = n >> 8;
	low = low * 3 + high;
	high ^= low << 3;
	return low + high;
}
int main(void)
{
	unsigned sum = 1;
	for (unsigned i = 0; i < 400000000; i++)
		sum = step(sum + i);
	printf("%u\n", sum);
	return 0;
}
C
"${CC:-cc}" -g -O1 -fno-inline -o hot hot.c || exit 1
cpu=$(taskset -pc $$ | sed 's/.*[: ]\([0-9]*\)[-,0-9]*$/\1/')
loops=()
trap 'kill -9 "${loops[@]}" 2>/dev/null' EXIT
for ((i = 0; i < 6; i++)); do
	taskset -c "$cpu" sh -c 'while :; do :; done' &
	loops+=($!)
done

# Where a machine does more than that, once or twice it may take still longer.
starved() {
	./hot >plain
	SMCO_DEBUG=range test_exit 0 timeout -s KILL 100 smco-trace -q -m range \
		-t 10 -o run.trace -- taskset -c "$cpu" ./hot >out 2>err || return
	grep -c "does not stop" err
	grep -q "for stubs at" err && cmp plain out &&
		[ "$(grep -c "does not stop" err)" -le 2 ]
}
ok "the only thread is waited for" starved
trap - EXIT
kill -9 "${loops[@]}"
done_testing
