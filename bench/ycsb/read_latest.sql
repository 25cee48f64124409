\set back random_zipfian(1, :rows, 1.01)
SELECT val FROM usertable WHERE k = ycsb_key((SELECT last_value FROM ordinals) - :back + 1);
