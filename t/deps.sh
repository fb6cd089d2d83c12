#!/bin/sh
# Installs the Debian packages that are missing for the named purposes:
#
#	t/deps.sh [build] [check] [lint] [bench] [chroot]
#
# As root, or with sudo that asks for no password, it installs them; otherwise
# it prints the one line to run and fails. Does nothing, and needs no network,
# when nothing is missing. Only sh, dpkg and apt are taken for granted.

# gcc only recommends the C library's headers, clang its run-time library.
build="gcc libc6-dev make pkg-config perl clang libbpf-dev libelf-dev libdw-dev
	libzydis-dev libzstd-dev libiberty-dev libjansson-dev zlib1g-dev
	libseccomp-dev libpfm4-dev"
# g++: clang, which has a c++ of its own, would stand in and write other code.
# redis-tools carries the server's binary; redis-server would also start it.
check="g++ bzip2 procps python3 python3-jsonschema zstd chromium systemtap-sdt-dev
	lld babeltrace2 redis-tools rustc musl-tools linux-perf strace"
lint="clang-format cppcheck shellcheck"
fuzz="clang libclang-rt-dev"
bench="g++ gdb strace zstd redis-tools sqlite3 python3 bzip2 gzip dpkg-dev
	linux-perf"
chroot="debootstrap git"

wanted=
for purpose in "${@:-build}"; do
	case $purpose in
	build) wanted="$wanted $build" ;;
	check) wanted="$wanted $check" ;;
	lint) wanted="$wanted $lint" ;;
	fuzz) wanted="$wanted $fuzz" ;;
	bench) wanted="$wanted $bench" ;;
	chroot) wanted="$wanted $chroot" ;;
	*)
		echo "$0: unknown purpose $purpose" >&2
		exit 2
		;;
	esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	# shellcheck disable=SC2086 # a list of words
	echo "deps: not a Debian system; going on, in the hope that there is:" \
		$wanted >&2
	exit 0
fi

missing=
for package in $wanted; do
	case " $missing " in *" $package "*) continue ;; esac
	# Two states: the package itself may be there for another architecture.
	status=$(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null)
	case " $status" in
	*" installed "*) ;;
	*) missing="${missing:+$missing }$package" ;;
	esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
	as_root="sudo -n"
else
	{
		echo "deps: some packages are missing. As root, run:"
		echo "  apt-get install --no-install-recommends $missing"
	} >&2
	exit 1
fi

apt() {
	# shellcheck disable=SC2086 # lists of words
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=120 "$@"
}
install_missing() {
	# shellcheck disable=SC2086 # a list of words
	apt "$@" install --no-install-recommends $missing
}

echo "deps: installing $missing"
# Package lists may be missing, or too old to fetch by; one update cures both.
if install_missing --simulate >/dev/null 2>&1 && install_missing; then
	exit 0
fi
if ! { apt update && install_missing; }; then
	echo "deps: could not install: $missing" >&2
	exit 1
fi
