//! The public games, cached in memory: listings are requested far more often than
//! games change, so they are answered without the database.
//!
//! All rows are read once. After that, a change of a game replaces its row, and plays
//! and likes are counted in memory. Changes by other programs are found by a
//! background pass over all rows in small steps ([`sweep`]). A [`View`] is built from
//! the rows: the sort orders, and rendered pages. A view lives for about a second. A
//! large catalog is sorted on another thread; requests get the previous view in the
//! meantime.

mod search;
mod sweep;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};

use self::search::Searchable;
use self::sweep::Sweep;
use self::view::{FixedOrders, GameCard, RankedGame};
pub use self::view::{Order, PageKey, View};
use super::assets::Grants;
use super::games::{SUMMARY_COLUMNS, summary};
use super::ranking::{self, RankingInputs};
use crate::catalog::Catalog;
use crate::core::error::ApiError;
use crate::core::names;

/// Maximum number of listed games. With more games, the most recently played are
/// listed.
const GAMES_MAX: u32 = 50_000;
/// Views expire because players come and go and the weight of plays decays.
const VIEW_LIFE: Duration = Duration::from_secs(1);
/// A catalog of up to this size is sorted at once after each change; a larger one in
/// the background, at most once per `LARGE_CATALOG_PAUSE`.
const SMALL_CATALOG_GAMES: usize = 1_000;
const LARGE_CATALOG_PAUSE: Duration = Duration::from_millis(250);
/// Rows to read before yielding to other tasks.
const ROWS_AT_ONCE: usize = 32;

/// The public games.
#[derive(Default)]
pub struct CatalogCache {
    inner: Mutex<Inner>,
    /// Held while all rows are read, until they are stored.
    loading: tokio::sync::Mutex<()>,
    /// Held during a sweep step and while the next view is built, so that at most one
    /// of each runs.
    sweeping: Arc<tokio::sync::Mutex<()>>,
    ordering: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Inner {
    /// Games by id.
    games: BTreeMap<String, GameEntry>,
    /// State of the sweep; `None` until the games were read.
    sweep: Option<Sweep>,
    fixed: Option<Arc<FixedOrders>>,
    view: Option<Arc<View>>,
    /// Whether counts changed since the view was built.
    stale: bool,
    /// Incremented when games change.
    version: u64,
}

/// The input of a view.
struct ViewInput {
    version: u64,
    fixed: Arc<FixedOrders>,
    games: Vec<RankedGame>,
    before: Option<Arc<View>>,
    now_ms: i64,
}

struct GameEntry {
    card: Arc<GameCard>,
    plays: u32,
    likes: u32,
    play_heat: f64,
    like_heat: f64,
    /// The last sweep round that saw this row.
    round: u32,
}

impl CatalogCache {
    /// The current view.
    ///
    /// # Errors
    /// When the rows were never read and the database fails.
    pub async fn view(&self, catalog: &Arc<Catalog>) -> Result<Arc<View>, ApiError> {
        let now_ms = catalog.core.clock.now_ms();
        let due = self
            .inner()
            .sweep
            .as_ref()
            .map(|sweep| sweep.is_due(now_ms));
        match due {
            None => {
                let _turn = self.loading.lock().await;
                if self.inner().sweep.is_none() {
                    self.load(catalog).await?;
                }
            }
            Some(true) => self.sweep_in_background(catalog),
            Some(false) => {}
        }
        Ok(self.current(catalog))
    }

