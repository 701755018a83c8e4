//! What a client does after its connection is lost: when it connects again, and when
//! it gives up. The host reports what happens, and follows the decisions.

use serde::Serialize;

/// The server preserves the place of a disconnected player for a minute.
const RETURN_WITHIN_MS: f64 = 60_000.0;
/// The pause before each attempt to return; the last one repeats.
const PAUSES_MS: [f64; 5] = [300.0, 1000.0, 2000.0, 4000.0, 8000.0];
/// One unreadable connection may be an accident. A second one within this time means
/// that client and server speak different versions of the protocol.
const ACCIDENTS_APART_MS: f64 = 60_000.0;

/// Errors of a ticket that was valid when it was issued: a new one solves them.
const STALE_TICKET: [&str; 2] = ["ticket_expired", "ticket_used"];
/// The client is too old for the server.
const OUTDATED: &str = "unsupported_version";
/// The same player continued on another connection.
const REPLACED: &str = "replaced";
/// The server stops, and preserves the session.
const RESTARTING: &str = "restarting";

/// What to do after a connection is lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum NextStep {
    /// Join the same world again, to resume the session.
    Return {
        /// After this pause.
        pause_ms: f64,
    },
    /// Join with a new ticket: the player was never in the world.
    JoinAgain,
    /// The session is over.
    End {
        /// Why.
        ending: SessionEnd,
    },
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum SessionEnd {
    /// Only a newer client understands the server.
    #[error("this client is older than the server")]
    Outdated,
    /// The same player continued on another connection.
    #[error("the player continued on another connection")]
    Replaced,
    /// The player was removed from the world.
    #[error("kicked: {reason}")]
    Kicked {
        /// The server's reason.
        reason: String,
    },
    /// The player was never admitted.
    #[error("refused: {message}")]
    Refused {
        /// The server's message, or how the connection ended.
        message: String,
    },
    /// All attempts to return have failed.
    #[error("the connection was lost, and all attempts to return failed")]
    Lost,
    /// The world is gone, or closed to this player; the failed join says which.
    #[error("the world is gone, or closed to this player")]
    Denied,
}

/// Whether and when a client connects again; one per session.
#[derive(Debug, Default)]
pub struct ReconnectPolicy {
    /// The player was in the world, or has a resume token.
    has_place: bool,
    /// The server has announced a restart.
    restarting: bool,
    /// The join was repeated with a new ticket.
    joined_again: bool,
    /// Code and message of the last error on this connection.
    last_error: Option<(String, String)>,
    /// A kick has ended the session.
    ending: Option<SessionEnd>,
    /// While the connection is lost, and until the next welcome.
    give_up_at_ms: Option<f64>,
    attempts: usize,
    unreadable_at_ms: Option<f64>,
}

impl ReconnectPolicy {
    /// A handshake was sent on a new connection, with or without a resume token.
    pub fn connected(&mut self, resuming: bool) {
        self.has_place |= resuming;
        self.last_error = None;
    }

    /// The server has welcomed the player.
    pub fn welcomed(&mut self) {
        self.has_place = true;
        self.restarting = false;
        self.rested();
    }

    /// The host was suspended and runs again: that time does not count.
    pub fn rested(&mut self) {
        self.give_up_at_ms = None;
        self.attempts = 0;
    }

    /// The server has sent an error.
    pub fn error(&mut self, code: &str, message: &str) {
        self.restarting |= code == RESTARTING;
        self.last_error = Some((code.to_owned(), message.to_owned()));
    }

    /// The server closes the connection. Returns how the session ends, if it does.
    /// During a reconnect a kick refuses one handshake (the world is full, or its
    /// server is stopping), and the next attempt may succeed. A player who is kicked
    /// out of the world stays out.
    pub fn kicked(&mut self, reason: &str) -> Option<SessionEnd> {
        let reconnecting = self.give_up_at_ms.is_some();
        let comes_back = match self.has_place {
            true => self.restarting || reconnecting,
            false => self.has_stale_ticket(),
        };
        self.ending = match self.last_code() {
            OUTDATED => Some(SessionEnd::Outdated),
            REPLACED => Some(SessionEnd::Replaced),
            _ if comes_back => None,
            _ => Some(SessionEnd::Kicked {
                reason: reason.to_owned(),
            }),
        };
        self.ending.clone()
    }

