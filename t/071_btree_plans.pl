
# Queries are planned over hybrid indexes as over btree ones.  Two sets of tables
# have the same names, and the plans of many queries are compared without their
# costs.  Where a plan may differ, the test says why.
#
# All rows are in the statistics, so these are the same for both.  Parallel plans are
# left out.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

# The index is smaller, so that reading more of it is cheaper than the table.
my %accepted = (
	'SELECT * FROM line WHERE product = 31 AND quantity = 4 AND order_id < 1000' =>
	  'a second bitmap, of three pages, for twelve blocks of the table',
	"SELECT * FROM orders WHERE customer_id = 7 AND status = 'open'" =>
	  'the partial index, which is a page, for part of another',
	"SELECT l.* FROM line l JOIN product p ON p.id = l.quantity WHERE p.name = 'product 5' AND l.order_id < 500" =>
	  'a second bitmap of an index that is skipped through, for blocks of the table',
	'SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM line WHERE pos = 7) AND id < 100' =>
	  'all of an index, or parts of it, for all of the table');

my $schema = <<'EOF';
CREATE TABLE customer (id int8 NOT NULL, email text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, country char(2) NOT NULL, active bool NOT NULL, score float8, created timestamptz NOT NULL, tags int[], ref uuid);
INSERT INTO customer SELECT i, 'user' || i || '@example.com', initcap(md5(i::text)), (array['de', 'fr', 'us', 'jp', 'br'])[1 + i % 5], i % 50 = 0, nullif(i % 97, 0) / 7.0,
	timestamptz '2024-01-01 UTC' + i * interval '1 hour', array[i % 10, i % 7], md5(i::text)::uuid FROM generate_series(1, 5000) i;
CREATE TABLE orders (id int8 NOT NULL, customer_id int8 NOT NULL, placed timestamp NOT NULL, status text COLLATE "C" NOT NULL, total numeric(10, 2), note text COLLATE "C", shipped date);
INSERT INTO orders SELECT i, 1 + hashint4(i)::int8 % 5000 + 5000 * (hashint4(i) < 0)::int, timestamp '2024-01-01' + i * interval '10 minutes', CASE WHEN i % 100 = 0 THEN 'open' WHEN i % 3 = 0 THEN 'paid' ELSE 'done' END,
	(i * 7919 % 100000) / 100.0, CASE WHEN i % 10 = 0 THEN md5(i::text) END, CASE WHEN i % 4 > 0 THEN date '2024-01-02' + i / 144 END FROM generate_series(1, 40000) i;
CREATE TABLE line (order_id int8 NOT NULL, pos int4 NOT NULL, product int4 NOT NULL, quantity int2 NOT NULL, price numeric);
INSERT INTO line SELECT 1 + i / 3, i % 3, i * 31 % 500, i % 20, (i % 1000) / 10.0 FROM generate_series(0, 119999) i;
CREATE TABLE product (id int4 NOT NULL, name text COLLATE "C" NOT NULL, parent int4);
INSERT INTO product SELECT i, 'product ' || i, nullif(i / 10, 0) FROM generate_series(0, 499) i;
CREATE TABLE event (at timestamptz NOT NULL, kind int4 NOT NULL, payload text) PARTITION BY RANGE (at);
CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM ('2024-01-01 UTC') TO ('2024-02-01 UTC');
CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM ('2024-02-01 UTC') TO ('2024-03-01 UTC');
CREATE TABLE event_3 PARTITION OF event FOR VALUES FROM ('2024-03-01 UTC') TO ('2024-04-01 UTC');
INSERT INTO event SELECT timestamptz '2024-01-01 UTC' + i * interval '2 minutes', i % 40, md5(i::text) FROM generate_series(0, 60000) i;

