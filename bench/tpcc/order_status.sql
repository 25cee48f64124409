\set w random(1, :warehouses)
\set d random(1, 10)
\set by random(1, 100)
\set c case when :by <= 60 then 0 else 1 + ((random(0, 1023) | random(1, :customers)) + 259) % :customers end
\set name ((random(0, 255) | random(0, 999)) + 223) % 1000
SELECT order_status(:w, :d, :c, last_name(:name));
