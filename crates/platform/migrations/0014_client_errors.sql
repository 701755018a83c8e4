-- Errors of scripts in players' browsers stand beside those of servers. Nobody
-- vouches for them, so they are told apart. Empty: of a server.
ALTER TABLE script_errors ADD COLUMN browser TEXT NOT NULL DEFAULT '';