CREATE UNIQUE INDEX customer_id ON customer USING $am (id);
CREATE UNIQUE INDEX customer_email ON customer USING $am (email);
CREATE INDEX customer_lower ON customer USING $am (lower(name));
CREATE INDEX customer_name ON customer USING $am (name text_pattern_ops);
CREATE INDEX customer_active ON customer USING $am (active, score);
CREATE INDEX customer_score ON customer USING $am (score DESC NULLS LAST, id);
CREATE INDEX customer_created ON customer USING $am (created);
CREATE INDEX customer_tags ON customer USING $am (tags);
CREATE UNIQUE INDEX customer_ref ON customer USING $am (ref);
CREATE UNIQUE INDEX orders_id ON orders USING $am (id);
CREATE INDEX orders_customer ON orders USING $am (customer_id, placed DESC);
CREATE INDEX orders_placed ON orders USING $am (placed, id);
CREATE INDEX orders_open ON orders USING $am (placed) WHERE status = 'open';
CREATE INDEX orders_status ON orders USING $am (status, total);
CREATE INDEX orders_shipped ON orders USING $am (shipped) INCLUDE (total);
CREATE INDEX orders_note ON orders USING $am (note);
CREATE INDEX orders_day ON orders USING $am (date_trunc('day', placed));
CREATE UNIQUE INDEX line_order ON line USING $am (order_id, pos);
CREATE INDEX line_product ON line USING $am (product, quantity);
CREATE UNIQUE INDEX product_id ON product USING $am (id);
CREATE INDEX product_name ON product USING $am (name);
CREATE INDEX product_parent ON product USING $am (parent);
CREATE INDEX event_at ON event USING $am (at);
CREATE INDEX event_kind ON event USING $am (kind, at);
VACUUM ANALYZE customer, orders, line, product, event;
EOF

