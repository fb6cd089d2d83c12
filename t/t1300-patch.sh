#!/bin/bash
# Text is patched and restored under running threads; forked copies too.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

# patch_run OPTIONS... - every call was the one function or the other
patch_run() {
	start patch_target 800
	local where
	where=$(awk '/ready/ { print $3 }' out)
	drive -t "$where" -d 500 "$@" -p "$pid" || return 1
	grep -q 'patches [1-9]' drive.err || return 1
	untouched "$pid" || return 1
	finish || return 1
	grep 'patched calls some.*wrong 0, text same' out
}
followed() {
	patch_run -s 1 && grep 'patched children [1-9]' out
}
unfollowed() {
	patch_run -s 1 -n && grep 'patched children 0' out
}
ok "calls are whole, children are copies" followed
ok "children that are let go have their own text" unfollowed
ok "with calls injected at the same time" patch_run -s 0 -i 2

done_testing
