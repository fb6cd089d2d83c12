#!/bin/bash
# What is read of a program's debug information is kept for the next time: the
# same comes out with it, without it, and whatever became of it.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE

export SMCO_CACHE_DIR=$SCRATCH/kept SMCO_DEBUG=range LC_ALL=C.UTF-8

# build OUT VALUE - a program whose build-id is always the same; of all its
# variables sensors see each value, none is looked at now and then
build() {
	cat >"$1.c" <<-END
		enum colour { RED, GREEN = $2, BLUE } paint;
		struct { unsigned low : 3; short side; } box;
		__attribute__((noinline)) static int work(int n)
		{
			int sum = 0, table[10];
			for (int i = 0; i < n; i++) {
				sum += table[i] = i * $2;
				box.side -= 3;
				box.low++;
			}
			paint = n > 5 ? BLUE : RED;
			return sum;
		}
		int main(void) { return work(3) + work(9) == -1; }
	END
	"${CC:-cc}" -O0 -g -Wl,--build-id=0x0123456789abcdef -o "$1" "$1.c"
}
build prog 7 || exit 1

# ranges [OPTION...] - what was found, in "found"; how it came, in "err"
ranges() {
	rm -f run.trace
	timeout 120 smco-trace -q -m range -t unlimited -o run.trace "$@" \
		-- ./prog 2>err || return 1
	smco-report --ranges --csv run.trace | tr -d '\r' |
		awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{ print $at["variable"], $at["smallest"], $at["largest"],
				$at["finding"], $at["declared"] }' |
		sort >found
	[ -s found ]
}
# same WORDS [OPTION...] - the same as without any cache, and it came so
same() {
	local how=$1
	shift
	ranges "$@" && diff truth found && grep "$how" err
}
files() { find "$SMCO_CACHE_DIR" -name '*.range' | wc -l; }

ranges --no-cache && mv found truth
ok "--no-cache keeps nothing" absent "$SMCO_CACHE_DIR"
ok "there is something to find" grep -q '^"*work::sum"* 0 252 ' truth
ok "the first time it is read" same "prog: read"
ok "and kept" test "$(files)" = 1
ok "the second time it comes from there" same "from the cache"
ok "not with --no-cache" same "prog: read" --no-cache
ok "what is selected is not what all are" \
	sh -c "smco-trace -q -m range --var sum -o x.trace -- ./prog 2>&1 | grep 'prog: read'"
ok "that is kept by itself" test "$(files)" = 2
ok "and found again" sh -c \
	"smco-trace -q -m range --var sum -o x.trace -- ./prog 2>&1 | grep 'from the cache'"
ok "the rest is still there" same "from the cache"

kept=$(find "$SMCO_CACHE_DIR" -size +1 -printf '%s %p\n' | sort -n | tail -1 | cut -d' ' -f2)
ok "for the owner only" test "$(stat -c '%a' "$SMCO_CACHE_DIR" "$kept" | tr '\n' ' ')" = "700 600 "
# damaged COMMAND... - it is not used then, but replaced
damaged() {
	"$@" || return 1
	same "prog: read" && same "from the cache"
}
ok "cut short" damaged truncate -s -1 "$kept"
ok "longer" damaged truncate -s +32 "$kept"
ok "empty" damaged truncate -s 0 "$kept"
for at in 3 40 100 2000; do
	ok "a byte changed at $at" damaged perl -e 'open my $f, "+<", $ARGV[0] or die;
		seek $f, $ARGV[1], 0; read $f, my $c, 1; seek $f, $ARGV[1], 0;
		print $f chr(255 - ord $c); close $f' "$kept" $at
done
cp "$kept" elsewhere
ok "a link to a good one" damaged ln -sf "$SCRATCH/elsewhere" "$kept"

# Another program that says it is the same.
cp truth before
build other 11 && cp other prog
ranges --no-cache && mv found truth
ok "other values" test_exit 1 cmp -s truth before
ok "of another program nothing is taken" same "prog: read"
ok "which is kept then" same "from the cache"
strip -o prog other
ok "nor for one without debug information" sh -c "
	smco-trace -q -m range -o x.trace -- ./prog 2>err2; ! grep cache err2"
cp other prog

rm -rf "$SMCO_CACHE_DIR"
for i in 1 2; do
	(mkdir two$i && cd two$i && cp ../prog . &&
		timeout 120 smco-trace -q -m range -t unlimited -o run.trace -- ./prog 2>err
		echo $? >status) &
done
wait
ok "two at once" test "$(cat two1/status two2/status | tr '\n' ' ')" = "0 0 "
ok "keep one file" test "$(files)" = 1
ok "which is good" same "from the cache"

# Where nothing can be made or written all is as without.
for dir in /proc/self /proc/sys /dev/null "$SCRATCH/none/below" relative/none ""; do
	export SMCO_CACHE_DIR=$dir
	ok "SMCO_CACHE_DIR=$dir" same "prog: read"
	ok "again" same "prog: read"
done
unset SMCO_CACHE_DIR
export XDG_CACHE_HOME=$SCRATCH/xdg HOME=$SCRATCH/home
mkdir home
ok "XDG_CACHE_HOME" same "prog: read"
ok "has it" test -d xdg/smco
ok "not the other" absent home/.cache
unset XDG_CACHE_HOME
ok "HOME" same "prog: read"
ok "has it" test -d home/.cache/smco
chmod o+w home/.cache
ok "not one that others may write to" same "prog: read"

done_testing
