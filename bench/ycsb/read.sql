SELECT val FROM usertable WHERE k = ycsb_key(:n);
