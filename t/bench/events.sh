#!/bin/bash
# make bench-events [AT_ONCE=60] [RESULTS=file]
#
# Every event that can be counted here, but those of the machine as a whole, in
# the same program by perf stat, three times, and by smco-trace, twice: signals, files, pipes,
# memory, ten children, twenty sleeps, always the same. Said is what differs by
# more than a thousandth (and by more than one), in one of our runs or in both,
# and of what perf stat itself does not count the same thrice.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${AT_ONCE:=60}"
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

# System calls by class are ours; clocks are compared by no count of theirs.
"$BUILD/smco-trace" --list-events | awk '$1 == "yes" { print $2 }' |
	grep -v '^syscalls-\|-clock$\|/$' >names
: >all
while mapfile -t -n "$AT_ONCE" few && [ ${#few[@]} -gt 0 ]; do
	list=$(IFS=,; echo "${few[*]}")
	if by_perf "$list" >p1 && by_perf "$list" >p2 && by_perf "$list" >p3; then
		by_us "$list" >us1
		by_us "$list" >us2
		perl -e '
			my @h = map { open my $f, "<", $_ or die; +{ map { (split)[0, 1] } <$f> } } @ARGV;
			for my $e (sort keys %{$h[0]}) {
				print join(" ", $e, map { $_->{$e} // "-" } @h), "\n" }' p1 p2 p3 us1 us2 >>all
	else
		printf '%s\n' "${few[@]}" >>refused
	fi
done <names

{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r): each event, beside perf stat"
	echo
	perl -ane '
		my ($e, @n) = @F;
		my ($few, $most) = (sort { $a <=> $b } @n[0 .. 2])[0, 2];
		my $slack = $most / 1000 > 1 ? $most / 1000 : 1;
		my @us = @n[3, 4];
		my $off = grep { $_ ne "-" && ($_ < $few - $slack || $_ > $most + $slack) } @us;
		my $said = "$e (" . ($few == $most ? $most : "$few to $most") . "; @us)";
		if (grep { $_ eq "-" } @us) { push @{$l{lost}}, $e }
		elsif (!$most && !grep { $_ } @us) { $never++ }
		elsif (!$off) { $same++ }
		elsif ($most - $few > $slack) { push @{$l{vary}}, $said }
		elsif ($off < @us) { push @{$l{once}}, $said }
		else { push @{$l{differ}}, $said }
		END {
			printf "%d events: %d never in this program, with either, %d the same.\n", $., $never, $same;
			printf "\n%s: %s\n", @$_ for grep { $_->[1] }
				["Not the same each time with perf stat itself (in brackets; and with smco-trace)", join ", ", @{$l{vary} // []}],
				["Not the same in one run of smco-trace", join ", ", @{$l{once} // []}],
				["Others (perf stat; smco-trace)", join ", ", @{$l{differ} // []}],
				["Not counted", join ", ", @{$l{lost} // []}];
		}' all
	[ ! -s refused ] || echo "Refused by perf stat: $(paste -sd ' ' refused)"
} | tee -a "$RESULTS"
