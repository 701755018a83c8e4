//! A player's leaderstats, in the order in which scripts first set them. That
//! is the order of the columns on the leaderboard, which sorts by the first.

use frolic_protocol::Value;

/// Named values of one player. There are few, so lookup is linear.
#[derive(Default)]
pub(crate) struct Leaderstats(Vec<(String, Value)>);

impl Leaderstats {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Sets a value and returns the previous one; a new name is appended.
    pub fn insert(&mut self, name: &str, value: Value) -> Option<Value> {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => Some(std::mem::replace(known, value)),
            None => {
                self.0.push((name.to_owned(), value));
                None
            }
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}
