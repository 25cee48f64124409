# extension: pglogical
# preload: pglogical
# plugins: pglogical_output, pglogical
# setting: track_commit_timestamp = on
. "$(dirname "$0")/common.sh"
rows="SELECT count(*) || ' ' || sum(hashtextextended(o::text, 0)) FROM orders o"
for sides in 'hybrid btree' 'btree hybrid' 'hybrid hybrid'; do
	set -- $sides
	name=${1}_$2
	dsn="host=$PGHOST port=$PGPORT user=postgres dbname=$name"
	sql -c "CREATE DATABASE ${name}_pub" -c "CREATE DATABASE ${name}_sub"
	for side in pub sub; do
		export PGDATABASE=${name}_$side
		make_orders
		[ $side = pub ] || sql -c 'TRUNCATE orders'
		method=$1
		[ $side = pub ] || method=$2
		[ "$method" = hybrid ] || sql -c "CALL hybrid_revert_table('orders')"
		sql -c 'CREATE EXTENSION pglogical' -c "SELECT pglogical.create_node('$side', '${dsn}_$side')" >/dev/null
	done
	[ "$name" != hybrid_btree ] || version pglogical
	export PGDATABASE=${name}_pub
	sql -c "SELECT pglogical.replication_set_add_table('default', 'orders')" >/dev/null
	export PGDATABASE=${name}_sub
	sql -c "SELECT pglogical.create_subscription('s_$name', '${dsn}_pub')" >/dev/null
	must_become replicating "SELECT status FROM pglogical.show_subscription_status()"
	must_become t "SELECT count(*) > 0 AND bool_and(sync_status IN ('r', 'y')) FROM pglogical.local_sync_status"
	export PGDATABASE=${name}_pub
	sql <<-'EOF'
		INSERT INTO orders SELECT i, i % 1000, 'new ' || i FROM generate_series(30001, 40000) i;
		UPDATE orders SET note = note || '!' WHERE id % 3 = 0;
		UPDATE orders SET id = -id WHERE id % 50 = 1;
		DELETE FROM orders WHERE id % 11 = 0;
	EOF
	wanted=$(sql -c "$rows")
	for side in sub pub; do
		export PGDATABASE=${name}_$side
		must_become "$wanted" "$rows"
		method=$1
		[ $side = pub ] || method=$2
		[ "$method" = btree ] || agree
	done
	# a row that is there already: the subscriber resolves the conflict by the key
	if [ "$2" = hybrid ]; then
		PGDATABASE=${name}_sub sql -c "INSERT INTO orders VALUES (500001, 1, 'mine')"
		PGDATABASE=${name}_pub sql -c "INSERT INTO orders VALUES (500001, 2, 'theirs')"
		(
			export PGDATABASE=${name}_sub
			must_become theirs "SELECT note FROM orders WHERE id = 500001"
			agree
		)
	fi
	worked "$1 at the provider, $2 at the subscriber"
	PGDATABASE=${name}_sub sql -c "SELECT pglogical.drop_subscription('s_$name')" >/dev/null
done
