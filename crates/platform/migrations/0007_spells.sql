-- Spells that players make (PLAT-11, PLAT-12, PLAT-17): what there is, its
-- revisions and their files, the queue of builds, and which revisions a world
-- has learned.

CREATE TABLE spells (
    spell_id           TEXT   NOT NULL PRIMARY KEY,
    display_name       TEXT   NOT NULL,
    description        TEXT   NOT NULL,
    created_by         TEXT   NOT NULL,
    -- The active revision of each channel; empty when there is none.
    active_draft_rev   TEXT   NOT NULL,
    active_beta_rev    TEXT   NOT NULL,
    active_stable_rev  TEXT   NOT NULL,
    -- The version that the newest revision has; never goes back.
    version_count      BIGINT NOT NULL,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL
);
CREATE INDEX spells_by_update ON spells (updated_at);
CREATE INDEX spells_by_creator ON spells (created_by);

CREATE TABLE revisions (
    revision_id         TEXT   NOT NULL PRIMARY KEY,
    spell_id            TEXT   NOT NULL REFERENCES spells (spell_id) ON DELETE CASCADE,
    -- What it was made from; empty for the first.
    parent_revision_id  TEXT   NOT NULL,
    -- The highest channel it was ever published to.
    channel             TEXT   NOT NULL,
    version             BIGINT NOT NULL,
    manifest_json       TEXT   NOT NULL,
    created_by          TEXT   NOT NULL,
    created_at          BIGINT NOT NULL
);
CREATE INDEX revisions_by_spell ON revisions (spell_id, version);

-- Contents are blobs, named by their hash.
CREATE TABLE spell_files (
    revision_id   TEXT   NOT NULL REFERENCES revisions (revision_id) ON DELETE CASCADE,
    path          TEXT   NOT NULL,
    sha256        TEXT   NOT NULL,
    media_type    TEXT   NOT NULL,
    size_bytes    BIGINT NOT NULL,
    PRIMARY KEY (revision_id, path)
);

CREATE TABLE jobs (
    job_id              TEXT   NOT NULL PRIMARY KEY,
    -- The spell whose draft is built.
    draft_id            TEXT   NOT NULL REFERENCES spells (spell_id) ON DELETE CASCADE,
    -- queued, running, done, failed or cancelled.
    status              TEXT   NOT NULL,
    -- prepare, assemble_package, validate, finalize or done.
    stage               TEXT   NOT NULL,
    progress_pct        BIGINT NOT NULL,
    -- Lines of text.
    logs                TEXT   NOT NULL,
    error_message       TEXT   NOT NULL,
    result_revision_id  TEXT   NOT NULL,
    -- What was asked for, as JSON.
    request             TEXT   NOT NULL,
    created_by          TEXT   NOT NULL,
    attempts            BIGINT NOT NULL,
    -- Not before.
    run_after           BIGINT NOT NULL,
    -- Who works on it, and until when nobody else may.
    lease_owner         TEXT   NOT NULL,
    lease_until         BIGINT NOT NULL,
    cancel_requested    BIGINT NOT NULL,
    created_at          BIGINT NOT NULL,
    updated_at          BIGINT NOT NULL
);
CREATE INDEX jobs_by_turn ON jobs (status, run_after);
CREATE INDEX jobs_by_draft ON jobs (draft_id, created_at);
CREATE INDEX jobs_by_creator ON jobs (created_by, status);

-- Spells that a world has learned since it was made; its next process starts
-- with them.
CREATE TABLE world_spells (
    world_id      TEXT   NOT NULL REFERENCES worlds (world_id) ON DELETE CASCADE,
    -- The spell's id, with '@beta' or '@draft' behind it for those.
    name          TEXT   NOT NULL,
    revision_id   TEXT   NOT NULL REFERENCES revisions (revision_id) ON DELETE CASCADE,
    learned_at    BIGINT NOT NULL,
    PRIMARY KEY (world_id, name)
);
