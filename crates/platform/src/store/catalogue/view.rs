//! The public games at one moment: their orders, and the pages that were asked
//! for, ready to be sent.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::api::{GameSummary, TagCount};
use crate::error::ApiError;
use crate::store::Tagged;
use crate::store::ranking::Counted;

/// Pages that one view keeps.
const PAGES_MAX: usize = 2_048;
const TAGS_MAX: usize = 100;

/// What of a game changes only when it is published or edited.
pub struct Card {
    pub(super) summary: GameSummary,
    pub(super) creator_key: String,
    /// What a search looks through, in lower case.
    pub(super) haystack: String,
    pub(super) created_at: i64,
    pub(super) featured_at: Option<i64>,
}

/// Orders that change only with the games.
pub(super) struct Orders {
    newest: Vec<String>,
    featured: Vec<String>,
    tags: Arc<Vec<TagCount>>,
}

/// A game at one moment.
pub(super) struct Placed {
    pub(super) card: Arc<Card>,
    pub(super) plays: u32,
    pub(super) likes: u32,
    pub(super) counted: Counted,
    pub(super) score: f64,
}

/// Everything at one moment.
pub struct View {
    pub(super) made_at: Instant,
    /// The moment, by the platform's clock.
    pub now_ms: i64,
    /// In the order of Popular.
    games: Vec<Placed>,
    places: HashMap<String, usize>,
    pub(super) orders: Arc<Orders>,
    pages: Mutex<HashMap<PageKey, Arc<Tagged>>>,
}

/// What a page shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PageKey {
    /// In which order.
    pub order: Order,
    /// Text to find, in lower case; empty for all.
    pub search: String,
    /// Tag to have; empty for all.
    pub tag: String,
    /// Key of the creator's name; empty for all.
    pub creator: String,
    /// From 1.
    pub page: u32,
    /// Games on a page.
    pub per_page: u32,
}

/// Orders of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// By the formula.
    #[default]
    Popular,
    /// The newest first.
    New,
    /// Only those that moderators chose, the last chosen first.
    Featured,
}

impl Orders {
    fn of(games: &[Placed]) -> Self {
        let mut cards: Vec<&Card> = games.iter().map(|game| &*game.card).collect();
        cards.sort_by(|a, b| {
            let age = b.created_at.cmp(&a.created_at);
            age.then_with(|| a.summary.id.cmp(&b.summary.id))
        });
        let newest = cards.iter().map(|card| card.summary.id.clone()).collect();
        // Stable: among those chosen at the same time the newest comes first.
        cards.retain(|card| card.featured_at.is_some());
        cards.sort_by_key(|card| std::cmp::Reverse(card.featured_at));
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for game in games {
            for tag in &game.card.summary.tags {
                *counts.entry(tag).or_default() += 1;
            }
        }
        let counts = counts.into_iter();
        let mut tags: Vec<TagCount> = counts
            .map(|(tag, games)| TagCount {
                tag: tag.to_owned(),
                games,
            })
            .collect();
        tags.sort_by_key(|count| std::cmp::Reverse(count.games));
        tags.truncate(TAGS_MAX);
        Self {
            newest,
            featured: cards.iter().map(|card| card.summary.id.clone()).collect(),
            tags: Arc::new(tags),
        }
    }
}

impl View {
    /// Puts games in order. `orders` are those of the view before, if no game
    /// has changed since. With many games this takes a while.
    pub(super) fn of(mut games: Vec<Placed>, orders: Option<Arc<Orders>>, now_ms: i64) -> Self {
        games.sort_by(|a, b| {
            let score = b.score.total_cmp(&a.score);
            score
                .then_with(|| b.card.created_at.cmp(&a.card.created_at))
                .then_with(|| a.card.summary.id.cmp(&b.card.summary.id))
        });
        let places = games.iter().enumerate();
        let places = places
            .map(|(place, game)| (game.card.summary.id.clone(), place))
            .collect();
        let orders = orders.unwrap_or_else(|| Arc::new(Orders::of(&games)));
        Self {
            made_at: Instant::now(),
            now_ms,
            games,
            places,
            orders,
            pages: Mutex::default(),
        }
    }

    /// Games that are listed.
    pub fn listed(&self) -> u32 {
        u32::try_from(self.games.len()).unwrap_or(u32::MAX)
    }

    /// The place of a game in Popular, from 1, and what was counted of it.
    pub fn place(&self, game_id: &str) -> Option<(u32, Counted)> {
        let place = *self.places.get(game_id)?;
        let game = self.games.get(place)?;
        Some((u32::try_from(place + 1).ok()?, game.counted))
    }

    /// Tags, the most used first.
    pub fn tags(&self) -> &[TagCount] {
        &self.orders.tags
    }

    /// The page that `key` names, made by `make` from what is on it and how
    /// many games there are on all pages, unless it was made before.
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
        let skip = (key.page.saturating_sub(1) as usize).saturating_mul(key.per_page as usize);
        let mut total = 0_usize;
        let mut shown = Vec::new();
        let mut take = |game: &Placed| {
            if !key.wants(&game.card) {
                return;
            }
            if total >= skip && shown.len() < key.per_page as usize {
                shown.push(game.summary());
            }
            total += 1;
        };
        let by_id = |ids: &[String], take: &mut dyn FnMut(&Placed)| {
            let places = ids.iter().filter_map(|id| self.places.get(id));
            places
                .filter_map(|place| self.games.get(*place))
                .for_each(take);
        };
        match key.order {
            Order::Popular => self.games.iter().for_each(take),
            Order::New => by_id(&self.orders.newest, &mut take),
            Order::Featured => by_id(&self.orders.featured, &mut take),
        }
        (shown, u32::try_from(total).unwrap_or(u32::MAX))
    }

    fn pages(&self) -> MutexGuard<'_, HashMap<PageKey, Arc<Tagged>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Placed {
    fn summary(&self) -> GameSummary {
        GameSummary {
            players_now: self.counted.players,
            plays: self.plays,
            likes: self.likes,
            ..self.card.summary.clone()
        }
    }
}

impl PageKey {
    fn wants(&self, card: &Card) -> bool {
        (self.creator.is_empty() || card.creator_key == self.creator)
            && (self.tag.is_empty() || card.summary.tags.contains(&self.tag))
            && (self.search.is_empty() || card.haystack.contains(&self.search))
    }
}
