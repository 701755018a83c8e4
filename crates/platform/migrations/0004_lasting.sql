-- What outlives the process of a world (DUR-1): which process runs it, its
-- operations and checkpoint, where its players were; and the characters of
-- users. Every statement may run again on a database that has it already.

CREATE TABLE IF NOT EXISTS world_runs (
    world_id          TEXT   NOT NULL PRIMARY KEY REFERENCES worlds (world_id) ON DELETE CASCADE,
    -- Counts the processes of this world: what an older one sends is refused.
    epoch             BIGINT NOT NULL,
    -- The newest operation, and the last one that the checkpoint stands for.
    op_seq            BIGINT NOT NULL,
    checkpoint_seq    BIGINT NOT NULL,
    -- Of the process that runs it; empty when none does.
    token_sha256      TEXT   NOT NULL,
    pid               BIGINT NOT NULL,
    websocket_port    BIGINT NOT NULL,
    webtransport      TEXT   NOT NULL,
    disabled_scripts  TEXT   NOT NULL
);

CREATE TABLE IF NOT EXISTS world_ops (
    world_id      TEXT   NOT NULL REFERENCES worlds (world_id) ON DELETE CASCADE,
    -- The place in the world's history, from 1.
    op_id         BIGINT NOT NULL,
    op_type       TEXT   NOT NULL,
    op_data       TEXT   NOT NULL,
    -- Who asked for it; empty for a script.
    player_id     TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    PRIMARY KEY (world_id, op_id)
);

-- The checkpoint of a world, in parts; each part has a form of its own.
CREATE TABLE IF NOT EXISTS world_sections (
    world_id      TEXT   NOT NULL REFERENCES worlds (world_id) ON DELETE CASCADE,
    name          TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    -- Base64: bytes have another type in every database.
    data          TEXT   NOT NULL,
    PRIMARY KEY (world_id, name)
);

CREATE TABLE IF NOT EXISTS player_checkpoints (
    world_id      TEXT   NOT NULL REFERENCES worlds (world_id) ON DELETE CASCADE,
    player_id     TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    online        BIGINT NOT NULL,
    session       TEXT   NOT NULL,
    received      BIGINT NOT NULL,
    saved_at      BIGINT NOT NULL,
    PRIMARY KEY (world_id, player_id)
);
CREATE INDEX IF NOT EXISTS player_checkpoints_by_time ON player_checkpoints (saved_at);

CREATE TABLE IF NOT EXISTS characters (
    user_id       TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    character_id  TEXT   NOT NULL,
    name          TEXT   NOT NULL,
    -- JSON.
    looks         TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (user_id, character_id)
);

CREATE TABLE IF NOT EXISTS active_characters (
    user_id       TEXT   NOT NULL PRIMARY KEY REFERENCES users (user_id) ON DELETE CASCADE,
    character_id  TEXT   NOT NULL
);

-- Who was here before there were characters has the one called default.
INSERT INTO characters (user_id, character_id, name, looks, created_at, updated_at)
    SELECT user_id, 'default', username, '{}', created_at, created_at FROM users
    WHERE NOT EXISTS (SELECT 1 FROM characters c WHERE c.user_id = users.user_id);
INSERT INTO active_characters (user_id, character_id)
    SELECT user_id, 'default' FROM users
    WHERE NOT EXISTS (SELECT 1 FROM active_characters a WHERE a.user_id = users.user_id)
      AND EXISTS (SELECT 1 FROM characters c WHERE c.user_id = users.user_id AND c.character_id = 'default');
