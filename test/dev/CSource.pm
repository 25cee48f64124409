
# Shared by structure and words: reads a C source as the server's pgindent lays
# it out.  Braces of functions and types are in column 0, and so are the names
# of functions that are defined.

package CSource;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(read_c);

# read_c(PATH): a hash of lists, each in the order of the file.
#
#   comments    { line, last, text }: the text is without the stars
#   literals    strings, by the number that stands for each in `code`
#   code        the file with blanks for comments and preprocessor lines, and
#               "N" for literal number N; lines are where they were
#   includes    { line, file }: of those in quotes
#   macros      { line, name, calls }
#   types       { line, name, keyword }: structs, unions and enums with a body,
#               and typedefs, but for those that only name a struct
#   constants   { line, name }: of enums
#   functions   { line, last, start, name, static, parameters, calls }: defined;
#               `line` is that of the brace, `start` where the return type is
#   declared    { start, name, parameters }: functions that are only declared
#   directives  the preprocessor lines, as one text
#   lines       how many lines there are
#
# `calls` is a hash of the names before parentheses, each with its first line.
sub read_c
{
	my ($path) = @_;
	open(my $fh, '<', $path) or die "$path: $!\n";
	local $/ = undef;
	my $text = <$fh>;
	close($fh);

	my %source = map { $_ => [] } qw(comments literals includes macros types constants functions declared);
	$source{directives} = '';
	$source{lines} = $text =~ tr/\n//;
	strip(\%source, $text);
	declarations(\%source);
	return \%source;
}

