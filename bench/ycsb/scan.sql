\set len random(1, 100)
SELECT count(val) FROM (SELECT k, val FROM usertable WHERE k >= ycsb_key(:n) ORDER BY k LIMIT :len) x;
