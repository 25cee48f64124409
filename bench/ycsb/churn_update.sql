UPDATE usertable SET k = ycsb_key(nextval('ordinals')) WHERE k = ycsb_key(:n);
