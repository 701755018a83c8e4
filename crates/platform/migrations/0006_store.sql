-- The store: what creators choose for their games, channels, likes, pictures,
-- uploads on their way, and the figures of the creator's dashboard.

-- `visibility` says who can find and play a game now. It follows from what the
-- creator chose, whether it is published, and whether moderators took it down.
ALTER TABLE games ADD COLUMN chosen_visibility TEXT NOT NULL DEFAULT 'public';
ALTER TABLE games ADD COLUMN published BIGINT NOT NULL DEFAULT 1;
ALTER TABLE games ADD COLUMN taken_down BIGINT NOT NULL DEFAULT 0;
ALTER TABLE games ADD COLUMN downloads BIGINT NOT NULL DEFAULT 0;
-- Counts the changes, so that nobody overwrites what they have not seen.
ALTER TABLE games ADD COLUMN edition BIGINT NOT NULL DEFAULT 1;
-- JSON list of what was changed on the site and no longer follows game.toml.
ALTER TABLE games ADD COLUMN edited TEXT NOT NULL DEFAULT '[]';
ALTER TABLE games ADD COLUMN featured_at BIGINT NOT NULL DEFAULT 0;
-- Plays and likes with decay, in units that grow with time (store/ranking.rs).
ALTER TABLE games ADD COLUMN play_heat DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE games ADD COLUMN like_heat DOUBLE PRECISION NOT NULL DEFAULT 0;
UPDATE games SET chosen_visibility = visibility;
CREATE INDEX games_by_creator ON games (creator_id);

-- A version carries what its manifest says: worlds of it run with that.
ALTER TABLE game_versions ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE game_versions ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE game_versions ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE game_versions ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';
ALTER TABLE game_versions ADD COLUMN thumbnail_sha256 TEXT NOT NULL DEFAULT '';
ALTER TABLE game_versions ADD COLUMN max_players BIGINT NOT NULL DEFAULT 50;
ALTER TABLE game_versions ADD COLUMN idle_stop_s BIGINT NOT NULL DEFAULT 60;
ALTER TABLE game_versions ADD COLUMN persistent BIGINT NOT NULL DEFAULT 0;
ALTER TABLE game_versions ADD COLUMN notes TEXT NOT NULL DEFAULT '';
-- When everybody could first play it; 0 for never.
ALTER TABLE game_versions ADD COLUMN released_at BIGINT NOT NULL DEFAULT 0;
UPDATE game_versions SET
    name = (SELECT g.name FROM games g WHERE g.game_id = game_versions.game_id),
    description = (SELECT g.description FROM games g WHERE g.game_id = game_versions.game_id),
    tags = (SELECT g.tags FROM games g WHERE g.game_id = game_versions.game_id),
    capabilities = (SELECT g.capabilities FROM games g WHERE g.game_id = game_versions.game_id),
    thumbnail_sha256 = (SELECT COALESCE(g.thumbnail_sha256, '') FROM games g WHERE g.game_id = game_versions.game_id),
    max_players = (SELECT g.max_players FROM games g WHERE g.game_id = game_versions.game_id),
    idle_stop_s = (SELECT g.idle_stop_s FROM games g WHERE g.game_id = game_versions.game_id),
    persistent = (SELECT g.persistent FROM games g WHERE g.game_id = game_versions.game_id),
    released_at = published_at;
CREATE INDEX game_versions_by_revision ON game_versions (revision);

CREATE TABLE game_channels (
    game_id        TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    channel        TEXT   NOT NULL,
    revision       TEXT   NOT NULL,
    -- The package that is being rolled out, and to how many of a hundred
    -- players; empty and 100 when none is.
    next_revision  TEXT   NOT NULL,
    rollout_pct    BIGINT NOT NULL,
    -- JSON list of the revisions before, the last one last: the way back.
    past           TEXT   NOT NULL,
    changed_at     BIGINT NOT NULL,
    PRIMARY KEY (game_id, channel)
);
INSERT INTO game_channels (game_id, channel, revision, next_revision, rollout_pct, past, changed_at)
    SELECT game_id, 'stable', revision, '', 100, '[]', updated_at FROM games;

