\set u random(1, :users)
UPDATE users SET u_password = md5(random()::text) WHERE u_id = :u;
