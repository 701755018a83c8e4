-- A spell that moderators have taken down: its maker still sees it, nobody casts it.
ALTER TABLE spells ADD COLUMN taken_down BIGINT NOT NULL DEFAULT 0;
