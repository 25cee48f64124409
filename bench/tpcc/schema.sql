-- The nine tables, their indexes and the five transactions.
-- Variables: am (btree or hybrid), with (index options), textops (operator
-- class of text keys).  Unique indexes stand for primary keys, so that every
-- access method can be used; foreign keys are left out.
CREATE TABLE warehouse (
	w_id int NOT NULL, w_name text, w_street_1 text, w_street_2 text,
	w_city text, w_state char(2), w_zip char(9),
	w_tax numeric(4, 4), w_ytd numeric(12, 2)
) WITH (fillfactor = 50);
CREATE TABLE district (
	d_w_id int NOT NULL, d_id int NOT NULL, d_name text, d_street_1 text,
	d_street_2 text, d_city text, d_state char(2), d_zip char(9),
	d_tax numeric(4, 4), d_ytd numeric(12, 2), d_next_o_id int
) WITH (fillfactor = 50);
CREATE TABLE customer (
	c_w_id int NOT NULL, c_d_id int NOT NULL, c_id int NOT NULL,
	c_first text COLLATE "C", c_middle char(2), c_last text COLLATE "C",
	c_street_1 text, c_street_2 text, c_city text, c_state char(2),
	c_zip char(9), c_phone char(16), c_since timestamptz, c_credit char(2),
	c_credit_lim numeric(12, 2), c_discount numeric(4, 4),
	c_balance numeric(12, 2), c_ytd_payment numeric(12, 2),
	c_payment_cnt int, c_delivery_cnt int, c_data text
);
CREATE TABLE history (
	h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int,
	h_date timestamptz, h_amount numeric(6, 2), h_data text
);
CREATE TABLE orders (
	o_w_id int NOT NULL, o_d_id int NOT NULL, o_id int NOT NULL, o_c_id int,
	o_entry_d timestamptz, o_carrier_id int, o_ol_cnt int, o_all_local int
);
CREATE TABLE new_order (
	no_w_id int NOT NULL, no_d_id int NOT NULL, no_o_id int NOT NULL
);
CREATE TABLE order_line (
	ol_w_id int NOT NULL, ol_d_id int NOT NULL, ol_o_id int NOT NULL,
	ol_number int NOT NULL, ol_i_id int, ol_supply_w_id int,
	ol_delivery_d timestamptz, ol_quantity int, ol_amount numeric(6, 2),
	ol_dist_info char(24)
);
CREATE TABLE item (
	i_id int NOT NULL, i_im_id int, i_name text, i_price numeric(5, 2),
	i_data text
);
CREATE TABLE stock (
	s_w_id int NOT NULL, s_i_id int NOT NULL, s_quantity int,
	s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24),
	s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24),
	s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24),
	s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int,
	s_data text
);

CREATE UNIQUE INDEX warehouse_key ON warehouse USING :am (w_id) :with;
CREATE UNIQUE INDEX district_key ON district USING :am (d_w_id, d_id) :with;
CREATE UNIQUE INDEX customer_key ON customer USING :am (c_w_id, c_d_id, c_id) :with;
CREATE INDEX customer_name ON customer
	USING :am (c_w_id, c_d_id, c_last :textops, c_first :textops) :with;
CREATE UNIQUE INDEX orders_key ON orders USING :am (o_w_id, o_d_id, o_id) :with;
CREATE INDEX orders_customer ON orders USING :am (o_w_id, o_d_id, o_c_id, o_id) :with;
CREATE UNIQUE INDEX new_order_key ON new_order USING :am (no_w_id, no_d_id, no_o_id) :with;
CREATE UNIQUE INDEX order_line_key ON order_line
	USING :am (ol_w_id, ol_d_id, ol_o_id, ol_number) :with;
CREATE UNIQUE INDEX item_key ON item USING :am (i_id) :with;
CREATE UNIQUE INDEX stock_key ON stock USING :am (s_w_id, s_i_id) :with;

-- ---- random input, clause 2.1.6 and 4.3.2 ----
-- In plpgsql: functions in SQL that cannot be inlined are parsed at each call.

CREATE FUNCTION rnd(lo int, hi int) RETURNS int LANGUAGE plpgsql VOLATILE
AS 'BEGIN RETURN lo + floor(random() * (hi - lo + 1))::int; END';

CREATE FUNCTION nurand(a int, lo int, hi int, c int) RETURNS int LANGUAGE plpgsql VOLATILE
AS 'BEGIN RETURN (((rnd(0, a) | rnd(lo, hi)) + c) % (hi - lo + 1)) + lo; END';

