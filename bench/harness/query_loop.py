"""One query again and again for some seconds, in one session of the server."""
import time

PROCEDURE = """CREATE PROCEDURE query_loop(query text, seconds float8, lowest float8, INOUT n bigint) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
    found bigint;
BEGIN
    WHILE clock_timestamp() < until LOOP
        EXECUTE query INTO found USING (lowest + random() * (9e18 - lowest))::bigint;
        n := n + 1;
    END LOOP;
END $$"""


def create_query_loop(server, schema):
    server.psql(PROCEDURE, schema=schema)


def queries_per_second(server, schema, settings, query, seconds, lowest=0):
    """The query's $1 is a random int8 from `lowest` on; it returns a number."""
    start = time.time()
    n = int(server.value("%s; CALL query_loop('%s', %f, %f, 0)" % (settings, query, seconds, lowest), schema))
    return n / (time.time() - start)
