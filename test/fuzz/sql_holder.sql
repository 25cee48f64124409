-- What the role that holds locks has: types and a function that keys need, and a table.
-- For sql.py.
CREATE SCHEMA its AUTHORIZATION holder;
GRANT USAGE ON SCHEMA its TO nothing, granted;
GRANT USAGE ON SCHEMA mine, hers TO holder;
CREATE FUNCTION its.cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT n * btint4cmp(a, b) FROM its.looked_up);
END $$;
CREATE OPERATOR CLASS its.int_ops FOR TYPE int USING hybrid AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 its.cmp(int, int);
ALTER FUNCTION its.cmp OWNER TO holder;
SET ROLE holder;
CREATE TABLE its.looked_up (n int);
INSERT INTO its.looked_up VALUES (1);
CREATE TABLE its.part (a int, b int);
CREATE TYPE its.bare AS (a int, b int);
CREATE TABLE its.t (k its.part, c its.bare, n int);
INSERT INTO its.t SELECT ROW(g, g % 7)::its.part, ROW(g % 9, g)::its.bare, g % 50 FROM generate_series(1, 600) g;
CREATE INDEX t_k ON its.t USING hybrid (k);
CREATE INDEX t_c ON its.t USING hybrid (c, n);
CREATE INDEX t_n ON its.t USING hybrid (n its.int_ops);
GRANT SELECT ON its.looked_up TO nothing, granted;
GRANT SELECT, INSERT, UPDATE, DELETE ON its.t TO nothing, granted;
RESET ROLE;
