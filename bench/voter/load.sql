-- Votes that were counted before.  Variable: rows
SELECT setseed(0.42) \g /dev/null
INSERT INTO votes SELECT nextval('vote_ids'), p, coalesce(state, 'XX'), 1 + floor(random() * 6)::int, now()
	FROM (SELECT (200 + floor(random() * 300)::bigint) * 10000000 + floor(random() * 10000000)::bigint AS p
		FROM generate_series(1, :rows)) x
	LEFT JOIN area_code_state ON area_code = p / 10000000;
VACUUM ANALYZE;
