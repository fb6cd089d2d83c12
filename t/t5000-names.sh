#!/bin/bash
# What a report calls the places where memory came from: inlined functions,
# unloaded plugins, files that are gone by then.
. "$(dirname "$0")/test-lib.sh"
prereq_CXX() { command -v c++; }
need PTRACE CXX
SYM=$SRC/t/fixtures/sym

build() {
	c++ -O2 -g -o stale "$SYM/stale.cc" &&
		cc -O2 -g -shared -fPIC -o plugin.so "$SYM/staleplugin.c"
}

# has_frames REPORT "FUNCTION FILE:LINE[ inlined]"... - some site has these
# frames, one directly above the other.
has_frames() {
	perl -MJSON::PP -e '
		my $file = shift;
		open my $in, "<", $file or die;
		local $/;
		my $report = decode_json(<$in>);
		my $want = join "\n", @ARGV;
		for my $stack (@{$report->{stacks}}) {
			my $got = join "\n", map {
				my $f = $_->{file} =~ s,.*/,,r;
				"$_->{function} $f:$_->{line}" .
					($_->{inlined} ? " inlined" : "");
			} @{$stack->{frames}};
			exit 0 if index("$got\n", "$want\n") >= 0;
			print "$got\n\n";
		}
		exit 1' "$@"
}

launched() {
	build && smco-trace -q -t 20 --nap 200ms -o a.trace -- \
		"$PWD/stale" "$PWD/plugin.so" &&
		smco-report --json a.trace >a.json
}
ok "a program that removes its own files" launched
ok "an inlined function and its caller" has_frames a.json \
	"cache::grab stale.cc:13 inlined" \
	"cache::fill(unsigned long) stale.cc:18"
ok "a plugin that was unloaded and removed" has_frames a.json \
	"plugin_fill staleplugin.c:8"

attached() {
	build || return 1
	"$PWD/stale" "$PWD/plugin.so" now >ready &
	local pid=$!
	wait_for 10 grep -q ready ready && test ! -e stale &&
		smco-trace -q -t 20 --nap 200ms -d 2 -o b.trace -p $pid
	local status=$?
	wait $pid
	[ $status -eq 0 ] && smco-report --json b.trace >b.json
}
ok "attached when the files are gone already" attached
ok "an inlined function of a removed program" has_frames b.json \
	"cache::grab stale.cc:13 inlined" \
	"cache::fill(unsigned long) stale.cc:18"
ok "a removed plugin" has_frames b.json "plugin_fill staleplugin.c:8"

stripped() {
	build && strip stale &&
		smco-trace -q -t 20 --nap 200ms -o c.trace -- \
			"$PWD/stale" "$PWD/plugin.so" &&
		smco-report --json c.trace >c.json
}
ok "a stripped program" stripped
ok "its libraries are named, it is not" has_frames c.json \
	"operator new(unsigned long) :0" " :0" " :0"

done_testing