CREATE FUNCTION last_name(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	s CONSTANT text[] := ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'];
BEGIN
	RETURN s[n / 100 % 10 + 1] || s[n / 10 % 10 + 1] || s[n % 10 + 1];
END $$;

-- A string of letters and digits, length lo to hi.
CREATE FUNCTION rnd_text(lo int, hi int) RETURNS text LANGUAGE sql VOLATILE
AS $$
	SELECT left(string_agg(md5(random()::text), ''), rnd(lo, hi))
	FROM generate_series(1, hi / 32 + 1)
$$;

-- ---- transactions, clause 2.4 to 2.8 ----

CREATE PROCEDURE new_order(w int, d int, c int, warehouses int, items int, undo boolean)
LANGUAGE plpgsql AS $$
DECLARE
	cnt int := rnd(5, 15);
	wanted int[];
	o int;
	w_t numeric;
	d_t numeric;
	disc numeric;
	price numeric;
	qty int;
	supply int;
	dist text;
	n int := 0;
	i int;
BEGIN
	-- in order of items, so that two orders cannot wait for each other
	wanted := ARRAY(SELECT nurand(8191, 1, items, 42) AS id FROM generate_series(1, cnt) ORDER BY 1);
	SELECT w_tax INTO w_t FROM warehouse WHERE w_id = w;
	UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d
		RETURNING d_next_o_id - 1, d_tax INTO o, d_t;
	SELECT c_discount INTO disc FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = c;
	INSERT INTO orders VALUES (w, d, o, c, now(), NULL, cnt, 1);
	INSERT INTO new_order VALUES (w, d, o);
	FOREACH i IN ARRAY wanted LOOP
		n := n + 1;
		supply := w;
		IF warehouses > 1 AND random() < 0.01 THEN
			supply := w % warehouses + 1;
		END IF;
		qty := rnd(1, 10);
		SELECT i_price INTO STRICT price FROM item WHERE i_id = i;
		UPDATE stock SET
			s_quantity = CASE WHEN s_quantity >= qty + 10 THEN s_quantity - qty ELSE s_quantity - qty + 91 END,
			s_ytd = s_ytd + qty, s_order_cnt = s_order_cnt + 1,
			s_remote_cnt = s_remote_cnt + (supply <> w)::int
			WHERE s_w_id = supply AND s_i_id = i
			RETURNING CASE d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02
				WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05
				WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
				WHEN 9 THEN s_dist_09 ELSE s_dist_10 END INTO STRICT dist;
		INSERT INTO order_line VALUES (w, d, o, n, i, supply, NULL, qty, qty * price, dist);
	END LOOP;
	IF undo THEN
		ROLLBACK;
	END IF;
END $$;

-- The customer, given by number or by last name (number 0).
CREATE FUNCTION find_customer(w int, d int, c int, lname text) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
	ids int[];
BEGIN
	IF c > 0 THEN
		RETURN c;
	END IF;
	ids := ARRAY(SELECT c_id FROM customer
		WHERE c_w_id = w AND c_d_id = d AND c_last = lname ORDER BY c_first);
	RETURN ids[(cardinality(ids) + 1) / 2];
END $$;

CREATE FUNCTION payment(w int, d int, cw int, cd int, c int, lname text, amount numeric) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	id int := find_customer(cw, cd, c, lname);
	wn text;
	dn text;
	credit text;
BEGIN
	IF id IS NULL THEN
		RETURN;
	END IF;
	UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w RETURNING w_name INTO wn;
	UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d RETURNING d_name INTO dn;
	UPDATE customer SET c_balance = c_balance - amount,
		c_ytd_payment = c_ytd_payment + amount, c_payment_cnt = c_payment_cnt + 1,
		c_data = CASE WHEN c_credit = 'BC' THEN
			left(concat_ws(' ', c_id, c_d_id, c_w_id, d, w, amount) || c_data, 500)
			ELSE c_data END
		WHERE c_w_id = cw AND c_d_id = cd AND c_id = id RETURNING c_credit INTO credit;
	INSERT INTO history VALUES (id, cd, cw, d, w, now(), amount, wn || '    ' || dn);
END $$;

CREATE FUNCTION order_status(w int, d int, c int, lname text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	id int := find_customer(w, d, c, lname);
	o int;
	total bigint;
BEGIN
	PERFORM c_balance, c_first, c_middle, c_last FROM customer
		WHERE c_w_id = w AND c_d_id = d AND c_id = id;
	SELECT o_id INTO o FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = id
		ORDER BY o_id DESC LIMIT 1;
	SELECT sum(ol_quantity) INTO total FROM order_line
		WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
	RETURN total;
END $$;

CREATE FUNCTION delivery(w int, carrier int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
	o int;
	c int;
	total numeric;
	done int := 0;
BEGIN
	FOR d IN 1 .. 10 LOOP
		SELECT no_o_id INTO o FROM new_order WHERE no_w_id = w AND no_d_id = d
			ORDER BY no_o_id LIMIT 1 FOR UPDATE;
		CONTINUE WHEN NOT FOUND;
		DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = o;
		UPDATE orders SET o_carrier_id = carrier
			WHERE o_w_id = w AND o_d_id = d AND o_id = o RETURNING o_c_id INTO c;
		UPDATE order_line SET ol_delivery_d = now()
			WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
		SELECT sum(ol_amount) INTO total FROM order_line
			WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
		UPDATE customer SET c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
			WHERE c_w_id = w AND c_d_id = d AND c_id = c;
		done := done + 1;
	END LOOP;
	RETURN done;
END $$;

CREATE FUNCTION stock_level(w int, d int, threshold int) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	next int;
	low bigint;
BEGIN
	SELECT d_next_o_id INTO next FROM district WHERE d_w_id = w AND d_id = d;
	SELECT count(DISTINCT s_i_id) INTO low FROM order_line, stock
		WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id >= next - 20 AND ol_o_id < next
			AND s_w_id = w AND s_i_id = ol_i_id AND s_quantity < threshold;
	RETURN low;
END $$;
