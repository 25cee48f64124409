-- What tpcc-memory has beside the schema: an index of order lines by item, in
-- whose order they are inserted at random.
CREATE INDEX order_line_item ON order_line
	USING :am (ol_i_id, ol_w_id, ol_d_id, ol_o_id, ol_number) :with;
CREATE SEQUENCE line_orders START 1000000;
