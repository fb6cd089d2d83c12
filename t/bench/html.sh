#!/bin/bash
# How long smco-report --html takes for a large trace, how much memory, how large
# the page is, and how long Chromium takes until it has drawn it:
#
#	O=build t/bench/html.sh
#
# BENCH_RECORDS (115 million, 1 GB) made-up records. Prints.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
RECORDS=${BENCH_RECORDS:-115000000}

"$BUILD/t/bench/large-trace" "$RECORDS" large.trace || fail "no trace"
python3 - "$BUILD/smco-report" <<-'EOF' || fail "no page"
	import os, resource, subprocess, sys, time
	start = time.time()
	subprocess.check_call([sys.argv[1], "--html", "large.trace", "-o", "large.html"])
	used = resource.getrusage(resource.RUSAGE_CHILDREN)
	size = os.path.getsize
	print("trace    %.0f MB" % (size("large.trace") / 1e6))
	print("written  %.1f s, %.1f s of CPU time, at most %.0f MB of memory" %
	      (time.time() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3))
	print("page     %.1f MB" % (size("large.html") / 1e6))
EOF
# Its policy lets no script in but by its hash.
perl -MDigest::SHA=sha256_base64 -0777 -pe '
	my $last = "painter.flush(); document.body.append(make(\"pre\", {id: \"drawn\"}, Math.round(performance.now()) + \" ms\"));";
	my $hash = "\x27sha256-" . sha256_base64($last) . "=\x27";
	s/script-src /script-src $hash /; s{</body>}{<script>$last</script></body>}' large.html >drawn.html
export HOME=$SCRATCH
for _ in 1 2 3; do
	timeout -k 2 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1400,1000 \
		--dump-dom "file://$PWD/drawn.html" 2>/dev/null </dev/null | sed -n 's/.*<pre id="drawn">\([^<]*\).*/drawn    \1 after the page was asked for/p'
done
