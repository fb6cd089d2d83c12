#!/bin/bash
# The allocation sensors through the whole tool: the program's result is its
# own, whatever allocator it brings, and also when smco-trace is killed.
# SMCO_TEST_KILLS=200 for more.
. "$(dirname "$0")/test-lib.sh"

JEMALLOC=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2
prereq_JEMALLOC() { [ -r "$JEMALLOC" ]; }

live() {
	smco-trace -q -o live.trace -t 10 -- "$FIXTURES/$1" live.out 4 4000 &&
		[ "$(tail -n 1 live.out)" = EXIT-SUCCESS ]
}
# The trace says which functions carry sensors, or the run proves nothing.
has_sensors() {
	smco-report --json live.trace | grep -q "$1"
}

ok "glibc, shared" live hook-live
ok "sensors were planted" has_sensors "glibc malloc, 1[0-9] functions"
ok "glibc, static" live hook-live-static
ok "sensors were planted in the static program" \
	has_sensors "glibc malloc, [0-9] functions"
preloaded() {
	LD_PRELOAD=$JEMALLOC live hook-live
}
if prereq_JEMALLOC; then
	ok "jemalloc, preloaded" preloaded
	# And in libc, for mappings: mmap, munmap, mremap.
	ok "sensors were planted in jemalloc" has_sensors "own malloc.* functions\""
fi

# With room for just so much memory: what we map ourselves is missing from it,
# about a megabyte, but blocks do not become larger.
limited() {
	local size n w
	for size in 4200 8200 70000; do
		n=$(ulimit -v 100000 && exec "$FIXTURES/memory-limit" $size) &&
			w=$(smco-trace -q -o l.trace -t unlimited --min-size 4K -- \
				sh -c "ulimit -$1 100000; exec '$FIXTURES/memory-limit' $size") || return 1
		echo "$size: $n blocks, watched $w"
		[ "$w" -ge $((n * 98 / 100)) ] || return 1
	done
	smco-report --json l.trace | grep -q "no pages of their own"
}
ok "blocks are not made larger where memory is limited" limited v
ok "nor where only data is" limited d

# What a block does not need any more when it is made smaller goes back: 1000
# blocks, which pages of their own cost at most 16 MiB.
shrunk() {
	local sizes n w
	for sizes in "60000 31000" "100000 52000"; do
		# shellcheck disable=SC2086 # two words
		n=$("$FIXTURES/memory-shrink" $sizes) &&
			w=$(smco-trace -q -o h.trace -t unlimited --min-size 4K -- \
				"$FIXTURES/memory-shrink" $sizes) || return
		echo "$sizes: $n KiB, watched $w"
		[ "$w" -le $((n + 18000)) ] || return
	done
}
ok "blocks that become smaller take less memory" shrunk

# hook-held, ready for orders: descriptor 8 takes them, 9 answers, $held is it.
start_held() {
	local line
	rm -f in out
	mkfifo in out
	"$FIXTURES/hook-held" <in >out &
	held=$!
	exec 8>in 9<out
	until read -r -u 9 line && [ "$line" = ready ]; do :; done
}

# Attached to a program that does nothing but allocate, killed without a
# chance to clean up: the program frees what it had and ends well.
killed() {
	local i held trace
	for ((i = 1; i <= ${SMCO_TEST_KILLS:-3}; i++)); do
		start_held
		echo c >&8
		smco-trace -q -o k.trace -t 20 -p "$held" &
		trace=$!
		wait_for 10 grep -q memfd:smco "/proc/$held/maps" || return 1
		sleep 0.$((i * 2 % 10))
		kill -9 $trace
		wait $trace
		grep -q memfd:smco "/proc/$held/maps" || echo "already gone"
		echo n >&8
		read -r -u 9 line && [ "$line" = churned ] || return 1
		echo f >&8
		read -r -u 9 line && [ "$line" = freed ] || return 1
		echo x >&8
		read -r -u 9 line && [ "$line" = EXIT-SUCCESS ] || return 1
		exec 8>&- 9<&-
		wait "$held" || return 1
	done
}
ok "killed while attached" killed

# Detached in the ordinary way nothing is left.
left() {
	local held line
	start_held
	grep -c . "/proc/$held/maps" >before
	echo c >&8
	smco-trace -q -o left.trace -t 20 -p "$held" -d 1 || return 1
	grep memfd:smco "/proc/$held/maps" && return 1
	grep -E ' rwxp|rwxs' "/proc/$held/maps" && return 1
	grep TracerPid: "/proc/$held/status" | grep -w 0 || return 1
	echo n >&8
	read -r -u 9 line
	echo x >&8
	read -r -u 9 line && [ "$line" = EXIT-SUCCESS ] || return 1
	exec 8>&- 9<&-
	wait "$held"
}
ok "nothing left after detach" left
done_testing
