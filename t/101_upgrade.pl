
# Indexes of all kinds survive pg_dump and pg_restore, ALTER EXTENSION UPDATE,
# pg_amcheck and pg_upgrade.  HYBRID_UPGRADE names the bin directories of later
# servers that have the extension installed, in ascending order.

use strict;
use warnings;

use Cwd qw(getcwd);
use FindBin;
use lib $FindBin::RealBin;
use File::Basename;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $conf = <<EOF;
autovacuum = off
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
EOF
my $node = new_node('origin', $conf);
my ($version) = $node->safe_psql('postgres', 'SHOW server_version_num') =~ /^(\d\d)/;

my $hot = $version >= 16 ? 'hybrid_hot' : 'hybrid';

# Most indexes get both stages, entries that VACUUM removed, and pages that
# merges freed.
$node->safe_psql('postgres', <<EOF);
CREATE SCHEMA apart;
CREATE TABLE t (id int, k int8, s text COLLATE "C", c text, n numeric, u uuid, b bytea, d date, a int[]);
CREATE FUNCTION fill(lo int, hi int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT i, hashint4(i), md5((i / 2)::text), md5(i::text), i % 100 / 4.0, md5(i::text)::uuid,
		decode(md5(i::text), 'hex'), date '2000-01-01' + i % 4000, array[i % 7, i]
	FROM generate_series(lo, hi) i
\$\$;
CREATE UNIQUE INDEX t_id ON t USING hybrid (id) WITH (merge_ratio = 3);
CREATE INDEX t_k ON t USING hybrid (k DESC NULLS LAST) INCLUDE (id, s) WITH (filter = surf);
CREATE INDEX t_s ON t USING hybrid (s) WITH (filter = surf, filter_suffix_bits = 5);
CREATE INDEX t_u ON t USING hybrid (u) WITH (filter = surf, filter_suffix_bits = 0);
CREATE INDEX t_c ON t USING hybrid (c DESC, k);
CREATE INDEX t_n ON t USING hybrid (n, s);
CREATE INDEX t_e ON t USING hybrid (upper(s), d) WHERE k % 3 = 0;
CREATE INDEX t_a ON t USING hybrid (a);
CREATE TABLE part (k int, s text) PARTITION BY RANGE (k);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (500);
CREATE TABLE apart.part2 PARTITION OF part FOR VALUES FROM (500) TO (1000);
CREATE INDEX part_k ON part USING hybrid (s COLLATE "C", k);
CREATE UNLOGGED TABLE ul (k int);
CREATE INDEX ul_k ON ul USING hybrid (k);
CREATE TABLE seen (id int, k int, s text COLLATE "C") WITH (fillfactor = 40);
CREATE INDEX seen_k ON seen USING $hot (k DESC);
CREATE INDEX seen_s ON seen USING $hot (lower(s) text_hope_ops) WHERE k > 0;
CREATE TABLE none (k int);
CREATE INDEX none_k ON none USING hybrid (k);
CREATE TABLE parent (id int PRIMARY KEY WITH (access_method = hybrid), s text, n int);
ALTER TABLE parent ADD CONSTRAINT parent_s UNIQUE (s, n) WITH (access_method = hybrid, merge_ratio = 4);
CREATE UNIQUE INDEX parent_later ON parent USING hybrid (n);
ALTER TABLE parent ADD CONSTRAINT parent_n UNIQUE USING INDEX parent_later DEFERRABLE;
CREATE TABLE apart.child (id uuid DEFAULT gen_random_uuid() PRIMARY KEY WITH (access_method = hybrid),
	parent int REFERENCES parent, s text, n int, FOREIGN KEY (s, n) REFERENCES parent (s, n), up uuid REFERENCES apart.child,
	EXCLUDE USING hybrid (id WITH =));
ALTER TABLE apart.child CLUSTER ON child_pkey;
CREATE TABLE parent_hybrid (id int PRIMARY KEY WITH (access_method = hybrid));
CREATE TABLE child_btree (PRIMARY KEY (id)) INHERITS (parent_hybrid);
CREATE TABLE parent_btree (id int PRIMARY KEY);
CREATE TABLE child_hybrid (PRIMARY KEY (id) WITH (access_method = hybrid)) INHERITS (parent_btree);
INSERT INTO parent SELECT i, 'k' || i, i FROM generate_series(1, 3000) i;
INSERT INTO apart.child (parent, s, n) SELECT i, 'k' || i, i FROM generate_series(1, 1000) i;
SELECT fill(1, 3000);
CREATE INDEX t_hope ON t USING hybrid (s text_hope_ops, k);
CREATE INDEX t_alm ON t USING hybrid (s text_hope_ops (scheme = 'alm'));
CREATE INDEX t_bytes ON t USING hybrid (b bytea_hope_ops (scheme = 'single-char') DESC);
INSERT INTO part SELECT i, md5(i::text) FROM generate_series(0, 999) i;
INSERT INTO seen SELECT i, i % 400, 'Name ' || i % 70 FROM generate_series(1, 1000) i;
INSERT INTO ul SELECT i FROM generate_series(1, 500) i;
SELECT fill(3001, 5000);
CREATE VIEW hyb AS SELECT c.oid::regclass AS index FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname LIKE 'hybrid%' AND c.relkind = 'i';
SELECT count(hybrid_merge(index)) FROM hyb;
SELECT fill(5001, 5300);
DELETE FROM t WHERE id % 7 = 3;
UPDATE seen SET k = k + 1 WHERE id % 2 = 0;
EOF
$node->safe_psql('postgres', 'VACUUM t');
$node->safe_psql('postgres', 'SELECT fill(6001, 6100)');

my @tables = qw(t part1 apart.part2 ul seen none parent apart.child);
my %queries = (
	'SELECT c FROM t WHERE id BETWEEN 100 AND 900' => 'index bitmap',
	'SELECT k, id, s FROM t WHERE k BETWEEN -100000000 AND 300000000' => 'index bitmap',
	'SELECT id, n FROM t WHERE s = md5(\'77\')' => 'index bitmap',
	'SELECT id FROM t WHERE s > \'d\' AND s < \'e\' AND k > 5' => 'index bitmap',
	'SELECT id FROM t WHERE u = md5(\'77\')::uuid' => 'index bitmap',
	'SELECT id FROM t WHERE b > \'\xa0\'' => 'index bitmap',
	'SELECT c, k FROM t ORDER BY c DESC, k' => 'order_only',
	'SELECT s, k FROM t ORDER BY s, k' => 'order_only',
	'SELECT trim_scale(n) FROM t WHERE n BETWEEN 3 AND 5' => 'index',
	'SELECT d FROM t WHERE k % 3 = 0 AND upper(s) > \'F\'' => 'index bitmap',
	'SELECT id FROM t WHERE a > array[5]' => 'index bitmap',
	'SELECT k FROM part1 WHERE s COLLATE "C" > \'a\'' => 'index bitmap',
	'SELECT id, k FROM seen WHERE k BETWEEN 50 AND 90' => 'index bitmap',
	'SELECT id FROM seen WHERE k > 0 AND lower(s) > \'name 3\'' => 'index bitmap',
	'SELECT k FROM ul WHERE k > 50' => 'only');

my $definitions = <<'EOF';
SELECT pg_get_indexdef(c.oid), coalesce(array_to_string(c.reloptions, ','), ''),
	coalesce((SELECT string_agg(attoptions::text, ',') FROM pg_attribute WHERE attrelid = c.oid), '')
FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname LIKE 'hybrid%' ORDER BY 1
EOF
my $constraints = <<'EOF';
SELECT conname, conrelid::regclass, conindid::regclass, pg_get_constraintdef(c.oid), a.amname, i.reloptions
FROM pg_constraint c JOIN pg_class i ON i.oid = c.conindid JOIN pg_am a ON a.oid = i.relam
WHERE conrelid::regclass::text ~ '(parent|child)' ORDER BY 1, 2::text
EOF
my $indexes = <<'EOF';
SELECT index, static_entries - static_tombstones, dynamic_entries, height, total_pages, merges
FROM hyb, hybrid_index_stats(index) ORDER BY index::text
EOF
my $contents = join(';', map { "SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM $_ x" } @tables);

# Insertion, removal and merges into every index.
sub go_on
{
	my ($on, $what, $from) = @_;
	$on->safe_psql('postgres', "SELECT fill($from + 1, $from + 800); DELETE FROM t WHERE id % 11 = 1; INSERT INTO part SELECT i, i FROM generate_series(0, 900, 3) i; UPDATE seen SET k = k + 7 WHERE id % 3 = 0");
	$on->safe_psql('postgres', 'VACUUM t');
	same_answers($on, "$what: work goes on", \%queries, \@tables);
	$on->safe_psql('postgres', "SELECT fill($from + 1001, $from + 1300); SELECT count(hybrid_merge(index)) FROM hyb");
	like(($on->psql('postgres', "INSERT INTO t (id) VALUES ($from + 1001)"))[2],
		qr/duplicate key value violates unique constraint "t_id"/, "$what: uniqueness");
	same_answers($on, "$what: after merges", \%queries, \@tables);
	return;
}

same_answers($node, 'the origin', \%queries, \@tables);
my $defined = $node->safe_psql('postgres', $definitions);
is(scalar(split /\n/, $defined), 25, 'indexes are listed');
my $constrained = $node->safe_psql('postgres', $constraints);
is(scalar(grep { /hybrid/ } split /\n/, $constrained), 10, 'constraints are listed');
like($constrained, qr/child_btree_pkey\|child_btree\|child_btree_pkey\|PRIMARY KEY \(id\)\|btree/, 'a child may differ from its parent');

# What the constraints refuse.
sub constraints_hold
{
	my ($on, $db, $what, $expected) = @_;
	is($on->safe_psql($db, $constraints), $expected // $constrained, "$what: constraints are the same");
	my %refused = (
		"INSERT INTO parent VALUES (77)" => qr/duplicate key value violates unique constraint "parent_pkey"/,
		"INSERT INTO parent VALUES (-1, 'k5', 5)" => qr/duplicate key value violates unique constraint "parent_(s|n)"/,
		"INSERT INTO apart.child (parent) VALUES (0)" => qr/violates foreign key constraint "child_parent_fkey"/,
		"INSERT INTO apart.child (s, n) VALUES ('k1', 2)" => qr/violates foreign key constraint "child_s_n_fkey"/,
		"DELETE FROM parent WHERE id = 9" => qr/violates foreign key constraint "child_/);
	foreach my $statement (sort keys %refused)
	{
		like(($on->psql($db, $statement))[2], $refused{$statement}, "$what: $statement");
	}
	return;
}
constraints_hold($node, 'postgres', 'the origin');
my $held = $node->safe_psql('postgres', $contents);

# ---- what checks every btree leaves other indexes alone ----
SKIP:
{
	skip 'no amcheck', 4
	  if $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'") eq '0';
	$node->safe_psql('postgres', 'CREATE EXTENSION amcheck');
	$node->command_ok([ 'pg_amcheck', '-d', 'postgres', '--heapallindexed', '--parent-check' ], 'pg_amcheck');
	$node->command_ok([ 'pg_amcheck', '-d', 'postgres', '--table', 't', '--rootdescend' ], 'pg_amcheck of a table');
	$node->command_fails_like([ 'pg_amcheck', '-d', 'postgres', '--index', 't_k' ],
		qr/no btree indexes to check matching "t_k"/, 'pg_amcheck of a hybrid index says that it is not a btree');
	like(($node->psql('postgres', "SELECT bt_index_check('t_k')"))[2],
		qr/only B-Tree indexes|expected "btree" index/, 'bt_index_check says the same');
	$node->safe_psql('postgres', 'DROP EXTENSION amcheck');
}

# ---- ALTER EXTENSION ----
my ($ret, $out, $err) = $node->psql('postgres', 'ALTER EXTENSION hybridindex UPDATE');
is($ret, 0, 'ALTER EXTENSION UPDATE');
like($err, qr/NOTICE:  version "[\d.]+" of extension "hybridindex" is already installed/, 'to the same version does nothing');
isnt($node->psql('postgres', "ALTER EXTENSION hybridindex UPDATE TO 'none'"), 0, 'to an unknown version is refused');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_extension e, pg_extension_update_paths('hybridindex') p WHERE extname = 'hybridindex' AND p.target = e.extversion AND p.path IS NULL"),
	'0', 'every version can be updated to this one');
isnt($node->psql('postgres', 'DROP EXTENSION hybridindex'), 0, 'the extension is not dropped under its indexes');
same_answers($node, 'after ALTER EXTENSION', \%queries, \@tables);

# ---- dump and restore ----
my $dump = $node->basedir . '/dump';
my @wrong;
command_ok([ 'pg_dump', '-Fd', '-j', '2', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
command_ok([ 'pg_restore', '-j', '2', '-d', $node->connstr('restored'), $dump ], 'pg_restore');
is($node->safe_psql('restored', $definitions), $defined, 'definitions are the same');
is($node->safe_psql('restored', $contents), $held, 'rows are the same');
foreach my $query (sort keys %queries)
{
	my ($r, $o, $e) = $node->psql('restored', "SELECT hyb_same(\$q\$$query\$q\$, '$queries{$query}')");
	push @wrong, "$query: $o $e" if $r != 0 || $o ne 't';
}
is("@wrong", '', 'answers of the restored indexes');
constraints_hold($node, 'restored', 'restored in parallel');
is($node->safe_psql('restored', "SELECT bool_and(hyb_check(i)) FROM unnest('{t,part1,apart.part2,ul}'::regclass[]) i"),
	't', 'the restored indexes pass the check');
$node->safe_psql('postgres', 'DROP DATABASE restored');

my $plain = $node->basedir . '/plain.sql';
command_ok([ 'pg_dump', '-f', $plain, '-d', $node->connstr('postgres') ], 'pg_dump in plain text');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $plain, '-d', $node->connstr('restored') ], 'read by psql');
is($node->safe_psql('restored', $definitions), $defined, 'definitions are the same');
constraints_hold($node, 'restored', 'restored from text');
$node->safe_psql('postgres', 'DROP DATABASE restored');

my $sections = $node->basedir . '/sections';
command_ok([ 'pg_dump', '-Fc', '-f', $sections, '-d', $node->connstr('postgres') ], 'pg_dump in custom format');
$node->safe_psql('postgres', 'CREATE DATABASE restored; ALTER DATABASE restored SET hybridindex.replace_btree = on');
command_ok([ 'pg_restore', "--section=$_", '-d', $node->connstr('restored'), $sections ], "section $_")
  foreach qw(pre-data data post-data);
constraints_hold($node, 'restored', 'restored in sections', $constrained =~ s/\|btree\|$/|hybrid|{access_method=hybrid}/mgr);
is($node->safe_psql('restored', "SELECT count(*) FROM pg_class WHERE relam = 403 AND relkind = 'i' AND relnamespace = 'public'::regnamespace"),
	'0', 'the setting made no other one');
$node->safe_psql('postgres', 'DROP DATABASE restored');

# one table, into a database with the extension, and without
command_ok([ 'pg_dump', '-f', $plain, '-t', 'parent', '-d', $node->connstr('postgres') ], 'pg_dump of a table');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
command_fails_like([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $plain, '-d', $node->connstr('restored') ],
	qr/unrecognized parameter "access_method"/, 'without the extension it does not quietly become a btree index');
is($node->safe_psql('restored', "SELECT count(*) FROM pg_class WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace"),
	'0', 'there is no index');
$node->safe_psql('restored', 'DROP TABLE parent; CREATE SCHEMA elsewhere; CREATE EXTENSION hybridindex SCHEMA elsewhere');
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $plain, '-d', $node->connstr('restored') ], 'with the extension the dump can be restored');
is($node->safe_psql('restored', "SELECT string_agg(amname, ' ') FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname LIKE 'parent_%'"),
	'hybrid hybrid hybrid', 'they are hybrid');
