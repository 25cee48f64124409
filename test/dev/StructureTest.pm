
# The self-test of structure: trees that are made up, each breaking one rule.

package StructureTest;

use strict;
use warnings;

use SelfTest qw(make_tree output_of);

# Sources that keep all rules.
my %clean = (
	't/001_crash.pl' => "1;\n",
	't/002_recovery.pl' => "1;\n",
	'src/base/compat.h' => "#define SysCacheLater 1\n",
	'src/store/page.h' => <<'END',
#include "algo/bits.h"
typedef struct HybPage HybPage;
typedef struct HybImage { int a; } HybImage;
extern void hyb_page_write(int page);
#ifdef CHECKING
extern void hyb_page_assert(int page);
#else
#define hyb_page_assert(page) ((void) 0)
#endif
END
	'src/store/page.c' => <<'END',
#include "store/page.h"

#define LIMIT 3

/* no call of hyb_merge_all( */
void
hyb_page_write(int page)
{
	const char *s = "hyb_merge_all(";

	hyb_bits_set(page);
}

void
hyb_page_assert(int page)
{
	if (hyb_bits_get('"'))
		page->hyb_merge_all(page);
}
END
	'src/algo/bits.h' => <<'END',
#define HYB_BITS 8
typedef enum HybBit { HYB_BIT_ON = (1, 2), HYB_BIT_OFF } HybBit;
#define hyb_bits_set(x) \
	((x) | 1)
static inline int
hyb_bits_get(int x)
{
	return x;
}
END
	'src/merge/merge.h' => "extern void hyb_merge_all(int x);\n",
	'src/merge/merge.c' => <<'END');
#include "merge/merge.h"
#include "store/page.h"

void
hyb_merge_all(int x)
{
	hyb_page_write(x);
}
END

