#!/bin/bash
# make bench-events [RUNS=10] [AT_ONCE=31] [CHILDREN=10] [EVENTS=NAME,...] [RESULTS=file] [RAW=file]
#                   [COUNTS=file]
#
# Every event that can be counted here, but those of the machine as a whole, in
# the same program by perf stat and by smco-trace: signals, files, pipes,
# memory, ten children, twenty sleeps, always the same. First all of them once;
# then those that happened, AT_ONCE together, RUNS times in turn. Said is of each
# whether it is in all our runs what it is in some of perf stat's, to a thousandth
# or to one; and as a measure of that, of every other run of perf stat's, whether
# they are so among the rest of its runs, and every other one of ours. RESULTS gets
# those that are not. With EVENTS only those; RAW gets each count, and COUNTS are
# such counts, which are judged without counting again. CHILDREN=0 is a program
# that is alone, on one CPU: a fork has perf copy its events, which others' events
# tell, and two CPUs are two orders of who goes first.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${RUNS:=10}" "${AT_ONCE:=31}" "${CHILDREN:=10}" "${EVENTS:=}" "${RAW:=}" "${COUNTS:=}"
cat >work.pl <<'END'
use POSIX ();
my $n = 1000;
$SIG{USR1} = sub { };
for my $i (1 .. $n) {
	getppid;
	open my $f, "+>", "f" or die;
	syswrite $f, "x" x 100;
	sysseek $f, 0, 0;
	sysread $f, my $b, 100;
	truncate $f, 50;
	close $f;
	stat "f"; rename "f", "g"; unlink "g";
	mkdir "d"; rmdir "d";
	kill USR1 => $$;
	pipe my $r, my $w;
	syswrite $w, "a";
	sysread $r, my $c, 1;
}
for (1 .. $ARGV[0]) { my $p = fork; POSIX::_exit(0) unless $p; waitpid $p, 0 }
select undef, undef, undef, 0.0005 for 1 .. 20;
my @a;
push @a, "y" x 4096 for 1 .. 10 * $n;
END

mkdir files || exit
# Where memory is decides which pages are mapped along with others, and what is in
# the environment (bash puts the name of the program there, perf its paths) moves
# the stack: so all programs are where they are without chance, and ours has what
# perf adds.
work=(/usr/bin/perl "$PWD/work.pl" "$CHILDREN")
base=(PERL_HASH_SEED=0 "PATH=$PATH")
fixed=(setarch -R)
[ "$CHILDREN" -gt 0 ] || fixed=(taskset -c "$(($(nproc) - 1))" setarch -R)
mapfile -t added < <(env -i "${base[@]}" perf stat -o /dev/null env)

# A machine may take pages that nobody used for a while out of memory (DAMON does
# here); what comes from the disk again is in the counts of whoever needs it first.
# So somebody has all files of the program locked in memory, and it runs once more
# before each run that counts.
/usr/bin/perl -MPOSIX -e '
	syscall(151, 3) == 0 or die "mlockall: $!\n"; # MCL_CURRENT | MCL_FUTURE
	sleep' &
pid=$!
warm() {
	(cd files && env -i "${base[@]}" "${fixed[@]}" "${work[@]}") >/dev/null 2>&1
}
by_perf() { # LIST: "event count" of each
	local at=$PWD
	warm
	(cd files && env -i "${base[@]}" "${fixed[@]}" perf stat -x, -o "$at/perf.csv" -e "$1" \
		"${work[@]}") >out 2>&1 || return 1
	awk -F, '!/^#/ && NF > 3 && $1 ~ /^[0-9.]+$/ { print $3, $1 }' perf.csv
}
by_us() {
	local at=$PWD
	warm
	(cd files && env -i "${added[@]}" "${fixed[@]}" "$BUILD/smco-trace" -q -t unlimited \
		-e "$1" -o "$at/e.trace" -- "${work[@]}") >out 2>err || fail "smco-trace failed"
	"$BUILD/smco-report" --json e.trace | perl -MJSON::PP -0777 -e '
		my $c = decode_json(<STDIN>)->{counters}[0];
		print "$c->{events}[$_]{name} $c->{counts}[$_]{count}\n" for 0 .. $#{$c->{events}}'
}