$node->safe_psql('postgres', 'DROP DATABASE restored');

# ---- a database whose new indexes are hybrid, with btree ones from before ----
# pg_upgrade restores the setting first; each index has to stay what its file is.
$node->safe_psql('postgres', 'CREATE DATABASE switched');
$node->safe_psql('switched', <<'EOF');
CREATE EXTENSION hybridindex;
CREATE TABLE kept (id int PRIMARY KEY, s text, n int UNIQUE DEFERRABLE, EXCLUDE USING btree (s WITH =));
CREATE UNIQUE INDEX kept_later ON kept (s, id) WITH (fillfactor = 70);
ALTER TABLE kept ADD CONSTRAINT kept_later UNIQUE USING INDEX kept_later;
CREATE INDEX kept_plain ON kept (n, s);
CREATE TABLE reverted (id int PRIMARY KEY WITH (access_method = hybrid), s text);
CREATE TABLE converted (id int PRIMARY KEY, s text UNIQUE WITH (fillfactor = 80));
CREATE TABLE made (id int PRIMARY KEY WITH (access_method = hybrid), s text, EXCLUDE USING hybrid (s WITH =));
CREATE UNIQUE INDEX made_later ON made USING hybrid (s, id);
ALTER TABLE made ADD CONSTRAINT made_later UNIQUE USING INDEX made_later;
CREATE TABLE parts (id int, s text, PRIMARY KEY (id), UNIQUE (id, s)) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (1000) TO (3000) PARTITION BY RANGE (id);
CREATE TABLE parts21 PARTITION OF parts2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE parts22 (id int PRIMARY KEY, s text, UNIQUE (id, s));
ALTER TABLE parts2 ATTACH PARTITION parts22 FOR VALUES FROM (2000) TO (3000);
CREATE TABLE member (id int PRIMARY KEY, s text UNIQUE WITH (access_method = hybrid));
ALTER EXTENSION hybridindex ADD TABLE member;
INSERT INTO kept SELECT i, md5(i::text), -i FROM generate_series(1, 2500) i;
INSERT INTO reverted SELECT id, s FROM kept;
INSERT INTO converted SELECT id, s FROM kept;
INSERT INTO made SELECT id, s FROM kept;
INSERT INTO parts SELECT id, s FROM kept;
INSERT INTO member SELECT id, s FROM kept;
SELECT hybrid_revert('reverted_pkey'), hybrid_convert('converted_pkey'), hybrid_convert('converted_s_key');
ALTER DATABASE switched SET session_preload_libraries = 'hybridindex';
ALTER DATABASE switched SET hybridindex.replace_btree = on;
EOF
$node->safe_psql('switched', <<'EOF');
CREATE TABLE late (id int PRIMARY KEY, s text UNIQUE);
INSERT INTO late SELECT id, s FROM kept;
CREATE UNIQUE INDEX late_later ON late USING btree (s, id);
ALTER TABLE late ADD CONSTRAINT late_later UNIQUE USING INDEX late_later;
EOF
my $kinds = <<'EOF';
SELECT a.amname, c.relkind, c.relname, c.reloptions, n.conname, n.contype FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	LEFT JOIN pg_constraint n ON n.conindid = c.oid AND n.contype <> 'f'
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('i', 'I') ORDER BY 1, 2, 3
EOF
my $switched = $node->safe_psql('switched', $kinds);
is(scalar(grep { /^btree/ } split /\n/, $switched), 18, 'btree indexes under the setting');
is(scalar(grep { /^hybrid/ } split /\n/, $switched), 8, 'hybrid ones');

