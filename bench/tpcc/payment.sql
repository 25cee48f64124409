\set w random(1, :warehouses)
\set d random(1, 10)
\set cw case when random(1, 100) <= 85 then :w else random(1, :warehouses) end
\set cd case when :cw = :w then :d else random(1, 10) end
\set by random(1, 100)
\set c case when :by <= 60 then 0 else 1 + ((random(0, 1023) | random(1, :customers)) + 259) % :customers end
\set name ((random(0, 255) | random(0, 999)) + 223) % 1000
\set amount random(100, 500000)
SELECT payment(:w, :d, :cw, :cd, :c, last_name(:name), :amount / 100.0);