# in_turn RUNS AT_ONCE <NAMES - "EVENT by_perf|by_us RUN COUNT" of each
in_turn() {
	local list run
	while mapfile -t -n "$2" few && [ ${#few[@]} -gt 0 ]; do
		list=$(IFS=,; echo "${few[*]}")
		for ((run = 1; run <= $1; run++)); do
			if ! by_perf "$list" >perf; then
				printf '%s\n' "${few[@]}" >>refused
				break
			fi
			by_us "$list" >us
			awk -v run="$run" '{ print $1, FILENAME, run, $2 }' perf us
		done
	done
}

# System calls by class are ours; clocks are compared by no count of theirs.
names() {
	if [ -n "$EVENTS" ]; then
		tr , '\n' <<<"$EVENTS"
	else
		"$BUILD/smco-trace" --list-events | awk '$1 == "yes" { print $2 }' |
			grep -v '^syscalls-\|-clock$\|/$'
	fi
}
names >all
if [ -n "$COUNTS" ]; then
	cp "$COUNTS" counts
else
	if [ -n "$EVENTS" ]; then
		cp all happen
	else
		in_turn 1 60 <all >once
		awk '$4 { happens[$1] = 1 } NR == FNR { next } $1 in happens' once all >happen
	fi
	in_turn "$RUNS" "$AT_ONCE" <happen >counts
fi
[ -z "$RAW" ] || cp counts "$RAW"

cat >judge.pl <<'END'
use List::Util qw(min max);
my ($names, %n) = shift;
while (<>) {
	my ($e, $by, $run, $count) = split;
	push @{$n{$e}{$by}}, $count;
}
sub median { my @s = sort { $a <=> $b } @_; ($s[$#s / 2] + $s[@s / 2]) / 2 }
# Of all pairs of runs, those in which @$us is more, from 0 to 1.
sub more {
	my ($perf, $us) = @_;
	my $more = 0;
	for my $p (@$perf) { $more += ($_ > $p) + ($_ == $p) / 2 for @$us }
	$more / @$perf / @$us
}
sub slack { my $p = shift; max(1, max(@$p) / 1000) }
sub repeats { my $p = shift; max(@$p) - min(@$p) <= slack($p) }
# What @$us is, beside @$perf.
sub class {
	my ($perf, $us) = @_;
	my ($least, $most) = (min(@$perf) - slack($perf), max(@$perf) + slack($perf));
	return repeats($perf) ? "same" : "within its range" unless grep { $_ < $least || $_ > $most } @$us;
	return "apart" if min(@$us) > $most || max(@$us) < $least;
	return "shifted" if abs(more($perf, $us) - 0.5) > 0.4;
	"beyond in some run";
}
sub every_other { my ($runs, $from) = @_; [@$runs[grep { $_ % 2 == $from } 0 .. $#$runs]] }
sub range { sprintf "%d to %d (%g)", min(@{$_[0]}), max(@{$_[0]}), median(@{$_[0]}) }

my (%nr, %rows, @all);
for my $e (sort keys %n) {
	my ($p, $u) = @{$n{$e}}{qw(perf us)};
	if (!$p || !$u || @$p != @$u) { $nr{lost}++; print "$e: not counted\n"; next }
	my $class = class($p, $u);
	my ($half, $rest, $ours) = (every_other($p, 0), every_other($p, 1), every_other($u, 1));
	my ($itself, $beside) = @$rest ? (class($half, $rest), class($half, $ours)) : ("", "");
	my $steady = repeats($p) ? "steady" : "varies";
	$nr{$steady}++;
	$nr{"$steady $class"}++;
	$nr{"itself $itself"}++;
	$nr{"beside $beside"}++;
	my $row = sprintf "| %s | %s | %s | %s | %.2f | %s | %s |", $e, range($p), range($u),
		$class, more($p, $u), $itself, $beside;
	push @all, $row;
	push @{$rows{$class}}, $row unless $class =~ /^same|^within/;
}
my $head = "| event | perf stat (median) | smco-trace | beside all its runs | pairs in which that is more | half of its runs beside the rest | of ours |\n" . ("| --- " x 7) . "|\n";
open my $each, ">", "each" or die;
print $each $head, map { "$_\n" } @all;
printf "%d events, %d happen. perf stat repeats %d of them in all of its runs: of these %d are the same in all of ours. Of the other %d %d are within its range. %d lie apart, %d are shifted.\n\n",
	$names, scalar keys %n, $nr{steady} // 0, $nr{"steady same"} // 0, $nr{varies} // 0,
	$nr{"varies within its range"} // 0, map { ($nr{"steady $_"} // 0) + ($nr{"varies $_"} // 0) } qw(apart shifted);
print "| half of perf stat's runs | the rest of them | as many of ours |\n| --- | --- | --- |\n";
printf "| %s | %d | %d |\n", $_, $nr{"itself $_"} // 0, $nr{"beside $_"} // 0
	for "same", "within its range", "beyond in some run", "shifted", "apart";
print "\n$head" if %rows;
for my $class ("apart", "shifted", "beyond in some run") { print "$_\n" for @{$rows{$class} // []} }
END
{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r): each event, beside perf stat"
	echo
	perl judge.pl "$(wc -l <all)" counts
	[ ! -s refused ] || echo "Refused by perf stat: $(sort -u refused | paste -sd ' ')"
} | tee -a "$RESULTS"
echo
cat each