# All indexes of that database are what they were, whole, and in use.
sub switched_holds
{
	my ($on, $what) = @_;
	my @bad;
	is($on->safe_psql('switched', 'SHOW hybridindex.replace_btree'), 'on', "$what: the setting is on");
	is($on->safe_psql('switched', $kinds), $switched, "$what: each index is of the access method that it was of");
	foreach my $table (qw(kept reverted converted made parts member late))
	{
		my $rows = "SELECT md5(string_agg(x::text, ',' ORDER BY id)) FROM (SELECT id, s FROM $table WHERE %s) x;";
		push @bad, "$table through an index"
		  if $on->safe_psql('switched', 'SET enable_seqscan = off;' . sprintf($rows, 'id > 0') . sprintf($rows, "s > ''")) ne
		  $on->safe_psql('switched', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;'
			  . sprintf($rows, 'id > 0') . sprintf($rows, "s > ''"));
		push @bad, "uniqueness of $table"
		  if ($on->psql('switched', "INSERT INTO $table (id) VALUES (77)"))[2] !~ /duplicate key value violates unique constraint "${table}1?_pkey"/;
	}
	my $checked = $on->safe_psql('switched', <<'EOF');
SELECT hybrid_index_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'hybrid' AND relkind = 'i';
SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck';
EOF
	$on->safe_psql('switched', <<'EOF') if $checked =~ /1$/;
CREATE EXTENSION amcheck;
SELECT bt_index_parent_check(oid, true) FROM pg_class WHERE relam = 403 AND relkind = 'i' AND relnamespace = 'public'::regnamespace;
DROP EXTENSION amcheck;
EOF
	is("@bad", '', "$what: indexes find rows and duplicates");
	return;
}
switched_holds($node, 'switched');

