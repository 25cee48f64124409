\set r random(1, 1000000000000)
INSERT INTO users VALUES (nextval('user_ids'), md5(:r::text) || '@example.org', md5(:r::text), 'x');
