-- Milliseconds that a statement takes, by the clock and (on Linux, for who
-- may read files) of its process's CPU time, which other load does not touch.
CREATE FUNCTION micro_cpu() RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
	RETURN split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint / 1e6;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END $$;

CREATE FUNCTION micro_time(statement text, OUT ms float8, OUT cpu_ms float8) LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
	cpu float8 := micro_cpu();
BEGIN
	EXECUTE statement;
	ms := extract(epoch FROM clock_timestamp() - start) * 1000;
	cpu_ms := micro_cpu() - cpu;
END $$;
