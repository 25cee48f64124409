-- Tables with an index of hybrid_hot each, for t/113_stored_formats.pl: see ../12/tables.sql.
-- Each row has the same root on every server: rows are only appended, and each update
-- is HOT, since blocks have room.

SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
SET hybridindex.merge_step_pages = 64;
CREATE TABLE states (index text, trie bool, state text);
CREATE TABLE queries (index text, query text, paths text);

-- ---- stale entries in a level, and in the log ----

CREATE TABLE chains (id int, k int, s text COLLATE "C", n numeric) WITH (fillfactor = 25, autovacuum_enabled = off);
CREATE FUNCTION chains_rows(lo int, hi int) RETURNS SETOF chains LANGUAGE sql AS $$
	SELECT i, CASE WHEN i % 50 > 0 THEN hashint4(i) % 1000 END, 's' || i % 40, i / 4.0 FROM generate_series(lo, hi) i
$$;
INSERT INTO chains SELECT * FROM chains_rows(1, 700);
CREATE INDEX chains_i ON chains USING hybrid_hot (k, s DESC, n);
UPDATE chains SET k = k + 1000 WHERE id % 3 = 0;
SELECT hybrid_merge('chains_i');
-- equal keys of other forms, keys that come back, and new ones
UPDATE chains SET n = n * 1.00 WHERE id % 5 = 0;
UPDATE chains SET k = k - 1000 WHERE id % 6 = 0;
UPDATE chains SET k = NULL WHERE id % 70 = 1;
INSERT INTO states VALUES ('chains_i', false, 'static_entries > 900 AND dynamic_entries > 100 AND levels = 1');
INSERT INTO queries VALUES
	('chains_i', 'SELECT k, s FROM chains ORDER BY k, s DESC', 'order'),
	('chains_i', 'SELECT k, s, n FROM chains WHERE k BETWEEN 100 AND 1500', 'index bitmap'),
	('chains_i', 'SELECT id FROM chains WHERE k IS NULL', 'index bitmap'),
	('chains_i', 'SELECT count(a.n) FROM chains a JOIN chains_rows(1, 2000) b USING (k, s)', 'nest');

-- ---- a part of the rows, by an expression, with a dictionary ----

CREATE TABLE parts (id int, s text COLLATE "C", k int) WITH (fillfactor = 25, autovacuum_enabled = off);
CREATE FUNCTION parts_rows(lo int, hi int) RETURNS SETOF parts LANGUAGE sql AS $$
	SELECT i, (array['Anna', 'Bernhard', 'Chris', 'Dorothea', 'Emil'])[1 + abs(hashint4(i)) % 5] || '.' || abs(hashint4(i + 7)) % 1000, i % 4
	FROM generate_series(lo, hi) i
$$;
INSERT INTO parts SELECT * FROM parts_rows(1, 1000);
CREATE INDEX parts_i ON parts USING hybrid_hot (lower(s) text_hope_ops) WHERE k > 0;
UPDATE parts SET k = (k + 1) % 4 WHERE id % 4 = 1;
UPDATE parts SET s = 'Frida.' || id WHERE id % 9 = 0;
INSERT INTO states VALUES ('parts_i', false, 'dynamic_entries > 100 AND (SELECT learned FROM hybrid_dictionary_info(''parts_i''))');
INSERT INTO queries VALUES
	('parts_i', 'SELECT id FROM parts WHERE lower(s) BETWEEN ''anna'' AND ''chris.5'' AND k > 0', 'index bitmap'),
	('parts_i', 'SELECT id FROM parts WHERE lower(s) = ''frida.9'' AND k > 0', 'index bitmap'),
	('parts_i', 'SELECT lower(s) FROM parts WHERE k > 0 ORDER BY lower(s)', 'order');
CHECKPOINT;
