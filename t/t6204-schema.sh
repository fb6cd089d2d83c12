#!/bin/bash
# Every JSON document is what its published schema in reports/schema says, key
# by key, and the schemas have no key that JSON.md or a manual does not tell of.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"

prereq_JSONSCHEMA() { python3 -c 'import jsonschema; jsonschema.Draft202012Validator'; }
need JSONSCHEMA

export LC_ALL=C.UTF-8
sample() { "$BUILD/t/unit/u-html" "$@" >/dev/null; }
sample 127 60 all.trace
sample 7 20 cut.trace
sample 8 0 nothing.trace
"$BUILD/t/unit/u-summary-text" session.trace || exit 1
"$BUILD/t/unit/u-diff-print" . || exit 1
cp all.trace bad.trace
printf 'harm' | dd of=bad.trace bs=1 seek=$(($(stat -c %s bad.trace) / 2)) conv=notrunc status=none
if prereq_PTRACE >/dev/null 2>&1; then
	smco-trace -q -t 10 --nap 50ms -m nap,range,counters,samples -o real.trace -- \
		"$FIXTURES/nap-schedule" -d 3000 >/dev/null 2>&1 </dev/null || true
	smco-trace -q -t 10 --phase sdt:work:load --phase sdt:work:step -o phases.trace -- \
		"$FIXTURES/phase-work" 3 1000 2 10 >/dev/null 2>&1 </dev/null || true
fi
traces=$(ls -- *.trace)

# matches SCHEMA FILE - as one process says that checks them all; 1: it does not.
coproc CHECK { python3 "$SRC/t/check-schema.py"; }
matches() {
	local line
	echo "$SRC/reports/schema/$1.json $2" >&"${CHECK[1]}"
	while read -r line <&"${CHECK[0]}"; do
		[[ $line =~ ^=\ ([01])$ ]] && return "${BASH_REMATCH[1]}"
		echo "$line"
	done
	return 2
}
# is SCHEMA TOOL ARGUMENT... - what it prints is what the schema says.
is() {
	local schema=$1
	shift
	"$@" >doc 2>err
	[ $? -lt 3 ] || grep -q 'has no end\|is damaged' err || { cat err && return 1; }
	matches "$schema" doc
}
for trace in $traces; do
	ok "$trace: the document" is report smco-report --json "$trace"
done
ok "of several" is report smco-report --json session.trace cut.trace all.trace
ok "of nothing that was selected" is report smco-report --json --where 'size > 1T' all.trace
ok "in a page" is report smco-report --html all.trace -o /dev/stdout
tables=$(smco-report --help | sed -n '/^What, instead/,/^Which/s/^  *--\([a-z-]*\)  .*/\1/p' | grep -v juwel)
for table in $tables; do
	ok "the table --$table" is table smco-report --json "--$table" all.trace
	sections="$sections $(sed -n 's/^"section": "\(.*\)",$/\1/p' doc)"
done
ok "all of these were printed" test "$(echo "$sections" | wc -w)" = 10
for trace in cut.trace bad.trace session.trace; do
	ok "naps of $trace" is table smco-report --json --naps "$trace"
	ok "records of $trace" is table smco-report --json --events "$trace"
done
ok "a comparison" is diff smco-diff --json v1.trace v2.trace
ok "with rules, judged" is diff smco-diff --json --fail-on 'sites.new > 0' --fail-on 'nap.longest > +1%' \
	--base v1.trace v1.trace v1.trace --new v2.trace v2.trace v2.trace
ok "of everything" is diff smco-diff --json --all all.trace all.trace
ok "of what has little in common" is diff smco-diff --json --force nothing.trace all.trace
ok "an accuracy" is accuracy smco-diff --accuracy --json all.trace all.trace

# broken EXPRESSION - a document that has been changed so is none any more.
smco-report --json all.trace >whole
broken() {
	perl -0777 -pe "$1" whole >doc && ! cmp -s whole doc || return 1
	test_exit 1 matches report doc
}
# shellcheck disable=SC2016 # perl's
for change in 's/"schema": 1/"schema": 2/' 's/"not_selected"/"not_chosen"/' 's/"dropped_records":0/"dropped_records":"0"/' \
	's/"addr":"0x/"addr":"/' 's/"ended":"read"/"ended":"lost"/' 's/"self_ppb":\d+/"self_ppb":null/' 's/"came"/"more":1,"came"/' \
	's/"sites": \[.*?\n\]/"sites": null/s' 's/\}\s*$//' 's/"byte_seconds":[0-9.]+/"byte_seconds":NaN/'; do
	ok "none any more after $change" broken "$change"
done

# documented SCHEMA FILE... - all keys are in one of these texts.
documented() {
	local schema=$1
	shift
	sed 's/\\-/-/g; s/\\&//g' "$@" >texts
	python3 - "$SRC/reports/schema/$schema.json" <<'EOF' >keys || return 1
import json, sys
def keys(schema):
    if isinstance(schema, list):
        for s in schema: yield from keys(s)
    elif isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from (v for v in schema.get("enum", []) if v)
        for s in schema.values(): yield from keys(s)
print("\n".join(sorted(set(keys(json.load(open(sys.argv[1])))))))
EOF
	[ "$(wc -l <keys)" -gt 20 ] || return 1
	sed 's/_ns$//; s/_ppb$//' keys | while read -r k; do
		grep -q -- "\b${k}\(_ns\|_ppb\)\?\b" texts || { echo "$k is not told of" && return 1; }
	done
}
ok "keys of the document are told of" documented report "$SRC/reports/JSON.md"
ok "keys of tables" documented table "$SRC/reports/JSON.md" "$SRC/reports/smco-report.1"
ok "keys of comparisons" documented diff "$SRC/reports/JSON.md"
ok "keys of accuracy" documented accuracy "$SRC/reports/JSON.md"

done_testing
