#!/bin/bash
# smco-report --html and -o: what may be asked for, where it goes, what stays
# when it fails. What the page says: u-html; how it looks: t6201.
. "$(dirname "$0")/test-lib.sh"

sample() { "$BUILD/t/unit/u-html" "$@" >/dev/null; }
sample 15 50 run.trace
sample 7 50 cut.trace

is_page() {
	[ "$(head -n 1 "$1")" = '<!DOCTYPE html>' ] &&
		[ "$(tail -n 1 "$1")" = '</body></html>' ]
}

to_file() { smco-report --html run.trace -o run.html >out && [ ! -s out ] && is_page run.html; }
ok "to a file" to_file
to_stdout() { smco-report --html run.trace >out && cmp out run.html; }
ok "to standard output, the same" to_stdout
no_more() { [ "$(echo run.*)" = "run.html run.trace" ]; }
ok "nothing else is left" no_more
forms() {
	local form
	for form in --json --csv --juwel "--naps --json" "--width 80"; do
		# shellcheck disable=SC2086 # words
		smco-report $form run.trace >out && smco-report $form run.trace -o out2 && cmp out out2 || return 1
	done
}
ok "-o with every form" forms
# Before the data and the script, so that it is there when the page is opened.
at_once() {
	sed '/id="data-/,$d' run.html >first && grep -q 'ran <b>30 s</b> · overhead <b>5.26 %</b> of at most 10 %' first &&
		grep -q 'unused in <b>50</b> naps · 20..-..-.. ..:..:.. UTC on &lt;img' first &&
		grep -q '<code title="./run &#39;&lt;/script&gt;&lt;script&gt;' first
}
ok "the figures in short come first" at_once
alone() { ! grep -Eqi '(src|href|@import|url\()[ =]*["'"'"']?(http|//)' run.html && ! grep -q 'https\?://' run.html; }
ok "it names nothing outside" alone
small() { sample 15 100000 many.trace && smco-report --html many.trace -o many.html && [ "$(stat -c %s many.html)" -lt 20000000 ]; }
ok "100 000 naps: below 20 MB" small

# Of 50 naps two are of blocks whose first pages were not watched.
unseen() {
	smco-report --naps --csv --where 'head_unseen == true' run.trace >naps.csv && smco-report --naps --csv run.trace >all.csv || return 1
	cat naps.csv
	[ "$(wc -l <naps.csv)" = 3 ] && [ "$(wc -l <all.csv)" = 51 ] &&
		perl "$SRC/t/read-page.pl" run.html >run.json && [ "$(grep -o '"head_unseen":true' run.json | wc -l)" = 2 ] &&
		grep -q '"head_unseen":2,' run.json
}
ok "whose beginning was not watched, in the table and the page" unseen

cut_short() {
	test_exit 10 smco-report --html cut.trace -o cut.html 2>err || return 1
	grep -q 'cut.trace has no end' err && is_page cut.html &&
		perl "$SRC/t/read-page.pl" cut.html | grep -q '"truncated":true'
}
ok "a trace without an end is shown, and it is said" cut_short

echo old >old.html
ok "a directory that is not there" report_refuses 1 "cannot write none/x.html: No such file" --html run.trace -o none/x.html
ok "which is found out first" report_refuses 1 "cannot write none/x.html" --html nosuch.trace -o none/x.html
ok "a directory" report_refuses 1 "cannot write .*: Is a directory" --html run.trace -o .
ok "a full disk" report_refuses 1 "cannot write.*No space" --html run.trace -o /dev/full
ok "no such trace" report_refuses 9 "nosuch.trace" --html nosuch.trace -o old.html
kept() { [ "$(cat old.html)" = old ] && [ "$(echo old.*)" = old.html ]; }
ok "what was there before is kept" kept
ok "with a table" report_refuses 2 "without a table's name" --html --naps run.trace
ok "with another form" report_refuses 2 "form of its own" --html --json run.trace
ok "with a third one" report_refuses 2 "form of its own" --html --flamegraph run.trace
ok "sorted" report_refuses 2 "without --sort" --html --sort naps run.trace
ok "-o without a file" report_refuses 2 '-o wants a value' run.trace -o
read_only() {
	mkdir closed && echo old >closed/x.html && chmod 555 closed && chmod 755 .
	setpriv --reuid=65534 --clear-groups "$BUILD/smco-report" --html run.trace -o closed/x.html >out 2>err
	[ $? = 1 ] && grep -q 'cannot write closed/x.html: Permission denied' err && [ "$(cat closed/x.html)" = old ]
}
if prereq_ROOT 2>/dev/null && chmod 755 . && setpriv --reuid=65534 --clear-groups test -x "$BUILD/smco-report"; then
	ok "without permission" read_only
fi
replaced() { chmod 640 old.html && ln -s old.html link.html && smco-report --html run.trace -o link.html && is_page old.html && [ -L link.html ] && [ "$(stat -c %a old.html)" = 640 ]; }
ok "a link is followed, a mode kept" replaced
pipe() { smco-report --html run.trace -o /dev/stdout | cmp - run.html; }
ok "to a pipe" pipe
dash() { smco-report --json run.trace >out && smco-report --json run.trace -o - | cmp - out; }
ok "- is standard output" dash

done_testing