# ---- pg_upgrade, one server after the other ----
my @later = grep { -x "$_/pg_upgrade" && -x "$_/postgres" } split /[: ]+/, $ENV{HYBRID_UPGRADE} // '';
note 'no later server named by HYBRID_UPGRADE' unless @later;
my ($old, $old_bin) = ($node, `pg_config --bindir`);
chomp $old_bin;

# A new cluster that a stopped one was upgraded to; false if that failed.
sub upgrade
{
	my ($name, $bin, $from, $checksums, $to) = @_;
	my $new = PostgreSQL::Test::Cluster->new($name, install_path => dirname($bin));
	$new->init(extra => [ $checksums ? '--data-checksums' : $to >= 18 ? '--no-data-checksums' : () ]);
	$new->append_conf('postgresql.conf', "$conf\nfsync = off\n");

	# it starts both servers, and writes to the current directory
	my $here = getcwd();
	chdir $new->basedir or die;
	my $done = run_log(
		[
			"$bin/pg_upgrade", '--no-sync', '-b', $old_bin, '-B', $bin, '-d', $from->data_dir,
			'-D', $new->data_dir, '-s', $new->host, '-p', $from->port, '-P', $new->port
		]);
	chdir $here or die;
	return $new if $done;
	note slurp_file($_) foreach glob($new->data_dir . '/pg_upgrade_output.d/*/log/pg_upgrade_dump_*.log');
	return;
}

