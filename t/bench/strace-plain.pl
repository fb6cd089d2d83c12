#!/usr/bin/perl
# strace-plain.pl <LOG >FILE - system calls of a log of strace -f
# --absolute-timestamps=unix,ns as plain 24-byte records: a number for each name,
# the time, no processor, the thread, the low 32 bits of the result.
use strict;
use warnings;

my (%id, $start);
while (<STDIN>) {
	my ($tid, $s, $ns, $name, $rest) =
		/^(\d+) +(\d+)\.(\d{9}) (\w+)\((.*)/ or next;
	my $time = $s * 1_000_000_000 + $ns;
	$start //= $time;
	$id{$name} //= 1000 + keys %id;
	my $result = $rest =~ /= (-?\d+|0x[0-9a-f]+)/ ? $1 : 0;
	no warnings 'portable';
	$result = hex $result if $result =~ /^0x/;
	print pack 'VQ<VVV', $id{$name}, $time - $start, 0xffffffff, $tid,
		$result & 0xffffffff;
}
