#
# Functions of ./dev: which packages are missing, and how they are installed.
#

major_version() { "$1" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/'; }

# Is this pg_config one of a server that we can build for and run?
usable_pg_config() {
	[ -x "$1" ] || return 1
	pgxs=$("$1" --pgxs 2>/dev/null) || return 1
	[ -f "$pgxs" ] && [ -x "$("$1" --bindir)/initdb" ] &&
		[ -f "$("$1" --includedir-server)/postgres.h" ] || return 1
	[ "$(major_version "$1")" -ge 15 ]
}

find_pg_config() {
	if [ -n "${PG_CONFIG:-}" ]; then
		PG_CONFIG=$(command -v "$PG_CONFIG") && usable_pg_config "$PG_CONFIG" ||
			die "PG_CONFIG is not the pg_config of a PostgreSQL 15 or later with server and PGXS"
		return 0
	fi
	for pg_config in "$(command -v pg_config || :)" \
		$(ls -d /usr/lib/postgresql/*/bin/pg_config 2>/dev/null | sort -t / -k 5 -n -r); do
		if [ -n "$pg_config" ] && usable_pg_config "$pg_config"; then
			PG_CONFIG=$pg_config
			return 0
		fi
	done
	return 1
}

# The major version to install: one whose server is here already, else the
# distribution's newest.
pg_version_to_install() {
	for server in $(ls -d /usr/lib/postgresql/*/bin/postgres 2>/dev/null | sort -t / -k 5 -n -r); do
		version=$(echo "$server" | cut -d / -f 5)
		if [ "$version" -ge 15 ]; then
			echo "$version"
			return
		fi
	done
	apt-cache search --names-only '^postgresql-server-dev-[0-9]+$' |
		sed 's/^postgresql-server-dev-\([0-9]*\).*/\1/' | sort -n | tail -1
}

can_compile() {
	command -v gcc >/dev/null 2>&1 && command -v make >/dev/null 2>&1 &&
		echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1
}

has_header() { echo "#include <$1>" | gcc -E - >/dev/null 2>&1; }

# The package of a header that the server's headers may ask for.
package_of_header() {
	case $1 in
		unicode/*) echo libicu-dev ;;
		libxml/*) echo libxml2-dev ;;
		lz4*) echo liblz4-dev ;;
		zstd*) echo libzstd-dev ;;
		zlib*) echo zlib1g-dev ;;
		ldap*) echo libldap-dev ;;
		numa*) echo libnuma-dev ;;
		liburing*) echo liburing-dev ;;
		sys/* | bits/* | asm/* | linux/*) echo build-essential ;;
		*) return 1 ;;
	esac
}

# Add to $missing the packages of headers that the server was built with and
# its headers include, as far as we include them: the server's package asks for
# some of them only.  The preprocessor stops at the first file that it does not
# find; an empty one in its place shows the next.
find_missing_headers() {
	probe=$(mktemp -d "${TMPDIR:-/tmp}/hybridindex-headers.XXXXXX")
	mkdir "$probe/empty"
	{
		# as base/mute.c does before libpq.h
		printf '#include "postgres.h"\n#undef ENABLE_GSS\n#undef USE_OPENSSL\n'
		find src -name '*.[ch]' -exec sed -n 's/^#include "\(.*\)"$/\1/p' {} + | sort -u |
			while read -r header; do
				printf '#if __has_include("%s")\n#include "%s"\n#endif\n' "$header" "$header"
			done
	} >"$probe/all.c"
	found=
	# shellcheck disable=SC2046
	while ! LC_ALL=C gcc -E $("$PG_CONFIG" --cppflags) -I"$("$PG_CONFIG" --includedir-server)" \
		-I"$probe/empty" "$probe/all.c" >/dev/null 2>"$probe/errors"; do
		header=$(sed -n 's/.*fatal error: \([^:]*\): No such file or directory.*/\1/p' "$probe/errors" | head -1)
		package=$(package_of_header "$header") && [ ! -e "$probe/empty/$header" ] || {
			cat "$probe/errors" >&2
			rm -rf "$probe"
			die "the headers of $("$PG_CONFIG" --version) do not compile here"
		}
		mkdir -p "$probe/empty/$(dirname "$header")"
		: >"$probe/empty/$header"
		case " $missing $found " in
			*" $package "*) ;;
			*) found="$found $package" ;;
		esac
	done
	missing=$missing$found
	rm -rf "$probe"
}

