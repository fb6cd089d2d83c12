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
#
# And how much is found without a limit of what a build notes that was
# instrumented in the compiler, before it optimises (truth.cc); the headers of
# gcc's plugins are fetched for it.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
# shellcheck source=t/bench/workloads.sh
. "$SRC/t/bench/workloads.sh"
: "${TARGETS:=10 2}" "${CONTROLLERS:=cascade global}"

# build_NAME DIRECTORY FLAGS [LDFLAGS] - to DIRECTORY/NAME (workloads.sh has
# grep's). What configures must not be instrumented.
build_bzip2() {
	make -C "$1" CFLAGS="-g $2 -D_FILE_OFFSET_BITS=64" LDFLAGS="$3" bzip2
}
run_bzip2() { "$@" -9c mixed; }
run_grep() { grep_tree "$@"; }

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

# The plugin, and what keeps its notes.
build_truth() {
	local version headers
	version=$(gcc -dumpversion | cut -d. -f1)
	headers=$(gcc -print-file-name=plugin)/include
	if [ ! -e "$headers/gcc-plugin.h" ]; then
		mkdir -p headers
		(cd headers && apt-get -q download "gcc-$version-plugin-dev" \
			libgmp-dev libmpc-dev libmpfr-dev &&
			for f in *.deb; do dpkg -x "$f" .; done) || return
		headers=$(dirname headers/usr/lib/gcc/*/"$version"/plugin/include/gcc-plugin.h)
	fi
	g++ -O1 -fPIC -shared -fno-rtti -I"$headers" -Iheaders/usr/include \
		-Iheaders/usr/include/"$(gcc -print-multiarch)" \
		-o truth.so "$SRC/t/bench/truth.cc" &&
		gcc -O2 -c -o truth.o "$SRC/t/bench/truth.c"
}
# instrumented NAME - two runs of it, noted in NAME.truth and NAME.again: what they
# do not note alike is not compared. Of each bench anew: the tree changes.
instrumented() {
	[ -x "$1-truth" ] || { rm -f "$1.list" && unpack_source "$1" "$1.src-truth" &&
		SMCO_TRUTH_LIST=$PWD/$1.list build_"$1" "$1.src-truth" \
			"-O1 -fplugin=$PWD/truth.so" "$PWD/truth.o" &&
		cp "$1.src-truth/$1" "$1-truth"; } >build.log 2>&1 ||
		fail "$1 cannot be instrumented: $(tail -n 1 build.log)"
	local notes
	for notes in "$1.truth" "$1.again"; do
		rm -f "$notes"
		SMCO_TRUTH=$notes run_"$1" "./$1-truth" >out 2>err </dev/null
		[ -s "$notes" ] || fail "$1 noted nothing"
	done
}
# truth TRACE NAME - what of NAME.truth's is found, of variables with a value and
# of all that are not optimised out, and what is beyond it. A variable that others
# may write to begins with a value that nobody gave it.
truth() {
	"$BUILD/smco-report" --ranges --json "$1" >"$1.json" || return 1
	perl -MJSON::PP -MList::Util=min,max -0777 -e '
		my ($trace, $name) = @ARGV;
		my (@what, @noted, %found, %exists, $sum, @wide);
		my $slurp = sub { open my $f, "<", $_[0] or die; <$f> };
		my $list = $slurp->("$name.list");
		@what = map { [split /\t/, s/ *$//r] } $list =~ /(.{255})\n/g;
		for my $run ("truth", "again") {
			push @noted, {};
			for (split /\n/, $slurp->("$name.$run")) {
				my ($n, $lo, $hi) = split /\t/;
				my ($variable, $place, $first) = @{$what[$n]};
				my $t = $noted[-1]{"$variable $place"} //= [$lo, $hi, $first];
				@$t[0, 1] = (min($t->[0], $lo), max($t->[1], $hi));
			}
		}
		my %true = map { $_ => $noted[0]{$_} } grep { my $again = $noted[1]{$_};
			$again && "@$again[0, 1]" eq "@{$noted[0]{$_}}[0, 1]" } keys %{$noted[0]};
		for (@{decode_json($slurp->("$trace.json"))->{rows}}) {
			my $key = "$_->{variable} " . ($_->{declared} =~ s{.*/}{}r);
			my $t = $true{$key} or next;
			# A file of several may have optimised it out.
			$exists{$key} = 1 if defined $_->{smallest} ||
				($_->{unwatched} // "") ne "optimised out";
			next unless defined $_->{smallest};
			my $f = $found{$key} //= [$_->{smallest}, $_->{largest}];
			@$f = (min($f->[0], $_->{smallest}), max($f->[1], $_->{largest}));
		}
		for (sort keys %found) {
			my ($lo, $hi, $first) = @{$true{$_}};
			my ($least, $most) = @{$found{$_}};
			my $width = min($hi, $most) - max($lo, $least);
			$sum += $hi > $lo ? max(0, $width / ($hi - $lo))
					  : $least <= $lo && $most >= $hi;
			push @wide, "$_, $least to $most, true are $lo to $hi"
				if ($first // "") ne "?" &&
				!/vma|sigsegv|stack_top|stk_|_stat\b/ &&
				($least < min($lo, $first // $lo) ||
				 $most > max($hi, $first // $hi));
		}
		print "# beyond: $_\n" for @wide;
		printf "| %d | %.2f | %d | %.2f | %d |\n", scalar keys %found,
			100 * $sum / keys %found, scalar keys %exists,
			100 * $sum / keys %exists, scalar @wide' "$1" "$2"
}

BENCH_BZIP2_MB=${BENCH_BZIP2_MB:-30}
[ -e mixed ] || "$SRC/t/bench/mixed-file.pl" "$BENCH_BZIP2_MB" >mixed
for name in bzip2 grep; do
	[ -x "$name-O0" ] || fetch_source $name >fetch.log 2>&1 ||
		fail "the source of $name cannot be fetched: $(tail -n 1 fetch.log)"
	for level in -O0 -O2; do
		[ -x "$name$level" ] || { unpack_source $name "$name.src$level" &&
			build_$name "$name.src$level" $level &&
			cp "$name.src$level/$name" "$name$level"; } >build.log 2>&1 ||
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
	echo
	if build_truth >build.log 2>&1; then
		echo "| program, no limit | variables with a value | found of what an instrumented build notes, % | variables in the binary | found of theirs, % | beyond it |"
		echo "| --- | --- | --- | --- | --- | --- |"
		for program in bzip2-O2 bzip2-O0 grep-O2 grep-O0; do
			[[ $program = *-O0 ]] || instrumented ${program%-*}
			echo "| $program $(truth $program.reference ${program%-*} |
				tee $program.beyond | tail -n 1)"
			grep '^#' $program.beyond >&2
		done
	else
		echo "No build was instrumented: $(tail -n 1 build.log)"
	fi
} | tee -a "$RESULTS"
