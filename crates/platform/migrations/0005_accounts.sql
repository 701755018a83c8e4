-- Accounts (PLAT-2, PLAT-3): who has a password, who comes from another
-- identity provider, and keys for the command line. A user's kind is 'guest',
-- 'account', 'house', or 'deleted' for a row that others still point to.

CREATE TABLE passwords (
    user_id       TEXT   NOT NULL PRIMARY KEY REFERENCES users (user_id) ON DELETE CASCADE,
    -- Argon2id with its salt and its costs, in PHC form.
    hash          TEXT   NOT NULL,
    changed_at    BIGINT NOT NULL
);

-- Who somebody is at an issuer of JWTs.
CREATE TABLE identities (
    issuer        TEXT   NOT NULL,
    subject       TEXT   NOT NULL,
    user_id       TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    created_at    BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_by_user ON identities (user_id);

CREATE TABLE api_keys (
    key_id        TEXT   NOT NULL PRIMARY KEY,
    user_id       TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    name          TEXT   NOT NULL,
    -- Only the hash is kept; the hint is its last characters, to tell keys apart.
    token_sha256  TEXT   NOT NULL UNIQUE,
    hint          TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    -- 0 until it is used.
    last_used_at  BIGINT NOT NULL
);
CREATE INDEX api_keys_by_user ON api_keys (user_id);

-- What a session was opened with, such as "Firefox on Linux".
ALTER TABLE sessions ADD COLUMN device TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_by_creation ON sessions (created_at);

CREATE INDEX users_by_creation ON users (created_at);
CREATE INDEX users_by_role ON users (role);
