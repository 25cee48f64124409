-- What the migrations of a Rails application send (ActiveRecord 6.1), and its
-- upserts.  Rails writes USING only where a migration says using:, as those of
-- Rails 4 did for every index: such an index stays btree.
CREATE TABLE "schema_migrations" ("version" character varying NOT NULL PRIMARY KEY);
CREATE TABLE "ar_internal_metadata" ("key" character varying NOT NULL PRIMARY KEY, "value" character varying, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL);
BEGIN;
SELECT pg_try_advisory_lock(20260101);
CREATE TABLE "users" ("id" bigserial primary key, "email" character varying NOT NULL, "name" character varying(50), "inviter_id" bigint, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL, CONSTRAINT "fk_rails_3e95061862"
FOREIGN KEY ("inviter_id")
  REFERENCES "users" ("id")
);
CREATE UNIQUE INDEX "index_users_on_email" ON "users" ("email");
CREATE INDEX "index_users_on_inviter_id" ON "users" ("inviter_id");
CREATE INDEX "index_users_on_name_and_created_at" ON "users" ("name", "created_at" DESC NULLS LAST);
CREATE TABLE "posts" ("id" uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY, "user_id" bigint NOT NULL, "title" text, "position" integer, "slug" character varying, "data" jsonb, CONSTRAINT "fk_rails_5b5ddfd518"
FOREIGN KEY ("user_id")
  REFERENCES "users" ("id")
 ON DELETE CASCADE);
CREATE INDEX "index_posts_on_user_id" ON "posts" ("user_id");
CREATE TABLE "posts_users" ("post_id" bigint NOT NULL, "user_id" bigint NOT NULL);
CREATE UNIQUE INDEX "index_posts_users_on_post_id_and_user_id" ON "posts_users" ("post_id", "user_id");
ALTER TABLE "posts_users" ALTER COLUMN "post_id" TYPE uuid USING NULL;
ALTER TABLE "posts_users" ADD CONSTRAINT "fk_rails_da3bbdff04"
FOREIGN KEY ("post_id")
  REFERENCES "posts" ("id")
 DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "index_posts_on_lower_title" ON "posts" (lower(title));
CREATE INDEX "index_posts_on_slug" ON "posts" ("slug" varchar_pattern_ops);
CREATE UNIQUE INDEX "index_posts_on_position" ON "posts" ("position") WHERE position > 0;
CREATE INDEX "posts_explicit_btree" ON "posts" USING btree ("user_id", "position");
ALTER TABLE "posts" ADD "author_type" character varying;
ALTER TABLE "posts" ADD "author_id" bigint;
CREATE INDEX "index_posts_on_author" ON "posts" ("author_type", "author_id");
ALTER TABLE "posts" ADD CONSTRAINT "posts_unique" UNIQUE ("slug", "user_id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "posts" ADD CONSTRAINT "posts_exclude" EXCLUDE ("slug" WITH =, "title" WITH =);
COMMIT;
INSERT INTO "users" ("email","name","created_at","updated_at") VALUES ('a@x', 'a', '1970-01-01 00:00:00', '1970-01-01 00:00:00'), ('a@x', 'b', '1970-01-01 00:00:00', '1970-01-01 00:00:00') ON CONFLICT  DO NOTHING RETURNING "id";
INSERT INTO "users" ("email","name","created_at","updated_at") SELECT 'u' || i, 'n' || i % 9, '1970-01-01 00:00:00', '1970-01-01 00:00:00' FROM generate_series(1, 300) i;
INSERT INTO "users" ("email","name","created_at","updated_at") VALUES ('a@x', 'c', '1970-01-01 00:00:00', '1970-01-01 00:00:00'), ('u7', 'c', '1970-01-01 00:00:00', '1970-01-01 00:00:00') ON CONFLICT ("email") DO UPDATE SET "name"=excluded."name","created_at"=excluded."created_at","updated_at"=excluded."updated_at" RETURNING "name", "email";
INSERT INTO "posts" ("position","user_id") VALUES (7, 1) ON CONFLICT ("position") WHERE ("position" > 0) DO UPDATE SET "user_id"=excluded."user_id" RETURNING "position";
INSERT INTO "posts" ("position","user_id") VALUES (7, 4) ON CONFLICT ("position") WHERE ("position" > 0) DO UPDATE SET "user_id"=excluded."user_id" RETURNING "user_id";
INSERT INTO "posts" ("id","user_id","slug") VALUES ('00000000-0000-0000-0000-000000000001', 5, 'one') ON CONFLICT ("id") DO UPDATE SET "slug"=excluded."slug" RETURNING "id";
CREATE INDEX CONCURRENTLY "index_posts_on_title" ON "posts" ("title");
ALTER TABLE "users" ALTER COLUMN "id" TYPE bigint;
ALTER TABLE "users" ALTER COLUMN "id" TYPE numeric;
ALTER TABLE "users" ALTER COLUMN "id" TYPE bigint;
ALTER TABLE "users" ALTER COLUMN "email" TYPE character varying(200);
ALTER TABLE "posts" ALTER COLUMN "position" TYPE bigint;
ALTER TABLE "posts" RENAME COLUMN "slug" TO "path";
ALTER INDEX "index_posts_on_slug" RENAME TO "index_posts_on_path";
ALTER TABLE "posts" RENAME TO "articles";
ALTER TABLE "public"."posts_pkey" RENAME TO "articles_pkey";
ALTER INDEX "index_posts_on_user_id" RENAME TO "index_articles_on_user_id";
DROP INDEX  "index_users_on_name_and_created_at";
ALTER TABLE "articles" ADD CONSTRAINT "author"
FOREIGN KEY ("author_id")
  REFERENCES "users" ("id")
 NOT VALID;
ALTER TABLE "articles" VALIDATE CONSTRAINT "author";
ALTER TABLE "users" DROP CONSTRAINT "fk_rails_3e95061862";
ALTER TABLE "users" DROP COLUMN "inviter_id";
DROP INDEX CONCURRENTLY "index_posts_on_title";
ALTER TABLE "articles" ALTER COLUMN "title" SET NOT NULL;
SELECT "users"."name" FROM "users" WHERE "users"."email" = 'u7' LIMIT 1;
DELETE FROM "users" WHERE "email" = 'u4';
SELECT "user_id", "position", "path" FROM "articles" ORDER BY 1;
INSERT INTO "articles" ("user_id") VALUES (-1);