CREATE TABLE game_releases (
    release_id     TEXT   NOT NULL PRIMARY KEY,
    game_id        TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    channel        TEXT   NOT NULL,
    action         TEXT   NOT NULL,
    revision       TEXT   NOT NULL,
    rollout_pct    BIGINT NOT NULL,
    released_by    TEXT   NOT NULL,
    released_at    BIGINT NOT NULL
);
CREATE INDEX game_releases_by_game ON game_releases (game_id, released_at);

-- A world keeps to the channel it was made for.
ALTER TABLE worlds ADD COLUMN channel TEXT NOT NULL DEFAULT 'stable';

CREATE TABLE game_likes (
    game_id        TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    user_id        TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (game_id, user_id)
);
CREATE INDEX game_likes_by_user ON game_likes (user_id);

CREATE TABLE game_pictures (
    picture_id     TEXT   NOT NULL PRIMARY KEY,
    game_id        TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    -- screenshot or thumbnail.
    kind           TEXT   NOT NULL,
    sha256         TEXT   NOT NULL,
    media_type     TEXT   NOT NULL,
    width          BIGINT NOT NULL,
    height         BIGINT NOT NULL,
    position       BIGINT NOT NULL,
    created_at     BIGINT NOT NULL
);
CREATE INDEX game_pictures_by_game ON game_pictures (game_id, kind, position);
CREATE INDEX game_pictures_by_hash ON game_pictures (sha256);

CREATE TABLE uploads (
    upload_id      TEXT   NOT NULL PRIMARY KEY,
    user_id        TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    size_bytes     BIGINT NOT NULL,
    received_bytes BIGINT NOT NULL,
    sha256         TEXT   NOT NULL,
    channel        TEXT   NOT NULL,
    notes          TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL
);
CREATE INDEX uploads_by_user ON uploads (user_id);
CREATE INDEX uploads_by_expiry ON uploads (expires_at);

-- Who played what, for people who come back. Days are counted from 1970, UTC.
CREATE TABLE game_players (
    game_id        TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    user_id        TEXT   NOT NULL,
    first_day      BIGINT NOT NULL,
    last_day       BIGINT NOT NULL,
    plays          BIGINT NOT NULL,
    PRIMARY KEY (game_id, user_id)
);
CREATE INDEX game_players_by_user ON game_players (user_id);

CREATE TABLE game_days (
    game_id        TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    day            BIGINT NOT NULL,
    plays          BIGINT NOT NULL,
    players        BIGINT NOT NULL,
    new_players    BIGINT NOT NULL,
    back_after_1   BIGINT NOT NULL,
    back_after_7   BIGINT NOT NULL,
    peak_players   BIGINT NOT NULL,
    script_errors  BIGINT NOT NULL,
    PRIMARY KEY (game_id, day)
);

-- The most players at once in spans of five minutes.
CREATE TABLE game_samples (
    game_id        TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    sampled_at     BIGINT NOT NULL,
    players        BIGINT NOT NULL,
    PRIMARY KEY (game_id, sampled_at)
);
CREATE INDEX game_samples_by_time ON game_samples (sampled_at);

CREATE TABLE script_errors (
    game_id        TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    -- SHA-256 of where and what.
    error_key      TEXT   NOT NULL,
    revision       TEXT   NOT NULL,
    script         TEXT   NOT NULL,
    -- 0 when not known.
    line           BIGINT NOT NULL,
    message        TEXT   NOT NULL,
    times          BIGINT NOT NULL,
    first_at       BIGINT NOT NULL,
    last_at        BIGINT NOT NULL,
    PRIMARY KEY (game_id, error_key)
);
CREATE INDEX script_errors_by_time ON script_errors (game_id, last_at);
