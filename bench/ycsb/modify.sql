BEGIN;
SELECT val FROM usertable WHERE k = ycsb_key(:n);
UPDATE usertable SET val = md5(:n::text) || left(val, 64) WHERE k = ycsb_key(:n);
COMMIT;
