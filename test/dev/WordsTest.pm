
# The self-test of words: sentences that are made up, each breaking one rule.

package WordsTest;

use strict;
use warnings;

use SelfTest qw(make_tree output_of);

my $long = 'Word ' . 'word ' x 35;

# A file, its text, and what is to be found in it: line and rule, if anything.
my @cases = (
	[ 'a long sentence', 'src/page/a.c', "/*\n * Short.  $long.\n */\n", '2: long (36 words)' ],
	[ 'as long as may be', 'src/page/a.c', '/* ' . 'word ' x 35 . ". */\n" ],
	[ 'two sentences', 'src/page/a.c', '/* ' . 'word ' x 20 . ".\n" . 'Word ' x 20 . " */\n" ],
	[ 'a sentence that begins with a function', 'src/page/a.c', '/* ' . 'word ' x 20 . '. hyb_x() ' . 'word ' x 20 . ". */\n" ],
	[ 'no end of a sentence', 'docs/a.md', 'word ' x 20 . 'e.g. ' . 'word ' x 20 . ".\n", '1: long (41 words)' ],
	[ 'items of a list', 'src/page/a.h', "/*\n * Items:\n * - " . 'word ' x 30 . "\n * - " . 'word ' x 30 . "\n */\n" ],
	[ 'a paragraph', 'docs/a.md', "# Title\n\nFirst.\n" . "Word word word\n" x 12, '4: long (36 words)' ],
	[ 'cells', 'docs/a.md', '| ' . 'word ' x 30 . '| ' . 'word ' x 30 . "|\n| --- | --- |\n" ],
	[ 'code', 'docs/a.md', "```\n$long\n```\n\nA `$long` is one word, [so is](" . 'x' x 200 . ").\n" ],
	[ 'a heading', 'docs/a.md', '# ' . 'word ' x 20 . "\n" . 'word ' x 20 . "\n" ],
	[ 'a message', 'src/page/a.c', qq(x(errmsg("see",\n  1),\n errhint("Ask "\n  "somebody %s.", x));\n), '3: anybody' ],
	[ 'another string', 'src/page/a.c', qq(x = "Ask somebody else.";\n) ],
	[ 'SQL', 'sql/a.sql', "SELECT 1; -- nobody does it\n-- What nobody does\nSELECT 'who is it';\n", '2: anybody' ],
	[ 'Perl', 't/a.pl', "#!/usr/bin/perl\n# What nobody does\nmy \$x;\n", '2: anybody' ],
	[ 'Python', 'bench/a.py', qq("""Title here.\n\nWhat nobody does.\n"""\nx = 1\n), '3: anybody' ],
	[ 'a string of Python', 'bench/a.py', qq(x = """\nWhat nobody does.\n"""\ny = """one"""\nWhat nobody does.\n# Says what it does\n"""A docstring that nobody reads."""\n), '7: anybody' ],
	[ 'shell', 'test/dev/a.sh', "x=1\n\t# What nobody does\n", '2: anybody' ],
	[ 'so many', 'README.md', "After so many entries a merge starts.\n", '1: so-many' ],
	[ 'so many that', 'README.md', "There are so many that a merge starts.\n" ],
	[ 'none', 'README.md', "With fewer buckets a table is none.\n", '1: is-none' ],
	[ 'no table', 'README.md', "It is NULL if there is none.\n" ],
	[ 'who', 'README.md', "The first one who reads waits.\n", '1: who' ],
	[ 'he', 'README.md', "A worker waits until he is asked.\n", '1: who' ],
	[ 'a role', 'README.md', "Roles who may read it, and whom they ask; it says who owns it.\n" ],
	[ 'others', 'README.md', "It is locked while others wait for it.\n", '1: others' ],
	[ 'other entries', 'README.md', "It has more entries than others have, and others are zero.\n" ],
	[ 'that of which', 'README.md', "The leaf and that of which it is a copy.\n", '1: of-which' ],
	[ 'which', 'README.md', "Keys of which few exist are skipped.\n", '1: of-which' ],
	[ 'parts', 'README.md', "Leaves, each of which is locked, have 60 bytes, of which 44 are headers.\n" ],
	[ 'no leaf', 'README.md', "Such a page is no leaf.\n", '1: is-no' ],
	[ 'no longer', 'README.md', "It is no longer a leaf, and there is no leaf below.\n" ],
	[ 'nor', 'README.md', "Nor is it locked by the scan.\n", '1: nor-is' ],
	[ 'neither', 'README.md', "It is neither locked nor is it read.\n" ],
	[ 'a question', 'README.md', "Does no index have more?\n", '1: does-no' ],
	[ 'a run of a build', 'src/build/sorted_file.c', "/* Each run has its place. */\n", '1: sorted-file' ],
	[ 'a run of a version', 'src/run/run.c', "/* Each run has its place. */\n" ],
	[ 'a merge of a build', 'src/build/sorted_file.c', "/* What is merged first. */\n", '1: file-merge' ],
	[ 'a file merge', 'src/build/sorted_file.c', "/* The file merge comes first. */\n" ],
	[ 'a run of leaves', 'src/merge/step.c', "/* A run of neighbouring leaves */\n", '1: leaf-group' ],
	[ 'versions of rows', 'README.md', "It keeps old versions of a row.\n", '1: row-version' ],
	[ 'versions of servers', 'README.md', "In this version of the server it works.\n", '1: server-version' ],
	[ 'a slot of a filter', 'src/algo/ribbon.c', "/* Keys have three slots. */\n", '1: slot' ],
	[ 'a slot of an index', 'src/shared/slot.c', "/* Indexes have one slot. */\n" ],
	[ 'a conversion of values', 'src/key/codecs.c', "/* The value is converted first. */\n", '1: cast' ],
	[ 'a conversion of an index', 'src/ddl/convert.c', "/* The index is converted first. */\n" ]);

sub run
{
	my ($script) = @_;
	my $failed = 0;

	foreach my $case (@cases)
	{
		my ($name, $file, $text, $expected) = @$case;
		my $tree = make_tree($file => $text);
		my $output = output_of($script, '--all', $tree);
		my @found = $output =~ /^\Q$file\E:(\d+: [^:]*):/mg;
		next if "@found" eq ($expected // '');
		print "words self-test: $name: expected ", $expected // 'nothing', ", found\n$output";
		$failed++;
	}
	$failed += listed($script) + updated($script);
	printf "words self-test: %d passed, %d failed\n", !$failed, !!$failed;
	return !$failed;
}

# Do more findings than listed fail, and fewer?
sub listed
{
	my ($script) = @_;
	my $failed = 0;

	foreach my $case ([ 0, qr/README.md: 1 findings, 0 in/ ], [ 1, qr/\Awords: 1 passed/ ], [ 2, qr/README.md: lower the number .* from 2 to 1/ ])
	{
		my ($number, $expected) = @$case;
		my $tree = make_tree('README.md' => "So many entries.\n", 'test/dev/words.open' => "README.md $number\n");
		my $output = output_of($script, $tree);
		next if $output =~ $expected && ($? == 0) == ($number == 1);
		print "words self-test: $number listed, 1 to be found\n$output";
		$failed++;
	}
	return $failed;
}

# Does --update lower numbers, follow a file that moves, and raise none?
sub updated
{
	my ($script) = @_;
	my $tree = make_tree(
		'README.md' => "So many entries.\n",
		'docs/more.md' => "So many entries.  So many leaves.\n",
		'src/run/moved.c' => "/* So many entries */\n",
		'src/run/new.c' => "/* So many entries */\n",
		'test/dev/words.open' => "README.md 3\ndocs/gone.md 1\ndocs/more.md 1\nsrc/page/moved.c 4\n");
	my $output = output_of($script, '--update', $tree);
	my $status = $?;

	open(my $fh, '<', "$tree/test/dev/words.open") or die "$tree: $!\n";
	my $list = join '', grep { !/^#/ } <$fh>;
	close($fh);
	return 0
	  if $status != 0
	  && $output =~ m{^words: docs/more.md: 2 findings, 1 in.*^words: src/run/new.c: 1 findings, 0 in}ms
	  && $list eq "README.md 1\ndocs/more.md 1\nsrc/run/moved.c 1\n";
	print "words self-test: --update leaves\n$list", "and says\n$output";
	return 1;
}

1;
