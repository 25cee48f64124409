-- A news site (H-Store's Articles): users submit articles and comment on them.
-- Variables: am, with, textops.
CREATE TABLE users (u_id bigint NOT NULL, u_email text COLLATE "C" NOT NULL,
	u_name text, u_password text);
CREATE TABLE articles (a_id bigint NOT NULL, a_title text COLLATE "C" NOT NULL,
	a_text text, a_num_comments int NOT NULL);
CREATE TABLE comments (c_id bigint NOT NULL, c_a_id bigint NOT NULL,
	c_u_id bigint NOT NULL, c_text text);
CREATE SEQUENCE user_ids CACHE 100;
CREATE SEQUENCE article_ids CACHE 100;
CREATE SEQUENCE comment_ids CACHE 100;
CREATE UNIQUE INDEX users_key ON users USING :am (u_id) :with;
CREATE UNIQUE INDEX users_email ON users USING :am (u_email :textops) :with;
CREATE UNIQUE INDEX articles_key ON articles USING :am (a_id) :with;
CREATE INDEX articles_title ON articles USING :am (a_title :textops) :with;
CREATE UNIQUE INDEX comments_key ON comments USING :am (c_id) :with;
CREATE INDEX comments_article ON comments USING :am (c_a_id) :with;
CREATE INDEX comments_user ON comments USING :am (c_u_id) :with;
