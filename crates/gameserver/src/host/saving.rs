//! Notifies players when persistence is unusually slow: nothing accepted is lost,
//! but nothing new is acknowledged meanwhile.

use std::time::Duration;

use frolic_protocol::ServerMessage;

/// Players are notified when something waits this long to be stored.
const DELAYED_AFTER: Duration = Duration::from_secs(3);
/// The delay is over when nothing has waited this long. Less than the above, so
/// that a slow disk does not toggle the notice.
const OVER_BELOW: Duration = Duration::from_millis(1500);

/// Whether players have been notified of a delay.
#[derive(Default)]
pub(super) struct SavingNotice {
    delayed: bool,
}

impl SavingNotice {
    /// The notice for all players, when something has waited this long.
    pub fn update(&mut self, waited: Duration) -> Option<ServerMessage> {
        let limit = if self.delayed {
            OVER_BELOW
        } else {
            DELAYED_AFTER
        };
        let delayed = waited >= limit;
        if delayed == self.delayed {
            return None;
        }
        self.delayed = delayed;
        let seconds = waited.as_secs_f64();
        if delayed {
            tracing::warn!(seconds, "saving is delayed");
        } else {
            tracing::info!("saving is up to date again");
        }
        Some(ServerMessage::Saving { delayed })
    }

    /// The notice for a player who has just joined.
    pub fn for_newcomer(&self) -> Option<ServerMessage> {
        let delayed = self.delayed;
        delayed.then_some(ServerMessage::Saving { delayed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_reported_once_and_so_is_its_end() {
        let mut notice = SavingNotice::default();
        let mut notice_after = |ms| notice.update(Duration::from_millis(ms));
        assert_eq!(notice_after(0), None);
        assert_eq!(notice_after(2900), None);
        assert_eq!(
            notice_after(3000),
            Some(ServerMessage::Saving { delayed: true })
        );
        assert_eq!(notice_after(60_000), None);
        assert_eq!(notice_after(2000), None, "still behind");
        assert_eq!(
            notice_after(100),
            Some(ServerMessage::Saving { delayed: false })
        );
        assert_eq!(notice_after(2900), None);
    }
}
