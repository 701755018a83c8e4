//! A snapshot of the public games: their sort orders, and rendered pages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::search::{Score, Search, Searchable};
use crate::api::{GameSummary, TagCount};
use crate::catalog::TaggedBody;
use crate::catalog::ranking::RankingInputs;
use crate::core::error::ApiError;

/// Maximum number of rendered pages per view.
const PAGES_MAX: usize = 2_048;
const TAGS_MAX: usize = 100;

/// The part of a game that changes only when it is published or edited.
#[derive(PartialEq)]
pub struct GameCard {
    pub(super) summary: GameSummary,
    pub(super) creator_key: String,
    pub(super) searchable: Searchable,
    pub(super) created_at: i64,
    pub(super) featured_at: Option<i64>,
}

/// Index of a game on its fixed.
type GameIndex = u32;

/// The games, and the sort orders that do not change with time.
pub(super) struct FixedOrders {
    cards: Vec<Arc<GameCard>>,
    newest: Vec<GameIndex>,
    featured: Vec<GameIndex>,
    tags: Vec<TagCount>,
}

/// Counts of a game at one moment.
pub(super) struct RankedGame {
    pub(super) plays: u32,
    pub(super) likes: u32,
    pub(super) counted: RankingInputs,
}

/// The catalog at one moment.
pub struct View {
    pub(super) made_at: Instant,
    /// Time of the view, by the platform's clock.
    pub now_ms: i64,
    fixed: Arc<FixedOrders>,
    /// Indexed by index.
    games: Vec<RankedGame>,
    popular: Vec<GameIndex>,
    pages: Mutex<HashMap<PageKey, Arc<TaggedBody>>>,
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

impl FixedOrders {
    /// Builds the orders that do not change with time. `cards` is sorted by id.
    pub(super) fn of(cards: Vec<Arc<GameCard>>) -> Self {
        let by_index = |index: &GameIndex| &*cards[*index as usize];
        let mut newest: Vec<GameIndex> =
            (0..GameIndex::try_from(cards.len()).unwrap_or(GameIndex::MAX)).collect();
        // The sort is stable: ties keep the order of ids.
        newest.sort_by_key(|index| Reverse(by_index(index).created_at));
        let chosen = newest.iter().copied();
        let mut featured: Vec<GameIndex> = chosen
            .filter(|index| by_index(index).featured_at.is_some())
            .collect();
        featured.sort_by_key(|index| Reverse(by_index(index).featured_at));
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
        fixed: Arc<FixedOrders>,
        games: Vec<RankedGame>,
        before: Option<&View>,
        now_ms: i64,
    ) -> Self {
        let before = before.filter(|view| Arc::ptr_eq(&view.fixed, &fixed));
        let start = before.map_or_else(|| fixed.newest.clone(), |view| view.popular.clone());
        let scored = start.into_iter().map(|index| {
            let score = games[index as usize].counted.score(now_ms);
            (index, score)
        });
        let mut scored: Vec<(GameIndex, f64)> = scored.collect();
        scored.sort_by(|(a, a_score), (b, b_score)| {
            let created_at = |index: GameIndex| fixed.cards[index as usize].created_at;
            b_score
                .total_cmp(a_score)
                .then_with(|| created_at(*b).cmp(&created_at(*a)))
                .then_with(|| a.cmp(b))
        });
        Self {
            made_at: Instant::now(),
            now_ms,
            fixed,
            games,
            popular: scored.into_iter().map(|(index, _)| index).collect(),
            pages: Mutex::default(),
        }
    }

    /// Number of listed games.
    pub fn listed(&self) -> u32 {
        u32::try_from(self.games.len()).unwrap_or(u32::MAX)
    }

    /// A game's rank in Popular, from 1, and its counts.
    pub fn rank(&self, game_id: &str) -> Option<(u32, RankingInputs)> {
        let cards = &self.fixed.cards;
        let index = cards.binary_search_by(|card| (*card.summary.id).cmp(game_id));
        let index = index.ok()?;
        let rank = self.popular.iter().position(|at| *at as usize == index)?;
        Some((u32::try_from(rank + 1).ok()?, self.games[index].counted))
    }

    /// Tags, the most used first.
    pub fn tags(&self) -> &[TagCount] {
        &self.fixed.tags
    }

    /// The rendered page for `key`. If it is not cached, `make` renders it from the
    /// games on it and the total count.
    pub(in crate::catalog) fn page(
        &self,
        key: PageKey,
        make: impl FnOnce(Vec<GameSummary>, u32) -> Result<TaggedBody, ApiError>,
    ) -> Result<Arc<TaggedBody>, ApiError> {
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
            Order::New => &self.fixed.newest,
            Order::Featured => &self.fixed.featured,
        };
        let per_page = key.per_page as usize;
        let skip = (key.page.saturating_sub(1) as usize).saturating_mul(per_page);
        let card = |index: GameIndex| &*self.fixed.cards[index as usize];
        let wanted = order
            .iter()
            .copied()
            .filter(|index| key.matches(card(*index)));
        let found: Vec<GameIndex> = if key.search.is_empty() {
            wanted.collect()
        } else {
            let search = Search::of(&key.search);
            let scored = wanted.filter_map(|index| {
                let score = search.score(&card(index).searchable)?;
                Some((score, index))
            });
            let mut scored: Vec<(Score, GameIndex)> = scored.collect();
            // Sorts by relevance only for the default order; ties keep the popular order.
            if key.order == Order::Popular {
                scored.sort_by_key(|(score, _)| Reverse(*score));
            }
            scored.into_iter().map(|(_, index)| index).collect()
        };
        let shown = found.iter().skip(skip).take(per_page);
        let shown = shown.map(|index| self.games[*index as usize].summary(card(*index)));
        let total = u32::try_from(found.len()).unwrap_or(u32::MAX);
        (shown.collect(), total)
    }

    fn pages(&self) -> MutexGuard<'_, HashMap<PageKey, Arc<TaggedBody>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RankedGame {
    fn summary(&self, card: &GameCard) -> GameSummary {
        GameSummary {
            players_now: self.counted.players,
            plays: self.plays,
            likes: self.likes,
            ..card.summary.clone()
        }
    }
}

impl PageKey {
    fn matches(&self, card: &GameCard) -> bool {
        (self.creator.is_empty() || card.creator_key == self.creator)
            && (self.tag.is_empty() || card.summary.tags.contains(&self.tag))
    }
}
