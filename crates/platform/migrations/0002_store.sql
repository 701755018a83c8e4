-- What scripts keep (Store, SCR-9): keys and rankings of each game, how much
-- each game keeps, and the last batch of each world that changed something.

CREATE TABLE store_entries (
    game_id       TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    -- Id of the player whose data it is; empty for the game's own.
    player        TEXT   NOT NULL,
    key           TEXT   NOT NULL,
    value         TEXT   NOT NULL,
    -- Counts the writes; a key that was removed starts anew from the game's count.
    version       BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (game_id, player, key)
);

CREATE TABLE store_ranks (
    game_id       TEXT   NOT NULL REFERENCES games (game_id) ON DELETE CASCADE,
    ranking       TEXT   NOT NULL,
    key           TEXT   NOT NULL,
    name          TEXT   NOT NULL,
    score         DOUBLE PRECISION NOT NULL,
    -- When this score was reached: the first comes first among equals.
    reached_at    BIGINT NOT NULL,
    PRIMARY KEY (game_id, ranking, key)
);
CREATE INDEX store_ranks_by_score ON store_ranks (game_id, ranking, score);

CREATE TABLE store_usage (
    game_id       TEXT   NOT NULL PRIMARY KEY REFERENCES games (game_id) ON DELETE CASCADE,
    entries       BIGINT NOT NULL,
    size_bytes    BIGINT NOT NULL,
    -- Source of versions: never goes back.
    changes       BIGINT NOT NULL
);

-- A batch that comes again, because its answer got lost, is answered from
-- here instead of being done twice.
CREATE TABLE store_batches (
    world_id      TEXT   NOT NULL PRIMARY KEY REFERENCES worlds (world_id) ON DELETE CASCADE,
    batch         TEXT   NOT NULL,
    outcomes      TEXT   NOT NULL
);
