-- One row that the platform writes to find out whether anything can be stored.
CREATE TABLE write_probe (
    id BIGINT PRIMARY KEY,
    writes BIGINT NOT NULL
);
