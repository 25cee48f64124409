# The library under scripts of other versions: one with a column less in each row, as
# the script of the last release would be, and one with a column more.  All views
# work.  An update by the way that docs/extending.md describes brings the columns, and
# users' views of the extension's views and functions stay.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $place = PostgreSQL::Test::Utils::tempdir();
my $node = new_node('scripts', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_step_pages = 1
EOF
if ($node->pg_version < 18)
{
	$node->stop;
	plan skip_all => 'scripts are found only in the directory of the server';
}

# ---- the scripts ----

my $share = `pg_config --sharedir` =~ s/\n//r;
my ($version) = slurp_file("$share/extension/hybridindex.control") =~ /^default_version = '(.*)'$/m;
my $script = slurp_file("$share/extension/hybridindex--$version.sql");
my $row = qr/^CREATE FUNCTION (\w+)\(([^;]*?)\)\nRETURNS (?:SETOF )?record$/m;

# Functions that return rows: the last column of each, and the types of its arguments.
my (%last, %tomorrow, %arguments);
while ($script =~ /$row/g)
{
	my ($name, $parameters) = ($1, $2);
	my @in = grep { !/^\s*OUT / } split /,/, $parameters;

	$last{$name} = [ $parameters =~ /OUT (\w+) ([\w ]+)$/ ];
	$tomorrow{$name} = [ 'of_tomorrow', 'text' ];
	$arguments{$name} = join(',', map { (split)[1] } @in);
}
is(join(' ', sort keys %last),
	'hybrid_dictionary_info hybrid_estimate hybrid_index_stats hybrid_make_operator_classes hybrid_memory_info hybrid_merge_progress_list',
	'functions that return rows');

my $older = $script =~ s/$row/$& =~ s{,\n\s*OUT [^,]*\)\n(?=RETURNS)}{)\n}r/ger;
$older =~ s/, p\.started$//m or die 'hybrid_merge_progress';
$older =~ s/^\s*WHEN 'impossible' THEN e\.trie_obstacle\n//m or die 'hybrid_advice';
my $newer = $script =~ s/$row/$& =~ s{\)\n(?=RETURNS)}{,\n\tOUT of_tomorrow text)\n}r/ger;
$newer =~ s/, p\.started$/, p.started, p.of_tomorrow/m or die 'hybrid_merge_progress';
$newer =~ s/ AS hot_updates$/ AS hot_updates, e.of_tomorrow/m or die 'hybrid_advice';

