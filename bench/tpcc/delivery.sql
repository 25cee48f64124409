\set w random(1, :warehouses)
\set carrier random(1, 10)
SELECT delivery(:w, :carrier);
