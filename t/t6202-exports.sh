#!/bin/bash
# smco-report --ctf, read back by babeltrace2 event for event, and --perfetto,
# read by a JSON parser: all that is in the trace, and nothing else.
. "$(dirname "$0")/test-lib.sh"

sample() { "$BUILD/t/unit/u-html" "$@" >/dev/null; }
sample 63 60 odd.trace
sample 7 20 cut.trace
sample 8 0 nothing.trace
"$BUILD/t/unit/u-summary-text" sample.trace

# back DIR - its events as --juwel has records, in the order of the text. Which
# fields a name has, and how wide they are, is the metadata's to say.
back() {
	babeltrace2 --clock-cycles "$1" >text 2>err || return 1
	[ ! -s err ] || return 1
	perl -e 'my %id; my %field; open my $m, "<", shift or die; my $in;
		while (<$m>) {
			if (/^event \{ name = "([\w-]+)"; id = (\d+); stream_id = 0/) { $id{$1} = $2; $in = $1 }
			elsif (/^event/) { $in = undef }
			elsif ($in && /^\t([us])(\d+) _(\w+);/) { push @{$field{$in}}, [$3, $1, $2] }
		}
		while (<STDIN>) {
			my ($t, $name, $c, $f) = /^\[(\d+)\].*?([\w-]+): \{ (.*?) \}(?:, \{ (.*?) ?\})?$/ or die "what is $_";
			next if $name eq "frame";
			my %c = $c =~ /(\w+) = (\d+)/g;
			my ($event, $hex) = ($id{$name}, "");
			if ($name eq "unknown") {
				my @bytes = $f =~ /\[\d+\] = (\d+)/g;
				($event) = $f =~ /event = (\d+)/;
				$hex = join "", map { sprintf "%02x", $_ } @bytes;
			} else {
				my %v = $f =~ /(\w+) = (-?\d+)/g;
				$hex .= unpack "H*", pack $_->[2] == 32 ? "l<" : "q<", $v{$_->[0]} for @{$field{$name}};
			}
			print join(" ", $event, $t + 0, $c{cpu}, $c{thread}, $c{parameter}, $hex eq "" ? "-" : $hex), "\n";
		}' "$1/metadata" <text
}

# same TRACE - every event is there, as it was recorded.
same() {
	rm -rf ctf
	smco-report --ctf ctf "$1" 2>/dev/null
	smco-report --juwel "$1" 2>/dev/null | grep -v '^# smco-report: ' | sort >want
	back ctf | sort >have
	[ "$(wc -l <have)" -gt "$2" ] && diff want have | head -n 20 && cmp want have
}
# names - the frames of stacks are those of --json.
names() {
	smco-report --json odd.trace | perl -MJSON::PP -0777 -e '
		binmode STDOUT, ":utf8"; my $d = decode_json(<STDIN>); for my $s (@{$d->{stacks}}) { my $i = 0;
			print "$s->{id} ", $i++, " $_->{line}\n" for @{$s->{frames}} }' | sort >want
	LC_ALL=C sed -n 's/.* frame: { stack = \([0-9]*\), depth = \([0-9]*\), .*, line = \([0-9]*\), .*/\1 \2 \3/p' text | sort >have
	[ -s want ] && diff want have && grep -qF 'pwned' text
}
if command -v babeltrace2 >/dev/null; then
	ok "CTF of a session" same sample.trace 30
	ok "CTF of a trace without an end" same cut.trace 600
	ok "CTF of events not known here, out of order" same odd.trace 900
	ok "names of the stacks" names
	several() { [ "$(find ctf -name 'records_*' | wc -l)" -gt 1 ]; }
	ok "which take several streams" several
	some() {
		rm -rf ctf && smco-report --ctf ctf --from 5s --to 6s odd.trace &&
			back ctf | sort >have && smco-report --juwel --from 5s --to 6s odd.trace | sort | diff - have && [ -s have ]
	}
	ok "CTF of a part" some
	empty() { rm -rf ctf && smco-report --ctf ctf --from 100s odd.trace && babeltrace2 ctf | grep -qv frame: ; [ $? = 1 ]; }
	ok "CTF of nothing" empty
fi

mkdir full && touch full/x
ok "a directory that is there" report_refuses 1 "cannot write full: File exists" --ctf full odd.trace
ok "in one that is not" report_refuses 1 "cannot write none/x: No such file" --ctf none/x odd.trace
ok "no such trace" report_refuses 9 "nosuch" --ctf new nosuch.trace
ok "nothing is left of it" absent new
ok "with another form" report_refuses 2 "form of its own" --ctf new --json odd.trace
ok "two traces" report_refuses 2 "one trace" --ctf new odd.trace cut.trace
ok "sorted" report_refuses 2 "without --sort" --perfetto --sort naps odd.trace

# perfetto TRACE EXPRESSION - $p is that document, $d that of --json.
perfetto() {
	smco-report --perfetto -o p.json "$1" 2>/dev/null
	smco-report --json -o d.json "$1" 2>/dev/null
	perl -MJSON::PP -0777 -e 'sub slurp { open my $f, "<", shift or die; decode_json(<$f>) }
		our ($p, $d) = (slurp("p.json"), slurp("d.json"));
		our %by; push @{$by{$_->{ph}}}, $_ for @{$p->{traceEvents}};
		sub same { my ($a, $b) = @_; abs($a - $b) <= 1e-6 * (1 + abs $a) or die "$a is not $b\n" }
		eval "$ARGV[0]; 1" or die $@; exit 0' "$2"
}
naps='my %b = map { $_->{id} => $_ } grep { $_->{cat} eq "nap" } @{$by{b}}; my %e = map { $_->{id} => $_ } grep { $_->{cat} eq "nap" } @{$by{e}};
	my @n = @{$d->{naps}}; keys %b == @n && keys %e == @n or die "how many";
	for my $i (0 .. $#n) { my ($b, $e) = ($b{$i}, $e{$i});
		same($b->{ts} * 1000, $n[$i]{start_ns}); same(($e->{ts} - $b->{ts}) * 1000, $n[$i]{length_ns});
		$b->{args}{size} == $n[$i]{size} && $b->{args}{ended} eq $n[$i]{ended} && $b->{pid} == $n[$i]{pid} or die "nap $i" }'
ok "naps are slices" perfetto odd.trace "$naps"
ok "another session's" perfetto sample.trace "$naps"
# shellcheck disable=SC2016 # perl's
ok "counters add up" perfetto odd.trace 'my %n; for (@{$by{C}}) { $n{$_->{name}} += $_->{args}{count} if exists $_->{args}{count} }
	my $c = $d->{counters}[0]; same($n{$c->{events}[$_]{name}}, $c->{counts}[$_]{count}) for 0 .. $#{$c->{events}}'
# shellcheck disable=SC2016 # perl's
ok "the overhead" perfetto odd.trace 'my @o = grep { $_->{name} =~ /^overhead/ } @{$by{C}}; my @l = @{$d->{ledger}};
	@o == @l or die "how many"; same($o[$_]{args}{"so far"} * 1e7, $l[$_]{overhead_ppb}) for 0 .. $#l'
# shellcheck disable=SC2016 # perl's
ok "phases" perfetto odd.trace 'my (%in, %nr); for (grep { $_->{ph} =~ /[be]/ && $_->{cat} eq "phase" } @{$p->{traceEvents}}) {
		$in{$_->{name}} += $_->{ph} eq "b" ? -$_->{ts} : $_->{ts}; $nr{$_->{name}} += $_->{ph} eq "b" }
	for (@{$by{C}}) { $nr{$_->{name}} += $_->{args}{entered} if exists $_->{args}{entered} }
	my @p = @{$d->{phases}}; ($nr{$_->{phase}} // 0) == $_->{count} or die "how often $_->{phase}" for @p;
	same($in{$p[0]{phase}} * 1000, $p[0]{files}[0]{in_ns})'
# shellcheck disable=SC2016 # perl's
ok "samples and their stacks" perfetto odd.trace 'my $n = grep { ($_->{sf} // "") ne "" } @{$by{P}}; @{$by{P}} == $d->{samples}{samples} or die "how many";
	$n or die "none has a stack"; my $f = $p->{stackFrames};
	for (@{$by{P}}, values %$f) { my $up = $_->{sf} // $_->{parent} // next; $f->{$up} or die "no frame $up" }'
# shellcheck disable=SC2016 # perl's
ok "a trace without an end" perfetto cut.trace '@{$by{b}} == 20 or die "naps"'
# shellcheck disable=SC2016 # perl's
ok "a trace with nothing" perfetto nothing.trace '!$by{b} && !$by{C} or die "what is there"'
# Every rule of the format, of each kind of event.
strict() {
	smco-report --perfetto -o strict.json "$1" 2>/dev/null
	python3 "$SRC/t/check-trace-events.py" strict.json
}
for t in odd sample cut nothing; do
	ok "the document of $t.trace is one of its format in every detail" strict $t.trace
done
# broken EXPRESSION - a document that has been changed so is none any more.
broken() {
	smco-report --perfetto -o strict.json odd.trace 2>/dev/null
	perl -pi -e "$1" strict.json
	test_exit 1 python3 "$SRC/t/check-trace-events.py" strict.json
}
# shellcheck disable=SC2016 # perl's
for change in '$d ||= s/"ph":"b"/"ph":"n"/' '$d ||= s/"ph":"e"/"ph":"b"/' \
	'$d ||= s/"ts":\d+/"ts":NaN/' '$d ||= s/"ts":(\d+\.\d+)/"ts":"$1"/' '$d ||= s/("ts":\d+\.\d+)/${1}1/' \
	'$d ||= s/"pid":\d+/"pid":-1/' '$d ||= s/"pid":\d+,//' '$d ||= s/"ph":"C","name"/"ph":"C","nom"/' \
	's/"so far":[0-9.]+/"so far":null/' '$d ||= s/"parent":"[0-9.]+"/"parent":"none"/' '$d ||= s/"sf":"[0-9.]+"/"sf":"x"/' \
	'$d ||= s/("ph":"P")/$1,$1/' 's/"ms"/"s"/' 's/\],"stackFrames"/,],"stackFrames"/'; do
	ok "and not after $change" broken "$change"
done

# folded - a line a stack, with the byte seconds that the sites have.
folded() {
	smco-report --flamegraph=naps odd.trace >folded && cat folded &&
		smco-report --json odd.trace >d.json && perl -MJSON::PP -0777 -e '
		sub slurp { local @ARGV = @_; <> } my $d = decode_json(slurp("d.json"));
		my @lines = split /\n/, slurp("folded"); my $sum = 0;
		for (@lines) { /^run;.* (\d+)$/ or /^[^;]*;.* (\d+)$/ or die "what is $_"; $sum += $1 }
		@lines == grep({ $_->{unused}{naps} } @{$d->{sites}}) or die "how many";
		abs($sum - $d->{unused}{byte_seconds}) <= @lines or die $sum'
}
ok "naps as folded stacks" folded
folded_some() { [ "$(smco-report --flamegraph=naps --where 'site ~ "parse_"' odd.trace | wc -l)" = 1 ]; }
ok "of those that were selected" folded_some
ok "a flame graph of nothing" report_refuses 9 "no naps in the trace" --flamegraph=naps nothing.trace
ok "of what there is not" report_refuses 2 'not of "x"' --flamegraph=x odd.trace
ok "naps have no threads" report_refuses 2 "about samples" --flamegraph=naps --thread 1 odd.trace
full() { test_exit 1 smco-report --perfetto odd.trace >/dev/full 2>err && grep -q 'No space' err; }
ok "to a full disk" full

done_testing
