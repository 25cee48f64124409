-- The next :rows records.
INSERT INTO usertable SELECT ycsb_key(n), repeat(md5(n::text), 3)
	FROM (SELECT nextval('ordinals') AS n FROM generate_series(1, :rows)) x;