my @queries = split /\n/, <<'EOF';
# single rows
SELECT * FROM customer WHERE id = 42
SELECT id FROM customer WHERE id = 42
SELECT * FROM customer WHERE id = 42::int4
SELECT * FROM customer WHERE email = 'user77@example.com'
SELECT * FROM customer WHERE ref = 'c81e728d-9d4c-2f63-6f06-7f89cc14862c'
SELECT 1 FROM ONLY customer x WHERE id = 42 FOR KEY SHARE OF x
SELECT * FROM line WHERE order_id = 500 AND pos = 1
SELECT * FROM line WHERE order_id = 500
SELECT * FROM orders WHERE id = (SELECT max(order_id) FROM line)
SELECT * FROM customer WHERE tags = '{3,3}'
SELECT * FROM customer WHERE lower(name) = 'c81e728d9d4c2f636f067f89cc14862c'
# ranges
SELECT * FROM customer WHERE id BETWEEN 100 AND 200
SELECT count(*) FROM orders WHERE id < 2000
SELECT count(*) FROM orders WHERE id > 39000 AND id <= 39500
SELECT * FROM orders WHERE placed >= '2024-03-01' AND placed < '2024-03-02'
SELECT * FROM orders WHERE placed >= date '2024-03-01' AND placed < date '2024-03-02'
SELECT * FROM orders WHERE placed > '2024-01-01'
SELECT sum(total) FROM orders WHERE shipped BETWEEN '2024-02-01' AND '2024-02-03'
SELECT * FROM orders WHERE date_trunc('day', placed) = '2024-02-10'
SELECT * FROM customer WHERE score > 13
SELECT * FROM customer WHERE created > '2024-07-20'
# several columns
SELECT * FROM orders WHERE customer_id = 7 AND placed > '2024-05-01'
SELECT * FROM orders WHERE customer_id = 7 ORDER BY placed DESC LIMIT 1
SELECT * FROM orders WHERE status = 'open' AND total > 990
SELECT * FROM orders WHERE status = 'paid' AND total BETWEEN 5 AND 6
SELECT * FROM line WHERE product = 31 AND quantity > 17
SELECT count(*) FROM line WHERE product BETWEEN 30 AND 33 AND quantity = 5
SELECT * FROM line WHERE product = 31 AND quantity = 4 AND order_id < 1000
SELECT * FROM orders WHERE customer_id = 7 AND status = 'open'
# order and limit
SELECT * FROM orders ORDER BY placed DESC, id DESC LIMIT 20
SELECT * FROM orders ORDER BY id LIMIT 20 OFFSET 1000
SELECT * FROM customer ORDER BY score DESC NULLS LAST, id LIMIT 10
SELECT * FROM customer ORDER BY score DESC NULLS LAST LIMIT 10
SELECT * FROM customer ORDER BY score LIMIT 10
SELECT id FROM orders ORDER BY id
SELECT * FROM customer ORDER BY email
SELECT * FROM orders WHERE status = 'paid' ORDER BY total DESC LIMIT 5
SELECT * FROM orders WHERE status = 'open' ORDER BY placed LIMIT 5
SELECT * FROM orders WHERE status = 'done' ORDER BY placed LIMIT 5
SELECT * FROM customer WHERE country = 'de' ORDER BY id LIMIT 10
SELECT * FROM orders ORDER BY customer_id, placed LIMIT 10
SELECT * FROM orders ORDER BY customer_id, placed DESC, id LIMIT 10
SELECT DISTINCT ON (customer_id) customer_id, placed FROM orders ORDER BY customer_id, placed DESC
# least and greatest
SELECT max(id) FROM orders
SELECT min(placed), max(placed) FROM orders
SELECT max(total) FROM orders WHERE status = 'paid'
SELECT max(placed) FROM orders WHERE customer_id = 7
SELECT min(score) FROM customer
SELECT max(note) FROM orders
# pages by row comparisons
SELECT * FROM orders WHERE (placed, id) > ('2024-03-01', 8000) ORDER BY placed, id LIMIT 20
SELECT * FROM orders WHERE (placed, id) < ('2024-03-01', 8000) ORDER BY placed DESC, id DESC LIMIT 20
SELECT order_id, pos FROM line WHERE (order_id, pos) > (30000, 1) ORDER BY order_id, pos LIMIT 50
SELECT * FROM line WHERE (order_id, pos) >= (100, 1) AND (order_id, pos) < (102, 2)
SELECT * FROM orders WHERE customer_id = 7 AND (placed, id) < ('2024-05-01', 1000) ORDER BY placed DESC LIMIT 10
SELECT * FROM line WHERE (order_id, pos, product) > (39990, 1, 7)
# joins
SELECT o.* FROM customer c JOIN orders o ON o.customer_id = c.id WHERE c.email = 'user77@example.com'
SELECT c.name, o.id FROM orders o JOIN customer c ON c.id = o.customer_id WHERE o.placed > '2024-10-01'
SELECT o.id, l.product FROM orders o JOIN line l ON l.order_id = o.id
SELECT o.id, l.product FROM orders o JOIN line l ON l.order_id = o.id ORDER BY o.id LIMIT 10
SELECT o.id, l.product FROM orders o JOIN line l ON l.order_id = o.id WHERE o.id BETWEEN 1000 AND 1050
SELECT c.id, o.id FROM customer c LEFT JOIN orders o ON o.customer_id = c.id ORDER BY c.id LIMIT 20
SELECT c.id FROM customer c LEFT JOIN product p ON p.id = c.id WHERE c.id < 10
SELECT p.name, q.name FROM product p JOIN product q ON q.parent = p.id WHERE p.name = 'product 5'
SELECT p.name, sum(l.quantity) FROM product p JOIN line l ON l.product = p.id WHERE p.id < 5 GROUP BY p.name
SELECT l.* FROM line l JOIN product p ON p.id = l.quantity WHERE p.name = 'product 5' AND l.order_id < 500
SELECT c.name, o.* FROM customer c CROSS JOIN LATERAL (SELECT * FROM orders o WHERE o.customer_id = c.id ORDER BY placed DESC LIMIT 3) o WHERE c.id < 50
SELECT a.id FROM customer a JOIN customer b ON a.id = b.id WHERE b.score > 13
WITH RECURSIVE t AS (SELECT id FROM product WHERE id = 1 UNION ALL SELECT p.id FROM t JOIN product p ON p.parent = t.id) SELECT * FROM t
# semi and anti joins
SELECT * FROM customer c WHERE EXISTS (SELECT FROM orders o WHERE o.customer_id = c.id AND o.placed > '2024-09-30')
SELECT * FROM customer c WHERE NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = c.id)
SELECT * FROM customer WHERE id IN (SELECT customer_id FROM orders WHERE status = 'open')
SELECT * FROM customer c WHERE c.id < 20 AND NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = c.id)
SELECT * FROM orders WHERE id IN (SELECT order_id FROM line WHERE product = 31 AND quantity = 4)
# lists and alternatives
SELECT * FROM customer WHERE id IN (1, 17, 42, 4000)
SELECT * FROM customer WHERE id = ANY ('{5,6,7}'::int8[])
SELECT * FROM line WHERE order_id IN (10, 20, 30) AND pos IN (0, 2)
SELECT * FROM orders WHERE customer_id IN (3, 5) ORDER BY customer_id, placed DESC LIMIT 5
SELECT * FROM orders WHERE id = 17 OR customer_id = 42
SELECT * FROM orders WHERE id < 10 OR id > 39990
SELECT * FROM customer WHERE id = 5 OR id = 7
# patterns
SELECT * FROM customer WHERE name LIKE 'C81e%'
SELECT * FROM customer WHERE name ~ '^C81e'
SELECT * FROM customer WHERE email LIKE 'user77%'
SELECT * FROM orders WHERE note ^@ 'c81e'
SELECT * FROM orders WHERE note LIKE 'c81e%728%'
# NULLs and booleans
SELECT * FROM customer WHERE active
SELECT * FROM customer WHERE active AND score > 10
SELECT count(*) FROM customer WHERE NOT active AND score < 1
SELECT * FROM customer WHERE active ORDER BY score LIMIT 5
SELECT * FROM customer WHERE score IS NULL
SELECT count(*) FROM orders WHERE note IS NOT NULL
SELECT * FROM orders WHERE shipped IS NULL AND placed < '2024-01-02'
# groups, windows
SELECT customer_id, count(*) FROM orders GROUP BY customer_id
SELECT DISTINCT customer_id FROM orders
SELECT count(DISTINCT customer_id) FROM orders
SELECT status, max(total) FROM orders GROUP BY status
SELECT order_id, count(*) FROM line WHERE order_id < 500 GROUP BY order_id
SELECT product, sum(quantity) FROM line GROUP BY product ORDER BY product LIMIT 10
SELECT id, row_number() OVER (ORDER BY id) FROM orders WHERE id < 1000
SELECT id, sum(total) OVER (PARTITION BY customer_id ORDER BY placed DESC) FROM orders WHERE customer_id < 20
SELECT count(*) FROM customer
SELECT shipped, sum(total) FROM orders WHERE shipped < '2024-02-01' GROUP BY shipped
SELECT id FROM customer UNION ALL SELECT id FROM orders ORDER BY id LIMIT 10
# changes
UPDATE orders SET note = 'x' WHERE id = 5
UPDATE orders o SET note = 'x' FROM customer c WHERE c.id = o.customer_id AND c.email = 'user77@example.com'
DELETE FROM line WHERE order_id = 700
DELETE FROM orders WHERE (placed, id) < ('2024-01-02', 0)
DELETE FROM customer c USING orders o WHERE o.customer_id = c.id AND o.id = 3
SELECT * FROM orders WHERE status = 'open' ORDER BY placed LIMIT 1 FOR UPDATE SKIP LOCKED
MERGE INTO product p USING (VALUES (1, 'a'), (2, 'b')) v (id, name) ON p.id = v.id WHEN MATCHED THEN UPDATE SET name = v.name
# partitions
SELECT * FROM event WHERE at = '2024-02-03 04:00 UTC'
SELECT * FROM event WHERE at > '2024-01-31 23:00 UTC' AND at < '2024-02-01 01:00 UTC'
SELECT * FROM event ORDER BY at DESC LIMIT 10
SELECT * FROM event WHERE kind = 7 ORDER BY at LIMIT 10
SELECT max(at) FROM event WHERE kind = 7
SELECT count(*) FROM event WHERE kind = 7 AND at < '2024-01-10 UTC'
# more joins, other types and collations, arrays
SELECT c.id, o.id FROM customer c FULL JOIN orders o ON o.customer_id = c.id WHERE c.id IS NULL
SELECT o.id FROM orders o JOIN line l ON l.order_id = o.id JOIN product p ON p.id = l.product JOIN customer c ON c.id = o.customer_id WHERE c.email = 'user77@example.com'
SELECT p.id FROM product p RIGHT JOIN line l ON l.product = p.id AND l.quantity = p.id WHERE l.order_id = 77
SELECT o.id FROM orders o LEFT JOIN customer c ON c.id = o.customer_id WHERE o.id < 100
SELECT * FROM customer WHERE email > 'user4990' ORDER BY email LIMIT 10
SELECT * FROM customer WHERE email BETWEEN 'user100' AND 'user101'
SELECT * FROM orders WHERE shipped > '2024-09-25'::timestamp
SELECT * FROM customer WHERE created::date = '2024-03-01'
SELECT * FROM customer WHERE score > 13::float4 AND id < 1000::int2
SELECT count(*) FROM orders WHERE total = 77 AND status = 'paid'
SELECT * FROM customer WHERE tags > '{9,5}'
SELECT * FROM customer WHERE id = ANY (ARRAY(SELECT customer_id FROM orders WHERE id < 10))
SELECT * FROM orders WHERE placed = ANY ('{2024-02-01,2024-02-02}'::timestamp[]) AND id > 10
SELECT * FROM line WHERE (order_id, pos) IN ((1, 1), (2, 2))
SELECT coalesce(max(id), 0) + 1 FROM customer
SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM line WHERE pos = 7) AND id < 100
SELECT customer_id, max(placed) FROM orders WHERE customer_id < 30 GROUP BY customer_id
SELECT * FROM (SELECT id, placed, rank() OVER (ORDER BY placed DESC) r FROM orders) x WHERE r <= 5
SELECT * FROM orders o WHERE placed = (SELECT max(placed) FROM orders i WHERE i.customer_id = o.customer_id) AND o.customer_id < 10
SELECT date_trunc('day', placed), count(*) FROM orders GROUP BY 1 ORDER BY 1 LIMIT 3
PREPARE page (timestamp, int8) AS SELECT * FROM orders WHERE (placed, id) > ($1, $2) ORDER BY placed, id LIMIT 20
EXECUTE page ('2024-03-01', 8000)
PREPARE one (int8) AS SELECT * FROM customer WHERE id = $1
EXECUTE one (3)
PREPARE several (int8[]) AS SELECT * FROM customer WHERE id = ANY ($1)
EXECUTE several ('{1,2,3}')
PREPARE span (timestamp, timestamp) AS SELECT count(*) FROM orders WHERE placed BETWEEN $1 AND $2
EXECUTE span ('2024-02-01', '2024-02-02')
PREPARE like_ (text) AS SELECT * FROM customer WHERE name LIKE $1
EXECUTE like_ ('abc%')
EOF

