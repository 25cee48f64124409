-- A telephone vote (H-Store's Voter): every call is checked and recorded.
-- Variables: am, with, textops.
CREATE TABLE contestants (contestant_number int NOT NULL, contestant_name text NOT NULL);
CREATE TABLE area_code_state (area_code int NOT NULL, state char(2) NOT NULL);
CREATE TABLE votes (
	vote_id bigint NOT NULL DEFAULT 0, phone_number bigint NOT NULL,
	state char(2) NOT NULL, contestant_number int NOT NULL,
	created timestamptz NOT NULL
);
CREATE SEQUENCE vote_ids CACHE 100;
CREATE UNIQUE INDEX contestants_key ON contestants USING :am (contestant_number) :with;
CREATE UNIQUE INDEX area_code_key ON area_code_state USING :am (area_code) :with;
CREATE UNIQUE INDEX votes_key ON votes USING :am (vote_id) :with;
CREATE INDEX votes_phone ON votes USING :am (phone_number) :with;

INSERT INTO contestants SELECT i, 'Contestant ' || i FROM generate_series(1, 6) i;
INSERT INTO area_code_state SELECT i, chr(65 + i % 26) || chr(65 + i / 26 % 26) FROM generate_series(200, 499) i;

-- 0: counted; 1: no such contestant; 2: too many votes of this number
CREATE FUNCTION vote(phone bigint, contestant int, max_votes int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	st text;
BEGIN
	PERFORM FROM contestants WHERE contestant_number = contestant;
	IF NOT FOUND THEN
		RETURN 1;
	END IF;
	SELECT count(*) INTO n FROM votes WHERE phone_number = phone;
	IF n >= max_votes THEN
		RETURN 2;
	END IF;
	SELECT state INTO st FROM area_code_state WHERE area_code = phone / 10000000;
	INSERT INTO votes VALUES (nextval('vote_ids'), phone, coalesce(st, 'XX'), contestant, now());
	RETURN 0;
END $$;
