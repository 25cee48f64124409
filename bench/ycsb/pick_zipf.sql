\set n 1 + permute(random_zipfian(1, :rows, 1.01) - 1, :rows)
