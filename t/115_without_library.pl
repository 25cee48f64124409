
# Where the library is gone, docs/guide/troubleshooting.md tells how to list and drop
# what needs it.  Its statements run while the functions' library does not exist.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $guide = slurp_file(test_root() . '/docs/guide/troubleshooting.md');
my ($section) = $guide =~ /^## The library is gone\n(.*?)(?=^## |\z)/ms;
my ($rescue) = $section =~ /^```sql\n(.*?)^```/ms;
my $node = new_node('without_library', '');
my $hot = $node->pg_version >= 16 ? 'hybrid_hot' : 'hybrid';
$node->safe_psql('postgres', <<"EOS");
CREATE TABLE a (id int PRIMARY KEY WITH (access_method = hybrid), t text);
CREATE INDEX a_t ON a USING hybrid (t COLLATE "C");
CREATE INDEX a_part ON a USING hybrid (t COLLATE "C" text_hope_ops, (id + 1)) INCLUDE (id) WHERE id > 5;
CREATE INDEX a_hot ON a USING $hot (id DESC);
CREATE TABLE b (id int REFERENCES a);
INSERT INTO a VALUES (1, 'one');
INSERT INTO b VALUES (1);
UPDATE pg_proc SET probin = '\$libdir/gone' WHERE probin = '\$libdir/hybridindex';
EOS
like(($node->psql('postgres', 'SELECT * FROM a'))[2], qr/could not access file "\S*gone"/, 'a table cannot be opened');
isnt($node->psql('postgres', 'DROP EXTENSION hybridindex CASCADE'), 0, 'the extension cannot be dropped');
is(join("\n", sort(split /\n/, $node->safe_psql('postgres', $rescue)), ''), <<"EOS", 'what goes is listed');
CREATE INDEX a_hot ON public.a USING $hot (id)|||
CREATE INDEX a_part ON public.a USING hybrid (t COLLATE "C" text_hope_ops, ((id + 1))) INCLUDE (id) WHERE (id > 5)|||
CREATE INDEX a_t ON public.a USING hybrid (t COLLATE "C")|||
CREATE UNIQUE INDEX a_pkey ON public.a USING hybrid (id) WITH (access_method=hybrid)|a|a_pkey|PRIMARY KEY (id)
CREATE UNIQUE INDEX a_pkey ON public.a USING hybrid (id) WITH (access_method=hybrid)|b|b_id_fkey|FOREIGN KEY (id) REFERENCES a(id)
EOS
is($node->safe_psql('postgres', 'SELECT a.t, b.id FROM a JOIN b USING (id)'), 'one|1', 'all rows are there');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_constraint WHERE conrelid IN ('a'::regclass, 'b'::regclass) AND contype IN ('p', 'f')"), '0', 'the constraints are gone');
$node->safe_psql('postgres', 'ALTER TABLE a ADD PRIMARY KEY (id); ALTER TABLE b ADD FOREIGN KEY (id) REFERENCES a; VACUUM a; CREATE EXTENSION hybridindex');
$node->stop;
done_testing();
