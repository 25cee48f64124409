# HotTable.pm: a table of soak.pl whose updates are HOT, since indexes of hybrid_hot are
# on the columns that change.  For servers from 16 on.
#
# These have to hold, beside what soak.pl compares:
#
# * An update of "seen" by its old value moves the row from that value, though another
#   session changed the row while this one waited.  "was" says where it came from.
# * A row that is locked by a range of "seen" is in that range.
# * Serializable transactions give a slot, a value of "seen" above SLOTS, to one row at
#   most.  All other transactions only take rows away from slots.
# * A snapshot that is older than updates, merges, VACUUM and builds sees its rows by each
#   access path.  It is taken on a catalog, so its session holds no lock that REINDEX
#   waits for.
#
# No client counts rows, since those beyond KEPT are deleted, and the file is cut.
package HotTable;

use strict;
use warnings;

use constant ROWS => 1000;
use constant KEPT => 700;
use constant SLOTS => 100000;

sub tables { return 'device'; }

# Values of "big" lie in the TOAST table.
my $big = "array_to_string(array(SELECT md5(random()::text) FROM generate_series(1, 70 + 0 * id)), '')";
my $fill = <<EOF;
INSERT INTO device SELECT id, id, id, 'key ' || id, id / 4.0, CASE WHEN id % 20 = 0 THEN $big END, 0
FROM generate_series(1, @{[ROWS]}) id ON CONFLICT DO NOTHING;
EOF

sub setup_sql
{
	return <<EOF;
CREATE TABLE device (id int PRIMARY KEY, seen int, was int, t text COLLATE "C", n numeric, big text COLLATE "C", state int)
	WITH (fillfactor = 40);
ALTER TABLE device ALTER big SET STORAGE EXTERNAL;
$fill
CREATE INDEX device_seen ON device USING hybrid_hot (seen);
CREATE INDEX device_t ON device USING hybrid_hot (t text_hope_ops);
CREATE INDEX device_n ON device USING hybrid_hot (n DESC NULLS LAST, seen);
CREATE INDEX device_big ON device USING hybrid_hot (big);
CREATE INDEX device_part ON device USING hybrid_hot (seen) WHERE state % 3 = 0;
CREATE INDEX device_expr ON device USING hybrid_hot ((seen % 100));
EOF
}

my %scripts = (
	'device@8' => <<'EOF',
\set a random(1, 1000)
\set d random(1, 9)
UPDATE device SET was = seen, seen = (seen + :d) % 1000, n = (seen % 50)::numeric(9, 3) / 4 WHERE id = :a;
UPDATE device SET was = seen, seen = :a + :d WHERE seen = :a RETURNING 1 / (was = :a)::int;
UPDATE device SET was = seen, seen = :a WHERE seen BETWEEN :a + 1 AND :a + 2 RETURNING 1 / (was BETWEEN :a + 1 AND :a + 2)::int;
UPDATE device SET state = state + 1, n = n * 1.0 WHERE seen = :a AND scale(n) < 9;
UPDATE device SET t = 'key ' || :a + :d, n = trim_scale(n) WHERE t = 'key ' || :a;
SELECT 1 / (seen BETWEEN :a AND :a + :d)::int FROM device WHERE seen BETWEEN :a AND :a + :d FOR SHARE;
EOF
	'device_undo@3' => <<'EOF',
\set a random(1, 1000)
\set undone random(0, 1)
BEGIN;
SELECT FROM device WHERE seen BETWEEN :a AND :a + 5 FOR KEY SHARE;
SAVEPOINT s;
UPDATE device SET seen = seen + 500, state = state + 1 WHERE id = :a;
UPDATE device SET t = 'undone' WHERE id = :a;
ROLLBACK TO s;
UPDATE device SET seen = seen + 1 WHERE id = :a AND seen < 1000;
UPDATE device SET seen = seen - 1, t = 'key ' || :a WHERE id = :a AND seen < 1000;
SELECT 1 / (count(*) = 0)::int FROM device WHERE id = :a AND t = 'undone';
\if :undone
ROLLBACK;
\else
COMMIT;
\endif
EOF
	'device_big@2' => <<EOF,
\\set a random(1, 50) * 20
BEGIN;
UPDATE device SET big = $big WHERE id = :a;
SAVEPOINT s;
UPDATE device SET big = reverse(big), state = state + 1 WHERE id = :a;
ROLLBACK TO s;
UPDATE device SET state = state + 1 WHERE id = :a;
COMMIT;
EOF
	'device_slot@6' => <<EOF,
\\set a random(1, 1000)
\\set s @{[SLOTS]} + random_zipfian(1, 200, 1.2)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SET LOCAL enable_seqscan = off;
SELECT count(*) = 0 AS free, 1 / (count(*) < 2)::int AS one FROM device WHERE seen = :s \\gset
\\sleep 3 ms
\\if :free
UPDATE device SET was = seen, seen = :s WHERE id = :a;
\\else
UPDATE device SET was = seen, seen = :a WHERE seen = :s;
\\endif
COMMIT;
EOF
	# no index that is converted meanwhile, since any error would end the client
	'device_old@2' => <<'EOF',
\set a random(1, 1000)
\set t random(10, 3000)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM pg_am;
\sleep :t ms
SELECT 1 / hyb_same('SELECT id, seen FROM device WHERE seen BETWEEN ' || :a || ' AND ' || :a + 100)::int;
SELECT 1 / hyb_same('SELECT seen FROM device ORDER BY seen', 'order')::int;
SELECT 1 / hyb_same('SELECT id FROM device WHERE seen % 100 = ' || :a % 100)::int;
SELECT 1 / hyb_same('SELECT id, n FROM device WHERE state % 3 = 0 AND seen < ' || :a)::int;
COMMIT;
EOF
);

