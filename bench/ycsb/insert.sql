INSERT INTO usertable SELECT ycsb_key(n), repeat(md5(n::text), 3) FROM nextval('ordinals') n;
