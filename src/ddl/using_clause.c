/*
 * using_clause.c
 *		Was the access method written, or is it the grammar's default?
 *
 * The grammar fills "btree" in where there is no USING, so parse trees do not
 * tell.  The text does: it is read with the server's own scanner.
 */
#include "base/compat.h"

#include "common/keywords.h"
#include "ddl/using_clause.h"
#include "parser/scanner.h"

/* What the scanner returns for a keyword. */
static int
keyword_token(const char *keyword)
{
	return ScanKeywordTokens[ScanKeywordLookup(keyword, &ScanKeywords)];
}

/*
 * Does USING come before the first parenthesis?  `exclude`: right behind
 * EXCLUDE, which comes first, but for the name of the constraint.  That may be
 * EXCLUDE, too.  The grammar has accepted the text, so its tokens raise no
 * errors up to there.
 */
static bool
scan(const char *source, bool exclude)
{
	core_yy_extra_type extra;
	core_yyscan_t scanner = scanner_init(source, &extra, &ScanKeywords,
										 ScanKeywordTokens);
	const int	using_token = keyword_token("using");
	const int	exclude_token = keyword_token("exclude");
	const int	constraint_token = keyword_token("constraint");
	core_YYSTYPE value;
	int			location;
	int			token;
	bool		found = false;

	/* the grammar has warned already */
	extra.escape_string_warning = false;
	do
	{
		token = core_yylex(&value, &location, scanner);
		if (exclude && token == constraint_token)
			(void) core_yylex(&value, &location, scanner);
		else if (exclude && token == exclude_token)
		{
			found = core_yylex(&value, &location, scanner) == using_token;
			break;
		}
		if (!exclude)
			found = token == using_token;
	} while (!found && token != 0 && (exclude || token != '('));
	scanner_finish(scanner);
	return found;
}

/* A tree that was made by hand may have places of another text. */
static const char *
text_from(const char *source, int location)
{
	return location <= 0 ? source : source + Min(location, strlen(source));
}

bool
hyb_using_in_create_index(const char *source, int location)
{
	return scan(text_from(source, location), false);
}

bool
hyb_using_in_exclude(const char *source, int location)
{
	return scan(text_from(source, location), true);
}
