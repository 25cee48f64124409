WITH next AS (
	SELECT id FROM deleted WHERE is_available AND run_at <= now()
	ORDER BY priority, run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE deleted SET locked_at = now(), locked_by = 'worker', attempts = attempts + 1
	FROM next WHERE deleted.id = next.id RETURNING deleted.id \gset
DELETE FROM deleted WHERE id = :id;
INSERT INTO deleted (id) VALUES (nextval('job_ids'));
