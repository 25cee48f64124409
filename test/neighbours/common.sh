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

# Check all hybrid indexes of the database, and what those of a table answer.
agree() {
	sql -c 'BEGIN ISOLATION LEVEL REPEATABLE READ' -c "SELECT neighbours_agree('${1:-orders}')" -c COMMIT >/dev/null
}
