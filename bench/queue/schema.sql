-- Jobs in three tables that are never vacuumed.  Variables: am, with, waiting.
-- Plain: a job that is done stays, one index says what is next.
CREATE TABLE plain (id bigint NOT NULL, state text COLLATE "C" NOT NULL DEFAULT 'new',
	run_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX plain_next ON plain USING :am (state, run_at) :with;

-- As River has it: a job goes through three states, and stays.
CREATE TYPE job_state AS ENUM ('available', 'cancelled', 'completed', 'discarded', 'retryable', 'running', 'scheduled');
CREATE TABLE kept (id bigint NOT NULL, state job_state NOT NULL DEFAULT 'available', attempt smallint NOT NULL DEFAULT 0,
	priority smallint NOT NULL DEFAULT 1, queue text NOT NULL DEFAULT 'default', kind text NOT NULL DEFAULT 'mail',
	args jsonb NOT NULL DEFAULT '{"to": "somebody@example.org"}', scheduled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	attempted_at timestamptz, finalized_at timestamptz);
CREATE UNIQUE INDEX kept_key ON kept USING :am (id) :with;
CREATE INDEX kept_next ON kept USING :am (state, queue, priority, scheduled_at, id) :with;

-- As graphile-worker has it: a job is locked, then deleted.
CREATE TABLE deleted (id bigint NOT NULL, task_id int NOT NULL DEFAULT 7, payload json NOT NULL DEFAULT '{"to": "somebody@example.org"}',
	priority smallint NOT NULL DEFAULT 0, run_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	attempts smallint NOT NULL DEFAULT 0, locked_at timestamptz, locked_by text,
	is_available boolean NOT NULL GENERATED ALWAYS AS (locked_at IS NULL AND attempts < 25) STORED);
CREATE UNIQUE INDEX deleted_key ON deleted USING :am (id) :with;
CREATE INDEX deleted_next ON deleted USING :am (priority, run_at) INCLUDE (id, task_id) :with WHERE is_available;

CREATE SEQUENCE job_ids CACHE 100;
ALTER TABLE plain SET (autovacuum_enabled = off);
ALTER TABLE kept SET (autovacuum_enabled = off);
ALTER TABLE deleted SET (autovacuum_enabled = off);
INSERT INTO plain (id) SELECT nextval('job_ids') FROM generate_series(1, :waiting);
INSERT INTO kept (id) SELECT nextval('job_ids') FROM generate_series(1, :waiting);
INSERT INTO deleted (id) SELECT nextval('job_ids') FROM generate_series(1, :waiting);
VACUUM ANALYZE;
