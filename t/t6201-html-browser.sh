#!/bin/bash
# The page of smco-report --html in a browser: it draws, zooms, selects,
# filters, shows the numbers of its data, and nothing of a trace gets to run.
. "$(dirname "$0")/test-lib.sh"

export HOME=$SCRATCH # Chromium's profile
# browse FILE - what is in the page after it has run; what the console has to
# say goes to "console".
browse() {
	timeout -k 5 120 chromium --headless --no-sandbox --disable-gpu \
		--disable-dev-shm-usage --window-size=1400,1000 \
		--virtual-time-budget=20000 --enable-logging=stderr \
		--dump-dom "file://$PWD/$1" >dom 2>log </dev/null || return 1
	grep ':CONSOLE' log >console
	true
}
prereq_CHROMIUM() { chromium --headless --no-sandbox --version; }
need CHROMIUM

# with_check PAGE - the same page with t/html-check.js behind it. Its policy
# forbids that, so that the script's hash has to be put into it. Frames do not
# follow virtual time, timers do.
with_check() {
	perl -MDigest::SHA=sha256_base64 -0777 -e '
		my ($page, $script) = @ARGV;
		sub slurp { open my $f, "<:raw", shift or die; <$f> }
		my $html = slurp($page);
		my $first = "const pageErrors = [];
			window.requestAnimationFrame = f => setTimeout(f, 16, 0);
			addEventListener(\"error\", e => pageErrors.push(e.message));
			addEventListener(\"unhandledrejection\", e => pageErrors.push(String(e.reason)));
			addEventListener(\"securitypolicyviolation\", e => pageErrors.push(e.violatedDirective));
			for (const k of [\"error\", \"warn\"]) console[k] = (...a) => pageErrors.push(a.join(\" \"));";
		my $last = slurp($script);
		my $hashes = join " ", map { "\x27sha256-" . sha256_base64($_) . "=\x27" } $first, $last;
		$html =~ s/script-src /script-src $hashes /;
		$html =~ s{<body>}{"<body><script>$first</script>"}e;
		$html =~ s{</body>}{"<script>$last</script></body>"}e;
		print $html' "$1" "$SRC/t/html-check.js" >checked.html
}

# page ARGUMENT... - write page.html of these traces, and check it.
page() {
	smco-report --html -o page.html "$@" 2>err
	with_check page.html && browse checked.html || return 1
	sed -n '/<pre id="tap">/,/<\/pre>/p' dom | sed 's/<[^>]*>//g' >tap
	grep -v '^ok' tap
	cat console
	grep -q '^1\.\.[0-9]' tap && ! grep -q '^not ok' tap && [ ! -s console ] &&
		[ "$(grep -c '^ok' tap)" -gt 15 ]
}

sample() { "$BUILD/t/unit/u-html" "$@" >/dev/null; }
sample 127 200 all.trace
sample 47 60 other.trace
sample 14 0 no-naps.trace
sample 5 50 cut.trace
sample 8 0 nothing.trace

ok "a run" page all.trace
has_phase_ranges() { grep -q '^ok.*a row for each variable of each phase' tap; }
ok "with ranges by phase" has_phase_ranges
ok "two runs" page all.trace other.trace
ok "without naps" page no-naps.trace
ok "a trace without counters and without an end" page cut.trace
says_cut() { grep -q 'the trace has no end' dom; }
ok "which is said" says_cut
ok "15 000 naps" page <(sample 15 15000 many.trace && cat many.trace)

# With nothing over time there is nothing to draw, and that is said.
nothing() {
	smco-report --html nothing.trace >page.html && browse page.html && cat console &&
		[ ! -s console ] && grep -q 'Nothing over time' dom
}
ok "a run of which nothing is known" nothing

# The policy: a script that got in would not run.
policy() {
	sed "s,</body>,<script>document.title='pwned'</script></body>," page.html >other.html
	browse other.html && ! grep -q '<title>pwned' dom && grep -q 'Content Security Policy' console
}
ok "no other script may run" policy

done_testing
