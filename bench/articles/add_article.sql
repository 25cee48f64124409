\set r random(1, 1000000000)
INSERT INTO articles VALUES (nextval('article_ids'), 'On ' || md5(:r::text), repeat(md5(:r::text), 20), 0);
