#!/bin/bash
# make bench-events [RUNS=6] [AT_ONCE=31] [EVENTS=NAME,...] [RESULTS=file] [RAW=file]
#
# Every event that can be counted here, but those of the machine as a whole, in
# the same program by perf stat and by smco-trace: signals, files, pipes,
# memory, ten children, twenty sleeps, always the same. First all of them once;
# then those that happened, AT_ONCE together, RUNS times in turn. Said is which
# are not in all our runs what they are in some of perf stat's, to a thousandth
# or to one: which lie apart, which are shifted, and by how much perf stat differs
# from itself. With EVENTS only those; RAW gets each count.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${RUNS:=6}" "${AT_ONCE:=31}" "${EVENTS:=}" "${RAW:=}"
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
for (1 .. 10) { my $p = fork; POSIX::_exit(0) unless $p; waitpid $p, 0 }
select undef, undef, undef, 0.0005 for 1 .. 20;
my @a;
push @a, "y" x 4096 for 1 .. 10 * $n;
END

mkdir files || exit
# What is in the environment (bash puts the name of the program there) moves the stack.
work=(env -i PERL_HASH_SEED=0 setarch -R perl "$PWD/work.pl")

by_perf() { # LIST: "event count" of each
	local at=$PWD
	(cd files && perf stat -x, -o "$at/perf.csv" -e "$1" "${work[@]}") >out 2>&1 || return 1
	awk -F, '!/^#/ && NF > 3 && $1 ~ /^[0-9.]+$/ { print $3, $1 }' perf.csv
}
by_us() {
	local at=$PWD
	(cd files && "$BUILD/smco-trace" -q -t unlimited -e "$1" \
		-o "$at/e.trace" -- "${work[@]}") >out 2>err || fail "smco-trace failed"
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
if [ -n "$EVENTS" ]; then
	cp all happen
else
	in_turn 1 60 <all >once
	awk '$4 { happens[$1] = 1 } NR == FNR { next } $1 in happens' once all >happen
fi
in_turn "$RUNS" "$AT_ONCE" <happen >counts
[ -z "$RAW" ] || cp counts "$RAW"

cat >judge.pl <<'END'
use List::Util qw(min max);
my ($names, %n) = shift;
while (<>) {
	my ($e, $by, $run, $count) = split;
	push @{$n{$e}{$by}}, $count;
}
sub median { my @s = sort { $a <=> $b } @_; ($s[$#s / 2] + $s[@s / 2]) / 2 }
# Of all pairs of runs, those in which ours is more, from 0 to 1.
sub more {
	my ($perf, $us) = @_;
	my $more = 0;
	for my $p (@$perf) { $more += ($_ > $p) + ($_ == $p) / 2 for @$us }
	$more / @$perf / @$us
}
my (%rows, %nr);
for my $e (sort keys %n) {
	my ($p, $u) = @{$n{$e}}{qw(perf us)};
	if (!$p || !$u || @$p != @$u) { $nr{lost}++; push @{$rows{"Not counted"}}, "| $e | | | |"; next }
	my $slack = max(1, max(@$p) / 1000);
	my $row = sprintf "| %s | %d to %d (%g) | %d to %d (%g) | %.2f |", $e,
		min(@$p), max(@$p), median(@$p), min(@$u), max(@$u), median(@$u), more($p, $u);
	my $varies = max(@$p) - min(@$p) > $slack;
	$nr{$varies ? "varies" : "steady"}++;
	if (!grep { $_ < min(@$p) - $slack || $_ > max(@$p) + $slack } @$u) { $nr{$varies ? "same, varies" : "same, steady"}++; }
	elsif (min(@$u) > max(@$p) + $slack || max(@$u) < min(@$p) - $slack) { $nr{apart}++; push @{$rows{Apart}}, $row }
	elsif (abs(more($p, $u) - 0.5) > 0.4) { $nr{shifted}++; push @{$rows{Shifted}}, $row }
	elsif ($varies) { $nr{wide}++; push @{$rows{"In some run beyond perf stat's, which differs from itself"}}, $row }
	else { $nr{once}++; push @{$rows{"In some run beyond perf stat's"}}, $row }
}
printf "%d events, %d happen. perf stat repeats %d of them in each of its runs: of these %d are the same in all of ours. Of the other %d %d are within its range. %d lie apart, %d are shifted.\n",
	$names, scalar keys %n, $nr{steady} // 0, $nr{"same, steady"} // 0, $nr{varies} // 0, $nr{"same, varies"} // 0, $nr{apart} // 0, $nr{shifted} // 0;
for my $title ("Apart", "Shifted", "In some run beyond perf stat's", "In some run beyond perf stat's, which differs from itself", "Not counted") {
	next if !$rows{$title};
	print "\n| $title | perf stat (median) | smco-trace | pairs in which that is more |\n| --- | --- | --- | --- |\n";
	print "$_\n" for @{$rows{$title}};
}
END
{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r): each event, beside perf stat"
	echo
	perl judge.pl "$(wc -l <all)" counts
	[ ! -s refused ] || echo "Refused by perf stat: $(sort -u refused | paste -sd ' ')"
} | tee -a "$RESULTS"
