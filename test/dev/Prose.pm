
# The prose of the tree, for words: comments, messages and Markdown, as sentences.

package Prose;

use strict;
use warnings;

use Exporter 'import';
use FindBin qw($RealBin);
use lib $RealBin;
use CSource qw(read_c);

our @EXPORT_OK = qw(sentences);

# A full stop after one of these ends no sentence.
my $abbreviation = qr/(?:e\.g|i\.e|cf|vs|etc|approx|incl|resp|al|Fig|No|[A-Z])/;

# sentences(PATH): a list of { line, text, masked }.  The masked text is as long as the
# text; it has x in place of code and short quotations, and blanks for where links lead.
sub sentences
{
	my ($path) = @_;
	my @paragraphs =
	    $path =~ /\.[ch]$/ ? of_c($path)
	  : $path =~ /\.md$/ ? of_markdown($path)
	  : $path =~ /\.sql$/ ? of_lines($path, qr/--/)
	  : of_lines($path, qr/#/);

	return map { split_paragraph($_) } @paragraphs;
}

# A paragraph is a list of { line, text }.

# ---- C ----

sub of_c
{
	my ($path) = @_;
	my $source = read_c($path);
	my @paragraphs;

	foreach my $comment (@{ $source->{comments} })
	{
		my $line = $comment->{line};
		push @paragraphs, paragraphs(map { { line => $line++, text => $_ } } split /\n/, $comment->{text});
	}
	return (@paragraphs, messages($source));
}

# What errmsg() and others like it are given.
sub messages
{
	my ($source) = @_;
	my ($code, @messages) = ($source->{code});
	my ($line, $at) = (1, 0);

	while ($code =~ /\b(?:errmsg|errdetail|errhint)(?:_internal|_plural|_log)?\s*\(\s*((?:"\d+"\s*(?:INT64_FORMAT|UINT64_FORMAT|PRI\w+)?[\s,]*)+)/g)
	{
		my ($strings, $from) = ($1, $-[1]);
		$line += substr($code, $at, $from - $at) =~ tr/\n//;
		$at = $from;
		foreach my $message (split /,/, $strings)
		{
			my $text = join '', map { $source->{literals}[$_] } $message =~ /"(\d+)"/g;
			$text =~ s/\\"/"/g;
			push @messages, [ { line => $line, text => $text =~ s/\\n/ /gr } ] if $text ne '';
		}
	}
	return @messages;
}

# Lines of a comment: a blank line ends a paragraph, and so does the mark of a list, or
# a line with columns.
sub paragraphs
{
	my (@paragraphs, @paragraph);

	foreach my $line (@_)
	{
		my $text = $line->{text} =~ s/^[\s*-]*-{4,}[\s*-]*$//r;
		my $is_row = $text =~ /\S(?: {3,}|\t+)\S/;
		if ($is_row || $text !~ /\S/ || $text =~ /^\s*(?:[-*+]|\d+\.|\w\)|[\w.]+:)\s/ || $text =~ /^\s*[\w.\/-]+\.\w+\s*$/ && !@paragraph)
		{
			push @paragraphs, [@paragraph] if @paragraph;
			@paragraph = ();
			next if $text !~ /\s?\S+\s+\S/;
		}
		if ($is_row)
		{
			push @paragraphs, map { [ { line => $line->{line}, text => $_ } ] } split / {3,}|\t+/, $text;
			next;
		}
		push @paragraph, { line => $line->{line}, text => $text };
	}
	push @paragraphs, [@paragraph] if @paragraph;
	return @paragraphs;
}

# ---- scripts ----

# Lines that have nothing but a comment; docstrings of Python, but not its other long
# strings.
sub of_lines
{
	my ($path, $mark) = @_;
	my (@paragraphs, @comment, $quotes, $string);

	open(my $fh, '<', $path) or die "$path: $!\n";
	while (my $text = <$fh>)
	{
		chomp $text;
		if (defined $string)
		{
			$string = undef if $text =~ /\Q$string\E/;
			next;
		}
		if (defined $quotes)
		{
			my $ends = $text =~ s/\Q$quotes\E.*//;
			push @comment, { line => $., text => $text };
			$quotes = undef if $ends;
			next;
		}
		if ($path =~ /\.py$/ && $text =~ /^\s*[rf]?("""|''')(.*)/)
		{
			my ($mark, $rest) = ($1, $2);
			push @paragraphs, paragraphs(@comment);
			@comment = ({ line => $., text => $rest =~ s/\Q$mark\E.*//r });
			$quotes = $mark if $rest !~ /\Q$mark\E/;
		}
		elsif ($text =~ /^\s*$mark+(?:!.*|\s?(.*))$/)
		{
			push @comment, { line => $., text => $1 // '' };
		}
		elsif (@comment)
		{
			push @paragraphs, paragraphs(@comment);
			@comment = ();
		}
		$string = $1 if $path =~ /\.py$/ && !defined $quotes && $text =~ s/("""|''').*?\1//gr =~ /^\s*[^\s#].*?("""|''')/;
	}
	close($fh);
	return (@paragraphs, paragraphs(@comment));
}

# ---- Markdown ----

# Without code; a heading, an item of a list and a cell of a table are paragraphs.
sub of_markdown
{
	my ($path) = @_;
	my (@paragraphs, @paragraph, $fence, $in_list);
	my $end = sub { push @paragraphs, [@paragraph] if @paragraph; @paragraph = (); };

	open(my $fh, '<', $path) or die "$path: $!\n";
	while (my $text = <$fh>)
	{
		chomp $text;
		if ($text =~ /^\s*(```|~~~)/) { $end->(); $fence = !$fence; next; }
		next if $fence;
		my $is_code = $text =~ /^(?: {4}|\t)/ && !@paragraph && !$in_list;
		$end->() if $text !~ /\S/ || $text =~ /^\s*(?:#|\||[-*+]\s|\d+\.\s|<)/ || $is_code;
		$in_list = 1 if $text =~ /^\s*(?:[-*+]|\d+\.)\s/;
		$in_list = 0 if $text =~ /^\S/ && $text !~ /^(?:[-*+]|\d+\.)\s/;
		next if $text !~ /\S/ || $is_code || $text =~ /^\s*(?:<|\|[\s:|-]+$)/;
		if ($text =~ /^\s*\|/)
		{
			my $line = $.;
			push @paragraphs, map { [ { line => $line, text => $_ } ] } grep { /\S/ } split /(?<!\\)\|/, $text;
			next;
		}
		my $is_heading = $text =~ s/^\s*#+\s*//;
		$text =~ s/^\s*(?:[-*+]|\d+\.)\s+//;
		push @paragraph, { line => $., text => $text };
		$end->() if $is_heading;
	}
	close($fh);
	$end->();
	return @paragraphs;
}

# ---- sentences ----

sub mask
{
	my ($text) = @_;

	$text =~ s/(`+)(.+?)\1/'x' x length $&/ge;
	$text =~ s{\]\([^()\s]*\)}{' ' x length $&}ge;
	$text =~ s{\bhttps?://[^\s)]+}{'x' x length $&}ge;
	$text =~ s/"[^"]{1,40}"/'x' x length $&/ge;
	return $text;
}

sub split_paragraph
{
	my ($paragraph) = @_;
	my ($text, @starts, @sentences) = ('');

	foreach my $line (@$paragraph)
	{
		push @starts, [ length $text, $line->{line} ];
		$text .= ($line->{text} =~ s/^\s+|\s+$//gr) . ' ';
	}
	my $masked = mask($text);
	my $from = 0;
	while ($masked =~ /[.!?][")'\]*_]*\s+/g)
	{
		my ($stop, $next) = ($-[0], $+[0]);
		next if $next < length $masked && is_inside($masked, $stop, $next);
		push @sentences, { from => $from, to => $next };
		$from = $next;
	}
	push @sentences, { from => $from, to => length $masked } if substr($masked, $from) =~ /\S/;
	foreach my $sentence (@sentences)
	{
		my ($start, $end) = @{$sentence}{qw(from to)};
		$sentence->{line} = (grep { $_->[0] <= $start } @starts)[-1][1];
		$sentence->{text} = substr($text, $start, $end - $start) =~ s/\s+$//r;
		$sentence->{masked} = substr($masked, $start, $end - $start);
	}
	return @sentences;
}

# Is a full stop part of a sentence?  What follows an end begins with a capital, or
# is a name that has none, such as that of a function.
sub is_inside
{
	my ($text, $stop, $next) = @_;

	return 1 if substr($text, $stop, 1) eq '.' && substr($text, 0, $stop) =~ /(?:^|[\s(])$abbreviation$/;
	return substr($text, $next) =~ /^(?:a|[a-z]{2,})(?:[\s,;:'-]|$)/ && substr($text, $next) !~ /^xx/;
}

1;
