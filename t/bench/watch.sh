#!/bin/bash
# make bench-watch [ROUNDS=5] [SECONDS_EACH=2] [RESULTS=file]
#
# How many writes of one variable a second are seen: by gdb's "watch" with
# commands that record the value and continue, by sensors, by watchpoints, side
# by side: in each round all of them, one after the other. A program that writes
# nothing else says how often it came to it; what is recorded must be all of
# that, smallest and largest value included. And what a breakpoint event costs,
# beside a ptrace stop (break-bench.c).
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${ROUNDS:=5}" "${SECONDS_EACH:=2}"

cp "$BUILD/t/bench/writes" writes || exit 1
cat >commands <<'END'
set pagination off
set confirm off
set $n = 0
set $lo = 1
set $hi = -1
handle SIGALRM nostop noprint pass
break by_name
run
watch direct
commands
silent
set $n = $n + 1
if $lo > $hi || direct < $lo
set $lo = direct
end
if $lo > $hi || direct > $hi
set $hi = direct
end
continue
end
continue
printf "SAW %ld %ld %ld\n", $n, $lo, $hi
END

# By gdb: the program's own line, and what it saw.
by_gdb() {
	gdb -q -batch -nx -x commands --args ./writes direct "$SECONDS_EACH" \
		>out 2>err </dev/null || fail "gdb"
	grep -E '^[0-9]+ [0-9]+ 0 [0-9]+$' out >said || fail "gdb: no result"
	read -r writes each _ most <said
	read -r _ saw _ hi < <(grep '^SAW' out) || fail "gdb saw nothing"
	# The write of 0 changes nothing, which "watch" does not stop at.
	if [ "$saw" -lt $((writes - 1)) ] || [ "$hi" != "$most" ]; then
		fail "gdb saw $saw of $writes, up to $hi"
	fi
	echo "$each"
}
# by_us VARIABLE HOW
by_us() {
	"$BUILD/smco-trace" -q --no-cache -m range -t unlimited --var "$1" \
		-o run.trace -- ./writes "$1" "$SECONDS_EACH" >out 2>err ||
		fail "smco-trace"
	read -r writes each _ most <out
	"$BUILD/smco-report" --ranges --csv run.trace >table
	perl -e 'my ($name, $how, $writes, $most) = @ARGV; my (%at, @r);
		while (<STDIN>) { s/[\r\n"]//g; my @f = split /,/;
			if ($. == 1) { @at{@f} = 0 .. $#f; next }
			@r = @f if $f[0] eq $name }
		my ($lo, $hi, $by, $hits) = @r[@at{qw(smallest largest how hits)}];
		die "$name: $lo to $hi by $by, $hits hits of $writes up to $most\n"
			if $lo != 0 || $hi != $most || $by ne $how || $hits < $writes' \
		"$1" "$2" "$writes" "$most" <table || exit 1
	echo "$each"
}
median() { sort -n | sed -n "$(((ROUNDS + 1) / 2))p"; }

for ((i = 0; i < ROUNDS; i++)); do
	by_gdb >>gdb.each || exit 1
	by_us direct sensors >>sensors.each || exit 1
	by_us pointed watchpoint >>watchpoints.each || exit 1
	./writes direct "$SECONDS_EACH" | cut -d' ' -f2 >>native.each
done
g=$(median <gdb.each)
{
	echo "| writes of one variable seen a second | median | least | most | times gdb |"
	echo "| --- | --- | --- | --- | --- |"
	for who in gdb watchpoints sensors native; do
		printf '| %s | %s | %s | %s | %s |\n' "$who" "$(median <$who.each)" \
			"$(sort -n $who.each | head -n 1)" "$(sort -n $who.each | tail -n 1)" \
			"$(perl -e 'printf "%.1f", $ARGV[0] / $ARGV[1]' "$(median <$who.each)" "$g")"
	done
	echo
	"$BUILD/t/bench/break-bench" || exit 1
} | tee table
if [ -w "$RESULTS" ]; then
	{
		printf '\n### One variable, every write: gdb beside us, %s, %s rounds of %s s\n\n' \
			"$(date -u +%F)" "$ROUNDS" "$SECONDS_EACH"
		cat table
	} >>"$RESULTS"
fi