foreach my $bin (@later)
{
	my ($to) = `$bin/postgres --version` =~ / (\d+)/;
	my $pkglibdir = `$bin/pg_config --pkglibdir`;
	chomp $pkglibdir;
	next unless $to > $version && -e "$pkglibdir/hybridindex.so";

	my $checksums = $old->safe_psql('postgres', 'SHOW data_checksums') eq 'on';
	$held = $old->safe_psql('postgres', $contents);
	my $before = $old->safe_psql('postgres', $indexes);
	$old->stop;
	my $new = upgrade("upgraded$to", $bin, $old, $checksums, $to);
	if (!$new)
	{
		# A minor release may dump what an older one of the next version cannot
		# read.  Then it is the same without the extension.
		$old->start;
		$old->safe_psql('postgres', 'DROP DATABASE switched');
		$old->safe_psql('postgres', 'DROP EXTENSION hybridindex CASCADE');
		$old->stop;
		SKIP:
		{
			skip "pg_upgrade from $version to $to fails without hybrid indexes, too", 1
			  if !upgrade("plain$to", $bin, $old, $checksums, $to);
			fail("pg_upgrade from $version to $to fails with hybrid indexes");
		}
		$old = undef;
		last;
	}
	pass("pg_upgrade from $version to $to");
	$new->start;
	is($new->safe_psql('postgres', $indexes), $before, "$to: the indexes are what they were");
	is($new->safe_psql('postgres', $contents), $held, "$to: so are rows");
	same_answers($new, "$to: answers", \%queries, \@tables);
	constraints_hold($new, 'postgres', "upgraded to $to");
	switched_holds($new, "switched, upgraded to $to");
	go_on($new, "upgraded to $to", 10000 * $to);
	$new->restart;
	same_answers($new, "$to: answers after a restart", \%queries, \@tables);
	no_crash($new, "$to: nothing crashed");
	($old, $old_bin, $version) = ($new, $bin, $to);
}
go_on($node, 'the origin', 10000) if defined $old && $old == $node;

no_crash($node, 'nothing crashed');
$old->stop if defined $old;
done_testing();
