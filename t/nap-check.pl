#!/usr/bin/perl
# t/nap-check.pl [OPTIONS] TRUTH REPORT - compares the naps that
# `smco-report --json` found (REPORT) with what nap-schedule says happened
# (TRUTH). Prints what is missing, wrong or false, then one line of sums;
# status 0 only if all three are within bounds.
#
#	--threshold MS	as given to both (1000)
#	--recall SHARE	least share of the pauses >= 1.1 thresholds to be found,
#			of those in blocks of the report's least size (1)
#	--min-size N	ignore smaller blocks in the truth (8192)
#	--kinds LIST	judge only blocks of these kinds (for mechanisms that see
#			writes only, or no reads of unwritten memory)
#	--strict	lengths within 5 % or 20 ms, whichever is more, instead
#			of within the error that the report states itself,
#			and 50 ms for what a busy machine delays
#	--lengths SHARE	least share of the lengths that have to be right (1)
#	--from NS	judge recall only for pauses that start later
#			(CLOCK_MONOTONIC; for attaching)
#
# A block that had to share its first page with another (no budget to give it
# its own) may seem to be used when that is: its naps may be shorter than said.
#
# What the accesses before and after a pause took is not known to be part of it
# or not: so much longer it may be.
#
# A reported nap is false if it overlaps no true pause >= 1.0 thresholds of
# that block. Naps of
# memory that is none of the fixture's blocks are counted as foreign.
use strict;
use warnings;
no warnings 'portable'; # 64-bit hexadecimal
use Getopt::Long;
use JSON::PP;
use List::Util qw(max min);

my ($threshold_ms, $recall_want, $min_size, $kinds, $from, $strict, $right) =
	(1000, 1, 8192, '', 0, 0, 1);
GetOptions(
	'threshold=f' => \$threshold_ms,
	'recall=f'    => \$recall_want,
	'min-size=i'  => \$min_size,
	'kinds=s'     => \$kinds,
	'strict'      => \$strict,
	'from=i'      => \$from,
	'lengths=f'   => \$right,
) && @ARGV == 2 or die "usage: nap-check.pl [OPTIONS] TRUTH REPORT\n";
my $threshold = $threshold_ms * 1e6;
my %judged = map { $_ => 1 } split /,/, $kinds;

