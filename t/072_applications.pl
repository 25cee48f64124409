
# Applications run their migrations in a database whose indexes are hybrid by the
# setting, and in one with btree indexes.  What they print of the two databases is
# the same.  The extension is in a schema of its own outside search_path, and the
# applications' role is not a superuser.
#
# HYBRID_PYTHON is a Python with test/applications/requirements.txt, which "./dev
# applications" makes.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('applications', '');
my $directory = test_root() . '/test/applications';
my $python = $ENV{HYBRID_PYTHON};
my $files = PostgreSQL::Test::Utils::tempdir();

$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PYTHONHASHSEED} = 0;
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN');

# A database of the applications' role, with hybrid indexes or with btree's.
sub new_database
{
	my ($name, $kind) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE template0 OWNER app");
	$node->safe_psql($name, 'ALTER SCHEMA public OWNER TO app');
	$node->safe_psql($name, <<EOF) if $kind ne 'btree';
CREATE SCHEMA hybrid; GRANT USAGE ON SCHEMA hybrid TO app;
CREATE EXTENSION hybridindex SCHEMA hybrid;
ALTER DATABASE $name SET hybridindex.replace_btree = on;
EOF
	hide_access_method($node, $name) if $kind eq 'hidden';
	return;
}

# What an application prints, and its errors.
sub run_application
{
	my ($database, $kind, $program, @arguments) = @_;
	my ($out, $err) = ('', '');

	new_database($database, $kind);
	local $ENV{HYBRID} = $kind ne 'btree' ? 1 : '';
	IPC::Run::run([ $python, "$directory/$program", @arguments, $database ], '<', \undef, '>', \$out, '2>', \$err);
	return ($out, $err);
}

# To its end.
sub complete_run
{
	my ($database, $kind, @program) = @_;
	my ($out, $err) = run_application($database, $kind, @program);
	like($out, qr/\ndone\n\z/, "$database: to the end") or diag $err;
	return $out;
}

sub same_output
{
	my ($what, $hybrid, $btree) = @_;
	return if ok($hybrid eq $btree, "$what: indexes, constraints and rows are the same");
	append_to_file("$files/hybrid", $hybrid);
	append_to_file("$files/btree", $btree);
	diag `diff $files/btree $files/hybrid | head -40`;
	return;
}

# Indexes of the schema public and their access methods, those of them that
# satisfy a condition.
sub indexes
{
	my ($database, $condition) = @_;
	return $node->safe_psql($database, <<EOF);
SELECT string_agg(c.relname || ' ' || amname, ', ' ORDER BY c.relname) FROM pg_class c JOIN pg_am a ON a.oid = relam
WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace AND $condition
EOF
}

# Their definitions, as far as they do not tell the access method.
sub definitions
{
	my ($database) = @_;
	return $node->safe_psql($database, <<'EOF');
SELECT string_agg(replace(replace(d, 'hybrid.', ''), 'USING hybrid', 'USING btree'), E'\n' ORDER BY d COLLATE "C")
FROM (SELECT regexp_replace(pg_get_indexdef(oid), ' WITH \(access_method=''?hybrid''?\)', '') AS d
	FROM pg_class WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace) x
EOF
}

# Rails
my %answers;
foreach my $kind ('btree', 'hybrid')
{
	new_database("rails_$kind", $kind);
	my ($ret, $out, $err) = $node->psql("rails_$kind", slurp_file("$directory/rails.sql"),
		extra_params => [ '-U', 'app' ], on_error_stop => 0);
	$answers{$kind} = "$out\n$err";
}
is($answers{hybrid}, $answers{btree}, 'Rails: the same answers and messages');
like($answers{hybrid}, qr/fk_rails_5b5ddfd518.*\nDETAIL:.*\z/, 'Rails: to the end');
is(definitions('rails_hybrid'), definitions('rails_btree'), 'Rails: the same indexes');
is(indexes('rails_hybrid', "amname <> 'hybrid'"), 'posts_explicit_btree btree', 'Rails: all are hybrid but what says btree');

# its structure.sql, into a database without the setting
$node->command_ok([ 'pg_dump', '-s', '-x', '-O', '-f', "$files/structure.sql", '-d', $node->connstr('rails_hybrid') ],
	'Rails: structure.sql');
$node->safe_psql('postgres', 'CREATE DATABASE rails_again TEMPLATE template0');
$node->safe_psql('rails_again', slurp_file("$files/structure.sql") =~ s/^\\(?:un)?restrict.*\n//gmr);
is(indexes('rails_again', 'true'), indexes('rails_hybrid', 'true'), 'Rails: loaded');

# what was written with USING btree
$node->safe_psql('rails_hybrid', "CALL hybrid.hybrid_convert_concurrently('posts_explicit_btree')");
is(indexes('rails_hybrid', "c.relname ~ 'explicit'"), 'posts_explicit_btree hybrid', 'Rails: an explicit btree index is converted');
$node->safe_psql('rails_hybrid', <<'EOF');
SELECT hybrid.hybrid_index_check(oid, true) FROM pg_class WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace
EOF

SKIP:
{
	skip 'no Python with Django, SQLAlchemy and Alembic (./dev applications fetches them)', 1
	  if !$python;

	my $btree = complete_run('sqlalchemy_btree', 'btree', 'sqlalchemy_app.py');
	my $hybrid = complete_run('sqlalchemy_hybrid', 'hybrid', 'sqlalchemy_app.py');
	same_output('SQLAlchemy', $hybrid, $btree);
	is(join(' ', $hybrid =~ /^differences: (.*)/mg), '[] [] [] []', 'Alembic sees no differences');

	my ($backend, $stock) = ('hybrid_django', 'django.db.backends.postgresql');
	$btree = complete_run('django_btree', 'btree', 'django_app.py', $stock);
	$hybrid = complete_run('django_hybrid', 'hybrid', 'django_app.py', $backend);
	same_output('Django', $hybrid, $btree);

	# switching.md says so; once this succeeds it need not
	my ($out, $err) = run_application('django_stock', 'hybrid', 'django_app.py', $stock);
	like($err, qr/relation "shop_author_slug_\w+_like" already exists/, 'Django itself does not find a hybrid index to drop');
	same_output('Django itself, with a view pg_am', complete_run('django_hidden', 'hidden', 'django_app.py', $stock), $btree);
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