    /// The connection is closed, for this reason. `unreadable` when the host closed
    /// it because the server sent something that it cannot decode.
    pub fn closed(&mut self, reason: &str, unreadable: bool, now_ms: f64) -> NextStep {
        let ending = if self.ending.is_some() {
            self.ending.clone()
        } else if self.last_code() == OUTDATED || unreadable && self.is_second_accident(now_ms) {
            Some(SessionEnd::Outdated)
        } else if self.has_place {
            return self.try_again(now_ms);
        } else if !self.joined_again && (self.last_error.is_none() || self.has_stale_ticket()) {
            // Without an error the server went down before it answered.
            self.joined_again = true;
            return NextStep::JoinAgain;
        } else {
            None
        };
        let ending = ending.unwrap_or_else(|| SessionEnd::Refused {
            message: match &self.last_error {
                Some((_, message)) => message.clone(),
                None => reason.to_owned(),
            },
        });
        NextStep::End { ending }
    }

    /// An attempt to return failed, with the HTTP status of the join if that was
    /// refused, else 0.
    pub fn failed(&mut self, http_status: u16, now_ms: f64) -> NextStep {
        match http_status {
            // Deleted, or access was revoked, as by a suspension.
            403 | 404 => NextStep::End {
                ending: SessionEnd::Denied,
            },
            _ => self.try_again(now_ms),
        }
    }

    /// The next attempt to return, until a minute after the first loss.
    pub fn try_again(&mut self, now_ms: f64) -> NextStep {
        let give_up_at_ms = *self.give_up_at_ms.get_or_insert(now_ms + RETURN_WITHIN_MS);
        if now_ms >= give_up_at_ms {
            return NextStep::End {
                ending: SessionEnd::Lost,
            };
        }
        let pause_ms = PAUSES_MS[self.attempts.min(PAUSES_MS.len() - 1)];
        self.attempts += 1;
        NextStep::Return { pause_ms }
    }

    fn last_code(&self) -> &str {
        let last = self.last_error.as_ref();
        last.map_or("", |(code, _)| code)
    }

    /// The ticket expired on a slow connection, and no other was tried yet.
    fn has_stale_ticket(&self) -> bool {
        !self.joined_again && STALE_TICKET.contains(&self.last_code())
    }

