UPDATE usertable SET val = md5(:n::text) || left(val, 64) WHERE k = ycsb_key(:n);
