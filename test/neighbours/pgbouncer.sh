# program: pgbouncer
. "$(dirname "$0")/common.sh"
make_orders
pgbouncer --version | head -1
directory=$(mktemp -d)
cat >"$directory/ini" <<-EOF
	[databases]
	* = host=$PGHOST port=$PGPORT user=postgres
	[pgbouncer]
	listen_addr =
	unix_socket_dir = $directory
	listen_port = 6111
	auth_type = any
	pool_mode = transaction
	default_pool_size = 3
	logfile = $directory/log
	pidfile = $directory/pid
	ignore_startup_parameters = extra_float_digits
EOF
unset PGOPTIONS
pgbouncer -q "$directory/ini" &
bouncer=$!
trap 'kill $bouncer; rm -rf "$directory"' EXIT
sleep 1
pooled() { psql -X -q -A -t -h "$directory" -p 6111 -v ON_ERROR_STOP=1 "$@"; }

# first STATEMENT...: what a new server connection answers
first() {
	sql -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
		AND backend_type = 'client backend'" >/dev/null
	must_become 0 "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
	for statement in "$@"; do
		pooled -c "$statement" 2>&1 >/dev/null | grep -v '^LINE\|^ ' | tr '\n' ' ' | grep . || echo "accepted"
	done
}
upsert="INSERT INTO orders VALUES (1, 1, 'a') ON CONFLICT DO NOTHING"
echo "without session_preload_libraries, $upsert, twice:"
first "$upsert" "$upsert"
sql -c "ALTER DATABASE postgres SET session_preload_libraries = hybridindex"
echo "with it:"
first "$upsert"

# Eight clients share three server connections, and use the key by prepared statements
# and transactions.
cat >"$directory/work" <<-'EOF'
	\set id random(1, 100000)
	BEGIN;
	INSERT INTO orders VALUES (:id, :id % 1000, 'pooled') ON CONFLICT (id) DO UPDATE SET note = 'again';
	SELECT count(*) FROM orders WHERE customer = :id % 1000;
	COMMIT;
	DELETE FROM orders WHERE id = (:id * 7) % 100000;
EOF
pgbench -n -h "$directory" -p 6111 -c 8 -j 2 -t 500 -f "$directory/work" postgres >"$directory/report" 2>&1 || {
	cat "$directory/report" >&2
	exit 1
}
grep 'transactions actually' "$directory/report"
agree
worked "pgbench through pool_mode = transaction, 8 clients on 3 connections"
