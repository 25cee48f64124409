\set w random(1, :warehouses)
\set d random(1, 10)
\set c 1 + ((random(0, 1023) | random(1, :customers)) + 259) % :customers
\set undo random(1, 100)
CALL new_order(:w, :d, :c, :warehouses, :items, :undo = 1);