    fn is_second_accident(&mut self, now_ms: f64) -> bool {
        let before = self.unreadable_at_ms.replace(now_ms);
        before.is_some_and(|before| now_ms - before < ACCIDENTS_APART_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: NextStep = NextStep::Return { pause_ms: 300.0 };

    fn end(ending: SessionEnd) -> NextStep {
        NextStep::End { ending }
    }

    fn arriving() -> ReconnectPolicy {
        let mut policy = ReconnectPolicy::default();
        policy.connected(false);
        policy
    }

    fn playing() -> ReconnectPolicy {
        let mut policy = arriving();
        policy.welcomed();
        policy
    }

    /// A player who lost the connection and has sent the next handshake.
    fn reconnecting() -> ReconnectPolicy {
        let mut policy = playing();
        assert_eq!(policy.closed("gone", false, 0.0), FIRST);
        policy.connected(true);
        policy
    }

    #[test]
    fn attempts_follow_each_other_ever_more_slowly_for_a_minute() {
        let mut policy = playing();
        let mut now_ms = 5_000.0;
        let mut step = policy.closed("gone", false, now_ms);
        let mut pauses = Vec::new();
        while let NextStep::Return { pause_ms } = step {
            pauses.push(pause_ms);
            now_ms += pause_ms;
            step = policy.failed(503, now_ms);
        }
        assert_eq!(step, end(SessionEnd::Lost));
        assert_eq!(pauses[..6], [300.0, 1000.0, 2000.0, 4000.0, 8000.0, 8000.0]);
        assert!((65_000.0..73_000.0).contains(&now_ms), "{now_ms}");
    }

    #[test]
    fn a_welcome_or_a_pause_of_the_host_restarts_the_minute() {
        for back in [ReconnectPolicy::welcomed, ReconnectPolicy::rested] {
            let mut policy = reconnecting();
            assert_eq!(
                policy.failed(0, 59_000.0),
                NextStep::Return { pause_ms: 1000.0 }
            );
            back(&mut policy);
            assert_eq!(policy.closed("gone", false, 61_000.0), FIRST);
        }
    }

    #[test]
    fn a_refused_handshake_during_a_reconnect_costs_an_attempt() {
        for code in [
            "",
            "world_full",
            "draining",
            "ticket_used",
            "ticket_wrong_world",
        ] {
            let mut policy = reconnecting();
            if !code.is_empty() {
                policy.error(code, "no");
            }
            assert_eq!(policy.kicked("no"), None, "{code}");
            let next = policy.closed("closed", false, 1000.0);
            assert_eq!(next, NextStep::Return { pause_ms: 1000.0 }, "{code}");
        }
    }

    #[test]
    fn an_outdated_client_ends_instead_of_retrying_for_a_minute() {
        for mut policy in [arriving(), playing(), reconnecting()] {
            policy.error("restarting", "soon");
            policy.error("unsupported_version", "too old");
            assert_eq!(policy.kicked("too old"), Some(SessionEnd::Outdated));
            let next = policy.closed("closed", false, 1000.0);
            assert_eq!(next, end(SessionEnd::Outdated));
        }
        let mut policy = arriving();
        policy.error("unsupported_version", "too old");
        let next = policy.closed("closed without a kick", false, 1000.0);
        assert_eq!(next, end(SessionEnd::Outdated));
    }

    #[test]
    fn unreadable_data_is_an_accident_once() {
        for mut policy in [arriving(), playing()] {
            let first = policy.closed("unreadable", true, 1000.0);
            assert!(!matches!(first, NextStep::End { .. }));
            policy.connected(false);
            let again = policy.closed("unreadable", true, 2000.0);
            assert_eq!(again, end(SessionEnd::Outdated));
        }
        let mut policy = playing();
        assert_eq!(policy.closed("unreadable", true, 1000.0), FIRST);
        policy.welcomed();
        assert_eq!(policy.closed("unreadable", true, 100_000.0), FIRST);
    }

    #[test]
    fn a_kicked_player_stays_out_unless_the_server_restarts() {
        let kicked = SessionEnd::Kicked {
            reason: "out".into(),
        };
        assert_eq!(playing().kicked("out"), Some(kicked.clone()));
        let mut flooding = playing();
        flooding.error("flood", "too much");
        assert_eq!(flooding.kicked("out"), Some(kicked.clone()));
        let mut restarting = playing();
        restarting.error("restarting", "soon");
        assert_eq!(restarting.kicked("soon"), None);
        assert_eq!(restarting.closed("closed", false, 0.0), FIRST);
        restarting.welcomed();
        assert_eq!(restarting.kicked("out"), Some(kicked.clone()));
        assert_eq!(restarting.closed("closed", false, 0.0), end(kicked));
    }

    #[test]
    fn the_same_player_elsewhere_ends_this_session() {
        let mut policy = reconnecting();
        policy.error("replaced", "elsewhere");
        assert_eq!(policy.kicked("elsewhere"), Some(SessionEnd::Replaced));
    }

    #[test]
    fn a_first_join_is_repeated_once() {
        let mut policy = arriving();
        assert_eq!(policy.closed("gone", false, 0.0), NextStep::JoinAgain);
        policy.connected(false);
        let refused = SessionEnd::Refused {
            message: "gone".into(),
        };
        assert_eq!(policy.closed("gone", false, 1.0), end(refused));

        let mut policy = arriving();
        policy.error("ticket_expired", "too late");
        assert_eq!(policy.kicked("too late"), None);
        assert_eq!(policy.closed("gone", false, 0.0), NextStep::JoinAgain);
        policy.connected(false);
        policy.error("ticket_expired", "too late");
        assert!(policy.kicked("too late").is_some());

        let mut policy = arriving();
        policy.error("world_full", "It is full.");
        let refused = SessionEnd::Refused {
            message: "It is full.".into(),
        };
        assert_eq!(policy.closed("gone", false, 0.0), end(refused));
    }

    #[test]
    fn a_suspension_or_a_deleted_world_ends_the_attempts_and_a_busy_server_does_not() {
        for status in [403, 404] {
            let next = reconnecting().failed(status, 1000.0);
            assert_eq!(next, end(SessionEnd::Denied));
        }
        for status in [0, 409, 503] {
            let next = reconnecting().failed(status, 1000.0);
            assert_eq!(next, NextStep::Return { pause_ms: 1000.0 });
        }
    }
}