# The packages still missing for a demo, test or bench, in $missing;
# "postgresql" stands for server and headers of the version yet to be chosen.
# What its headers want is known when they are there.
find_missing() {
	missing=
	find_pg_config || missing="$missing postgresql"
	can_compile || missing="$missing build-essential"
	has_header lz4.h || missing="$missing liblz4-dev"
	if [ "$1" = test ]; then
		perl -MIPC::Run -MTest::More -e 1 2>/dev/null && command -v prove >/dev/null 2>&1 ||
			missing="$missing libipc-run-perl"
	fi
	if [ "$1" = python ]; then
		command -v python3 >/dev/null 2>&1 || missing="$missing python3"
	fi
	if [ "$1" = bench ]; then
		find_python || missing="$missing python3-matplotlib"
	fi
	if [ -n "${PG_CONFIG:-}" ] && can_compile; then
		find_missing_headers
	fi
}

# A Python with matplotlib; one that was built by hand may have none.
find_python() {
	for python in python3 /usr/bin/python3; do
		! "$python" -c 'import matplotlib' 2>/dev/null || return 0
	done
	return 1
}

# Keep the server package from making and starting a cluster; what apt
# installs is a program for us, not a service.
no_main_cluster=/etc/postgresql-common/createcluster.d/zz-hybridindex-dev.conf
main_cluster_off() {
	as_root mkdir -p "$(dirname "$no_main_cluster")"
	echo 'create_main_cluster = off' | as_root tee "$no_main_cluster" >/dev/null
}
main_cluster_on() {
	[ -e "$no_main_cluster" ] || return 0
	as_root rm -f "$no_main_cluster"
	as_root rmdir "$(dirname "$no_main_cluster")" 2>/dev/null || :
}

# The names, in $packages, that apt has for those in $missing; as far as its
# lists say, which may have to be fetched yet.
name_packages() {
	packages=
	for package in $missing; do
		if [ "$package" = postgresql ]; then
			version=$(pg_version_to_install)
			package="postgresql-${version:-NN} postgresql-server-dev-${version:-NN}"
		fi
		packages="$packages $package"
	done
}

# Did apt, by the last lines of its log, not reach its archive?  Then say that alone.
die_without_network() {
	! tail -n 12 "$apt_log" | grep '^[EW]: ' | grep -E -q 'Temporary failure resolving|Could not (resolve|connect)|onnection timed out|Network is unreachable' ||
		die "no network: apt cannot reach its archive, to install$packages"
}

# Install what is in $missing with apt.  What that prints goes to a log, which is
# shown only if it fails.
install_missing() {
	command -v apt-get >/dev/null 2>&1 && [ -f /etc/debian_version ] ||
		die "missing:$missing (names of Debian's packages); ./dev installs on Debian and Ubuntu only"
	export DEBIAN_FRONTEND=noninteractive
	name_packages
	may_be_root "apt-get install$packages"
	apt_log=$(mktemp "${TMPDIR:-/tmp}/hybridindex-apt.XXXXXX")
	at_end 'rm -f "$apt_log"; main_cluster_on'
	# one list that cannot be fetched may not be the one that matters
	as_root env LC_ALL=C apt-get update -q -o Acquire::Retries=0 -o Acquire::http::Timeout=20 >"$apt_log" 2>&1 || :
	name_packages
	case $packages in
		*postgresql-NN*)
			die_without_network
			grep '^[EW]:' "$apt_log" >&2 || :
			die "apt knows no PostgreSQL; see https://wiki.postgresql.org/wiki/Apt, or set PG_CONFIG"
			;;
		*postgresql-server-dev-1[0-4]*)
			die "PostgreSQL 15 or later is needed; see https://wiki.postgresql.org/wiki/Apt, or set PG_CONFIG"
			;;
		*postgresql*)
			main_cluster_off
			;;
	esac
	say "installing with apt, some minutes the first time:$packages"
	# shellcheck disable=SC2086
	as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages \
		</dev/null >>"$apt_log" 2>&1 ||
		{
			die_without_network
			grep -E '^(W|Err)' "$apt_log" | tail -n 5 >&2
			grep -E '^(E|dpkg):' "$apt_log" | tail -n 10 >&2
			trap main_cluster_on EXIT
			die "apt could not install:$packages (its output: $apt_log)"
		}
	rm -f "$apt_log"
	main_cluster_on
	trap - EXIT INT TERM HUP
}

# A program has the name of its package.
require_program() {
	command -v "$1" >/dev/null 2>&1 && return
	missing=" $1"
	install_missing
}

# Have everything that a demo, test or bench needs, or say what is missing.
require() {
	find_missing "$1"
	tried=
	while [ -n "$missing" ]; do
		[ "$missing" != "$tried" ] || die "still missing after the installation:$missing"
		install_missing
		tried=$missing
		find_missing "$1"
	done
}
