-- The next :rows records.  Variable payload: an expression of n.
INSERT INTO usertable SELECT ycsb_key(n), :payload
	FROM (SELECT nextval('ordinals') AS n FROM generate_series(1, :rows)) x;
