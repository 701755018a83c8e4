-- Messages that a world had for a player who had not confirmed them (NET-9): base64, in the game server's form.
ALTER TABLE player_checkpoints ADD COLUMN told TEXT NOT NULL DEFAULT '';
-- Number of the newest message that `told` knows of: what has a greater one is of a later moment.
ALTER TABLE player_checkpoints ADD COLUMN sent BIGINT NOT NULL DEFAULT 0;
-- Whether a world tells players only of what is near (NET-6): those outside are told of what they do themselves. A world that
-- has a log already is taken for one that does, until its next process says otherwise.
ALTER TABLE world_runs ADD COLUMN near_only BIGINT NOT NULL DEFAULT 0;
UPDATE world_runs SET near_only = 1;
