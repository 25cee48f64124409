
# By hint bits a merge leaves out rows whose insert was aborted. hybrid_index_check
# must not rely on these bits: a crash undoes them, and a standby has other ones.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('hints', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
autovacuum = off
EOF
$node->safe_psql('postgres', <<EOF);
CREATE TABLE h (k int8);
CREATE INDEX h_k ON h USING hybrid (k);
INSERT INTO h SELECT g * 2 FROM generate_series(1, 40000) g;
CHECKPOINT;
BEGIN;
INSERT INTO h SELECT g * 2 + 1 FROM generate_series(1, 40000) g;
ROLLBACK;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT count(*) FROM h WHERE k > 0;
SET hybridindex.merge_floor = 1000;
INSERT INTO h SELECT 0 FROM generate_series(1, 800) g;
EOF
my $half = "SELECT merge_running AND static_entries BETWEEN 1 AND 30000 FROM hybrid_index_stats('h_k')";
is($node->safe_psql('postgres', $half), 't', 'a merge is under way');
is($node->safe_psql('postgres', "SELECT hybrid_index_check('h_k', true)"), '', 'checked with hint bits');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $half), 't', 'the merge is where it was');
is($node->safe_psql('postgres', "SELECT hybrid_index_check('h_k', true)"), '', 'checked when a crash has undone them');
$node->stop;
done_testing();
