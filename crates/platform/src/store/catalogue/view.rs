//! A snapshot of the public games: their sort orders, and rendered pages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::search::{Score, Search, Searchable};
use crate::api::{GameSummary, TagCount};
use crate::error::ApiError;
use crate::store::Tagged;
use crate::store::ranking::Counted;

/// Maximum number of rendered pages per view.
const PAGES_MAX: usize = 2_048;
const TAGS_MAX: usize = 100;

/// The part of a game that changes only when it is published or edited.
#[derive(PartialEq)]
pub struct Card {
    pub(super) summary: GameSummary,
    pub(super) creator_key: String,
    pub(super) searchable: Searchable,
    pub(super) created_at: i64,
    pub(super) featured_at: Option<i64>,
}

/// Index of a game on its shelf.
type Slot = u32;

/// The games, and the sort orders that do not change with time.
pub(super) struct Shelf {
    cards: Vec<Arc<Card>>,
    newest: Vec<Slot>,
    featured: Vec<Slot>,
    tags: Vec<TagCount>,
}

/// Counts of a game at one moment.
pub(super) struct Placed {
    pub(super) plays: u32,
    pub(super) likes: u32,
    pub(super) counted: Counted,
}

/// The catalog at one moment.
pub struct View {
    pub(super) made_at: Instant,
    /// Time of the view, by the platform's clock.
    pub now_ms: i64,
    shelf: Arc<Shelf>,
    /// Indexed by slot.
    games: Vec<Placed>,
    popular: Vec<Slot>,
    pages: Mutex<HashMap<PageKey, Arc<Tagged>>>,
}

/// Identifies a page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PageKey {
    /// Sort order.
    pub order: Order,
    /// Search text in lower case; empty for all.
    pub search: String,
    /// Required tag; empty for all.
    pub tag: String,
    /// Name key of the creator; empty for all.
    pub creator: String,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// Sort orders of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// By the ranking formula.
    #[default]
    Popular,
    /// Newest first.
    New,
    /// Only games featured by moderators, the last featured first.
    Featured,
}

impl Shelf {
    /// Builds the orders that do not change with time. `cards` is sorted by id.
    pub(super) fn of(cards: Vec<Arc<Card>>) -> Self {
        let by_slot = |slot: &Slot| &*cards[*slot as usize];
        let mut newest: Vec<Slot> = (0..Slot::try_from(cards.len()).unwrap_or(Slot::MAX)).collect();
        // The sort is stable: ties keep the order of ids.
        newest.sort_by_key(|slot| Reverse(by_slot(slot).created_at));
        let chosen = newest.iter().copied();
        let mut featured: Vec<Slot> = chosen
            .filter(|slot| by_slot(slot).featured_at.is_some())
            .collect();
        featured.sort_by_key(|slot| Reverse(by_slot(slot).featured_at));
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for tag in cards.iter().flat_map(|card| &card.summary.tags) {
            *counts.entry(tag).or_default() += 1;
        }
        let counts = counts.into_iter();
        let mut tags: Vec<TagCount> = counts
            .map(|(tag, games)| TagCount {
                tag: tag.to_owned(),
                games,
            })
            .collect();
        tags.sort_by_key(|count| Reverse(count.games));
        tags.truncate(TAGS_MAX);
        Self {
            newest,
            featured,
            tags,
            cards,
        }
    }
}

impl View {
    /// Sorts the games by popularity. The previous view's order is a good start,
    /// because it hardly changes within a second.
    pub(super) fn of(
        shelf: Arc<Shelf>,
        games: Vec<Placed>,
        before: Option<&View>,
        now_ms: i64,
    ) -> Self {
        let before = before.filter(|view| Arc::ptr_eq(&view.shelf, &shelf));
        let start = before.map_or_else(|| shelf.newest.clone(), |view| view.popular.clone());
        let scored = start.into_iter().map(|slot| {
            let score = games[slot as usize].counted.score(now_ms);
            (slot, score)
        });
        let mut scored: Vec<(Slot, f64)> = scored.collect();
        scored.sort_by(|(a, a_score), (b, b_score)| {
            let created_at = |slot: Slot| shelf.cards[slot as usize].created_at;
            b_score
                .total_cmp(a_score)
                .then_with(|| created_at(*b).cmp(&created_at(*a)))
                .then_with(|| a.cmp(b))
        });
        Self {
            made_at: Instant::now(),
            now_ms,
            shelf,
            games,
            popular: scored.into_iter().map(|(slot, _)| slot).collect(),
            pages: Mutex::default(),
        }
    }