# Each with files beside or in place of those, and what is to be found, if anything.
my @cases = (
	[
		'an include that goes up',
		{ 'src/store/up.c' => qq(#include "merge/merge.h"\n) },
		qr{src/store/up.c:1: includes merge/merge.h}
	],
	[
		'a circle of includes',
		{ 'src/merge/a.h' => qq(#include "merge/b.h"\n), 'src/merge/b.h' => qq(#include "merge/a.h"\n) },
		qr{include each other: merge/a merge/b}
	],
	[ 'files of the same name', { 'src/merge/page.h' => "\n" }, qr{files of the same name: merge/page store/page} ],
	[ 'a folder without a place', { 'src/attic/a.c' => "\n" }, qr{src/attic: not in the table} ],
	[ 'a long file', { 'src/store/long.c' => "\n" x 1001 }, qr{src/store/long.c: 1001 lines} ],
	[
		'a long function',
		{ 'src/store/long.c' => "static void\nf(void)\n{\n" . "\tg();\n" x 80 . "}\n" },
		qr{src/store/long.c:1: f has 84 lines}
	],
	[
		'a long function with a reason',
		{ 'src/store/long.c' => "/*\n * Long\n * because it is.\n */\nstatic void\nf(void)\n{\n" . "\tg();\n" x 80 . "}\n" }
	],
	[
		'many parameters',
		{ 'src/store/long.c' => "static void\nf(int a, int b, int (*c) (int, int), int d, int e,\n  int f, int g)\n{\n}\n" },
		qr{f has 7 parameters}
	],
	[
		'a static function twice',
		{
			'src/store/a.c' => "static void\nput(void)\n{\n}\n",
			'src/merge/b.c' => "\nstatic int\nput(int x)\n{\n}\n"
		},
		qr{put is defined in more than one file: static function src/merge/b.c:2, static function src/store/a.c:1}
	],
	[
		'a type twice',
		{
			'src/store/a.c' => "typedef struct Place\n{\n\tint x;\n} Place;\n",
			'src/merge/b.c' => "typedef int (*Place) (int);\n"
		},
		qr{Place is defined in more than one file: typedef src/merge/b.c:1, struct src/store/a.c:1}
	],
	[
		'a macro twice',
		{ 'src/merge/b.c' => "/* of its own */\n#define LIMIT 4\n" },
		qr{LIMIT is .*: macro src/merge/b.c:2, macro src/store/page.c:3}
	],
	[
		'an enum constant with the name of a macro',
		{ 'src/merge/b.c' => "typedef enum Ends\n{\n\tLOWER,\n\tLIMIT\n} Ends;\n" },
		qr{LIMIT is .*: enum constant src/merge/b.c:4, macro src/store/page.c:3}
	],
	[
		'a parameter of a header',
		{
			'src/store/part.h' => "#if HYB_WIDTH > 1\n#endif\n",
			'src/store/a.c' => qq(#define HYB_WIDTH 1\n#include "store/part.h"\n),
			'src/store/b.c' => qq(#define HYB_WIDTH 2\n#include "store/part.h"\n)
		}
	],
	[
		'a type without a prefix',
		{ 'src/store/a.h' => "union Odd\n{\n\tint x;\n};\n" },
		qr{src/store/a.h:1: union Odd has no prefix}
	],
	[ 'a macro without a prefix', { 'src/store/a.h' => "#define ODD 1\n" }, qr{src/store/a.h:1: macro ODD has no prefix} ],
	[
		'an enum constant without a prefix',
		{ 'src/store/a.h' => "typedef enum HybOdd\n{\n\tODD\n} HybOdd;\n" },
		qr{src/store/a.h:3: enum constant ODD has no prefix}
	],
	[
		'a function without a prefix',
		{ 'src/store/a.h' => "static inline int\nodd(void)\n{\n\treturn 1;\n}\n" },
		qr{src/store/a.h:1: static function odd has no prefix}
	],
	[
		'a circle of files',
		{
			'src/store/a.h' => "extern void hyb_a(void);\n",
			'src/store/b.h' => "extern void hyb_b(void);\nextern void hyb_b2(void);\n",
			'src/store/c.h' => "extern void hyb_c(void);\n",
			'src/store/a.c' => qq(#include "store/b.h"\nvoid\nhyb_a(void)\n{\n\thyb_b();\n\thyb_b2();\n}\n),
			'src/store/b.c' =>
			  qq(#include "store/c.h"\nvoid\nhyb_b(void)\n{\n\thyb_c();\n\thyb_c();\n}\n\nvoid\nhyb_b2(void)\n{\n\thyb_c();\n}\n),
			'src/store/c.c' => "extern void hyb_a(void);\nvoid\nhyb_c(void)\n{\n\thyb_a();\n}\n"
		},
		qr{store/a store/b store/c call each other:.*store/c -x-> store/a\n\s+src/store/c.c:5: hyb_c -> hyb_a\n.*without this 1 of 5 calls}s
	],
	[
		'a circle by a macro',
		{
			'src/store/a.h' => "extern void hyb_a(void);\n#define hyb_a_twice() \\\n\t(hyb_a(), hyb_b())\n",
			'src/store/b.h' => "extern void hyb_b(void);\n",
			'src/store/a.c' => "void\nhyb_a(void)\n{\n}\n",
			'src/store/b.c' => qq(#include "store/a.h"\nvoid\nhyb_b(void)\n{\n\thyb_a_twice();\n}\n)
		},
		qr{store/a store/b call each other:.*src/store/a.h:3: hyb_a_twice -> hyb_b\n.*src/store/b.c:5: hyb_b -> hyb_a_twice}s
	],
	[
		'a circle of folders',
		{
			'src/store/a.c' =>
			  qq(#include "store/page.h"\nextern void hyb_merge_all(int x);\nvoid\nhyb_a(void)\n{\n\thyb_merge_all(1);\n}\n)
		},
		qr{merge store call each other:.*src/store/a.c:6: hyb_a -> hyb_merge_all}s
	],
	[
		'a large folder',
		{ map { ("src/store/f$_.c" => "\n" x 799) } 1 .. 11 },
		qr{src/store: \d+ lines, more than 8000}
	],
	[
		'two TAP tests of a number',
		{ 't/002_replay.pl' => "1;\n" },
		qr{TAP tests of the same number 002: t/002_recovery.pl t/002_replay.pl}
	],
	[ 'two TAP tests of a name', { 't/003_crash.pl' => "1;\n" }, qr{TAP tests of the same name crash: t/001_crash.pl t/003_crash.pl} ],
	[ 'a TAP test without a number', { 't/crash.pl' => "1;\n" }, qr{t/crash.pl: a TAP test is t/NNN_name.pl} ],
	[
		'a file that is gone, in a comment',
		{ 'src/store/a.h' => "/* see merge/step.c and merge/NAME.c */\n" },
		qr{src/store/a.h:1: there is no file merge/step.c}
	],
	[ 'a test that is gone, in a document', { 'docs/a.md' => "`t/003_gone.pl`\n" }, qr{docs/a.md:1: there is no file t/003_gone.pl} ],
	[ 'what is listed', { 'src/store/a.h' => "#define ODD 1\n", 'test/dev/structure.open' => "# why\nprefix ODD: a\n" } ],
	[
		'what is listed and not found',
		{ 'test/dev/structure.open' => "prefix ODD: a\n" },
		qr{structure.open:1: no longer found, take it out: prefix ODD: a}
	],
	[
		'what is listed and smaller',
		{ 'src/merge/b.c' => "#define LIMIT 4\n", 'test/dev/structure.open' => "same-name LIMIT: b c page\n" },
		qr{structure.open:1: now same-name LIMIT: b page}
	],
	[
		'what is listed for other places',
		{ 'src/merge/b.c' => "#define LIMIT 4\n", 'test/dev/structure.open' => "same-name LIMIT: c page\n" },
		qr{not in test/dev/structure.open: same-name LIMIT: b page}
	]);

# Run the script on each tree; returns whether all was found, and nothing where
# nothing is to be found.
sub run
{
	my ($script) = @_;
	my $failed = 0;

	foreach my $case ([ 'sources that keep all rules', {} ], @cases)
	{
		my ($name, $files, $expected) = @$case;
		my $output = output_of($script, make_tree(%clean, %$files));
		next if defined $expected ? $? != 0 && $output =~ $expected : $? == 0 && $output =~ /\Astructure: 1 passed.*\n\z/;
		print "structure self-test: $name: expected ", $expected // 'nothing', ", found\n$output";
		$failed++;
	}
	$failed += !updates($script);
	printf "structure self-test: %d passed, %d failed\n", !$failed, !!$failed;
	return !$failed;
}

# Does --update leave what is found, make smaller what is, and add nothing?
sub updates
{
	my ($script) = @_;
	my $tree = make_tree(
		%clean,
		'src/merge/b.c' => "#define LIMIT 4\n",
		'src/store/a.h' => "#define ODD 1\n#define NEW 2\n",
		'test/dev/structure.open' => "same-name LIMIT: b c page\nprefix ODD: a\nprefix GONE: a\n");
	my $output = output_of($script, '--update', $tree);
	my $status = $?;

	open(my $fh, '<', "$tree/test/dev/structure.open") or die "$tree: $!\n";
	my $listed = join '', grep { !/^#/ } <$fh>;
	close($fh);
	return 1
	  if $status != 0
	  && $output =~ /not in .*: prefix NEW: a/
	  && $listed eq "same-name LIMIT: b page\nprefix ODD: a\n";
	print "structure self-test: --update leaves\n$listed", "and says\n$output";
	return 0;
}

1;
