#!/bin/bash
# make bench-accuracy [TARGETS="10 2"] [CONTROLLERS="cascade global"]
#	[TREE=/usr/share] [RESULTS=file] [BENCH_BZIP2_MB=30]
#
# How much of the ranges of bzip2 and grep, built from Debian's sources with -g
# -O0 and -O2, is found under a target, against the same binary without one;
# what the ledger says it cost; and which ranges of -O2 are wider than those of
# -O0: none should be, but for what -O0 sets through a pointer, in a function of
# its own, where it is not seen. What differs from run to run (addresses, times,
# inodes) is not compared between the two.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
# shellcheck source=t/bench/workloads.sh
. "$SRC/t/bench/workloads.sh"
: "${TARGETS:=10 2}" "${CONTROLLERS:=cascade global}" "${TREE:=/usr/share}"

build_bzip2() {
	make -C "$1" CFLAGS="-g $2 -D_FILE_OFFSET_BITS=64" bzip2 &&
		cp "$1/bzip2" "bzip2$2"
}
build_grep() {
	(cd "$1" && FORCE_UNSAFE_CONFIGURE=1 ./configure --disable-nls -q \
		CFLAGS="-g $2" && make) && cp "$1/src/grep" "grep$2"
}
run_bzip2() { "$@" -9c mixed; }
run_grep() { "$@" -rcE '(static|struct) [a-z_]+[0-9]{2,}|colou?r$' "$TREE"; }

# watched PROGRAM TRACE OPTIONS... - a run; grep says 2 where it may not read
watched() {
	local program=$1 trace=$2
	shift 2
	run_"${program%%-*}" "$BUILD/smco-trace" -q -m range -o "$trace" "$@" \
		-- "./$program" >out 2>err </dev/null
	if [ $? -gt 2 ] || [ ! -s "$trace" ]; then fail "$program $*"; fi
}
accuracy() {
	"$BUILD/smco-diff" --accuracy --force --json "$1" "$2" |
		perl -MJSON::PP -0777 -e 'my $d = decode_json(<STDIN>);
			printf "%d | %.1f | %.2f\n", $d->{variables},
			100 * $d->{accuracy}, $d->{run}{overhead_ppb} / 1e7'
}
# wider OF THAN - variables whose range is not within that of the other trace
wider() {
	for trace in "$1" "$2"; do
		"$BUILD/smco-report" --ranges --json "$trace" >"$trace.json" || return 1
	done
	perl -MJSON::PP -0777 -e '
		my @r = map { my %r; open my $f, "<", "$_.json" or die; my $d = decode_json(<$f>);
			for (grep { defined $_->{smallest} } @{$d->{rows}}) {
				my $file = $_->{declared} =~ s{.*/}{}r;
				my $r = $r{"$_->{variable} $file"} //= [$_->{smallest}, $_->{largest}];
				$r->[0] = $_->{smallest} if $_->{smallest} < $r->[0];
				$r->[1] = $_->{largest} if $_->{largest} > $r->[1] } \%r } @ARGV;
		my @both = grep { $r[1]{$_} && !/vma|sigsegv|stack_top|stk_|_stat\b/ }
			 sort keys %{$r[0]};
		my @wide = grep { $r[0]{$_}[0] < $r[1]{$_}[0] || $r[0]{$_}[1] > $r[1]{$_}[1] } @both;
		print "# wider: $_, @{$r[0]{$_}}, at -O0 @{$r[1]{$_}}\n" for @wide;
		printf "%d of %d\n", scalar @wide, scalar @both' "$1" "$2"
}

BENCH_BZIP2_MB=${BENCH_BZIP2_MB:-30}
[ -e mixed ] || "$SRC/t/bench/mixed-file.pl" "$BENCH_BZIP2_MB" >mixed
for name in bzip2 grep; do
	[ -x "$name-O0" ] || fetch_source $name >fetch.log 2>&1 ||
		fail "the source of $name cannot be fetched: $(tail -n 1 fetch.log)"
	for level in -O0 -O2; do
		[ -x "$name$level" ] || { unpack_source $name "$name.src$level" &&
			build_$name "$name.src$level" $level; } >build.log 2>&1 ||
			fail "$name cannot be built: $(tail -n 1 build.log)"
		watched $name$level $name$level.reference -t unlimited
	done
done
{
	echo
	echo "## Ranges found, $(date +%F), $(nproc) CPUs, $(uname -sr), load $(cut -d' ' -f1 /proc/loadavg)"
	echo
	echo "bzip2 of $BENCH_BZIP2_MB MB, grep in $TREE, which is read from memory."
	echo
	echo "| program | controller | target % | variables | found % | ledger % |"
	echo "| --- | --- | --- | --- | --- | --- |"
	for program in bzip2-O2 bzip2-O0 grep-O2 grep-O0; do
		for controller in $CONTROLLERS; do
			for target in $TARGETS; do
				watched $program run.trace -t "$target" --controller="$controller"
				echo "| $program | $controller | $target | $(accuracy run.trace \
					$program.reference) |"
			done
		done
	done
	echo
	for name in bzip2 grep; do
		echo "Ranges of $name -O2 wider than at -O0: $(wider $name-O2.reference \
			$name-O0.reference | tee $name.wider | tail -n 1)"
		grep '^#' $name.wider >&2
	done
} | tee -a "$RESULTS"
