#!/bin/bash
# Programs in C, C++ and Rust say and return what they do without us, whatever
# the target: with all sensors in, with few, and as they come and go.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE

cat >thrown.cc <<'END'
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
struct Counted {
	static long alive;
	Counted() { alive++; }
	~Counted() { alive--; }
};
long Counted::alive;
static int below(int depth, int n)
{
	Counted c;
	int sum = depth * n;
	if (depth == n % 7)
		throw n;
	if (depth == 6)
		throw std::runtime_error(std::to_string(sum));
	try {
		return below(depth + 1, n) + sum;
	} catch (const std::runtime_error &e) {
		int length = (int)std::string(e.what()).size();
		if (n & 1)
			throw;
		return length + sum;
	}
}
int main()
{
	unsigned long all = 0;
	std::vector<int> seen(16);
	for (int n = 0; n < 12000; n++) {
		int got;
		try {
			got = below(0, n);
		} catch (int thrown) {
			got = -thrown;
		} catch (const std::exception &e) {
			got = e.what()[0];
		}
		seen[n & 15] += got;
		all = all * 33 + (unsigned)got;
	}
	for (int s : seen)
		std::printf("%d ", s);
	std::printf("%lu %ld\n", all, Counted::alive);
	return 5;
}
END
cat >unwound.rs <<'END'
use std::panic;
#[inline(never)]
fn step(n: u32) -> u32 {
    let low = n & 1023;
    let turned = n.rotate_left(low & 7);
    if low == 77 {
        panic::resume_unwind(Box::new(turned));
    }
    let words: Vec<u32> = (0..low & 7).map(|i| turned ^ i).collect();
    let sum: u32 = words.iter().fold(turned, |a, b| a.wrapping_mul(31).wrapping_add(*b));
    sum
}
fn main() {
    let mut all = 1u32;
    let mut caught = 0u32;
    for n in 0..500000u32 {
        let start = all ^ n;
        match panic::catch_unwind(|| step(start)) {
            Ok(got) => all = all.wrapping_add(got),
            Err(e) => {
                let thrown = *e.downcast::<u32>().unwrap();
                caught += 1;
                all ^= thrown;
            }
        }
    }
    println!("{} {}", all, caught);
    std::process::exit(7);
}
END

# turns=N same PROGRAM OPTIONS... - output and status are those without us, which
# plain has.
plain() {
	"./$1" "$turns" >plain 2>&1
	want=$?
}
same() {
	local status
	smco-trace -q -m range -o run.trace "${@:2}" -- "./$1" "$turns" >out 2>&1
	status=$?
	[ "$want" -gt 0 ] && [ $status = "$want" ] && cmp plain out && return
	echo "$*: status $status"
	return 1
}
always() {
	local target want turns=1000000
	plain "$1"
	for target in 0 1 2 5 10 20 50 100; do
		same "$1" -t $target || return 1
	done
	for target in 1 10 100; do
		same "$1" -t $target --controller=global || return 1
	done
	# Each hit of a breakpoint is paid then.
	turns=10000
	plain "$1"
	same "$1" -t unlimited || return 1
	[ "$(smco-report --ranges --csv --where 'hits > 1000' run.trace | wc -l)" -gt 3 ]
}

# compiled NAME COMMAND...
compiled() { "${@:2}" -g -o "$1" >err 2>&1 || { cat err; return 1; }; }
c=$SRC/t/fixtures/range/classes.c
gcc_o2() { compiled c "${CC:-cc}" -O2 "$c" && always c; }
gcc_o0() { compiled c "${CC:-cc}" -O0 -fcf-protection=full "$c" && always c; }
clang_o2() { compiled c clang -O2 -fcf-protection=full "$c" && always c; }
cxx() { compiled cxx "$1" -std=c++17 "$2" thrown.cc && always cxx; }
rust() { compiled rust rustc --edition 2021 -C opt-level="$1" unwound.rs && always rust; }

ok "C, gcc -O2" gcc_o2
ok "C, gcc -O0 -fcf-protection" gcc_o0
! command -v clang >/dev/null || ok "C, clang -O2 -fcf-protection" clang_o2
for level in -O0 -O2; do
	ok "C++, g++ $level" cxx g++ $level
done
if rustc --version >/dev/null 2>&1; then
	for level in 0 2; do
		ok "Rust, opt-level $level" rust $level
	done
fi
done_testing