sub scripts { return %scripts; }

# For the session beside the clients.
sub beside
{
	return ('VACUUM device;', 'VACUUM device;', 'VACUUM (FREEZE) device;', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) device;',
		'VACUUM (PROCESS_MAIN OFF) device;',
		"SELECT count(hybrid_merge(i)) FROM unnest('{device_seen,device_n,device_part}'::regclass[]) i;",
		"SELECT count(hybrid_merge(i)) FROM unnest('{device_t,device_big,device_expr}'::regclass[]) i;",
		"DELETE FROM device WHERE id > @{[KEPT]}; VACUUM device; $fill", $fill,
		'REINDEX INDEX device_seen;', 'REINDEX INDEX device_n;',
		'REINDEX INDEX CONCURRENTLY device_seen;', 'REINDEX INDEX CONCURRENTLY device_part;',
		'CREATE INDEX CONCURRENTLY device_extra ON device (n, state); SELECT pg_sleep(0.2); DROP INDEX CONCURRENTLY IF EXISTS device_extra;',
		'BEGIN; CREATE INDEX device_gone ON device (seen); ROLLBACK;',
		"SELECT hybrid_revert('device_n'); SELECT pg_sleep(0.2); SELECT hybrid_convert_hot('device_n');",
		"CALL hybrid_convert_concurrently('device_t'); SELECT pg_sleep(0.2); CALL hybrid_convert_hot_concurrently('device_t');",
		"SELECT hybrid_index_check('device_seen', true);", "SELECT hybrid_index_check('device_part', true);");
}

sub queries
{
	return (
		[ 'SELECT id, seen FROM device WHERE seen BETWEEN :r / 6 AND :r / 6 + 60', 'index bitmap' ],
		[ 'SELECT id FROM device WHERE seen = ANY (array[:r / 6, :r / 6 + 1, 7])', 'index bitmap' ],
		[ 'SELECT seen FROM device ORDER BY seen DESC', 'order' ],
		[ 'SELECT id, t FROM device WHERE t BETWEEN \'key 2\' AND \'key 7\'', 'index bitmap' ],
		[ 'SELECT trim_scale(n), seen FROM device ORDER BY n DESC NULLS LAST, seen', 'order' ],
		[ 'SELECT id FROM device WHERE n = (:r % 50)::numeric / 4', 'index bitmap' ],
		[ 'SELECT id, md5(big) FROM device WHERE big > \'4\'', 'index bitmap' ],
		[ 'SELECT id, state FROM device WHERE state % 3 = 0 AND seen < :r / 6', 'index bitmap' ],
		[ 'SELECT id FROM device WHERE seen % 100 = :r % 100', 'index bitmap' ]);
}

# Ends what a fault may have interrupted.
sub restore_sql
{
	return <<'EOF';
DROP INDEX IF EXISTS device_extra;
SELECT hybrid_convert_hot(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE i.indrelid = 'device'::regclass AND NOT i.indisunique AND a.amname <> 'hybrid_hot';
EOF
}

# Slots that more than one row has.
sub broken_sql
{
	return "UNION ALL SELECT 'device', seen, 0, count(*) FROM device WHERE seen > @{[SLOTS]} GROUP BY seen HAVING count(*) > 1";
}

1;
