#
# Functions of ./dev (POSIX shell): the work space, the build, the private
# cluster.
#

say() { printf '\n=== %s\n' "$*"; }
die() {
	printf 'dev: %s\n' "$*" >&2
	exit 1
}

am_root() { [ "$(id -u)" -eq 0 ]; }

# May we become root for this?  The first use of sudo asks, unless in CI.
sudo_allowed=
may_be_root() {
	! am_root && [ -z "$sudo_allowed" ] || return 0
	command -v sudo >/dev/null 2>&1 ||
		die "need root for: $* (and there is no sudo; do that as root, then run ./dev as you like)"
	if [ "${CI:-}" != true ]; then
		[ -t 0 ] || die "need root for: $* (do that as root, or run ./dev with CI=true to allow sudo)"
		printf 'dev needs sudo for: %s\nContinue? [y/N] ' "$*"
		read -r answer
		case $answer in
			y | Y | yes) ;;
			*) die "stopped" ;;
		esac
	fi
	sudo_allowed=yes
}

as_root() {
	may_be_root "$@"
	if am_root; then
		"$@"
	else
		sudo "$@"
	fi
}

# A command in its own process group, so that a signal to us ends it and all
# it started.
child=
run() {
	setsid "$@" &
	child=$!
	status=0
	wait "$child" || status=$?
	child=
	return "$status"
}

# dash knows -s before a process group only.
signal_child() { kill -s "$1" -- "-$child" 2>/dev/null; }

