//! Classifies database errors for the response to the client.

/// Reason why a query failed, as far as the client needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The database is unavailable: stopped, restarting, out of connections or out of disk space.
    /// The same request works later.
    Away,
    /// A conflict with another transaction. The same request works at once.
    Busy,
    /// The database cannot store the text.
    Text,
    /// An error in our code.
    Ours,
}

impl Trouble {
    /// Classifies an error.
    pub(crate) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Trouble::Away,
            sqlx::Error::Database(error) => {
                let code = error.code();
                code.map_or(Trouble::Ours, |code| Self::of_code(&code))
            }
            _ => Trouble::Ours,
        }
    }

    /// Postgres codes have five characters. SQLite codes are numbers of up to four digits with the
    /// kind in the lowest eight bits.
    fn of_code(code: &str) -> Self {
        if code.len() < 5 {
            return match code.parse::<u32>().map(|code| code & 0xff) {
                // Locked by another connection for longer than the busy timeout.
                Ok(5 | 6) => Trouble::Busy,
                // Read-only, I/O error, disk full, cannot open.
                Ok(8 | 10 | 13 | 14) => Trouble::Away,
                _ => Trouble::Ours,
            };
        }
        match code {
            // Text with a zero character.
            "22021" | "22P05" => Trouble::Text,
            // Serialization failure, deadlock, lock not available.
            "40001" | "40P01" | "55P03" => Trouble::Busy,
            // Shut down, crashed, starting, or a read-only standby.
            "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25006" => Trouble::Away,
            // Connection, insufficient resources, system error.
            _ if ["08", "53", "58"]
                .iter()
                .any(|class| code.starts_with(class)) =>
            {
                Trouble::Away
            }
            _ => Trouble::Ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_are_classified() {
        for (code, trouble) in [
            ("57P01", Trouble::Away),
            ("08006", Trouble::Away),
            ("53300", Trouble::Away),
            ("22021", Trouble::Text),
            ("40P01", Trouble::Busy),
            ("23505", Trouble::Ours),
            ("42703", Trouble::Ours),
            ("5", Trouble::Busy),
            ("517", Trouble::Busy),
            ("13", Trouble::Away),
            ("2067", Trouble::Ours),
            ("1", Trouble::Ours),
        ] {
            assert_eq!(Trouble::of_code(code), trouble, "{code}");
        }
        assert_eq!(Trouble::of(&sqlx::Error::PoolTimedOut), Trouble::Away);
        assert_eq!(Trouble::of(&sqlx::Error::RowNotFound), Trouble::Ours);
    }
}