    /// Number of listed games.
    pub fn listed(&self) -> u32 {
        u32::try_from(self.games.len()).unwrap_or(u32::MAX)
    }

    /// A game's rank in Popular, from 1, and its counts.
    pub fn place(&self, game_id: &str) -> Option<(u32, Counted)> {
        let cards = &self.shelf.cards;
        let slot = cards.binary_search_by(|card| (*card.summary.id).cmp(game_id));
        let slot = slot.ok()?;
        let place = self.popular.iter().position(|at| *at as usize == slot)?;
        Some((u32::try_from(place + 1).ok()?, self.games[slot].counted))
    }

    /// Tags, the most used first.
    pub fn tags(&self) -> &[TagCount] {
        &self.shelf.tags
    }

    /// The rendered page for `key`. If it is not cached, `make` renders it from the
    /// games on it and the total count.
    pub(in crate::store) fn page(
        &self,
        key: PageKey,
        make: impl FnOnce(Vec<GameSummary>, u32) -> Result<Tagged, ApiError>,
    ) -> Result<Arc<Tagged>, ApiError> {
        if let Some(page) = self.pages().get(&key) {
            return Ok(page.clone());
        }
        let (games, total) = self.select(&key);
        let page = Arc::new(make(games, total)?);
        let mut pages = self.pages();
        if pages.len() >= PAGES_MAX {
            pages.clear();
        }
        pages.insert(key, page.clone());
        Ok(page)
    }

    fn select(&self, key: &PageKey) -> (Vec<GameSummary>, u32) {
        let order = match key.order {
            Order::Popular => &self.popular,
            Order::New => &self.shelf.newest,
            Order::Featured => &self.shelf.featured,
        };
        let per_page = key.per_page as usize;
        let skip = (key.page.saturating_sub(1) as usize).saturating_mul(per_page);
        let card = |slot: Slot| &*self.shelf.cards[slot as usize];
        let wanted = order.iter().copied().filter(|slot| key.wants(card(*slot)));
        let found: Vec<Slot> = if key.search.is_empty() {
            wanted.collect()
        } else {
            let search = Search::of(&key.search);
            let scored = wanted.filter_map(|slot| {
                let score = search.score(&card(slot).searchable)?;
                Some((score, slot))
            });
            let mut scored: Vec<(Score, Slot)> = scored.collect();
            // Sorts by relevance only for the default order; ties keep the popular order.
            if key.order == Order::Popular {
                scored.sort_by_key(|(score, _)| Reverse(*score));
            }
            scored.into_iter().map(|(_, slot)| slot).collect()
        };
        let shown = found.iter().skip(skip).take(per_page);
        let shown = shown.map(|slot| self.games[*slot as usize].summary(card(*slot)));
        let total = u32::try_from(found.len()).unwrap_or(u32::MAX);
        (shown.collect(), total)
    }

    fn pages(&self) -> MutexGuard<'_, HashMap<PageKey, Arc<Tagged>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Placed {
    fn summary(&self, card: &Card) -> GameSummary {
        GameSummary {
            players_now: self.counted.players,
            plays: self.plays,
            likes: self.likes,
            ..card.summary.clone()
        }
    }
}

impl PageKey {
    fn wants(&self, card: &Card) -> bool {
        (self.creator.is_empty() || card.creator_key == self.creator)
            && (self.tag.is_empty() || card.summary.tags.contains(&self.tag))
    }
}
