//! What is public, in memory: listings are asked for far more often than games
//! change, so they are answered without the database.
//!
//! The rows are read once and again every few seconds; a change of a game
//! replaces its row at once, and a play or a like counts at once. From the
//! rows a [`View`] is made: the orders, and the pages that were asked for,
//! ready to be sent. A view lives for a second at most.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};

use super::Tagged;
use super::assets::Grants;
use super::games::{SUMMARY_COLUMNS, summary};
use super::ranking::{self, Counted};
use crate::Platform;
use crate::api::{GameSummary, TagCount};
use crate::error::ApiError;
use crate::names;

/// Games that are listed; of more, those that were played most lately.
const GAMES_MAX: i64 = 50_000;
/// Rows that others changed without saying so are seen after this.
const RELOAD_AFTER: Duration = Duration::from_secs(10);
/// Players come and go, and plays fade.
const VIEW_LIFE: Duration = Duration::from_secs(1);
/// Few games are put in order at once whenever something happens, many not
/// more often than this.
const FEW_GAMES: usize = 2_000;
const MANY_GAMES_PAUSE: Duration = Duration::from_millis(250);
/// Pages that one view keeps.
const PAGES_MAX: usize = 2_048;
const TAGS_MAX: usize = 100;

/// The public games.
#[derive(Default)]
pub struct Catalogue {
    inner: Mutex<Inner>,
    loading: tokio::sync::Mutex<()>,
    reloading: AtomicBool,
}

#[derive(Default)]
struct Inner {
    loaded_at: Option<Instant>,
    games: HashMap<String, Entry>,
    orders: Option<Arc<Orders>>,
    view: Option<Arc<View>>,
    /// Whether something was counted that the view does not have.
    stale: bool,
}

#[derive(Clone)]
struct Entry {
    card: Arc<Card>,
    plays: u32,
    likes: u32,
    play_heat: f64,
    like_heat: f64,
}

/// What of a game changes only when it is published or edited.
pub struct Card {
    summary: GameSummary,
    creator_key: String,
    /// What a search looks through, in lower case.
    haystack: String,
    created_at: i64,
    featured_at: Option<i64>,
}

/// Orders that change only with the games.
struct Orders {
    newest: Vec<String>,
    featured: Vec<String>,
    tags: Arc<Vec<TagCount>>,
}

/// A game at one moment.
struct Placed {
    card: Arc<Card>,
    plays: u32,
    likes: u32,
    counted: Counted,
    score: f64,
}

/// Everything at one moment.
pub struct View {
    made_at: Instant,
    /// The moment, by the platform's clock.
    pub now_ms: i64,
    /// In the order of Popular.
    games: Vec<Placed>,
    places: HashMap<String, usize>,
    orders: Arc<Orders>,
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

const COLUMNS: &str = "g.created_at, g.featured, g.featured_at, g.play_heat, g.like_heat";

impl Catalogue {
    /// The games as they are now.
    ///
    /// # Errors
    /// When they were never read and the database refuses.
    pub async fn view(&self, platform: &Platform) -> Result<Arc<View>, ApiError> {
        let loaded_at = self.inner().loaded_at;
        match loaded_at {
            None => {
                let _turn = self.loading.lock().await;
                if self.inner().loaded_at.is_none() {
                    self.load(platform).await?;
                }
            }
            Some(at) if at.elapsed() > RELOAD_AFTER => self.reload_behind(platform),
            Some(_) => {}
        }
        Ok(self.current(platform))
    }

    /// Reads everything again while the old is still shown.
    fn reload_behind(&self, platform: &Platform) {
        if self.reloading.swap(true, Ordering::SeqCst) {
            return;
        }
        let platform = platform.clone();
        tokio::spawn(async move {
            let catalogue = platform.catalogue();
            let turn = catalogue.loading.lock().await;
            if let Err(error) = catalogue.load(&platform).await {
                tracing::warn!(%error, "could not read the games again");
                // Not at once again: the old ones will do for a while.
                catalogue.inner().loaded_at = Some(Instant::now());
            }
            drop(turn);
            catalogue.reloading.store(false, Ordering::SeqCst);
        });
    }

