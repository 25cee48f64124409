BEGIN;
SELECT id, run_at FROM plain WHERE state = 'new' ORDER BY run_at LIMIT 1 FOR UPDATE SKIP LOCKED \gset
UPDATE plain SET state = 'done' WHERE state = 'new' AND run_at = :run_at AND id = :id;
INSERT INTO plain (id) VALUES (nextval('job_ids'));
COMMIT;
