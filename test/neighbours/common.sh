#
# What the scripts of neighbours share: psql, a table with two hybrid indexes, and
# a comparison of what they answer with a sequential scan.
#
set -eu

here=$(cd "$(dirname "$0")" && pwd)
export PGOPTIONS='-c client_min_messages=warning'
sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }

# worked WHAT: report it.
worked() { echo "worked: $*"; }

# refused STATEMENT: it must fail; report the text.
refused() {
	if text=$(psql -X -q -A -t -c "$1" 2>&1 >/dev/null); then
		echo "accepted: $1"
	else
		echo "refused: $1: $(echo "$text" | tr '\n' ' ')"
	fi
}

# must_be VALUE STATEMENT: fail unless the statement answers that.
must_be() {
	answer=$(sql -c "$2")
	[ "$answer" = "$1" ] || {
		echo "$2: $answer, not $1" >&2
		exit 1
	}
}

# must_become VALUE STATEMENT: wait until it answers that, for a minute.
must_become() {
	for _ in $(seq 120); do
		[ "$(sql -c "$2")" != "$1" ] || return 0
		sleep 0.5
	done
	must_be "$@"
}

# version EXTENSION
version() { sql -c "SELECT '$1 ' || extversion FROM pg_extension WHERE extname = '$1'"; }

# Make the table orders, in the database that psql connects to.
make_orders() { sql -f "$here/orders.sql"; }

# Checks all hybrid indexes of a database against their tables.
check_all="SELECT hybrid_index_check(indexrelid, true) FROM hybrid_indexes"

# Check all hybrid indexes of the database, and what those of a table answer.
agree() {
	sql -c 'BEGIN ISOLATION LEVEL REPEATABLE READ' -c "SELECT neighbours_agree('${1:-orders}')" -c COMMIT >/dev/null
}

# scan_agrees QUERY: it answers the same with and without index scans.
scan_agrees() { must_be "$(sql -c 'SET enable_indexscan = off' -c 'SET enable_bitmapscan = off' -c "$1")" "$1"; }

# ---- replication between two databases, NAME_pub and NAME_sub ----

# pairs COMMAND: run it for each pair of methods, with the methods of the publisher and
# of the subscriber as arguments.
pairs() {
	"$1" hybrid btree
	"$1" btree hybrid
	"$1" hybrid hybrid
}

# make_side DATABASE METHOD: orders with hybrid indexes, or as btree; empty in a subscriber.
make_side() {
	export PGDATABASE=$1
	make_orders
	[ "${1%_sub}" = "$1" ] || sql -c 'TRUNCATE orders'
	[ "$2" = hybrid ] || sql -c "CALL hybrid_revert_table('orders')"
}

# replicates NAME METHOD METHOD: change the publisher's rows; the subscriber follows.
replicates() {
	rows="SELECT count(*) || ' ' || sum(hashtextextended(o::text, 0)) FROM orders o"
	export PGDATABASE=${1}_pub
	sql <<-'EOF'
		INSERT INTO orders SELECT i, i % 1000, 'new ' || i FROM generate_series(30001, 40000) i;
		UPDATE orders SET note = note || '!' WHERE id % 3 = 0;
		UPDATE orders SET id = -id WHERE id % 50 = 1;
		DELETE FROM orders WHERE id % 11 = 0;
	EOF
	wanted=$(sql -c "$rows")
	[ "$2" = btree ] || agree
	export PGDATABASE=${1}_sub
	must_become "$wanted" "$rows"
	[ "$3" = btree ] || agree
}
