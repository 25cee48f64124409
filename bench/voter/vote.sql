\set area random(200, 499)
\set local random(0, 9999999)
\set contestant random(1, 6)
SELECT vote(:area::bigint * 10000000 + :local, :contestant, 2);
