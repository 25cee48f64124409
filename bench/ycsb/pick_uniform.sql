\set n random(1, :rows)
