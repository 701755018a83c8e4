//! An in-memory store: for worlds without a platform, and for tests. The
//! platform's store behaves the same, with a database.

use std::collections::BTreeMap;

use frolic_fleet_api::store::{
    Best, PAGE_MAX, RankKey, StoreAction, StoreKey, StoreRefusal, check_number, value_of_text,
    value_text,
};
use frolic_protocol::{Args, Value};

/// Limit of keys, so that a script cannot exhaust the memory of the process.
const KEYS_MAX: usize = 10_000;

/// Keys and rankings of one game.
#[derive(Debug, Default)]
pub struct MemoryStore {
    entries: BTreeMap<StoreKey, Entry>,
    rankings: BTreeMap<(String, String), Place>,
    changes: u64,
}

#[derive(Debug)]
struct Entry {
    text: String,
    version: u64,
}

#[derive(Debug)]
struct Place {
    name: Option<String>,
    score: f64,
    /// Among equal scores the earlier one ranks first.
    since: u64,
}

impl MemoryStore {
    /// Executes a script's request.
    ///
    /// # Errors
    /// A message for the creator.
    pub fn apply(&mut self, action: &StoreAction) -> Result<Args, String> {
        action.check().map_err(|refusal| refusal.to_string())?;
        let values = match action {
            StoreAction::Get(at) => self.read(at),
            StoreAction::Set { at, value } => {
                self.write(at, value)?;
                vec![]
            }
            StoreAction::Swap { at, value, version } => {
                let mut now = self.read(at);
                if now[1] == Value::Number(*version as f64) {
                    self.write(at, value)?;
                    vec![Value::Bool(true)]
                } else {
                    now.insert(0, Value::Bool(false));
                    now
                }
            }
            StoreAction::Increment { at, by } => {
                let before = match self.read(at).swap_remove(0) {
                    Value::Nil => 0.0,
                    Value::Number(number) => number,
                    _ => return Err(not_a_number(&at.key)),
                };
                let sum = checked(before + by)?;
                self.write(at, &Args(vec![Value::Number(sum)]))?;
                vec![Value::Number(sum)]
            }
            StoreAction::Remove(at) => vec![Value::Bool(self.entries.remove(at).is_some())],
            StoreAction::List { prefix, after } => self.list(prefix, after.as_deref()),
            StoreAction::RankSet { at, score } => {
                self.rank(at, checked(*score)?)?;
                vec![]
            }
            StoreAction::RankIncrement { at, by } => {
                let before = self.rankings.get(&place_of(at)).map_or(0.0, |p| p.score);
                let sum = checked(before + by)?;
                self.rank(at, sum)?;
                vec![Value::Number(sum)]
            }
            StoreAction::RankRemove(at) => {
                vec![Value::Bool(self.rankings.remove(&place_of(at)).is_some())]
            }
            StoreAction::RankTop {
                ranking,
                best,
                count,
            } => self.top(ranking, *best, *count),
            StoreAction::RankOf { at, best } => {
                let ordered = self.ordered(&at.ranking, *best);
                let found = ordered.iter().position(|(key, _)| **key == at.key);
                found.map_or_else(Vec::new, |index| {
                    let score = ordered[index].1.score;
                    vec![Value::Number(index as f64 + 1.0), Value::Number(score)]
                })
            }
        };
        Ok(Args(values))
    }

    fn read(&self, at: &StoreKey) -> Vec<Value> {
        match self.entries.get(at) {
            Some(entry) => vec![
                value_of_text(&entry.text),
                Value::Number(entry.version as f64),
            ],
            None => vec![Value::Nil, Value::Number(0.0)],
        }
    }

    fn write(&mut self, at: &StoreKey, value: &Args) -> Result<(), String> {
        self.room(self.entries.contains_key(at))?;
        let text = value_text(value).map_err(|refusal: StoreRefusal| refusal.to_string())?;
        self.changes += 1;
        let version = self.changes;
        self.entries.insert(at.clone(), Entry { text, version });
        Ok(())
    }

    fn room(&self, known: bool) -> Result<(), String> {
        if known || self.entries.len() + self.rankings.len() < KEYS_MAX {
            return Ok(());
        }
        Err(format!("this game's store is full: {KEYS_MAX} keys"))
    }

    fn list(&self, prefix: &StoreKey, after: Option<&str>) -> Vec<Value> {
        let matching = self.entries.keys().filter(|at| {
            let after = after.is_none_or(|after| at.key.as_str() > after);
            at.player == prefix.player && at.key.starts_with(&prefix.key) && after
        });
        let mut keys: Vec<Value> = matching
            .take(PAGE_MAX as usize + 1)
            .map(|at| Value::String(at.key.clone()))
            .collect();
        let more = keys.len() > PAGE_MAX as usize;
        keys.truncate(PAGE_MAX as usize);
        let next = keys.last().filter(|_| more).cloned().unwrap_or_default();
        vec![Value::List(keys), next]
    }

    fn rank(&mut self, at: &RankKey, score: f64) -> Result<(), String> {
        let key = place_of(at);
        self.room(self.rankings.contains_key(&key))?;
        self.changes += 1;
        let since = self.changes;
        let place = self.rankings.entry(key).or_insert(Place {
            name: None,
            score,
            since,
        });
        if place.score.to_bits() != score.to_bits() {
            (place.score, place.since) = (score, since);
        }
        if at.name.is_some() {
            place.name.clone_from(&at.name);
        }
        Ok(())
    }

    fn ordered(&self, ranking: &str, best: Best) -> Vec<(&String, &Place)> {
        let of_ranking = self.rankings.iter().filter(|((of, _), _)| of == ranking);
        let mut places: Vec<_> = of_ranking.map(|((_, key), place)| (key, place)).collect();
        places.sort_by(|(key_a, a), (key_b, b)| {
            let by_score = match best {
                Best::Highest => b.score.total_cmp(&a.score),
                Best::Lowest => a.score.total_cmp(&b.score),
            };
            by_score
                .then_with(|| a.since.cmp(&b.since))
                .then_with(|| key_a.cmp(key_b))
        });
        places
    }

    fn top(&self, ranking: &str, best: Best, count: u32) -> Vec<Value> {
        let places = self.ordered(ranking, best).into_iter();
        let places = places.take(count.min(PAGE_MAX) as usize);
        let list = places.enumerate().map(|(index, (key, place))| {
            let name = place.name.as_ref().unwrap_or(key);
            Value::Map(BTreeMap::from([
                ("Rank".to_owned(), Value::Number(index as f64 + 1.0)),
                ("Key".to_owned(), Value::String(key.clone())),
                ("Name".to_owned(), Value::String(name.clone())),
                ("Score".to_owned(), Value::Number(place.score)),
            ]))
        });
        vec![Value::List(list.collect())]
    }
}

fn place_of(at: &RankKey) -> (String, String) {
    (at.ranking.clone(), at.key.clone())
}

fn checked(number: f64) -> Result<f64, String> {
    check_number(number).map_err(|refusal| refusal.to_string())
}

fn not_a_number(key: &str) -> String {
    format!("\"{key}\" does not hold a number and cannot be incremented; use Update")
}
