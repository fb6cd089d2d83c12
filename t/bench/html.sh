#!/bin/bash
# How long smco-report --html takes for a large trace, how much memory, how large
# the page is, and how long Chromium takes until something of it is painted and
# until all that is in the window is drawn; a page with one letter beside it:
#
#	O=build t/bench/html.sh
#
# BENCH_RECORDS (115 million, 1 GB) made-up records, which BENCH_SCRATCH keeps.
# Prints.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
RECORDS=${BENCH_RECORDS:-115000000}

[ -s large.trace ] || "$BUILD/t/bench/large-trace" "$RECORDS" large.trace || fail "no trace"
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
# Its policy lets no script in but by its hash. Drawn is what is in the window
# when the frame after the page's first one has been made.
timed() {
	perl -MDigest::SHA=sha256_base64 -0777 -pe '
		my $last = "const at = {}, tell = () => at.painted && at.drawn && console.log(\"painted \" + Math.round(at.painted) + \" drawn \" + Math.round(at.drawn) + \" ms\");
			new PerformanceObserver(list => { for (const e of list.getEntries())
				if (e.name === \"first-contentful-paint\") { at.painted = e.startTime; tell(); } }).observe({type: \"paint\", buffered: true});
			addEventListener(\"load\", () => requestAnimationFrame(() => setTimeout(() => { at.drawn = performance.now(); tell(); })));";
		my $hash = "\x27sha256-" . sha256_base64($last) . "=\x27";
		s/script-src /script-src $hash /; s{</title>}{</title><script>$last</script>}' "$1" >timed.html
}
# shown NAME PAGE - three times, in a browser that has just been started.
shown() {
	timed "$2"
	for _ in 1 2 3; do
		timeout -k 2 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1400,1000 \
			--enable-logging=stderr "file://$PWD/timed.html" >log 2>&1 </dev/null &
		pid=$!
		while kill -0 "$pid" 2>/dev/null && ! grep -q ' drawn ' log; do sleep 0.3; done
		kill "$pid" 2>/dev/null
		wait "$pid"
		pid=
		sed -n "s/.*\"\(painted .* ms\)\".*/$1 \1 after it was asked for/p" log
	done
}
export HOME=$SCRATCH
echo "<!DOCTYPE html><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src 'self'\"><title>x</title><p>x" >empty.html
shown "empty   " empty.html
shown "page    " large.html