# at_end COMMAND: run it however we end.
at_end() {
	# shellcheck disable=SC2064
	trap "$1" EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# ---- a place to work, and its removal ----

# A temporary directory for what needs no server, in $scratch.
scratch_directory() {
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/hybridindex.XXXXXX")
	at_end 'rm -rf "$scratch"'
}

# Copies of this directory are made below $TMPDIR: it is not in this directory,
# but where copies leave it out (copy_tree).
check_tmpdir() {
	here=$(pwd -P)
	case $(cd "${TMPDIR:-/tmp}" && pwd -P)/ in
		"$here"/build/*) ;;
		"$here"/*) die "TMPDIR is in $here, and copies of that are made there: set it to a directory elsewhere, or below build" ;;
	esac
}

work=
workspace() {
	check_tmpdir
	work=$(mktemp -d "${TMPDIR:-/tmp}/hybridindex.XXXXXX")
	work=$(cd "$work" && pwd -P)
	at_end cleanup
	private_server
	use_server
	find_owner
	own_directories socket data tmp
}

# Programs are those of the server that PG_CONFIG names.
use_server() {
	bindir=$("$PG_CONFIG" --bindir)
	PATH=$bindir:$PATH
	export PATH PG_CONFIG
}

# The user that owns servers in $work.
find_owner() {
	owner=$(id -un)
	am_root || return 0
	id postgres >/dev/null 2>&1 ||
		die "the server refuses to run as root, and there is no user postgres"
	owner=postgres
	chmod 711 "$work"
	(cd / && as_owner test -x "$work") ||
		die "user postgres cannot enter $work, where its servers would be (set TMPDIR)"
}

# Make directories in $work that are the owner's.
own_directories() {
	for directory in "$@"; do
		mkdir -m 700 "$work/$directory"
		own "$work/$directory"
	done
}

own() { ! am_root || chown -R "$owner" "$@"; }

# Run as the user that owns servers, from a directory that it can enter.
as_owner() {
	if am_root; then
		runuser -u "$owner" -- "$@"
	else
		"$@"
	fi
}

# The same of what takes long: see run.
run_as_owner() {
	# shellcheck disable=SC2046
	run sh -c 'cd / && exec "$@"' sh $(am_root && echo runuser -u "$owner" --) env PATH="$PATH" "$@"
}

# What run has started ends, and the work space goes.
cleanup() {
	status=$?
	trap - EXIT
	trap '' INT TERM HUP
	if [ -n "$child" ] && signal_child TERM; then
		for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
			signal_child 0 || break
			sleep 1
		done
		signal_child KILL || :
	fi
	if [ -n "$work" ]; then
		# our cluster, and those of a TAP test that was killed
		find "$work" -name postmaster.pid 2>/dev/null | while read -r pidfile; do
			(cd / && as_owner "$bindir/pg_ctl" -D "$(dirname "$pidfile")" -m immediate -w stop) >/dev/null 2>&1 || :
		done
		rm -rf "$work"
	fi
	exit "$status"
}

# A copy of the tree in $work/tree, compiled, and installed into the private
# server.  The copy keeps this directory free of objects of another server
# version, and user postgres can write to it.
build() {
	say "building for $("$PG_CONFIG" --version)"
	compiled_tree "$original" "$work/tree"
	install_tree "$work/tree" "$PG_CONFIG"
	own "$work/tree"
}

# ---- the private cluster ----

# With $server_program in the place of postgres, if that is set.
cluster_running=
server_program=
cluster_start() {
	[ -z "$cluster_running" ] || return 0
	cluster_create
	cluster_up
	cluster_running=yes
	cluster_is_default
}

cluster_create() {
	locale=C
	! locale -a 2>/dev/null | grep -qi '^C\.utf-\?8$' || locale=C.UTF-8
	(cd / && as_owner "$bindir/initdb" -D "$work/data" -U postgres -A trust -E UTF8 \
		--locale="$locale" --no-sync) >"$work/initdb.log" 2>&1 ||
		{
			cat "$work/initdb.log"
			die "initdb failed"
		}
	as_owner tee -a "$work/data/postgresql.conf" >/dev/null <<-EOF
		listen_addresses = ''
		unix_socket_directories = '$work/socket'
		port = 65432
		fsync = off
		autovacuum = off
		shared_buffers = 256MB
		max_wal_size = 4GB
		checkpoint_timeout = 1h
		maintenance_work_mem = 128MB
		max_worker_processes = 16
		log_line_prefix = '%m [%p] %q%a '
	EOF
}

cluster_up() {
	(cd / && as_owner "$bindir/pg_ctl" -D "$work/data" -l "$work/data/server.log" \
		-w -t 300 ${server_program:+-p "$server_program"} start) >"$work/start.log" 2>&1 ||
		{
			cat "$work/start.log" "$work/data/server.log"
			die "the server did not start"
		}
}

# Programs connect to it if they are not told otherwise.
cluster_is_default() {
	PGHOST=$work/socket PGPORT=65432 PGUSER=postgres PGDATABASE=postgres
	export PGHOST PGPORT PGUSER PGDATABASE
	unset PGOPTIONS PGSERVICE PGSERVICEFILE PGHOSTADDR PGPASSWORD PGPASSFILE 2>/dev/null || :
}

# Throw it away, whatever its processes are at.
cluster_discard() {
	(cd / && as_owner "$bindir/pg_ctl" -D "$work/data" -m immediate -w stop) >/dev/null 2>&1 || :
	find "$work/data" -mindepth 1 -delete
	cluster_running=
}

# The same for benchmarks: with autovacuum, and plans that do not vary.
tuned_cluster() {
	cluster_start
	psql -X -q -c 'ALTER SYSTEM SET autovacuum = on' -c "ALTER SYSTEM SET autovacuum_naptime = '5s'" \
		-c 'ALTER SYSTEM SET jit = off' -c 'ALTER SYSTEM SET max_parallel_workers_per_gather = 0' \
		-c 'SELECT pg_reload_conf()' >/dev/null
}

# What restarts our cluster, for programs that cannot call functions of this file.
restart_command() {
	echo "$(! am_root || echo "runuser -u $owner --") $bindir/pg_ctl -D $work/data -l $work/data/server.log -w -m fast restart"
}
