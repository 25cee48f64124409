-- A database in which a role has tables and indexes that others would like to
-- see: for sql.py.
CREATE EXTENSION hybridindex;
CREATE SCHEMA hers AUTHORIZATION victim;
CREATE SCHEMA mine;
GRANT ALL ON SCHEMA mine TO nothing, granted;
GRANT USAGE ON SCHEMA hers TO nothing, granted;
CREATE FUNCTION hers.cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_user = 'victim' AND session_user <> 'victim' AND to_regprocedure('trap()') IS NOT NULL THEN
        RAISE LOG 'TRAPPED with path %', current_setting('search_path');
    END IF;
    RETURN CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END;
END $$;
CREATE OPERATOR CLASS hers.int_ops FOR TYPE int USING hybrid AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 hers.cmp(int, int);
GRANT CREATE ON SCHEMA public TO victim;
SET ROLE victim;
CREATE TABLE hers.t (i int, t text COLLATE "C", u uuid, n numeric, a int[], b bytea, ts timestamptz);
INSERT INTO hers.t SELECT g % 200, 'text ' || g, md5(g::text)::uuid, g / 7.0, ARRAY[g, g % 3], decode(md5(g::text), 'hex'), '2020-01-01'::timestamptz + g * interval '1 h'
FROM generate_series(1, 2000) g;
CREATE INDEX hers_i ON hers.t USING hybrid (i hers.int_ops);
CREATE INDEX hers_u ON hers.t USING hybrid (u, t) WITH (filter = 'surf');
CREATE INDEX hers_t ON hers.t USING hybrid (t text_hope_ops);
CREATE INDEX hers_n ON hers.t USING hybrid (n, a);
CREATE INDEX hers_b ON hers.t USING btree (b);
CREATE TABLE hers.rls (i int PRIMARY KEY);
CREATE INDEX hers_rls ON hers.rls USING hybrid (i);
ALTER TABLE hers.rls ENABLE ROW LEVEL SECURITY;
CREATE TABLE hers.p (i int, t text) PARTITION BY RANGE (i);
CREATE TABLE hers.p1 PARTITION OF hers.p FOR VALUES FROM (0) TO (100);
CREATE INDEX hers_p ON hers.p USING hybrid (i);
GRANT SELECT ON ALL TABLES IN SCHEMA hers TO granted;
RESET ROLE;
