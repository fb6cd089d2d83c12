#!/bin/bash
# t/chroot.sh [DIRECTORY] - the proof that the README's two commands work as
# they are on a fresh Debian 12: a minimal bookworm in DIRECTORY (a temporary
# one if none is given), a clone of this repository in it, `make demo` and
# `make check`. Needs root; installs debootstrap. The package sources are those
# of this machine. The fresh system is kept as a tar file in $SMCO_CACHE (by
# default ~/.cache/smco) and used again the next time.
set -e
SRC=$(cd "$(dirname "$0")/.." && pwd)
cache=${SMCO_CACHE:-$HOME/.cache/smco}
base=$cache/bookworm.tar.gz
root=${1:-$(mktemp -d -p "${TMPDIR:-/var/tmp}")}

[ "$(id -u)" = 0 ] || {
	echo "chroot.sh: needs root, for debootstrap and chroot" >&2
	exit 1
}

# The first URI that this machine takes Debian from.
mirror() {
	local f
	for f in /etc/apt/sources.list.d/*.sources; do
		[ ! -e "$f" ] || awk '/^URIs:/ { uri = $2 }
			/^Suites:.*bookworm( |$)/ { print uri; exit }' "$f"
	done
	awk '/^deb / { for (i = 2; i < NF; i++)
		if ($(i + 1) == "bookworm") print $i }' /etc/apt/sources.list \
		/etc/apt/sources.list.d/*.list
}

make_base() {
	local uri
	uri=$(mirror 2>/dev/null | head -n 1)
	[ -n "$uri" ] || {
		echo "chroot.sh: no source of bookworm is configured here" >&2
		return 1
	}
	"$SRC/t/deps.sh" chroot
	mkdir -p "$cache"
	echo "chroot.sh: making a minimal bookworm, once"
	# The user has make, and git to get this far; nothing else.
	debootstrap --variant=minbase --include=make,git,ca-certificates \
		bookworm "$root" "$uri" >"$cache/debootstrap.log" 2>&1 || {
		tail -n 20 "$cache/debootstrap.log" >&2
		return 1
	}
	rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb
	tar -C "$root" -czf "$base.new" . && mv "$base.new" "$base"
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
	# With what programs have mounted in there: perf has a tracefs in /sys.
	if mountpoint -q "$root"; then
		umount -R "$root" || umount -lR "$root"
	fi
	# Never remove what might still reach into the host.
	if [ -z "$KEEP" ] && ! grep -q " $root/" /proc/self/mounts; then
		rm -rf --one-file-system "$root"
	fi
}
trap clean_up EXIT

mkdir -p "$root"
if [ -e "$base" ]; then
	tar -C "$root" -xzf "$base"
else
	make_base
fi

# mktemp makes a directory that only root can pass; the tar file has its mode.
chmod 755 "$root"

# The way to packages is this machine's own, proxies and certificates included.
rm -rf "$root"/etc/apt/sources.list*
mkdir -p "$root/etc/apt/sources.list.d"
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
	if [ -e "$f" ] && grep -q bookworm "$f" && grep -qi debian "$f" &&
		! grep -q 'cloud-sdk' "$f"; then
		cp "$f" "$root$f"
	fi
done
for f in /etc/resolv.conf /etc/hosts /etc/apt/apt.conf.d/*proxy* \
	/etc/apt/apt.conf; do
	[ ! -e "$f" ] || cp -L "$f" "$root$f"
done
[ ! -d /usr/local/share/ca-certificates ] || {
	mkdir -p "$root/usr/local/share"
	cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
	chroot "$root" update-ca-certificates >/dev/null 2>&1 || :
}

# A root that is no mount point has no mount namespaces of its own, which the
# test of a full disk needs; and nothing mounted in it shows outside.
mount --bind "$root" "$root"
mount --make-private "$root"
for dir in /proc /sys /dev /dev/pts; do
	mkdir -p "$root$dir"
	mount --bind "$dir" "$root$dir"
	mount --make-private "$root$dir"
done
# What a login has; nothing of this session's environment.
inside() {
	env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$root" /bin/sh -c "cd /srv/smco-trace && $1"
}

rm -rf "$root/srv/smco-trace"
git clone -q --no-hardlinks "$SRC" "$root/srv/smco-trace"
status=0
for command in 'make demo' 'make check'; do
	echo "== $command, in a fresh bookworm"
	if inside "$command" >"$root/log" 2>&1; then
		echo "ok: $command"
	else
		echo "FAILED: $command"
		status=1
	fi
	tail -n "${LINES_SHOWN:-40}" "$root/log"
done
exit $status
