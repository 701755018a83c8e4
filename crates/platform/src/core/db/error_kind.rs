//! Classifies database errors for the response to the client.

/// Reason why a query failed, as far as the client needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DbErrorKind {
    /// The database is unavailable: stopped, restarting, out of connections or out of disk space.
    /// The same request works later.
    Unavailable,
    /// A conflict with another transaction. The same request works at once.
    Conflict,
    /// The database cannot store the text.
    InvalidText,
    /// An error in our code.
    Internal,
}

impl DbErrorKind {
    /// Classifies an error.
    pub(crate) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => DbErrorKind::Unavailable,
            sqlx::Error::Database(error) => {
                let code = error.code();
                code.map_or(DbErrorKind::Internal, |code| Self::of_code(&code))
            }
            _ => DbErrorKind::Internal,
        }
    }

    /// Postgres codes have five characters. SQLite codes are numbers of up to four digits with the
    /// kind in the lowest eight bits.
    fn of_code(code: &str) -> Self {
        if code.len() < 5 {
            return match code.parse::<u32>().map(|code| code & 0xff) {
                // Locked by another connection for longer than the busy timeout.
                Ok(5 | 6) => DbErrorKind::Conflict,
                // Read-only, I/O error, disk full, cannot open.
                Ok(8 | 10 | 13 | 14) => DbErrorKind::Unavailable,
                _ => DbErrorKind::Internal,
            };
        }
        match code {
            // Text with a zero character.
            "22021" | "22P05" => DbErrorKind::InvalidText,
            // Serialization failure, deadlock, lock not available.
            "40001" | "40P01" | "55P03" => DbErrorKind::Conflict,
            // Shut down, crashed, starting, or a read-only standby.
            "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25006" => DbErrorKind::Unavailable,
            // Connection, insufficient resources, system error.
            _ if ["08", "53", "58"]
                .iter()
                .any(|class| code.starts_with(class)) =>
            {
                DbErrorKind::Unavailable
            }
            _ => DbErrorKind::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_are_classified() {
        for (code, kind) in [
            ("57P01", DbErrorKind::Unavailable),
            ("08006", DbErrorKind::Unavailable),
            ("53300", DbErrorKind::Unavailable),
            ("22021", DbErrorKind::InvalidText),
            ("40P01", DbErrorKind::Conflict),
            ("23505", DbErrorKind::Internal),
            ("42703", DbErrorKind::Internal),
            ("5", DbErrorKind::Conflict),
            ("517", DbErrorKind::Conflict),
            ("13", DbErrorKind::Unavailable),
            ("2067", DbErrorKind::Internal),
            ("1", DbErrorKind::Internal),
        ] {
            assert_eq!(DbErrorKind::of_code(code), kind, "{code}");
        }
        assert_eq!(
            DbErrorKind::of(&sqlx::Error::PoolTimedOut),
            DbErrorKind::Unavailable
        );
        assert_eq!(
            DbErrorKind::of(&sqlx::Error::RowNotFound),
            DbErrorKind::Internal
        );
    }
}
