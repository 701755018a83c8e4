//! The players of a world: present, disconnected, and those who left a moment ago.

use std::collections::VecDeque;

use frolic_protocol::PlayerInfo;

/// Players who left and whose names scripts may still read.
const DEPARTED_MAX: usize = 100;

#[derive(Default)]
pub(crate) struct Players {
    /// In order of numbers.
    present: Vec<PlayerInfo>,
    departed: VecDeque<PlayerInfo>,
}

/// Numbers of the players who came and went with a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    pub joined: Vec<u32>,
    pub left: Vec<u32>,
}

impl Players {
    /// Applies a change. A player who loses their connection stays; a player who comes
    /// back under another number is another player to scripts.
    pub fn apply(&mut self, changed: Vec<PlayerInfo>) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for player in &changed {
            let known = self.present.iter().any(|p| p.number == player.number);
            match (known, player.left) {
                (false, false) => arrivals.joined.push(player.number),
                (true, true) => arrivals.left.push(player.number),
                _ => {}
            }
        }
        let replaced = |known: &PlayerInfo| changed.iter().any(|player| player.id == known.id);
        self.present.retain(|known| !replaced(known));
        for player in changed {
            if player.left {
                self.departed.push_back(player);
            } else {
                self.present.push(player);
            }
        }
        self.present.sort_by_key(|player| player.number);
        while self.departed.len() > DEPARTED_MAX {
            self.departed.pop_front();
        }
        arrivals
    }

    /// The players in the world, disconnected ones among them, in order of numbers.
    pub fn present(&self) -> &[PlayerInfo] {
        &self.present
    }

    /// A player, also one who left not long ago.
    pub fn find(&self, number: u32) -> Option<&PlayerInfo> {
        let departed = self.departed.iter().rev();
        let mut all = self.present.iter().chain(departed);
        all.find(|player| player.number == number)
    }

    /// The player whose character this is.
    pub fn of_character(&self, entity: u32) -> Option<&PlayerInfo> {
        let mut present = self.present.iter();
        present.find(|player| player.entity_id == entity && entity != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player(number: u32) -> PlayerInfo {
        PlayerInfo {
            id: format!("user_{number}"),
            number,
            entity_id: 1000 + number,
            name: format!("P{number}"),
            online: true,
            left: false,
            team: None,
            stats: Vec::new(),
            looks: Default::default(),
        }
    }

    fn with(players: &[u32]) -> Players {
        let mut known = Players::default();
        known.apply(players.iter().map(|number| player(*number)).collect());
        known
    }

    fn arrivals(joined: &[u32], left: &[u32]) -> Arrivals {
        Arrivals {
            joined: joined.to_vec(),
            left: left.to_vec(),
        }
    }

    #[test]
    fn a_player_who_loses_the_connection_stays_in_the_list() {
        let mut players = with(&[1, 2]);
        let away = PlayerInfo {
            online: false,
            ..player(1)
        };
        assert_eq!(players.apply(vec![away.clone()]), Arrivals::default());
        assert_eq!(players.present(), [away, player(2)]);
        assert_eq!(players.apply(vec![player(1)]), Arrivals::default());
        assert_eq!(players.present(), [player(1), player(2)]);
    }

    #[test]
    fn a_player_who_left_is_dropped_and_remembered_for_a_while() {
        let mut players = with(&[1, 2]);
        let gone = PlayerInfo {
            online: false,
            left: true,
            ..player(1)
        };
        assert_eq!(players.apply(vec![gone.clone()]), arrivals(&[], &[1]));
        assert_eq!(players.present(), [player(2)]);
        assert_eq!(players.find(1), Some(&gone));
        assert_eq!(players.of_character(1001), None);
        assert_eq!(players.apply(vec![gone]), Arrivals::default());
        for number in 10..10 + 2 * DEPARTED_MAX as u32 {
            let left = PlayerInfo {
                left: true,
                ..player(number)
            };
            players.apply(vec![left]);
        }
        assert_eq!(players.departed.len(), DEPARTED_MAX);
        assert_eq!(players.find(1), None);
    }

    #[test]
    fn players_join_in_order_of_numbers_also_when_they_are_disconnected() {
        let mut players = with(&[2]);
        let away = PlayerInfo {
            online: false,
            ..player(1)
        };
        let joined = players.apply(vec![player(3), away]);
        assert_eq!(joined, arrivals(&[3, 1], &[]));
        let numbers = players.present().iter().map(|player| player.number);
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_player_under_another_number_is_another_player() {
        let mut players = with(&[1]);
        let again = PlayerInfo {
            id: "user_1".to_owned(),
            ..player(5)
        };
        assert_eq!(players.apply(vec![again.clone()]), arrivals(&[5], &[]));
        assert_eq!(players.present(), [again]);
    }
}
