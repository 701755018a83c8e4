-- Characters that can be edited (PLAT-19), who wants nothing to do with whom and
-- who was invited where (PLAT-18), and moderation with reasons (BEY-14). What
-- moderators do outlives whom it concerns: those tables name users and games
-- without requiring them.

-- Rises with every edit: an edit of an older version is refused.
ALTER TABLE characters ADD COLUMN version BIGINT NOT NULL DEFAULT 1;

CREATE TABLE blocks (
    user_id       TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    blocked_id    TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    created_at    BIGINT NOT NULL,
    PRIMARY KEY (user_id, blocked_id)
);
CREATE INDEX blocks_by_blocked ON blocks (blocked_id);

CREATE TABLE invites (
    code          TEXT   NOT NULL PRIMARY KEY,
    world_id      TEXT   NOT NULL REFERENCES worlds (world_id) ON DELETE CASCADE,
    inviter_id    TEXT   NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    -- Asking again gives the same link, for longer.
    UNIQUE (world_id, inviter_id)
);
CREATE INDEX invites_by_expiry ON invites (expires_at);

CREATE TABLE reports (
    report_id     TEXT   NOT NULL PRIMARY KEY,
    reporter_id   TEXT   NOT NULL,
    reporter_name TEXT   NOT NULL,
    target_kind   TEXT   NOT NULL,
    target_id     TEXT   NOT NULL,
    target_name   TEXT   NOT NULL,
    -- Whose it is: the creator of a game or spell, or the user themselves.
    subject_id    TEXT   NOT NULL,
    subject_name  TEXT   NOT NULL,
    rule          TEXT   NOT NULL,
    details       TEXT   NOT NULL,
    -- JSON.
    evidence      TEXT   NOT NULL,
    -- open, acted or dismissed.
    status        TEXT   NOT NULL,
    -- What came of it, when something did.
    notice_id     TEXT,
    decided_by    TEXT,
    decided_at    BIGINT,
    created_at    BIGINT NOT NULL
);
CREATE INDEX reports_by_status ON reports (status, created_at);
CREATE INDEX reports_by_target ON reports (target_kind, target_id, status);
CREATE INDEX reports_by_reporter ON reports (reporter_id, created_at);

-- What moderators did to somebody or something, as the person concerned is
-- told of it.
CREATE TABLE notices (
    notice_id     TEXT   NOT NULL PRIMARY KEY,
    -- warn, takedown or suspend.
    action        TEXT   NOT NULL,
    target_kind   TEXT   NOT NULL,
    target_id     TEXT   NOT NULL,
    target_name   TEXT   NOT NULL,
    subject_id    TEXT   NOT NULL,
    subject_name  TEXT   NOT NULL,
    rule          TEXT   NOT NULL,
    reason        TEXT   NOT NULL,
    advice        TEXT   NOT NULL,
    evidence      TEXT   NOT NULL,
    moderator_id  TEXT   NOT NULL,
    moderator_name TEXT  NOT NULL,
    -- active, lifted or overturned.
    state         TEXT   NOT NULL,
    -- Of a suspension: when it ends by itself.
    until_at      BIGINT,
    seen_at       BIGINT,
    created_at    BIGINT NOT NULL
);
CREATE INDEX notices_by_subject ON notices (subject_id, created_at);
CREATE INDEX notices_by_target ON notices (target_kind, target_id, action, state);

-- One per notice: it is decided for good.
CREATE TABLE appeals (
    appeal_id     TEXT   NOT NULL PRIMARY KEY,
    notice_id     TEXT   NOT NULL UNIQUE REFERENCES notices (notice_id) ON DELETE CASCADE,
    user_id       TEXT   NOT NULL,
    text          TEXT   NOT NULL,
    -- open, granted or refused.
    state         TEXT   NOT NULL,
    answer        TEXT   NOT NULL,
    decided_by    TEXT,
    decided_at    BIGINT,
    created_at    BIGINT NOT NULL
);
CREATE INDEX appeals_by_state ON appeals (state, created_at);

-- Who did what, never changed afterwards.
CREATE TABLE audit_log (
    entry_id      TEXT   NOT NULL PRIMARY KEY,
    at            BIGINT NOT NULL,
    actor_id      TEXT   NOT NULL,
    actor_name    TEXT   NOT NULL,
    action        TEXT   NOT NULL,
    target_kind   TEXT   NOT NULL,
    target_id     TEXT   NOT NULL,
    target_name   TEXT   NOT NULL,
    rule          TEXT   NOT NULL,
    summary       TEXT   NOT NULL
);
CREATE INDEX audit_log_by_time ON audit_log (at);
