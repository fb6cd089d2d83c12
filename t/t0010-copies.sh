#!/bin/bash
# Copies of a program whose memory is watched, followed or let go: they see
# their data, whatever was planted in their parent.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"
need PTRACE

"$FIXTURES/fork-data" 0 2 >want
tail -n 1 want | grep -q EXIT-SUCCESS || exit 1

# copies MECHANISM OPTION - what is said of them is in a file for both.
copies() {
	local summary=$SCRATCH/$1$2.summary status
	smco-trace -t 50 --nap 300ms --mechanism="$1" "$2" -o t.trace -- \
		"$FIXTURES/fork-data" >got 2>"$summary"
	status=$?
	cat "$summary"
	[ $status -eq 0 ] && diff "$SCRATCH/want" got
}
# was_watched MECHANISM OPTION: naps were seen, so there was something planted.
was_watched() {
	grep -q "^mechanism  $1:" "$SCRATCH/$1$2.summary" &&
		grep -q "naps of at least 300 ms" "$SCRATCH/$1$2.summary"
}
# On a busy machine there may be no room for that: then once more, of the same.
watched_at_last() {
	for _ in 1 2 3 4; do
		was_watched "$1" "$2" && return
		copies "$1" "$2" || return
	done
	was_watched "$1" "$2"
}
# They wait most of the time.
for mechanism in bits mprotect uffd pagescan; do
	for follow in --follow --no-follow; do
		soon "$mechanism $follow: data" copies $mechanism $follow
	done
	told
	for follow in --follow --no-follow; do
		if grep -q "^mechanism  none" "$mechanism$follow.summary"; then
			TAP_NR=$((TAP_NR + 1))
			echo "ok $TAP_NR # SKIP no $mechanism here"
		else
			ok "$mechanism $follow: was watched" \
				watched_at_last $mechanism $follow
		fi
	done
done

# A copy that is made while the linker still works, by a library that looks on.
cat >audit.c <<'EOF'
#include <unistd.h>
unsigned la_version(unsigned version)
{
	static int is_copied;
	if (!is_copied++)
		fork();
	return version;
}
EOF
# early_copy OPTION NUMBER - of the two so many have nothing of ours in them.
early_copy() {
	local smco pid nr=0 status
	rm -f go got # what the last one wrote is not of these two
	mkfifo go
	text_is_own $$ vdso || return
	smco-trace -q "$1" -o e.trace -- sh -c \
		'LD_AUDIT=$PWD/audit.so exec sh -c "echo \$\$; read -r line <go; exit 1"' >got &
	smco=$!
	exec 3<>go # open for who comes late, too
	wait_for 10 are_there
	while read -r pid; do
		text_is_own "$pid" vdso && nr=$((nr + 1))
	done <got
	printf '\n\n' >&3 # a line for each
	wait $smco
	status=$?
	exec 3>&-
	cat got
	echo "$nr without us, status $status"
	[ $nr = "$2" ] && [ $status = 1 ] && [ "$(sort -u got | wc -l)" = 2 ]
}
are_there() { [ "$(wc -l <got)" = 2 ]; }
if "${CC:-cc}" -shared -fPIC -o audit.so audit.c; then
	ok "a copy made by the linker" early_copy --follow 0
	ok "the same, let go" early_copy --no-follow 1
fi

# What a daemon has from its first moments on it has for long.
cat >daemon.c <<'E2'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
	if (fork() > 0)
		_exit(0);
	char *first = malloc(500000);
	memset(first, 1, 500000);
	usleep(1500000);
	return first[7] != 1;
}
E2
# shows PROGRAM PATTERN... - what is said of a daemon's blocks
shows() {
	smco-trace -q -t 50 --nap 300ms -o d.trace -- "$SCRATCH/$1" &&
		smco-report d.trace >summary
	local status=$?
	cat summary
	shift
	for pattern; do
		grep -q "$pattern" summary || status=1
	done
	return $status
}
shows_at_last() {
	for _ in 1 2 3 4; do
		shows "$@" && return
	done
	return 1
}
if "${CC:-cc}" -g -o daemon daemon.c; then
	soon "the first blocks of a daemon are known" \
		shows_at_last daemon '1 allocation of 488 KiB, 1 nap of 1 block'
fi

# What it has from before it became one is its own when its parent has ended, but
# for what it has let go of.
cat >tables.c <<'E2'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *table(size_t size)
{
	char *p = malloc(size);
	memset(p, 1, size);
	return p;
}
int main(void)
{
	char *kept = table(900000), *freed = table(700000);
	usleep(100000);
	if (fork() > 0)
		_exit(0);
	free(freed);
	usleep(3000000);
	return kept[7] != 1;
}
E2
if "${CC:-cc}" -g -o tables tables.c; then
	soon "what a daemon has from before it became one" shows_at_last tables \
		'879 KiB in 1 block still unused at the end' \
		'1 nap of 1 block' 'allocated  table .*tables.c:6'
fi
told

done_testing
