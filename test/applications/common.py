"""What the applications print of their database: the same, whatever the
indexes are.  With HYBRID set each has to be hybrid and pass the check, but for
those that say by their name (_btree, _gist) that they cannot be."""
import os

INDEXES = """
SELECT t.relname, c.relname, am.amname,
       replace(regexp_replace(pg_get_indexdef(c.oid), ' WITH \\(access_method=''?hybrid''?\\)', ''),
               'USING hybrid', 'USING btree'),
       i.indisvalid AND i.indisready, i.indisprimary, i.indimmediate
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
     JOIN pg_catalog.pg_am am ON am.oid = c.relam
WHERE t.relnamespace = 'public'::regnamespace ORDER BY 1, 2"""

CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, replace(pg_get_constraintdef(oid), 'USING hybrid', 'USING btree'),
       convalidated, conindid::regclass::text
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'x', 'f', 'c')
ORDER BY 1, 2"""


def query(cursor, text):
    cursor.execute(text)
    return cursor.fetchall()


def show_database(cursor, title):
    """Indexes, constraints and rows of all tables; HYBRID: verified."""
    print(f"==== {title}")
    for table, name, method, definition, *flags in query(cursor, INDEXES):
        print(table, name, definition.replace("hybrid.", ""), *flags)
        if os.environ.get("HYBRID") and not name.endswith(("_btree", "_gist")):
            assert method == "hybrid", f"index {name} is {method}"
            cursor.execute(f"SELECT hybrid.hybrid_index_check('\"{name}\"', true)")
    for row in query(cursor, CONSTRAINTS):
        print(*row)
    for (table,) in query(cursor, "SELECT relname FROM pg_class WHERE relkind = 'r'"
                                  " AND relnamespace = 'public'::regnamespace AND relname !~ '^(django|auth)_'"
                                  " ORDER BY 1"):
        for row in query(cursor, f'SELECT t::text FROM "{table}" t ORDER BY 1'):
            print(table, *row)


def refused(action, error):
    """The action fails, with this class of error; says what the server said."""
    try:
        action()
    except error as e:
        print("refused:", str(e).strip().split("\n")[0][:120])
    else:
        raise AssertionError(f"no {error.__name__}")
