-- INSERT ... ON CONFLICT through a partitioned table whose partitions have
-- unique hybrid indexes of their own, on all versions.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS hybridindex;
RESET client_min_messages;
LOAD 'hybridindex';
CREATE SCHEMA conf;
SET search_path = conf, public;
CREATE TABLE pt (a int, b int, c text, d int DEFAULT 0, PRIMARY KEY (a, b))
	PARTITION BY RANGE (b);
CREATE TABLE p1 PARTITION OF pt FOR VALUES FROM (0) TO (10);
-- other column numbers
CREATE TABLE p2 (d int, x int, c text, b int NOT NULL, a int NOT NULL);
ALTER TABLE p2 DROP x;
ALTER TABLE pt ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20);
CREATE TABLE p3 PARTITION OF pt FOR VALUES FROM (20) TO (30)
	PARTITION BY LIST (b);
CREATE TABLE p31 PARTITION OF p3 DEFAULT;
CREATE TABLE p4 PARTITION OF pt FOR VALUES FROM (30) TO (40);
CREATE UNIQUE INDEX p1_c ON p1 USING hybrid (c);
CREATE UNIQUE INDEX p2_c ON p2 USING hybrid (c);
CREATE UNIQUE INDEX p31_c ON p31 USING hybrid (lower(c)) WHERE d = 0;
CREATE UNIQUE INDEX p31_d ON p31 USING btree (d) WHERE d > 100;
INSERT INTO pt SELECT i, i, 'c' || i FROM generate_series(0, 39) i;

-- DO NOTHING, by all unique indexes and by one
INSERT INTO pt SELECT i, i, 'c' || i FROM generate_series(0, 39) i
	ON CONFLICT DO NOTHING;
INSERT INTO pt SELECT i + 100, i, 'c' || i FROM generate_series(0, 31) i
	ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO pt VALUES (100, 1, 'c2'), (101, 11, 'c12'), (102, 21, 'C22'),
	(103, 2, 'n'), (104, 12, 'n') ON CONFLICT DO NOTHING
	RETURNING *, tableoid::regclass;
INSERT INTO pt VALUES (200, 1, 'c2') ON CONFLICT (a, b) DO NOTHING;
-- DO UPDATE
INSERT INTO pt AS t SELECT i, i, 'c' || i FROM generate_series(0, 39) i
	ON CONFLICT (a, b) DO UPDATE
	SET c = excluded.c || 'u', d = t.d + excluded.a + 1 WHERE t.b % 5 = 1
	RETURNING t.*, t.tableoid::regclass;
INSERT INTO pt AS t VALUES (12, 12, 'z', 5) ON CONFLICT ON CONSTRAINT pt_pkey
	DO UPDATE SET (d, c) = (SELECT excluded.d, excluded.c || t.c)
	RETURNING t.*, t;
INSERT INTO pt AS t VALUES (12, 12, 'z'), (12, 12, 'y')
	ON CONFLICT (a, b) DO UPDATE SET d = 1;
INSERT INTO pt AS t VALUES (13, 13, 'c14', 5)
	ON CONFLICT (a, b) DO UPDATE SET c = excluded.c;
INSERT INTO pt VALUES (1, 1, 'x') ON CONFLICT (a, b) DO UPDATE SET b = 11;
WITH w AS (INSERT INTO pt VALUES (14, 14, 'x'), (1, 1, 'x')
	ON CONFLICT (a, b) DO UPDATE SET c = 'w' RETURNING *)
SELECT * FROM w;
INSERT INTO p3 AS t VALUES (24, 24, 'x')
	ON CONFLICT (a, b) DO UPDATE SET c = 'p3' RETURNING *;
-- rows that belong nowhere
INSERT INTO pt VALUES (1, 99, 'x') ON CONFLICT DO NOTHING;
INSERT INTO p3 VALUES (1, 2, 'x') ON CONFLICT DO NOTHING;

-- columns that only the order goes by
INSERT INTO pt SELECT i, i, 'o' || i FROM generate_series(8, 12) i ORDER BY -i
	ON CONFLICT (a, b) DO UPDATE SET c = excluded.c RETURNING *;
-- prepared statements, functions, triggers, views, savepoints
PREPARE ins (int, int, text) AS INSERT INTO pt AS t VALUES ($1, $2, $3)
	ON CONFLICT (a, b) DO UPDATE SET c = excluded.c, d = t.d + 1 RETURNING *;
EXECUTE ins (500, 15, 'p');
EXECUTE ins (500, 15, 'q');
EXECUTE ins (500, 5, 'q');
EXPLAIN (COSTS off) EXECUTE ins (500, 5, 'q');
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pt VALUES (new.a + 1000, new.b, new.c || 't')
		ON CONFLICT (a, b) DO UPDATE SET d = pt.d + 1;
	RETURN NULL;
END $$;
CREATE TRIGGER again AFTER INSERT ON pt FOR EACH ROW WHEN (new.a < 1000)
EXECUTE FUNCTION again();
INSERT INTO pt VALUES (600, 1, 'trg'), (600, 11, 'trg'), (600, 1, 'trg')
	ON CONFLICT DO NOTHING;
SELECT * FROM pt WHERE c LIKE 'trg%' ORDER BY a, b;
DROP TRIGGER again ON pt;
CREATE VIEW v AS SELECT c, a, b FROM pt WHERE a < 1000 WITH CHECK OPTION;
INSERT INTO v VALUES ('v', 700, 11), ('v', 700, 1)
	ON CONFLICT (a, b) DO UPDATE SET c = v.c || excluded.c;
INSERT INTO v VALUES ('v', 700, 11), ('v', 700, 1)
	ON CONFLICT (a, b) DO UPDATE SET c = v.c || excluded.c RETURNING *;
INSERT INTO v VALUES ('v', 700, 11)
	ON CONFLICT (a, b) DO UPDATE SET a = 5000;
DO $$
BEGIN
	FOR i IN 1 .. 50 LOOP
		BEGIN
			INSERT INTO pt VALUES (i, i % 30, 'c' || i % 7)
				ON CONFLICT (a, b) DO UPDATE SET c = 'loop' || i;
		EXCEPTION WHEN unique_violation THEN NULL;
		END;
	END LOOP;
END $$;
SELECT tableoid::regclass, count(*), md5(string_agg(pt::text, ',' ORDER BY a, b))
FROM pt GROUP BY 1 ORDER BY 1;
SELECT i, hybrid_index_check(i::regclass, true)
FROM unnest(ARRAY['p1_c', 'p2_c', 'p31_c']) i;

-- an index that comes between two executions, and one that goes
PREPARE later (int) AS INSERT INTO pt VALUES ($1, 35, 'later')
	ON CONFLICT DO NOTHING RETURNING a;
EXECUTE later (800);
CREATE UNIQUE INDEX p4_c ON p4 USING hybrid (c) WHERE c = 'later';
EXECUTE later (801);
DROP INDEX p4_c;
EXECUTE later (801);

SET client_min_messages = warning;
DROP SCHEMA conf CASCADE;
