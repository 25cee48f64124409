-- Variables: am, with, textops, keys (random, ascending, email, uuid) and
-- its type, unique (UNIQUE or nothing), per_key (rows of one key).
CREATE TABLE usertable (k :type NOT NULL, val text NOT NULL);
CREATE :unique INDEX usertable_key ON usertable USING :am (k :textops) :with;
CREATE SEQUENCE ordinals;

-- Key of the n-th record.
SELECT :'keys' = 'random' AS random, :'keys' = 'ascending' AS ascending, :'keys' = 'uuid' AS uuid \gset
\if :random
CREATE FUNCTION ycsb_key(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashint8extended(n / :per_key, 0);
\elif :ascending
CREATE FUNCTION ycsb_key(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN n / :per_key;
\elif :uuid
CREATE FUNCTION ycsb_key(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN md5((n / :per_key)::text)::uuid;
\else
-- the sample's addresses, and after those the same with a tag
SELECT count(*) AS sample FROM raw WHERE kind = 'email' \gset
CREATE FUNCTION ycsb_email(n bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	sample text;
BEGIN
	SELECT k INTO sample FROM public.raw WHERE kind = 'email' AND raw.n = ycsb_email.n % 100000;
	RETURN CASE WHEN n < 100000 THEN sample
		ELSE split_part(sample, '@', 1) || '+' || n / 100000 || '@' || split_part(sample, '@', 2) END COLLATE "C";
END $$;
CREATE FUNCTION ycsb_key(n bigint) RETURNS text LANGUAGE sql STABLE
RETURN ycsb_email(n / :per_key);
\endif