# How docs/extending.md adds columns to rows and views.
sub update_script
{
	my ($to, %column) = @_;
	my $update = '';

	foreach my $name (sort keys %column)
	{
		my ($column, $type) = @{ $column{$name} };
		$update .= <<EOF;
UPDATE pg_catalog.pg_proc SET
	proallargtypes = pg_catalog.array_append(proallargtypes, '$type'::pg_catalog.regtype::pg_catalog.oid),
	proargmodes = pg_catalog.array_append(proargmodes, 'o'::pg_catalog."char"),
	proargnames = pg_catalog.array_append(proargnames, '$column')
WHERE oid = '$name($arguments{$name})'::pg_catalog.regprocedure::pg_catalog.oid;
EOF
	}
	$update .= $1 =~ s/CREATE VIEW/CREATE OR REPLACE VIEW/r while $to =~ /^(CREATE VIEW .*?;\n)/msg;
	$update .= $1 =~ s/CREATE FUNCTION/CREATE OR REPLACE FUNCTION/r if $to =~ /^(CREATE FUNCTION hybrid_advise\(.*?^END;\n)/ms;
	return $update;
}

mkdir("$place/extension") or die "mkdir: $!";
append_to_file("$place/extension/hybridindex.control", slurp_file("$share/extension/hybridindex.control"));
append_to_file("$place/extension/hybridindex--0.9.sql", $older);
append_to_file("$place/extension/hybridindex--1.0.sql", $script);
append_to_file("$place/extension/hybridindex--1.1.sql", $newer);
append_to_file("$place/extension/hybridindex--0.9--1.0.sql", update_script($script, %last));
append_to_file("$place/extension/hybridindex--1.0--1.1.sql", update_script($newer, %tomorrow));
$node->append_conf('postgresql.conf', "extension_control_path = '$place:\$system'");
$node->reload;

# ---- rows under each script ----

$node->safe_psql('postgres', <<'EOF');
DROP EXTENSION hybridindex;
CREATE EXTENSION hybridindex VERSION '0.9';
CREATE TABLE t (k int, s text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, 'name ' || i FROM generate_series(1, 2000) i;
CREATE INDEX t_k ON t USING hybrid (k);
CREATE INDEX t_s ON t USING hybrid (s text_hope_ops);
CREATE INDEX t_b ON t (k, s);
INSERT INTO t SELECT i, 'name ' || i FROM generate_series(2001, 2100) i;
CREATE VIEW my_indexes AS SELECT * FROM hybrid_indexes;
CREATE VIEW my_stats AS SELECT * FROM hybrid_index_stats('t_k');
EOF

# A merge that is held is one to see.
my $points = has_points($node);
my $merge;
if ($points)
{
	$node->safe_psql('postgres', q(CREATE EXTENSION injection_points; SELECT injection_points_attach('hybrid-step-written', 'wait')));
	$merge = start_psql($node, "SELECT hybrid_merge('t_k');");
	ok(held_at($node, 'step-written', $merge), 'a merge is held');
}
my %queries = (
	hybrid_indexes => q(SELECT * FROM hybrid_indexes WHERE indexname = 't_k'),
	hybrid_memory => 'SELECT * FROM hybrid_memory',
	hybrid_advice => 'SELECT * FROM hybrid_advice',
	hybrid_advise => q(SELECT * FROM hybrid_advise('t_b')),
	hybrid_estimate => q(SELECT * FROM hybrid_estimate('t_b')),
	hybrid_dictionary_info => q(SELECT * FROM hybrid_dictionary_info('t_s')),
	my_indexes => q(SELECT * FROM my_indexes WHERE indexname = 't_k'),
	my_stats => 'SELECT * FROM my_stats');
$queries{hybrid_merge_progress} = 'SELECT * FROM hybrid_merge_progress' if $points;

# The columns of each query's row, those that are NULL in brackets.
sub columns
{
	my %columns;

	foreach my $name (keys %queries)
	{
		my ($row, @more) = split /\n/, $node->safe_psql('postgres',
			"SELECT (SELECT string_agg(CASE WHEN c.value IS NULL THEN '[' || c.key || ']' ELSE c.key END, ' ' ORDER BY o) FROM json_each_text(to_json(q)) WITH ORDINALITY c (key, value, o)) FROM ($queries{$name}) q");
		die "$name: not one row" if !defined $row || @more;
		$columns{$name} = $row;
	}
	return \%columns;
}

# Definitions of functions and views in a database.
sub definitions
{
	my ($database) = @_;
	return $node->safe_psql($database, <<'EOF');
SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname ~ '^hybrid_' AND prokind = 'f' ORDER BY 1;
SELECT relname, pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND relname ~ '^hybrid_' ORDER BY 1;
EOF
}

my $before = columns();
foreach my $step ([ '1.0', \%last ], [ '1.1', \%tomorrow ])
{
	my ($to, $column) = @$step;
	my %want = %$before;
	my %from = (
		hybrid_indexes => 'hybrid_index_stats', hybrid_memory => 'hybrid_memory_info', hybrid_estimate => 'hybrid_estimate',
		hybrid_dictionary_info => 'hybrid_dictionary_info', hybrid_merge_progress => 'hybrid_merge_progress_list');

	foreach my $name (grep { $from{$_} } keys %want)
	{
		my $new = $column->{ $from{$name} }[0];
		$want{$name} .= $new =~ /^(?:of_tomorrow|trie_obstacle)$/ ? " [$new]" : " $new";
	}
	$want{$_} .= $to eq '1.1' ? ' [of_tomorrow]' : '' foreach qw(hybrid_advice hybrid_advise);
	$node->safe_psql('postgres', "ALTER EXTENSION hybridindex UPDATE TO '$to'");
	my $now = columns();
	is_deeply($now, \%want, "rows have the columns of $to");
	$before = $now;

	$node->safe_psql('postgres', "CREATE DATABASE fresh; \\c fresh\nCREATE EXTENSION hybridindex VERSION '$to'");
	is(definitions('postgres'), definitions('fresh'), "an update to $to makes what $to makes");
	$node->safe_psql('postgres', 'DROP DATABASE fresh');
}

if ($points)
{
	$node->safe_psql('postgres', q(SELECT injection_points_detach('hybrid-step-written'); SELECT injection_points_wakeup('hybrid-step-written')));
	ok(finish_psql($merge), 'the merge ends') or diag $merge->{err};
}
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