# ---- the truth: address => lives, each with its pauses
my (%lives, @lives, $ended_well);
open my $truth, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
my @pauses;
while (<$truth>) {
	my @f = split;
	if (/^block /) {
		my $life = {
			addr => hex $f[1], size => $f[2], kind => $f[3],
			alloc => $f[4], end => $f[5] || 9e18, pauses => [],
		};
		push @{ $lives{ $life->{addr} } }, $life;
		push @lives, $life;
	} elsif (/^pause /) {
		push @pauses, {
			addr => hex $f[1], size => $f[2], kind => $f[3],
			start => $f[4], length => $f[5],
			end => $f[4] + $f[5], ended => $f[6], naps => [],
			slack => ($f[7] // 0) + ($f[8] // 0),
		};
	} elsif (/^EXIT-SUCCESS/) {
		$ended_well = 1;
	}
}
$ended_well && @lives or die "nap-check: $ARGV[0] is not complete\n";
for my $p (@pauses) {
	my ($life) = grep { $_->{alloc} <= $p->{start} && $p->{end} <= $_->{end} }
		@{ $lives{ $p->{addr} } };
	push @{ $life->{pauses} }, $p;
}

# ---- what was reported
open my $fh, '<', $ARGV[1] or die "$ARGV[1]: $!\n";
my $doc = decode_json(do { local $/; <$fh> });
my @naps = map {
	{ addr => number($_->{addr}), size => number($_->{size}),
	  start => $_->{start_ns}, length => $_->{length_ns},
	  alloc => $_->{alloc_ns}, error => $_->{error_ns} // 0,
	  ended => $_->{ended} }
} @{ $doc->{naps} };

sub number { my ($v) = @_; return $v =~ /^0x/ ? hex $v : $v }

# Session time to CLOCK_MONOTONIC: both sides know when blocks were allocated.
my @offsets = sort { $a <=> $b } map {
	my $nap = $_;
	map { $_->{alloc} - $nap->{alloc} } @{ $lives{ $nap->{addr} } || [] }
} grep { $_->{alloc} } @naps;
my $offset = $doc->{start_monotonic_ns} // $offsets[ @offsets / 2 ] // 0;

# ---- compare
my ($false, $foreign, $wrong, $split, $matched) = (0) x 5;
my @said;
sub complain {
	my ($what, $x) = @_;
	push @said, sprintf "%s: 0x%x size %d %s start %.3f s length %.3f s%s\n",
		$what, $x->{addr}, $x->{size}, $x->{kind} // '',
		($x->{start} - $lives[0]{alloc}) / 1e9, $x->{length} / 1e9,
		$x->{note} // '';
}

for my $nap (@naps) {
	$nap->{start} += $offset;
	$nap->{end} = $nap->{start} + $nap->{length};
	# Its block is the one that was allocated when it says: the next one at
	# the same address may begin within microseconds of its end.
	my ($owner) = sort {
		abs($a->{alloc} - $offset - $nap->{alloc}) <=>
			abs($b->{alloc} - $offset - $nap->{alloc})
	} grep {
		$nap->{alloc} && abs($_->{alloc} - $offset - $nap->{alloc}) < 1e8
	} @{ $lives{ $nap->{addr} } || [] };
	my @owners = $owner ? ($owner) : grep {
		$_->{addr} < $nap->{addr} + $nap->{size} &&
		$nap->{addr} < $_->{addr} + $_->{size} &&
		$_->{alloc} - 1e6 < $nap->{end} && $nap->{start} < $_->{end}
	} $lives{ $nap->{addr} } ? @{ $lives{ $nap->{addr} } } : @lives;
	unless (@owners) {
		$foreign++;
		next;
	}
	next if %judged && !grep { $judged{ $_->{kind} } } @owners;
	my ($best, $overlap) = (undef, 0);
	for my $p (map { @{ $_->{pauses} } } @owners) {
		my $o = min($p->{end}, $nap->{end}) -
			max($p->{start}, $nap->{start});
		($best, $overlap) = ($p, $o) if $o > $overlap;
	}
	# At exit a pause goes on until the process is gone, after the truth.
	my $length = !$best ? 0 : $best->{ended} eq 'exit' ?
		max($best->{end}, $nap->{end}) - $best->{start} :
		$best->{length} + $best->{slack};
	if ($length < $threshold) {
		$false++;
		$nap->{kind} = $owners[0]{kind};
		complain('FALSE', $nap);
		next;
	}
	push @{ $best->{naps} }, $nap;
}

my ($due, $found) = (0, 0);
for my $p (@pauses) {
	my @naps = sort { $b->{length} <=> $a->{length} } @{ $p->{naps} };
	next if %judged && !$judged{ $p->{kind} };
	if (@naps) {
		$matched++;
		my $off = abs $naps[0]{length} - $p->{length};
		# The truth ends when the program writes it down; the block is
		# unused until the process is gone.
		$off = 0 if $p->{ended} eq 'exit' &&
			$naps[0]{length} > $p->{length};
		# Shares pages with its neighbours, whose uses look like its own.
		my $is_shared = ($p->{addr} & 0xfff) != 0 &&
			($p->{addr} & 0xfff) != 0x10;
		my $allowed = $strict ? max(0.05 * $p->{length}, 20e6)
				      : $naps[0]{error} + 50e6;
		$allowed += $p->{slack};
		$off = 0 if $is_shared &&
			$naps[0]{start} > $p->{start} - $allowed &&
			$naps[0]{end} < $p->{end} + $allowed;
		# Its watching ended before it did: no shorter than said.
		my $unwatched = grep { $_->{ended} eq 'unwatched' } @naps;
		$off = 0 if $naps[0]{ended} eq 'unwatched' &&
			$naps[0]{length} < $p->{length};
		if ($off > $allowed) {
			$wrong++;
			$p->{note} = sprintf ', reported %.3f s +- %.3f s, ' .
				'from %+.3f s to %+.3f s',
				$naps[0]{length} / 1e9, $naps[0]{error} / 1e9,
				($naps[0]{start} - $p->{start}) / 1e9,
				($naps[0]{end} - $p->{end}) / 1e9;
			complain('LENGTH', $p);
		}
		if (@naps - $unwatched > 1) {
			$split++;
			complain('SPLIT', $p);
		}
	}
	next if $p->{length} < 1.1 * $threshold || $p->{size} < $min_size ||
		$p->{start} < $from;
	$due++;
	if (@naps) {
		$found++;
	} else {
		$p->{note} = ", ended by $p->{ended}";
		complain('MISSED', $p);
	}
}
my $recall = $due ? $found / $due : 1;
# What is wrong before what is merely missing.
@said = ((grep { !/^MISSED/ } @said), (grep { /^MISSED/ } @said));
print @said > 40 ? (@said[ 0 .. 39 ], "...\n") : @said;
printf "naps: %d of %d found (%.2f %%), %d false, %d of %d lengths wrong, " .
	"%d split, %d foreign\n", $found, $due, 100 * $recall, $false, $wrong,
	$matched, $split, $foreign;
# A truth without pauses, or a report without naps, proves nothing.
exit !($due && @naps && $recall >= $recall_want && !$false && !$split &&
	$matched - $wrong >= $right * $matched);
