-- Consistency conditions of clause 3.3.2 (11 speaks of a fresh population
-- only): one row each, with the number of violations.
SELECT 1 AS condition, count(*) AS violations FROM warehouse
	WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)
UNION ALL
SELECT 2, count(*) FROM district
	WHERE d_next_o_id - 1 <> (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)
		OR d_next_o_id - 1 <> coalesce((SELECT max(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id),
			d_next_o_id - 1)
UNION ALL
SELECT 3, count(*) FROM (SELECT FROM new_order GROUP BY no_w_id, no_d_id
	HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) x
UNION ALL
SELECT 4, count(*) FROM (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS n FROM orders GROUP BY 1, 2) o
	FULL JOIN (SELECT ol_w_id AS w, ol_d_id AS d, count(*) AS n FROM order_line GROUP BY 1, 2) l USING (w, d)
	WHERE o.n IS DISTINCT FROM l.n
UNION ALL
SELECT 5, count(*) FROM orders FULL JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
	WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)
UNION ALL
SELECT 6, count(*) FROM orders FULL JOIN
	(SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS n FROM order_line GROUP BY 1, 2, 3) l
	ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
	WHERE o_ol_cnt IS DISTINCT FROM n
UNION ALL
SELECT 7, count(*) FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
	WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)
UNION ALL
SELECT 8, count(*) FROM warehouse WHERE w_ytd <> (SELECT sum(h_amount) FROM history WHERE h_w_id = w_id)
UNION ALL
SELECT 9, count(*) FROM district
	WHERE d_ytd <> (SELECT sum(h_amount) FROM history WHERE h_w_id = d_w_id AND h_d_id = d_id)
UNION ALL
SELECT 10, count(*) FROM customer
	LEFT JOIN (SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, sum(ol_amount) AS amount
		FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
		WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3) l ON (w, d, c) = (c_w_id, c_d_id, c_id)
	LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history GROUP BY 1, 2, 3) h
		ON (h_c_w_id, h_c_d_id, h_c_id) = (c_w_id, c_d_id, c_id)
	WHERE c_balance <> coalesce(amount, 0) - coalesce(paid, 0)
		OR c_balance + c_ytd_payment <> coalesce(amount, 0)
UNION ALL
SELECT 12, count(*) FROM customer
	LEFT JOIN (SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, sum(ol_amount) AS amount
		FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
		WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3) l ON (w, d, c) = (c_w_id, c_d_id, c_id)
	WHERE c_balance + c_ytd_payment <> coalesce(amount, 0)
ORDER BY 1;
