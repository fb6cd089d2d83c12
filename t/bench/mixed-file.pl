#!/usr/bin/perl
# t/bench/mixed-file.pl MB - a file to compress, the same every time on one
# machine: words, random bytes, and this machine's own binaries.
use strict;
use warnings;

my $left = $ARGV[0] * 1_000_000;
srand 1;
my @words = map { join '', map { chr 97 + int rand 26 } 1 .. 2 + rand 9 }
	1 .. 5000;
my @files = sort glob '/usr/bin/* /usr/lib/x86_64-linux-gnu/*.so*';
binmode STDOUT;
while ($left > 0) {
	# Few words are frequent, as in text.
	my $chunk = join ' ', map { $words[ 5000 * rand() ** 3 ] } 1 .. 60_000;
	$chunk .= pack 'L*', map { int rand 2**32 } 1 .. 40_000;
	my $binary = '';
	while (@files && length $binary < 400_000) {
		open my $fh, '<:raw', shift @files or next;
		local $/;
		$binary .= <$fh> // '' if -f $fh && -s _ < 20_000_000;
	}
	$chunk .= substr $binary, 0, 400_000;
	$chunk = substr $chunk, 0, $left;
	print $chunk;
	$left -= length $chunk;
}