my $node = new_node('plans', 'max_parallel_workers_per_gather = 0');

# In a session of its own; each plan under its query.
sub plans
{
	my ($am) = @_;
	my $sql = "SET search_path = $am, public; SET jit = off; SET plan_cache_mode = force_generic_plan;\n";
	my (%plans, $query);

	foreach (@queries)
	{
		next if /^#/;
		$sql .= /^PREPARE/ ? "$_;\n" : "SELECT \$q\$== $_\$q\$;\nEXPLAIN (COSTS off) $_;\n";
	}
	foreach (split /\n/, $node->safe_psql('postgres', $sql))
	{
		if (/^== (.*)/) { $query = $1; }
		else { $plans{$query} .= "$_\n"; }
	}
	return \%plans;
}

foreach my $am (qw(btree hybrid))
{
	$node->safe_psql('postgres', "CREATE SCHEMA $am; SET search_path = $am, public; SET default_statistics_target = 1000;\n"
		  . $schema =~ s/\$am\b/$am/gr);
}
my ($btree, $hybrid) = map { plans($_) } qw(btree hybrid);
my @planned = grep { !/^(#|PREPARE)/ } @queries;
my @others = grep { $btree->{$_} ne $hybrid->{$_} } @planned;
my @unexpected = grep { !$accepted{$_} } @others;

cmp_ok(scalar @planned, '>=', 90, 'queries');
is(scalar(keys %$hybrid), scalar @planned, 'all are planned');
SKIP:
{
	# costs are tuned to the rows and indexes of 64-bit servers
	skip 'a server of 32 bits', 1 if is_32_bit($node);
	is(join("\n", map { "$_\n-- btree\n$btree->{$_}-- hybrid\n$hybrid->{$_}" } @unexpected), '', 'queries have the plans of btree indexes');
}
note "$_: $accepted{$_}" foreach grep { $accepted{$_} } @others;
my $index_scans = grep { /Index/ } values %$hybrid;
cmp_ok($index_scans, '>=', 90, "$index_scans plans have hybrid indexes");
no_crash($node, 'no crash');
done_testing();
