-- People whom the owner of a world allows to change it without playing in it.
CREATE TABLE world_helpers (
    world_id      TEXT   NOT NULL REFERENCES worlds (world_id) ON DELETE CASCADE,
    user_id       TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    created_at    BIGINT NOT NULL,
    PRIMARY KEY (world_id, user_id)
);
CREATE INDEX world_helpers_by_user ON world_helpers (user_id);
-- The spell of a build under the name that readers of the tables look for; draft_id holds the same.
ALTER TABLE jobs ADD COLUMN spell_id TEXT NOT NULL DEFAULT '';
UPDATE jobs SET spell_id = draft_id;
-- How long a session lasts after it was used last; 0 for one that ends when it was said to.
ALTER TABLE sessions ADD COLUMN idle_ms BIGINT NOT NULL DEFAULT 0;
