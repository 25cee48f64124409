-- Variable: rows (comments; a tenth as many articles, a twentieth users).
-- Addresses, and package names as titles, are the samples', in table raw (kind, n, k).
SELECT setseed(0.42) \g /dev/null
INSERT INTO users SELECT nextval('user_ids'), k || '.' || i, md5(i::text), md5((-i)::text)
	FROM generate_series(1, greatest(:rows / 20, 1000)) i
		JOIN raw ON kind = 'email' AND n = i % (SELECT max(n) FROM raw WHERE kind = 'email');
INSERT INTO articles SELECT nextval('article_ids'), k, repeat(md5(i::text), 20), 0
	FROM generate_series(1, greatest(:rows / 10, 1000)) i
		JOIN raw ON kind = 'package name' AND n = i % (SELECT max(n) FROM raw WHERE kind = 'package name');
INSERT INTO comments SELECT nextval('comment_ids'), 1 + floor(random() * greatest(:rows / 10, 1000))::bigint,
	1 + floor(random() * greatest(:rows / 20, 1000))::bigint, md5(i::text)
	FROM generate_series(1, :rows) i;
VACUUM ANALYZE;
