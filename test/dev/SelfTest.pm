
# Shared by the self-tests of scripts: trees that are made up, and what a script
# says of them.

package SelfTest;

use strict;
use warnings;

use Exporter 'import';
use File::Basename;
use File::Path qw(make_path);
use File::Temp qw(tempdir);

our @EXPORT_OK = qw(make_tree output_of);

# A directory with these files, until the end.
sub make_tree
{
	my %files = @_;
	my $tree = tempdir(CLEANUP => 1);

	foreach my $file (keys %files)
	{
		make_path(dirname("$tree/$file"));
		open(my $fh, '>', "$tree/$file") or die "$tree/$file: $!\n";
		print $fh $files{$file};
		close($fh);
	}
	return $tree;
}

# What a script of Perl writes to its stdout; its status is in $?.
sub output_of
{
	my @command = @_;

	open(my $pipe, '-|', $^X, @command) or die "$^X: $!\n";
	my $output = join '', <$pipe>;
	close($pipe);
	return $output;
}

1;
