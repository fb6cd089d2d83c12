#!/bin/bash
# make torture [TIMES=200] [PARTS="t1600-death check"]: long and rough. Each test
# that kills smco-trace, or lets it come and go, TIMES times; all others
# ("check"); the two commands of the README in a fresh Debian ("chroot", needs
# root). Goes on when something fails, says at the end what passed, in what time,
# and what did not; the exit status is 1 if anything failed.
cd "$(dirname "$0")/.." || exit 1
: "${TIMES:=200}" "${PARTS:=}" "${MAKE:=make}" "${O:=build}"
export O
said=()
failed=0

# say STATUS WHAT
say() {
	if [ "$1" = 0 ]; then
		said+=("passed  $2")
	else
		said+=("FAILED  $2")
		failed=1
	fi
}

# wanted PART - which begins now
wanted() {
	began=$SECONDS
	[ -z "$PARTS" ] || [[ " $PARTS " = *" $1 "* ]]
}
took() { echo "$1, $(((SECONDS - began + 30) / 60)) minutes"; }

# many TEST - and each of its checks on a line of the summary
many() {
	local name log status line
	name=$(basename "$1" .sh)
	wanted "$name" || return
	log=$(mktemp)
	echo "== $name, $TIMES times"
	SMCO_TEST_KILLS=$TIMES SMCO_TEST_ATTACHES=$TIMES SMCO_TEST_TIMEOUT=3600 \
		t/run.sh "$1" | tee "$log"
	status=${PIPESTATUS[0]}
	while read -r line; do
		case $line in
		"ok "*) say 0 "$name: ${line#ok * - }" ;;
		"not ok "*) say 1 "$name: ${line#not ok * - }" ;;
		1..0*) said+=("skipped $name: ${line#1..0 # }") ;;
		esac
	done <"$log"
	say "$status" "$(took "$name as a whole")"
	rm -f "$log"
}

for test in t/t[0-9]*.sh; do
	if grep -qE 'SMCO_TEST_(KILLS|ATTACHES)' "$test"; then
		many "$test"
	fi
done
if wanted check; then
	"$MAKE" --no-print-directory check-run
	say $? "$(took "make check")"
fi
if wanted chroot; then
	t/chroot.sh
	say $? "$(took "make demo and make check in a fresh Debian")"
fi

echo
echo "make torture, deaths and comings $TIMES times each:"
printf '%s\n' "${said[@]}"
exit $failed
