#
# Functions of ./dev: the tests on other architectures, under qemu-user.
#
# A root has the server and the libraries of an architecture, from packages of Debian
# that are unpacked and not configured.  The kernel has qemu run their programs as if
# they were this machine's, and qemu looks for files below $QEMU_LD_PREFIX first.  So
# ./dev test needs to know nothing but the server and a cross compiler.
#

architectures_cache=$server_cache/architectures

# What compilers and qemu call an architecture of Debian.
name_architecture() {
	case $1 in
		arm64) triplet=aarch64-linux-gnu qemu=qemu-aarch64 ;;
		ppc64el) triplet=powerpc64le-linux-gnu qemu=qemu-ppc64le ;;
		s390x) triplet=s390x-linux-gnu qemu=qemu-s390x ;;
		*) die "architectures are arm64, ppc64el and s390x, not \"$1\"" ;;
	esac
}

# Have the packages of this machine that an architecture takes.
require_architecture() {
	missing=
	command -v mmdebstrap >/dev/null 2>&1 || missing="$missing mmdebstrap"
	command -v "$qemu-static" >/dev/null 2>&1 || missing="$missing qemu-user-static"
	command -v "$triplet-gcc" >/dev/null 2>&1 ||
		missing="$missing gcc-$(echo "$triplet" | tr _ -) libc6-dev-$1-cross"
	[ -z "$missing" ] || install_missing
}

# Have the kernel know programs of the architecture.  It does already on a machine that
# was booted with the package; a container lacks the mount.
register_architecture() {
	formats=/proc/sys/fs/binfmt_misc
	[ -e "$formats/register" ] || mount -t binfmt_misc binfmt_misc "$formats" ||
		die "cannot mount binfmt_misc: that needs root, in a container a privileged one"
	[ -e "$formats/$qemu" ] || cat "/usr/lib/binfmt.d/$qemu.conf" >"$formats/register" ||
		die "cannot register $qemu with binfmt_misc"
}

# Have the root of an architecture in the cache.
provide_root() {
	root=$architectures_cache/$1
	[ ! -d "$root" ] || return 0
	version=$(pg_version_to_install)
	release=$(. /etc/os-release && echo "$VERSION_CODENAME")
	say "unpacking PostgreSQL $version of Debian $release for $1"
	mkdir -p "$architectures_cache"
	rm -rf "$root.new"
	mmdebstrap --quiet --mode=root --variant=extract --architectures="$1" \
		--include="postgresql-$version,postgresql-server-dev-$version,liblz4-dev,libicu-dev,libc6-dev,libubsan1" \
		"$release" "$root.new" "deb $debian_mirror $release main" ||
		die "mmdebstrap could not unpack packages of $1"
	printf '#!/bin/sh\nexec %s-gcc --sysroot=%s "$@"\n' "$triplet" "$root" >"$root.new/gcc"
	chmod 755 "$root.new" "$root.new/gcc"
	rm -rf "$root.new/dev" # programs are to find this machine's
	mv "$root.new" "$root"
}

# provide_cross_server ARCH VERSION: have a server with assertions and injection points
# for an architecture whose root is there.  It does without libraries that roots lack.
provide_cross_server() (
	prefix=$architectures_cache/$1-pg$2
	[ ! -d "$prefix" ] || exit 0
	require_to_build_server
	scratch_directory
	fetch_server_source "$2"
	choose_assertions
	say "building PostgreSQL $2 $kind for $1"
	export QEMU_LD_PREFIX="$architectures_cache/$1"
	export LZ4_CFLAGS=' ' LZ4_LIBS=-llz4 ICU_CFLAGS=' ' ICU_LIBS='-licui18n -licuuc -licudata'
	make_server --host="$triplet" CC="$architectures_cache/$1/gcc" CFLAGS='-O1 -g' --enable-cassert $points \
		--without-readline --without-zlib --with-system-tzdata=/usr/share/zoneinfo
)

# test_architecture ARCH ARGUMENT...: ./dev test for an architecture whose root is there,
# and $server's, if that is a version.
# The user that owns servers may not be able to enter the cache, so the libraries that
# it reads are linked to elsewhere.  A warning of the compiler is an error.  TAP tests
# read pages by the byte order of their Perl.
test_architecture() {
	root=$architectures_cache/$1
	pg_config=$(echo "$root"/usr/lib/postgresql/*/bin/pg_config)
	[ -z "$server" ] || pg_config=$root-pg$server/bin/pg_config
	shift
	rm -rf "$work/root"
	mkdir "$work/root"
	cp -al "$root/." "$work/root" 2>/dev/null || cp -a "$root/." "$work/root"
	run env -u HYBRID_SERVER PG_CONFIG="$pg_config" \
		QEMU_LD_PREFIX="$work/root" HARNESS_PERL="$work/root/usr/bin/perl" COPT=-Werror \
		MAKEFLAGS="CC=$root/gcc SANITIZE=-fsanitize=undefined\ -fno-sanitize-recover=undefined" \
		UNIT="${UNIT:-$(tests_of unit | tr '\n' ' ')}" PG_TEST_TIMEOUT_DEFAULT=1800 \
		HYBRID_STATEMENT_LIMIT="${HYBRID_STATEMENT_LIMIT:-3600}" HYBRID_TEST_LIMIT="${HYBRID_TEST_LIMIT:-3600}" \
		HYBRID_SUITE_LIMIT="${HYBRID_SUITE_LIMIT:-14400}" ./dev test "$@"
}

cmd_architectures() {
	architectures= server=
	while [ $# -gt 0 ] && [ "$1" != --tests ]; do
		if [ "$1" = --server ]; then
			[ $# -ge 2 ] || die "usage: ./dev architectures --server VERSION"
			server=$2
			shift
		else
			name_architecture "$1"
			architectures="$architectures $1"
		fi
		shift
	done
	architectures=${architectures:-s390x arm64}
	[ $# -eq 0 ] || shift
	[ $# -gt 0 ] || set -- unit regress isolation tap 001 004 020 100 113
	am_root || die "./dev architectures registers programs with the kernel: that needs root"
	require test
	for architecture in $architectures; do
		name_architecture "$architecture"
		require_architecture "$architecture"
		register_architecture
		provide_root "$architecture"
		[ -z "$server" ] || provide_cross_server "$architecture" "$server" || return
	done
	work=$(mktemp -d "${TMPDIR:-/tmp}/hybridindex.XXXXXX")
	at_end cleanup
	chmod 711 "$work"
	status=0
	for architecture in $architectures; do
		say "$architecture"
		test_architecture "$architecture" "$@" || status=1
	done
	return "$status"
}
