#
# Functions of ./dev: a server that is kept between calls, to try things on.
#

# Those of this directory are in one place, by version.  It is below $TMPDIR,
# since user postgres cannot enter every home directory.
scratch_servers=${TMPDIR:-/tmp}/hybridindex-psql-$(
	{
		id -u
		pwd -P
	} | cksum | cut -d ' ' -f 1
)

# Have the place for us alone.  Its name can be guessed, so we refuse it if another
# user has made it.
enter_scratch_servers() {
	check_tmpdir
	mkdir -m 711 "$scratch_servers" 2>/dev/null || :
	[ -n "$(find "$scratch_servers" -prune -type d -user "$(id -u)")" ] ||
		die "$scratch_servers is not a directory of ours"
	at_end '[ -z "$child" ] || signal_child TERM || :'
	exec 8>>"$scratch_servers/lock"
	run flock 8
}

# Servers may not inherit the lock.
leave_scratch_servers() {
	exec 8>&-
	trap - EXIT INT TERM HUP
}

# A private copy of the server that PG_CONFIG names, with a cluster, in $work;
# PG_CONFIG becomes the copy's.  A server that was built again is another.
scratch_server() {
	original=$PG_CONFIG
	work=$(cd "$scratch_servers" && pwd -P)/$(major_version "$original")
	identity="$(server_identity "$original")"
	if [ "$identity" != "$(cat "$work/identity" 2>/dev/null)" ]; then
		discard_scratch_server "$work"
		mkdir -m 711 "$work"
		find_owner
		copy_server "$original" "$work/server"
		echo "$copied" >"$work/pg_config"
	fi
	find_owner
	PG_CONFIG=$(cat "$work/pg_config")
	use_server
	if [ ! -e "$work/identity" ]; then
		own_directories socket data
		cluster_create
		echo "$identity" >"$work/identity"
	fi
}

# Build what has changed, and install it if that makes a difference; the server
# runs afterwards, with what is installed.
scratch_update() {
	rm -rf "$work/tree"
	compiled_tree "$original" "$work/tree"
	new=$(cd "$work/tree" && cksum hybridindex.so hybridindex.control hybridindex--*.sql)
	old=$(cat "$work/installed" 2>/dev/null) || :
	if [ "$new" != "$old" ]; then
		rm -f "$work/installed"
		stop_scratch_server "$work"
		install_tree "$work/tree" "$PG_CONFIG"
		echo "$new" >"$work/installed"
		if [ -n "$old" ] && [ "$(echo "$new" | grep sql)" != "$(echo "$old" | grep sql)" ]; then
			echo "The extension's script has changed: DROP EXTENSION hybridindex CASCADE, and create it again."
		fi
	fi
	rm -rf "$work/tree"
	scratch_server_runs "$work" || {
		cluster_up 8>&-
		say "$("$PG_CONFIG" --version) runs in $work until ./dev psql --stop"
	}
	cluster_is_default
	PGOPTIONS='-c client_min_messages=warning' psql -X -q -c 'CREATE EXTENSION IF NOT EXISTS hybridindex'
}

scratch_pg_ctl() {
	directory=$1
	shift
	(cd / && as_owner "$(dirname "$(cat "$directory/pg_config")")/pg_ctl" -D "$directory/data" -w "$@")
}

scratch_server_runs() { scratch_pg_ctl "$1" status >/dev/null 2>&1; }

stop_scratch_server() {
	! scratch_server_runs "$1" || scratch_pg_ctl "$1" -m fast stop >/dev/null
}

discard_scratch_server() {
	[ -d "$1" ] || return 0
	work=$1
	find_owner
	[ ! -e "$1/pg_config" ] || stop_scratch_server "$1"
	rm -rf "$1"
}
