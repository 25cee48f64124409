\set a random(1, :articles)
SELECT a_id, a_title FROM articles WHERE a_title >= (SELECT a_title FROM articles WHERE a_id = :a) ORDER BY a_title LIMIT 20;