    async fn load(&self, catalog: &Catalog) -> Result<(), ApiError> {
        // Write the counts that are only in memory, or reading the rows would lose
        // them.
        catalog.recorder.flush(&catalog.core.db).await?;
        let query = select("ORDER BY g.play_heat DESC, g.created_at DESC LIMIT $1");
        let mut rows = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(i64::from(GAMES_MAX))
            .fetch(&catalog.core.db);
        let mut games = BTreeMap::new();
        while let Some(row) = rows.try_next().await? {
            let entry = GameEntry::read(&row, 0)?;
            games.insert(entry.card.summary.id.clone(), entry);
            if games.len().is_multiple_of(ROWS_AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
        let mut inner = self.inner();
        inner.games = games;
        inner.sweep = Some(Sweep::new(catalog.core.clock.now_ms()));
        inner.games_changed();
        Ok(())
    }

    /// Reads one game again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn refresh(&self, db: &AnyPool, game_id: &str) -> Result<(), sqlx::Error> {
        let _turn = self.loading.lock().await;
        let Some(round) = self.inner().sweep.as_ref().map(Sweep::round) else {
            return Ok(());
        };
        let row = sqlx::query(sqlx::AssertSqlSafe(select("AND g.game_id = $1")))
            .bind(game_id)
            .fetch_optional(db)
            .await?;
        let entry = row.map(|row| GameEntry::read(&row, round)).transpose()?;
        let mut inner = self.inner();
        match entry {
            Some(entry) => {
                inner.put(entry);
            }
            None => {
                inner.games.remove(game_id);
            }
        }
        // The client that changed the game must see the change at once.
        inner.view = None;
        inner.games_changed();
        Ok(())
    }

    /// Drops all rows, so that the next listing reads them again: many games changed.
    pub fn invalidate(&self) {
        let mut inner = self.inner();
        *inner = Inner {
            version: inner.version + 1,
            ..Inner::default()
        };
    }

    /// Counts a play.
    pub fn count_play(&self, game_id: &str, at_ms: i64) {
        self.count(game_id, |entry| {
            entry.plays = entry.plays.saturating_add(1);
            entry.play_heat += ranking::play_heat(at_ms);
        });
    }

    /// Sets a game's like count and weight.
    pub fn set_likes(&self, game_id: &str, likes: u32, heat: f64) {
        self.count(game_id, |entry| {
            entry.likes = likes;
            entry.like_heat += heat;
        });
    }

    /// Marks the view stale: player counts changed.
    pub fn players_changed(&self) {
        self.inner().stale = true;
    }

    fn count(&self, game_id: &str, change: impl FnOnce(&mut GameEntry)) {
        let mut inner = self.inner();
        if let Some(entry) = inner.games.get_mut(game_id) {
            change(entry);
            inner.stale = true;
        }
    }

    fn current(&self, catalog: &Arc<Catalog>) -> Arc<View> {
        let mut inner = self.inner();
        if let Some(view) = &inner.view {
            let age = view.made_at.elapsed();
            let passed = catalog.core.clock.now_ms().abs_diff(view.now_ms);
            let age = age.max(Duration::from_millis(passed));
            let small = inner.games.len() <= SMALL_CATALOG_GAMES;
            let too_old =
                age >= VIEW_LIFE || (inner.stale && (small || age >= LARGE_CATALOG_PAUSE));
            if !too_old {
                return view.clone();
            }
            if !small {
                let view = view.clone();
                drop(inner);
                self.rebuild_in_background(catalog);
                return view;
            }
        }
        let view = Arc::new(inner.view_input(catalog).into_view());
        inner.view = Some(view.clone());
        view
    }

    /// Builds the next view in the background while the old one is served.
    fn rebuild_in_background(&self, catalog: &Arc<Catalog>) {
        let Ok(doing) = self.ordering.clone().try_lock_owned() else {
            return;
        };
        let catalog = catalog.clone();
        tokio::task::spawn_blocking(move || {
            let cache = &catalog.cache;
            let _doing = doing;
            let input = cache.inner().view_input(&catalog);
            let version = input.version;
            let view = Arc::new(input.into_view());
            let mut inner = cache.inner();
            // A game that changed in the meantime must be shown in its new state.
            if inner.version == version {
                inner.view = Some(view);
            }
        });
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every critical section leaves the rows consistent, even if it panics.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Stores a row that was read; returns whether a listing shows it differently.
    fn put(&mut self, mut entry: GameEntry) -> bool {
        let Some(known) = self.games.get_mut(&entry.card.summary.id) else {
            self.games.insert(entry.card.summary.id.clone(), entry);
            return true;
        };
        // Plays only grow, and the database may lack plays that are not written yet.
        entry.plays = entry.plays.max(known.plays);
        entry.play_heat = entry.play_heat.max(known.play_heat);
        let changed = *entry.card != *known.card;
        *known = entry;
        changed
    }

    /// Notes that the set of games or their texts changed.
    fn games_changed(&mut self) {
        self.fixed = None;
        self.stale = true;
        self.version += 1;
    }

    fn view_input(&mut self, catalog: &Catalog) -> ViewInput {
        let mut players: HashMap<String, u32> = HashMap::new();
        for server in catalog.fleet.all() {
            let sum = players.entry(server.spec.game_id.clone()).or_default();
            *sum = sum.saturating_add(server.players());
        }
        let place = |(id, entry): (&String, &GameEntry)| RankedGame {
            plays: entry.plays,
            likes: entry.likes,
            counted: RankingInputs {
                players: players.get(id).copied().unwrap_or(0),
                play_heat: entry.play_heat,
                like_heat: entry.like_heat,
            },
        };
        let games = self.games.iter().map(place).collect();
        let fixed = self.fixed.get_or_insert_with(|| {
            let cards = self.games.values().map(|entry| entry.card.clone());
            Arc::new(FixedOrders::of(cards.collect()))
        });
        // Counts from here on belong to the next view.
        self.stale = false;
        ViewInput {
            version: self.version,
            fixed: fixed.clone(),
            games,
            before: self.view.clone(),
            now_ms: catalog.core.clock.now_ms(),
        }
    }
}

impl ViewInput {
    fn into_view(self) -> View {
        View::of(self.fixed, self.games, self.before.as_deref(), self.now_ms)
    }
}

/// The query for public games, restricted by the SQL condition `which`.
fn select(which: &str) -> String {
    format!(
        "SELECT {SUMMARY_COLUMNS}, g.created_at, g.featured, g.featured_at, g.play_heat, g.like_heat
         FROM games g JOIN users u ON u.user_id = g.creator_id
         WHERE g.visibility = 'public' {which}"
    )
}

impl GameEntry {
    fn read(row: &AnyRow, round: u32) -> Result<Self, sqlx::Error> {
        // Only public games are listed, so no grants are needed.
        let mut summary = summary(row, 0, &Grants::none())?;
        // Counts are stored beside the card, so that the card stays unchanged.
        let (plays, likes) = (take(&mut summary.plays), take(&mut summary.likes));
        let featured = row.try_get::<i64, _>("featured")? != 0;
        let featured_at: i64 = row.try_get("featured_at")?;
        Ok(Self {
            plays,
            likes,
            play_heat: row.try_get("play_heat")?,
            like_heat: row.try_get("like_heat")?,
            round,
            card: Arc::new(GameCard {
                creator_key: names::key(&summary.creator),
                searchable: Searchable::of(&summary),
                created_at: row.try_get("created_at")?,
                featured_at: featured.then_some(featured_at),
                summary,
            }),
        })
    }
}
