#
# Functions of ./dev: commands in a clean chroot of a Debian release, so that a hosted
# machine and this one run the same on each release and server.
#

chroots_cache=$server_cache/chroots

# Chroots of SUITE[/ARCHITECTURE]... need root, mmdebstrap, the archive's keys, and of
# another architecture what finds out whether it can run here.
require_chroots() {
	am_root || die "chroots need root"
	require_program mmdebstrap
	case $* in
		*/*) require_program arch-test ;;
	esac
	[ -f "$debian_keyring" ] || {
		missing=" debian-archive-keyring"
		install_missing
	}
}

# pack_chroot SUITE[/ARCHITECTURE]: have a packed chroot, made within a day, in
# $packed.tar.  The suite "experimental" is sid with the PostgreSQL of experimental.
pack_chroot() {
	packed=$chroots_cache/$(echo "$1" | tr / -)
	[ -z "$(find "$packed.tar" -mtime -1 2>/dev/null)" ] || return 0
	say "a chroot of Debian $1"
	suite=${1%/*} architecture=${1#*/} pin=
	[ "$architecture" != "$1" ] || architecture=$(dpkg --print-architecture)
	if [ "$suite" = experimental ]; then
		suite=sid pin='Package: postgresql-* libpq* libecpg* libpgtypes*
Pin: release a=experimental
Pin-Priority: 500'
		signed="deb [signed-by=$debian_keyring] $debian_mirror"
		set -- "$1" "$signed sid main" "$signed experimental main"
	else
		set -- "$1" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
	fi
	shift
	mkdir -p "$chroots_cache"
	# shellcheck disable=SC2016
	run env PIN="$pin" mmdebstrap --quiet --mode=root --variant=minbase --architectures="$architecture" \
		--include=ca-certificates,git,python3 --aptopt="${APT_OPTION:-}" \
		--customize-hook='[ -z "$PIN" ] || echo "$PIN" >"$1/etc/apt/preferences.d/experimental"' \
		"$suite" "$packed.new.tar" "$@" || die "mmdebstrap could not make a chroot of Debian $suite"
	mv "$packed.new.tar" "$packed.tar"
}

# What the command left runs no more, and its mounts are gone, once its first process
# has ended.
remove_chroot() {
	status=$?
	trap - EXIT
	trap '' INT TERM HUP
	if [ -n "$child" ]; then
		signal_child KILL || :
		wait "$child" || :
	fi
	rm -rf --one-file-system "$chroot"
	exit "$status"
}

# run_in_chroot COMMAND [ARGUMENT...]: in the tree's directory of $chroot, where build/
# is that of this directory.  The processes and mounts are namespaces of their own,
# which end with the command.
run_in_chroot() {
	mkdir -p build "$chroot/hybridindex/build"
	cp /etc/resolv.conf "$chroot/etc"
	# shellcheck disable=SC2016
	run unshare --mount --pid --fork --kill-child sh -euc '
		chroot=$1
		shift
		mount -t proc proc "$chroot/proc"
		mount -t tmpfs -o size=1g,mode=1777 tmpfs "$chroot/dev/shm"
		mount --bind build "$chroot/hybridindex/build"
		exec chroot "$chroot" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CI=true \
			sh -c "cd /hybridindex && { \"\$@\"; exit; }" sh "$@"' sh "$chroot" "$@" </dev/null
}

cmd_chroot() {
	[ $# -ge 2 ] || die "usage: ./dev chroot SUITE[/ARCHITECTURE] COMMAND [ARGUMENT...]"
	require_chroots "$1"
	pack_chroot "$1"
	shift
	chroot=$(mktemp -d "$chroots_cache/chroot.XXXXXX")
	at_end remove_chroot
	chmod 755 "$chroot"
	tar -C "$chroot" -xf "$packed.tar"
	git clone -q --depth 1 "file://$PWD" "$chroot/hybridindex"
	say "$*"
	run_in_chroot "$@"
}

cmd_packages() {
	require_chroots "$@"
	exec packaging/debian_chroots build/packages "$@"
}
