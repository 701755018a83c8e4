-- Worlds that people make on purpose: whose they are, who may come, and saves
-- of what they hold.

-- Who may change and delete it; empty for a world that matchmaking opened.
ALTER TABLE worlds ADD COLUMN owner_id TEXT NOT NULL DEFAULT '';
-- A private world is in no listing and takes only those with its room code.
ALTER TABLE worlds ADD COLUMN private BIGINT NOT NULL DEFAULT 0;
-- Made on purpose: it stays until somebody deletes it.
ALTER TABLE worlds ADD COLUMN kept BIGINT NOT NULL DEFAULT 0;
-- Counts the changes of name, description and who may come.
ALTER TABLE worlds ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
CREATE INDEX IF NOT EXISTS worlds_by_owner ON worlds (owner_id);
CREATE INDEX IF NOT EXISTS worlds_by_players ON worlds (player_count, updated_at);

-- What lasts of a world as of one operation, to go back to.
CREATE TABLE IF NOT EXISTS world_saves (
    save_id       TEXT   NOT NULL PRIMARY KEY,
    world_id      TEXT   NOT NULL REFERENCES worlds (world_id) ON DELETE CASCADE,
    label         TEXT   NOT NULL,
    created_by    TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    -- The newest operation that is in it.
    op_seq        BIGINT NOT NULL,
    -- Made by the platform before something took its place; only a few are kept.
    automatic     BIGINT NOT NULL,
    -- Of `data`, as it is here.
    size_bytes    BIGINT NOT NULL,
    -- JSON of checkpoint and operations, zstd, base64.
    data          TEXT   NOT NULL
);
CREATE INDEX IF NOT EXISTS world_saves_by_world ON world_saves (world_id, created_at);

-- Who came by whose invitation, both ways: matchmaking brings them together.
CREATE TABLE IF NOT EXISTS companions (
    user_id       TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    companion_id  TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    met_at        BIGINT NOT NULL,
    PRIMARY KEY (user_id, companion_id)
);
CREATE INDEX IF NOT EXISTS player_checkpoints_by_player ON player_checkpoints (player_id);
