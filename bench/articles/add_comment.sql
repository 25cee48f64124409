\set a 1 + permute(random_zipfian(1, :articles, 1.05) - 1, :articles)
\set u random(1, :users)
BEGIN;
INSERT INTO comments VALUES (nextval('comment_ids'), :a, :u, md5(:a::text));
UPDATE articles SET a_num_comments = a_num_comments + 1 WHERE a_id = :a;
COMMIT;
