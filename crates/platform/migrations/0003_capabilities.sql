-- What a game's scripts may use (BEY-4), as a JSON list of names: the store
-- shows it before anybody plays.
ALTER TABLE games ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';
