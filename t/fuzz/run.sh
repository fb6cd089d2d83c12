#!/bin/sh
# t/fuzz/run.sh SECONDS TARGET... - runs each libFuzzer target for its share
# of SECONDS, from the seeds in t/fuzz/seeds/NAME if there are any. What the
# fuzzer finds on the way is kept beside the target, and so is a crash.
seconds=$1
shift
[ $# -gt 0 ] || {
	echo "fuzz: no targets"
	exit 1
}
share=$((seconds / $#))
[ $share -gt 0 ] || share=1
status=0
for target; do
	name=$(basename "$target")
	corpus=$(dirname "$target")/corpus/$name
	log=$target.log
	mkdir -p "$corpus"
	set -- "$corpus"
	[ ! -d "t/fuzz/seeds/${name#fuzz-}" ] ||
		set -- "$@" "t/fuzz/seeds/${name#fuzz-}"
	if "$target" -max_total_time=$share -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$target." "$@" \
		>"$log" 2>&1; then
		echo "fuzz: $name: $(sed -n 's/.*number_of_executed_units: //p' \
			"$log") runs in ${share}s, nothing found"
	else
		echo "fuzz: $name FAILED:"
		tail -n 40 "$log"
		status=1
	fi
done
exit $status
