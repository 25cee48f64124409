
# The library and the script of the extension are not of one version, or a script is
# cut off.  Each is an error with its SQLSTATE, and leaves nothing behind.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('packages', '');
my $older = qr/42883: could not find function "hybrid_of_tomorrow" in file .*HINT:  The server runs an older library than the SQL objects of hybridindex want\. Install the newest package of hybridindex and restart the server\./s;

# What a session of its own says.
sub verbose_error
{
	my ($database, $statement) = @_;
	return ($node->psql($database, "\\set VERBOSITY verbose\n$statement"))[2];
}

sub objects
{
	my ($database) = @_;
	return $node->safe_psql($database, q(SELECT (SELECT count(*) FROM pg_am WHERE amname = 'hybrid')
		+ (SELECT count(*) FROM pg_proc WHERE probin ~ 'hybridindex') + (SELECT count(*) FROM pg_event_trigger)
		+ (SELECT count(*) FROM pg_extension WHERE extname = 'hybridindex')));
}

# ---- which library is it? ----

my ($release) = slurp_file(test_root() . '/META.json') =~ /"version": "(\d+\.\d+\.\d+)"/;
my ($version) = slurp_file(test_root() . '/hybridindex.control') =~ /^default_version = '(.*)'$/m;
is($node->safe_psql('postgres', 'SELECT hybrid_version()'), $release, 'the version of the release');
SKIP:
{
	skip 'no such function', 1 if $node->pg_version < 18;
	is($node->safe_psql('postgres', q(LOAD 'hybridindex'; SELECT module_name, version FROM pg_get_loaded_modules() WHERE module_name = 'hybridindex')),
		"hybridindex|$release", 'the server knows it too');
}

# ---- the library is older than the SQL objects ----

like(verbose_error('postgres', q(CREATE FUNCTION tomorrow() RETURNS int AS '$libdir/hybridindex', 'hybrid_of_tomorrow' LANGUAGE C)),
	$older, 'a script wants a function that the library lacks');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_proc WHERE proname = 'tomorrow')), '0', 'and has not made it');

$node->safe_psql('postgres', <<'EOF');
CREATE TABLE t (k int);
CREATE INDEX t_k ON t USING hybrid (k);
INSERT INTO t SELECT generate_series(1, 1000);
SET allow_system_table_mods = on;
UPDATE pg_proc SET prosrc = 'hybrid_of_tomorrow' WHERE proname = 'hybrid_merge';
EOF
like(verbose_error('postgres', q(SELECT hybrid_merge('t_k'))), $older, 'an older library under the objects of a newer script');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE k < 100'), '99', 'what it has works');
like(verbose_error('postgres', q(ALTER EXTENSION hybridindex UPDATE TO '0.9')),
	qr/22023: extension "hybridindex" has no update path from version "$version" to version "0.9"/, 'there is no way back');

# ---- scripts that are cut off ----

SKIP:
{
	skip 'scripts are found only in the directory of the server', 1 if $node->pg_version < 18;

	my $place = PostgreSQL::Test::Utils::tempdir();
	my $share = `pg_config --sharedir` =~ s/\n//r;
	my $script = slurp_file("$share/extension/hybridindex--$version.sql");
	my (@accepted, @left);

	mkdir("$place/extension") or die "mkdir: $!";
	append_to_file("$place/extension/hybridindex.control", slurp_file("$share/extension/hybridindex.control"));
	append_to_file("$place/extension/hybridindex--$version--tomorrow.sql",
		q(CREATE FUNCTION first() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION tomorrow() RETURNS int AS 'MODULE_PATHNAME', 'hybrid_of_tomorrow' LANGUAGE C;
));
	append_to_file("$place/extension/hybridindex--$version.sql", $script);
	$node->append_conf('postgresql.conf', "extension_control_path = '$place'");
	$node->reload;

	# The server parses the whole script before it runs any of it.  A
	# script that ends where a statement may end is not noticed.
	$node->safe_psql('postgres', 'CREATE DATABASE cut TEMPLATE template0');
	while ($script =~ /(?:\(|AS)\n/g)
	{
		my $cut = pos($script);
		append_to_file("$place/extension/hybridindex--cut$cut.sql", substr($script, 0, $cut));
		my $error = verbose_error('cut', "CREATE EXTENSION hybridindex VERSION 'cut$cut'");
		push @accepted, "$cut: $error" if $error !~ /ERROR:  42601: /;
		push @left, $cut if objects('cut') ne '0';
	}
	is("@accepted", '', 'a script that ends within a statement is refused');
	is("@left", '', 'and leaves nothing');

	$node->safe_psql('cut', 'CREATE EXTENSION hybridindex');
	my $whole = objects('cut');
	like(verbose_error('cut', q(ALTER EXTENSION hybridindex UPDATE TO 'tomorrow')), $older, 'an upgrade script fails in the middle');
	is($node->safe_psql('cut', q(SELECT extversion, (SELECT count(*) FROM pg_proc WHERE proname = 'first') FROM pg_extension WHERE extname = 'hybridindex')),
		"$version|0", 'and changes nothing');
	is(objects('cut'), $whole, 'all objects are still there');
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
