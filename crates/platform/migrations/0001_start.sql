-- The walking skeleton's tables. Portable SQL: SQLite and Postgres run this
-- same file. Times are Unix milliseconds, truth values are 0 or 1, lists are
-- JSON text, because those mean the same in both.

CREATE TABLE users (
    user_id       TEXT   NOT NULL PRIMARY KEY,
    username      TEXT   NOT NULL,
    -- Lower-cased name: "Ada" and "ada" are the same person to a reader.
    username_key  TEXT   NOT NULL UNIQUE,
    kind          TEXT   NOT NULL,
    role          TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL
);

CREATE TABLE sessions (
    -- Only the hash is kept: a stolen database opens no session.
    token_sha256  TEXT   NOT NULL PRIMARY KEY,
    user_id       TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE games (
    game_id             TEXT   NOT NULL PRIMARY KEY,
    creator_id          TEXT   NOT NULL REFERENCES users (user_id),
    name                TEXT   NOT NULL,
    description         TEXT   NOT NULL,
    tags                TEXT   NOT NULL,
    visibility          TEXT   NOT NULL,
    version             TEXT   NOT NULL,
    revision            TEXT   NOT NULL,
    max_players         BIGINT NOT NULL,
    idle_stop_s         BIGINT NOT NULL,
    persistent          BIGINT NOT NULL,
    thumbnail_sha256    TEXT,
    featured            BIGINT NOT NULL,
    plays               BIGINT NOT NULL,
    likes               BIGINT NOT NULL,
    created_at          BIGINT NOT NULL,
    updated_at          BIGINT NOT NULL
);
CREATE INDEX games_by_creation ON games (created_at);

CREATE TABLE game_versions (
    game_id       TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    revision      TEXT   NOT NULL,
    version       TEXT   NOT NULL,
    size_bytes    BIGINT NOT NULL,
    published_by  TEXT   NOT NULL,
    published_at  BIGINT NOT NULL,
    PRIMARY KEY (game_id, revision)
);

-- The assets of a revision: what a client may fetch from /cdn by hash.
CREATE TABLE version_files (
    revision      TEXT   NOT NULL,
    path          TEXT   NOT NULL,
    sha256        TEXT   NOT NULL,
    media_type    TEXT   NOT NULL,
    size_bytes    BIGINT NOT NULL,
    PRIMARY KEY (revision, path)
);
CREATE INDEX version_files_by_hash ON version_files (sha256);

CREATE TABLE worlds (
    world_id      TEXT   NOT NULL PRIMARY KEY,
    room_code     TEXT   NOT NULL UNIQUE,
    name          TEXT   NOT NULL,
    description   TEXT   NOT NULL,
    game_id       TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    revision      TEXT   NOT NULL,
    -- Stored as its bit pattern: seeds are unsigned, columns are not.
    seed          BIGINT NOT NULL,
    max_players   BIGINT NOT NULL,
    idle_stop_s   BIGINT NOT NULL,
    persistent    BIGINT NOT NULL,
    created_by    TEXT   NOT NULL,
    player_count  BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
);
CREATE INDEX worlds_by_game ON worlds (game_id);
