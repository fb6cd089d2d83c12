#!/usr/bin/perl
# assemble.pl OUT PAGE FILE... - PAGE with the FILEs in it, style sheets at
# @style@, scripts at @script@, cut at @runs@, where there is that, and @data@
# into OUT.head, OUT.body and OUT.tail. Its policy allows just these, by their hashes, and no network. Tabs are for who
# reads the sources: no page has a control character but its line ends.
use strict;
use warnings;
use Digest::SHA qw(sha256_base64);

my ($out, $page, @files) = @ARGV;

sub slurp {
	my ($name) = @_;
	open my $f, '<:raw', $name or die "$name: $!\n";
	local $/;
	return <$f> =~ s/^\t+//mgr =~ s/\t+/ /gr;
}

sub spill {
	my ($name, $text) = @_;
	open my $f, '>:raw', $name or die "$name: $!\n";
	print $f $text or die "$name: $!\n";
	close $f or die "$name: $!\n";
}

my %text = (style => "\n", script => "\n\"use strict\";\n");
$text{/\.css$/ ? 'style' : 'script'} .= slurp($_) for @files;
die "$page: a script may not have </script in it\n" if $text{script} =~ m{</script|<!--}i;

my $html = slurp($page);
for my $kind (qw(style script)) {
	my $hash = "'sha256-" . sha256_base64($text{$kind}) . "='";
	$html =~ s/\@$kind-hash\@/$hash/;
	$html =~ s/\@$kind\@/$text{$kind}/;
}
my ($body, $tail, $more) = split /\@data\@/, $html;
die "$page: needs one \@data\@\n" if !defined $tail || defined $more;
spill("$out.head", $1) if $body =~ s/^(.*)\@runs\@//s;
spill($body =~ /^<!DOCTYPE/ ? "$out.head" : "$out.body", $body);
spill("$out.tail", $tail);