# Take comments, literals and preprocessor lines out of the text.
sub strip
{
	my ($source, $text) = @_;
	my ($code, $line) = ('', 1);

	while ($text =~ m{\G(?:
			  ([^/"'\#\n]+ | \n | /(?![/*]))
			| /\* (.*?) \*/
			| //([^\n]*)
			| "((?:[^"\\\n]|\\.)*)"
			| '(?:[^'\\\n]|\\.)*'
			| (\#(?: \\\n | /\*.*?\*/ | "(?:[^"\\\n]|\\.)*" | [^\n] )*)
		)}gcsx)
	{
		my $all = $&;
		my $newlines = $all =~ tr/\n//;

		if (defined $1) { $code .= $1; }
		elsif (defined $2 || defined $3)
		{
			push @{ $source->{comments} }, { line => $line, last => $line + $newlines, text => plain($2 // $3) };
			$code .= $newlines ? "\n" x $newlines : ' ';
		}
		elsif (defined $4)
		{
			push @{ $source->{literals} }, $4;
			$code .= '"' . $#{ $source->{literals} } . '"';
		}
		elsif (defined $5)
		{
			directive($source, $5, $line);
			$code .= "\n" x $newlines;
		}
		else { $code .= "''"; }
		$line += $newlines;
	}
	die "cannot read what is left of a file from line $line\n" if (pos($text) // 0) != length $text;
	$source->{code} = $code;
	return;
}

# A comment's text, with as many lines as it has.
sub plain
{
	my ($text) = @_;
	$text =~ s/\n[ \t]*\*?[ \t]?/\n/g;
	return $text;
}

# A preprocessor line with those that continue it.
sub directive
{
	my ($source, $text, $line) = @_;

	$source->{directives} .= "$text\n";
	while ($text =~ m{/\*(.*?)\*/}gs)
	{
		my $from = $line + (substr($text, 0, $-[0]) =~ tr/\n//);
		push @{ $source->{comments} }, { line => $from, last => $from + ($1 =~ tr/\n//), text => plain($1) };
	}
	if ($text =~ /^#\s*include\s*"(.*?)"/)
	{
		push @{ $source->{includes} }, { line => $line, file => $1 };
	}
	elsif ($text =~ /^#\s*define\s+(\w+)(.*)/s)
	{
		my ($name, $body) = ($1, $2);
		$body =~ s{/\*.*?\*/|"(?:[^"\\\n]|\\.)*"}{ }gs;
		my ($tokens, $lines) = tokens($body, $line);
		my $calls = calls($tokens, $lines, $body =~ /^\(/ ? parenthesis($tokens, 0) + 1 : 0, $#$tokens);
		push @{ $source->{macros} }, { line => $line, name => $name, calls => $calls };
	}
	return;
}

# Names and those signs that matter here, each with its line.  A brace in column 0
# is "{{" or "}}", and a name there has a sign of its own.
sub tokens
{
	my ($code, $line) = @_;
	my (@tokens, @lines);

	while ($code =~ m{(\n)|^([\{\}])|([A-Za-z_]\w*)|\d[\w.]*|(->|[\{\}()\[\];=.,*"])}gm)
	{
		if (defined $1) { $line++; next; }
		push @tokens, defined $2 ? $2 . $2 : $3 // $4 // next;
		push @lines, $line;
	}
	return (\@tokens, \@lines);
}

# Index of the parenthesis that closes the one at an index.
sub parenthesis
{
	my ($tokens, $at) = @_;
	my $depth = 0;

	for (; $at < @$tokens; $at++)
	{
		$depth++ if $tokens->[$at] eq '(';
		return $at if $tokens->[$at] eq ')' && --$depth == 0;
	}
	return $#$tokens;
}

# What the tokens from one index to another call by name.
sub calls
{
	my ($tokens, $lines, $from, $to) = @_;
	my %calls;

	for (my $at = $from; $at < $to; $at++)
	{
		next if $tokens->[ $at + 1 ] ne '(' || $tokens->[$at] !~ /^\w/;
		next if $at > $from && $tokens->[ $at - 1 ] =~ /^(?:->|\.)$/;
		my $name = $tokens->[$at];
		$name = join('', @{$tokens}[ $at .. $at + 3 ]) if ($tokens->[ $at + 3 ] // '') eq ')' && ($tokens->[ $at + 4 ] // '') eq '(';
		$calls{$name} //= $lines->[$at];
	}
	return \%calls;
}

# Everything outside of functions, one declaration or definition after another.
# @kept is the one at hand, without what is in braces.
sub declarations
{
	my ($source) = @_;
	my ($tokens, $lines) = tokens($source->{code}, 1);
	my (@kept, $start);

	for (my $at = 0; $at < @$tokens; $at++)
	{
		my $token = $tokens->[$at];

		$start = $lines->[$at] if !@kept;
		if ($token eq '(')
		{
			my $close = parenthesis($tokens, $at);
			push @kept, @{$tokens}[ $at .. $close ];
			$at = $close;
		}
		elsif ($token eq ';')
		{
			declaration($source, $start, @kept);
			@kept = ();
		}
		elsif ($token =~ /^\{/)
		{
			my $open = $at;
			$at = closing_brace($tokens, $at);
			if (@kept && $kept[-1] eq ')' && !grep { $_ eq '=' } @kept)
			{
				my ($name, $parameters) = signature(@kept);
				push @{ $source->{functions} },
				  {
					line => $lines->[$open],
					last => $lines->[$at],
					start => $start,
					name => $name,
					static => scalar(grep { $_ eq 'static' } @kept),
					parameters => $parameters,
					calls => calls($tokens, $lines, $open, $at)
				  } if defined $name;
				@kept = ();
			}
			else
			{
				type_body($source, $tokens, $lines, $start, $open, $at) if !grep { $_ eq '=' } @kept;
				push @kept, '{', '}';
			}
		}
		else { push @kept, $token; }
	}
	return;
}

sub closing_brace
{
	my ($tokens, $at) = @_;
	my $depth = 0;

	if ($tokens->[$at] eq '{{')
	{
		$at++ while $at < $#$tokens && $tokens->[$at] ne '}}';
		return $at;
	}
	for (; $at < $#$tokens; $at++)
	{
		$depth++ if $tokens->[$at] eq '{';
		return $at if $tokens->[$at] =~ /^\}/ && --$depth <= 0;
	}
	return $at;
}

# Name and parameters of a function, of the tokens that end with them; none for
# other things.  The name may be MACRO(name), which makes it of a part that others
# share; and MACRO(name) without parameters gives them to that name.
sub signature
{
	my (@tokens) = @_;
	my ($depth, $commas, $open) = (0, 0, $#tokens);

	return unless @tokens && $tokens[-1] eq ')';
	for (; $open >= 0; $open--)
	{
		$depth++ if $tokens[$open] eq ')';
		$commas++ if $tokens[$open] eq ',' && $depth == 1;
		last if $tokens[$open] eq '(' && --$depth == 0;
	}
	return if $open < 1;
	my $inside = $#tokens - $open - 1;
	my $parameters = $inside == 0 || $inside == 1 && $tokens[ $open + 1 ] eq 'void' ? 0 : 1 + $commas;
	my $name = $tokens[ $open - 1 ];
	if ($name eq ')' && $open >= 4) { $name = join('', @tokens[ $open - 4 .. $open - 1 ]); }
	elsif ($name =~ /^[A-Z0-9_]+$/ && $inside == 1) { $name = $tokens[ $open + 1 ]; }
	return $name =~ /^\w/ ? ($name, $parameters) : ();
}

sub type_body
{
	my ($source, $tokens, $lines, $start, $open, $close) = @_;
	my ($tag, $keyword) = ($tokens->[ $open - 1 ], $tokens->[ $open - 2 ] // '');

	($tag, $keyword) = (undef, $tag) if $tag =~ /^(?:struct|union|enum)$/;
	return if $keyword !~ /^(?:struct|union|enum)$/;
	push @{ $source->{types} }, { line => $start, name => $tag, keyword => $keyword } if defined $tag;
	return if $keyword ne 'enum';
	my ($depth, $first) = (0, 1);
	for (my $at = $open + 1; $at < $close; $at++)
	{
		my $token = $tokens->[$at];
		$depth++ if $token eq '(';
		$depth-- if $token eq ')';
		push @{ $source->{constants} }, { line => $lines->[$at], name => $token } if $first && $token =~ /^\w/;
		$first = $depth == 0 && $token eq ',';
	}
	return;
}

# A declaration without its semicolon: a typedef, a function, or something else.
sub declaration
{
	my ($source, $line, @tokens) = @_;

	return if !@tokens || grep { $_ eq '=' } @tokens;
	if ($tokens[0] eq 'typedef')
	{
		my ($pointer) = grep { $tokens[ $_ - 1 ] eq '(' && $tokens[$_] eq '*' } 1 .. $#tokens;
		my ($array) = grep { $tokens[$_] eq '[' } 1 .. $#tokens;
		my $name = $tokens[ defined $pointer ? $pointer + 1 : ($array // @tokens) - 1 ];

		return if @tokens == 4 && $tokens[1] =~ /^(?:struct|union|enum)$/ && $tokens[2] eq $name;
		push @{ $source->{types} }, { line => $line, name => $name, keyword => 'typedef' }
		  if !grep { $_->{name} eq $name } @{ $source->{types} };
		return;
	}
	@tokens = split / /, "@tokens" =~ s/ pg_attribute_\w+ \([^()]*\)$//r;
	my ($name, $parameters) = signature(@tokens) or return;
	push @{ $source->{declared} }, { start => $line, name => $name, parameters => $parameters };
	return;
}

1;
