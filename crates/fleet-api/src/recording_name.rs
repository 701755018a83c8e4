//! The name of a recording file, written by a game server and found by the control
//! plane when a player reports what happened there.

use std::fmt;

const ENDING: &str = ".replay";

/// `world_…-1763250000000.replay`: the world, and when the recording began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingName {
    world: String,
    started_unix_ms: u64,
}

impl RecordingName {
    /// A name for a recording that begins now. Characters that could escape a
    /// folder are removed from the world's id.
    pub fn new(world_id: &str, started_unix_ms: u64) -> Self {
        Self {
            world: world_id
                .chars()
                .filter(|&letter| is_plain(letter))
                .collect(),
            started_unix_ms,
        }
    }

    /// Parses a file's name; none when it is not a recording.
    pub fn parse(file: &str) -> Option<Self> {
        let (world, started) = file.strip_suffix(ENDING)?.rsplit_once('-')?;
        let digits = started.bytes().all(|digit| digit.is_ascii_digit());
        (digits && world.chars().all(is_plain)).then_some(())?;
        Some(Self {
            world: world.to_owned(),
            started_unix_ms: started.parse().ok()?,
        })
    }

    /// Id of the world.
    pub fn world(&self) -> &str {
        &self.world
    }

    /// When it began.
    pub fn started_unix_ms(&self) -> u64 {
        self.started_unix_ms
    }
}

impl fmt::Display for RecordingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}{ENDING}", self.world, self.started_unix_ms)
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let name = RecordingName::new("world_a-b", 1_763_250_000_000);
        assert_eq!(name.to_string(), "world_a-b-1763250000000.replay");
        assert_eq!(RecordingName::parse(&name.to_string()), Some(name));
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let name = RecordingName::new("../../etc/world_1", 7);
        assert_eq!(name.to_string(), "etcworld_1-7.replay");
        for wrong in [
            "",
            "world_1.replay",
            "world_1-7.replay.zst",
            "world_1-+7.replay",
            "../world_1-7.replay",
            "world_1-99999999999999999999999.replay",
        ] {
            assert_eq!(RecordingName::parse(wrong), None, "{wrong}");
        }
    }
}