    async fn load(&self, platform: &Platform) -> Result<(), ApiError> {
        // What is counted in memory only would be forgotten.
        platform.recorder().flush(platform.db()).await?;
        let query = format!(
            "SELECT {SUMMARY_COLUMNS}, {COLUMNS} FROM games g JOIN users u ON u.user_id = g.creator_id
             WHERE g.visibility = 'public' ORDER BY g.play_heat DESC, g.created_at DESC LIMIT $1"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(GAMES_MAX)
            .fetch_all(platform.db())
            .await?;
        let mut games = HashMap::with_capacity(rows.len());
        for row in &rows {
            let entry = Entry::read(row)?;
            games.insert(entry.card.summary.id.clone(), entry);
        }
        let mut inner = self.inner();
        for (id, entry) in &mut games {
            entry.keep_newer_plays(inner.games.get(id));
        }
        inner.games = games;
        inner.loaded_at = Some(Instant::now());
        inner.orders = None;
        inner.stale = true;
        Ok(())
    }

    /// Reads one game again.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn refresh(&self, db: &AnyPool, game_id: &str) -> Result<(), sqlx::Error> {
        let _turn = self.loading.lock().await;
        if self.inner().loaded_at.is_none() {
            return Ok(());
        }
        let query = format!(
            "SELECT {SUMMARY_COLUMNS}, {COLUMNS} FROM games g JOIN users u ON u.user_id = g.creator_id
             WHERE g.game_id = $1 AND g.visibility = 'public'"
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(game_id)
            .fetch_optional(db)
            .await?;
        let entry = row.as_ref().map(Entry::read).transpose()?;
        let mut inner = self.inner();
        match entry {
            Some(mut entry) => {
                entry.keep_newer_plays(inner.games.get(game_id));
                inner.games.insert(game_id.to_owned(), entry);
            }
            None => {
                inner.games.remove(game_id);
            }
        }
        inner.orders = None;
        inner.view = None;
        Ok(())
    }

    /// Reads everything again before the next listing: many games changed.
    pub fn forget(&self) {
        *self.inner() = Inner::default();
    }

    /// Counts a play.
    pub fn played(&self, game_id: &str, at_ms: i64) {
        self.count(game_id, |entry| {
            entry.plays = entry.plays.saturating_add(1);
            entry.play_heat += ranking::play_heat(at_ms);
        });
    }

    /// Takes over how many like a game.
    pub fn liked(&self, game_id: &str, likes: u32, heat: f64) {
        self.count(game_id, |entry| {
            entry.likes = likes;
            entry.like_heat += heat;
        });
    }

    /// Notes that players came or went.
    pub fn players_changed(&self) {
        self.inner().stale = true;
    }

    fn count(&self, game_id: &str, change: impl FnOnce(&mut Entry)) {
        let mut inner = self.inner();
        if let Some(entry) = inner.games.get_mut(game_id) {
            change(entry);
            inner.stale = true;
        }
    }

    fn current(&self, platform: &Platform) -> Arc<View> {
        let mut inner = self.inner();
        if let Some(view) = &inner.view {
            let age = view.made_at.elapsed();
            let passed = platform.clock().now_ms().abs_diff(view.now_ms);
            let age = age.max(Duration::from_millis(passed));
            let few = inner.games.len() <= FEW_GAMES;
            let too_old = age >= VIEW_LIFE || (inner.stale && (few || age >= MANY_GAMES_PAUSE));
            if !too_old {
                return view.clone();
            }
        }
        let view = Arc::new(inner.make_view(platform));
        inner.view = Some(view.clone());
        inner.stale = false;
        view
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every critical section leaves the rows whole, even on a panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn make_view(&mut self, platform: &Platform) -> View {
        let now_ms = platform.clock().now_ms();
        let mut players: HashMap<String, u32> = HashMap::new();
        for server in platform.fleet().all() {
            let sum = players.entry(server.spec.game_id.clone()).or_default();
            *sum = sum.saturating_add(server.players());
        }
        let mut games: Vec<Placed> = self
            .games
            .values()
            .map(|entry| {
                let id = &entry.card.summary.id;
                let counted = Counted {
                    players: players.get(id).copied().unwrap_or(0),
                    play_heat: entry.play_heat,
                    like_heat: entry.like_heat,
                };
                Placed {
                    card: entry.card.clone(),
                    plays: entry.plays,
                    likes: entry.likes,
                    counted,
                    score: counted.score(now_ms),
                }
            })
            .collect();
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
        let orders = match &self.orders {
            Some(orders) => orders.clone(),
            None => {
                let orders = Arc::new(Orders::of(&self.games));
                self.orders = Some(orders.clone());
                orders
            }
        };
        View {
            made_at: Instant::now(),
            now_ms,
            games,
            places,
            orders,
            pages: Mutex::default(),
        }
    }
}

impl Entry {
    fn read(row: &AnyRow) -> Result<Self, sqlx::Error> {
        // Only public games come here.
        let summary = summary(row, 0, &Grants::none())?;
        let featured = row.try_get::<i64, _>("featured")? != 0;
        let featured_at: i64 = row.try_get("featured_at")?;
        let haystack = format!(
            "{}\n{}\n{}\n{}",
            summary.name,
            summary.creator,
            summary.tags.join("\n"),
            summary.description
        );
        Ok(Self {
            plays: summary.plays,
            likes: summary.likes,
            play_heat: row.try_get("play_heat")?,
            like_heat: row.try_get("like_heat")?,
            card: Arc::new(Card {
                creator_key: names::key(&summary.creator),
                haystack: haystack.to_lowercase(),
                created_at: row.try_get("created_at")?,
                featured_at: featured.then_some(featured_at),
                summary,
            }),
        })
    }
}

impl Entry {
    /// Plays only ever grow, and the database may be behind by those that wait
    /// to be written.
    fn keep_newer_plays(&mut self, known: Option<&Entry>) {
        if let Some(known) = known {
            self.plays = self.plays.max(known.plays);
            self.play_heat = self.play_heat.max(known.play_heat);
        }
    }
}

impl Orders {
    fn of(games: &HashMap<String, Entry>) -> Self {
        let mut cards: Vec<&Card> = games.values().map(|entry| &*entry.card).collect();
        cards.sort_by(|a, b| {
            let age = b.created_at.cmp(&a.created_at);
            age.then_with(|| a.summary.id.cmp(&b.summary.id))
        });
        let newest = cards.iter().map(|card| card.summary.id.clone()).collect();
        // Stable: among those chosen at the same time the newest comes first.
        cards.retain(|card| card.featured_at.is_some());
        cards.sort_by_key(|card| std::cmp::Reverse(card.featured_at));
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for entry in games.values() {
            for tag in &entry.card.summary.tags {
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
    pub(super) fn page(
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
