#!/usr/bin/perl
# read-page.pl PAGE - the data of a page of smco-report --html, which
# reports/terse.h describes, as one JSON document.
use strict;
use warnings;
use JSON::PP;

local $/;
my $json = JSON::PP->new->canonical;
my (%doc, $part);
sub value {
	my ($v) = @_;
	return $v if ref $v ne 'ARRAY';
	my $shape = pop @$v;
	return [map { value($_) } @$v] if $shape < 0;
	my %o;
	for my $key (@{$part->{shapes}[$shape]}) {
		my ($kind, $name) = $key =~ /^(.)(.*)/s;
		my $x = shift @$v;
		$o{$name} = $kind eq '$' ? $part->{texts}[$x] : $kind eq '#' ? $json->decode($x) : value($x);
	}
	return \%o;
}
my $page = <>;
while ($page =~ m{<script type="application/json" id="data-([^"]*)">(.*?)</script>}gs) {
	my $key = $1;
	$part = $json->utf8->decode($2);
	$json->utf8(0);
	$doc{$key} = value($part->{data});
}
print $json->utf8->encode(\%doc);
