
# The guide is true: each SQL block of a page in docs/guide runs, in order, in the
# database "shop" of a scratch server.  A ```text block behind it is its output, where
# "…" stands for what differs from run to run; widths of columns do not count.
# (README.md's SQL is run by 120_documents.pl.)
#
# Set-up that readers need not see is a block in an HTML comment.  A block behind
# "<!-- not run: REASON -->" is not run.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my @aligned = ('--pset=format=aligned', '--pset=tuples_only=off');

# A pattern for an output, or the output as such a pattern sees it.
sub plain
{
	my ($text, $pattern) = @_;

	$text =~ s/[ \t]+/ /g;
	$text =~ s/-{2,}/--/g;
	$text =~ s/^ | $|^\(\d+ rows?\)$//mg;
	$text =~ s/\n\n+/\n/g;
	$text =~ s/^\s+|\s+$//g;
	return $text unless $pattern;
	return join '[^\n]*?', map { quotemeta } split /…/, $text, -1;
}

my $pages = test_root() . '/docs/guide';
my $list = slurp_file("$pages/README.md");
foreach my $page (sort glob("$pages/*.md"))
{
	my $text = slurp_file($page);
	my ($name) = $page =~ m{([^/]+)\.md$};
	my $node;
	my $found = 0;

	like($list, qr/\]\($name\.md\)/, "$name.md is listed") if $name ne 'README';
	while ($text =~ /^(?<not><!-- not run: [^\n]+ -->\n+)?```sql\n(?<sql>.*?)^```\n(?:\n*^```text\n(?<output>.*?)^```\n)?/msg)
	{
		my ($sql, $output) = @+{qw(sql output)};

		$found++;
		next if defined $+{not};
		if (!$node)
		{
			$node = new_node("guide_$name", "hybridindex.merge_floor = 8192\nhybridindex.quiet_time = 5s\n");
			$node->safe_psql('postgres', 'CREATE DATABASE shop');
		}
		my ($ret, $out, $err) = $node->psql('shop', $sql, extra_params => \@aligned);
		my ($first) = $sql =~ /^(.*)/;
		is("$ret " . ($ret ? $err : ''), '0 ', "$name.md runs: $first");
		next unless defined $output;
		my $expected = plain($output, 1);
		like(plain($out), qr/\A$expected\z/, "$name.md has the output of: $first");
	}
	my $blocks = () = $text =~ /```sql/g;
	is($found, $blocks, "$name.md: each SQL block stands at the start of a line and is closed");
	$node->stop if $node;
}

# The queries for postgres_exporter run and give the columns that it is told, and
# alarms and charts ask for no others.
my $queries = slurp_file("$pages/prometheus/queries.yaml");
my $watched = new_node('prometheus', '');
my %metric;
$watched->safe_psql('postgres', 'CREATE TABLE t (k int PRIMARY KEY WITH (access_method = hybrid)); INSERT INTO t VALUES (1); CREATE ROLE watcher LOGIN IN ROLE pg_monitor');
while ($queries =~ /^(\w+):\n  query: \|\n((?:    .*\n)+)  metrics:\n((?:    - .*\n)+)/mg)
{
	my ($name, $sql, $list) = ($1, $2, $3);
	my @columns = $list =~ /^    - (\w+): \{usage: "(?:LABEL|GAUGE|COUNTER)", description: "[^"]+"\}$/mg;
	my $out = $watched->safe_psql('postgres', $sql, extra_params => [ @aligned, '-A', '-U', 'watcher' ]);

	like($out, qr/^(?:\w+\|?)+\n.*\n\(1 row\)$/, "query $name has a row");
	is(join(' ', sort split /\|/, ($out =~ /^(.*)/)[0]), join(' ', sort @columns), "columns of $name");
	$metric{"${name}_$_"} = 1 foreach @columns;
}
$watched->stop;
foreach my $file (qw(alerts.yaml dashboard.json))
{
	my @used = slurp_file("$pages/prometheus/$file") =~ /\b(hybrid_[a-z_]+)/g;

	cmp_ok(scalar(@used), '>', 5, "$file has metrics");
	is(join(' ', grep { !$metric{$_} } @used), '', "$file uses metrics that there are");
}

done_testing();
