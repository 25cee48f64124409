\set a 1 + permute(random_zipfian(1, :articles, 1.05) - 1, :articles)
SELECT a_title, a_text, a_num_comments FROM articles WHERE a_id = :a;
SELECT c_id, c_text, u_name FROM comments JOIN users ON u_id = c_u_id WHERE c_a_id = :a ORDER BY c_id LIMIT 25;
