#!/bin/bash
# A program of more places than go in before it begins: the others come in while
# it runs, and what they see is true.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE

export LC_ALL=C.UTF-8

# 6000 functions of three places each. The first and the last, one of which is
# not among those that go in at first, are called until two seconds of processor
# time have gone by, with the same values again and again.
{
	for ((i = 0; i < 6000; i++)); do
		printf 'int f%d(int a)\n{\n\tint b = a + 1;\n\tint c = b * 3;\n' $i
		printf '\tint d = c ^ a;\n\tint e = d - b;\n\tint g = e + c;\n'
		printf '\tint h = g * d;\n\treturn h + e;\n}\n'
	done
	printf 'int idle(int a)\n{\n\tint b = a + 1;\n\tint c = b * 3;\n\treturn c;\n}\n'
	echo '#include <time.h>'
	printf 'int main(void)\n{\n\tint s = 0;\n'
	for ((i = 0; i < 6000; i++)); do printf '\ts += f%d(%d);\n' $i $((i % 50)); done
	cat <<-END
		for (clock_t end = clock() + 2 * CLOCKS_PER_SEC; clock() < end;)
			for (int i = 10; i < 60; i++)
				s += f0(i) + f5999(i);
		return s == 1 ? idle(s) : 0;
	}
	END
} >large.c
"${CC:-cc}" -O0 -g -o large large.c || exit 1

# range VARIABLE - "SMALLEST LARGEST", nothing if none was seen
range() {
	smco-report --ranges --csv run.trace | tr -d '\r"' |
		awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			$at["variable"] == name { print $at["smallest"], $at["largest"] }'
}

timeout 120 smco-trace -q -m range -t 300 -o run.trace -- ./large
ok "the program ends as ever" test $? = 0
ok "what is called once is seen" test "$(range f3000::a)" = "0 0"
ok "its other variables, too" test "$(range f3000::c)" = "3 3"
for f in f0 f5999; do
	ok "$f is in at last" test "$(range $f::b | cut -d' ' -f2)" = 60
done

timeout 120 smco-trace -q -m range -t unlimited -o run.trace -- ./large
ok "without a limit it ends as ever" test $? = 0
ok "all is watched from the beginning" test "$(range f0::a)" = "0 59"
ok "in any order" test "$(range f5999::a)" = "10 59"
ok "what is called once" test "$(range f5900::c) $(range f100::c)" = "3 3 3 3"
ok "what had no value is told in the end" sh -c "smco-report run.trace |
	grep -q '^ *3 had no value'"
done_testing
