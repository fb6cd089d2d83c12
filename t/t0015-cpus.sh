#!/bin/bash
# A command runs on the CPUs that it would run on without us, also when its
# control group is given more of them meanwhile.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

group=
trap '[ -z "$group" ] || rmdir "$group" 2>/dev/null' EXIT
allowed() { sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$1"; }

one=$(allowed /proc/self/status)
one=${one%%[,-]*}
only_one() {
	taskset -c "$one" smco-trace -q -o t.trace -- cat /proc/self/status >got
	[ "$(allowed got)" = "$one" ]
}
ok "one CPU, as it was told" only_one

# makes a group of one CPU in $1
make_group() {
	mkdir "$1/smco-t$$" || return 1
	group=$1/smco-t$$
	[ ! -e "$group/cpuset.mems" ] || cat "$1/cpuset.mems" >"$group/cpuset.mems"
	echo "$one" >"$group/cpuset.cpus"
}
# in_group COMMAND... - there; what it may use once the group has more
in_group() {
	rm -f ready go got
	echo "$one" >"$group/cpuset.cpus" || return 1
	# shellcheck disable=SC2016 # the inner shell's
	sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$group" "$@" \
		sh -c 'echo >ready; while [ ! -e go ]; do sleep 0.05; done
			grep Cpus_allowed_list /proc/self/status >got' &
	local pid=$!
	wait_for 20 test -e ready || return 1
	echo "$all" >"$group/cpuset.cpus" || return 1
	echo >go
	wait "$pid"
	cat got
}
more() {
	in_group env >without && in_group smco-trace -q -o t.trace -- >with || return 1
	cat without with
	cmp without with
}
for dir in /sys/fs/cgroup/cpuset /sys/fs/cgroup; do
	all=$(cat $dir/cpuset.cpus 2>/dev/null || cat $dir/cpuset.cpus.effective 2>/dev/null)
	[ "${all:-$one}" != "$one" ] || continue
	make_group $dir 2>err || continue
	ok "all that its group is given while it runs" more
	rmdir "$group" && group=
	break
done

done_testing
