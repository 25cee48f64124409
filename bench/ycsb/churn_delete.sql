BEGIN;
DELETE FROM usertable WHERE k = ycsb_key(:n);
INSERT INTO usertable SELECT ycsb_key(n), repeat(md5(n::text), 3) FROM nextval('ordinals') n;
COMMIT;
