WITH next AS (
	SELECT id FROM kept WHERE state = 'available' AND queue = 'default' AND scheduled_at <= now()
	ORDER BY priority, scheduled_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE kept SET state = 'running', attempt = attempt + 1, attempted_at = now()
	FROM next WHERE kept.id = next.id RETURNING kept.id \gset
UPDATE kept SET state = 'completed', finalized_at = now() WHERE id = :id;
INSERT INTO kept (id) VALUES (nextval('job_ids'));
