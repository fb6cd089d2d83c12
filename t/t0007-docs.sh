#!/bin/bash
# --help, the manual page and the README tell the same story.
. "$(dirname "$0")/test-lib.sh"

smco-trace --help >help
grep -oE -- '--[a-z][a-z-]+' help | sort -u >options
ok "there are options" test "$(wc -l <options)" -gt 12
sed 's/\\-/-/g; s/Fl -/--/g' "$SRC/supervisor/smco-trace.1" >page
while read -r option; do
	ok "$option is in the manual page" grep -q -- "$option" page
	ok "$option is in the README" grep -q -- "$option" "$SRC/README.md"
done <options
for status in 125 126 127; do
	ok "$status in all three" test \
		"$(grep -l "\\b$status\\b" help page "$SRC/README.md" | wc -l)" = 3
done
for tool in smco-report smco-diff; do
	$tool --help | grep -oE -- '--[a-z][a-z-]+' | sort -u >options
	ok "$tool has options" test "$(wc -l <options)" -gt 12
	sed 's/\\-/-/g' "$SRC/reports/$tool.1" |
		sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/s/^\.B[RI]* //p' >named
	while read -r option; do
		ok "$tool $option is an option on its page" \
			grep -qE -- "(^|[ \"])$option([ ,\"[]|\$)" named
		ok "$tool $option is in the README" grep -q -- "$option" "$SRC/README.md"
	done <options
done
ok "--help fits 80 columns" test_exit 1 grep -q '.\{81\}' help
for page in README.md t/PROMISES.md; do
	grep -oE '`(supervisor|reports|t)/[A-Za-z0-9/._-]*`' "$SRC/$page" |
		tr -d '`' | sort -u >files
	while read -r file; do
		ok "$file, named in $page, is there" test -e "$SRC/$file"
	done <files
	ok "$page names tests" test "$(grep -c '^t/' files)" -gt 20
done

if command -v man >/dev/null; then
	MANROFFSEQ='' man --warnings -l "$SRC/supervisor/smco-trace.1" \
		>/dev/null 2>warnings
	ok "the manual page has no warnings" test ! -s warnings
fi

done_testing
