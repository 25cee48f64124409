\set hot random(1, 100)
\set n 1 + permute(case when :hot <= 80 then random(0, :rows / 5 - 1) else random(:rows / 5, :rows - 1) end, :rows)
