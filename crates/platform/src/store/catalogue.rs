//! What is public, in memory: listings are asked for far more often than games
//! change, so they are answered without the database.
//!
//! The rows are read once and again every few seconds; a change of a game
//! replaces its row at once, and a play or a like counts at once. From the
//! rows a [`View`] is made: the orders, and the pages that were asked for,
//! ready to be sent. A view lives for about a second. Many games are read in
//! small steps and put in order on another thread; who asks meanwhile gets the
//! old view.

mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row};

use self::view::{Card, Orders, Placed};
pub use self::view::{Order, PageKey, View};
use super::assets::Grants;
use super::games::{SUMMARY_COLUMNS, summary};
use super::ranking::{self, Counted};
use crate::Platform;
use crate::error::ApiError;
use crate::names;

/// Games that are listed; of more, those that were played most lately.
const GAMES_MAX: i64 = 50_000;
/// Rows that others changed without saying so are seen after this.
const RELOAD_AFTER: Duration = Duration::from_secs(10);
/// Players come and go, and plays fade.
const VIEW_LIFE: Duration = Duration::from_secs(1);
/// Few games are put in order at once whenever something happens, many behind
/// the view that is there, and not more often than this.
const FEW_GAMES: usize = 1_000;
const MANY_GAMES_PAUSE: Duration = Duration::from_millis(250);
/// Rows that are read before others have a turn.
const ROWS_AT_ONCE: usize = 32;

/// The public games.
#[derive(Default)]
pub struct Catalogue {
    inner: Mutex<Inner>,
    loading: tokio::sync::Mutex<()>,
    /// Held by whoever reads everything again, and by whoever makes the next
    /// view: one of each is enough.
    reloading: Arc<tokio::sync::Mutex<()>>,
    ordering: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Inner {
    loaded_at: Option<Instant>,
    games: HashMap<String, Entry>,
    orders: Option<Arc<Orders>>,
    view: Option<Arc<View>>,
    /// Whether something was counted that the view does not have.
    stale: bool,
    /// Rises when games change.
    version: u64,
}

/// What a view is made of.
struct Draft {
    version: u64,
    games: Vec<Placed>,
    orders: Option<Arc<Orders>>,
    now_ms: i64,
}

#[derive(Clone)]
struct Entry {
    card: Arc<Card>,
    plays: u32,
    likes: u32,
    play_heat: f64,
    like_heat: f64,
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
        let Ok(doing) = self.reloading.clone().try_lock_owned() else {
            return;
        };
        let platform = platform.clone();
        tokio::spawn(async move {
            let catalogue = platform.catalogue();
            let _doing = doing;
            let _turn = catalogue.loading.lock().await;
            if let Err(error) = catalogue.load(&platform).await {
                tracing::warn!(%error, "could not read the games again");
                // Not at once again: the old ones will do for a while.
                catalogue.inner().loaded_at = Some(Instant::now());
            }
        });
    }

    async fn load(&self, platform: &Platform) -> Result<(), ApiError> {
        // What is counted in memory only would be forgotten.
        platform.recorder().flush(platform.db()).await?;
        let query = format!(
            "SELECT {SUMMARY_COLUMNS}, {COLUMNS} FROM games g JOIN users u ON u.user_id = g.creator_id
             WHERE g.visibility = 'public' ORDER BY g.play_heat DESC, g.created_at DESC LIMIT $1"
        );
        let mut rows = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(GAMES_MAX)
            .fetch(platform.db());
        let mut games = HashMap::new();
        while let Some(row) = rows.try_next().await? {
            let entry = Entry::read(&row)?;
            games.insert(entry.card.summary.id.clone(), entry);
            if games.len().is_multiple_of(ROWS_AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
        let before = self.replace(games);
        // Many small pieces of memory.
        tokio::task::spawn_blocking(move || drop(before));
        Ok(())
    }

    fn replace(&self, mut games: HashMap<String, Entry>) -> HashMap<String, Entry> {
        let mut inner = self.inner();
        for (id, entry) in &mut games {
            entry.keep_newer_plays(inner.games.get(id));
        }
        inner.loaded_at = Some(Instant::now());
        inner.orders = None;
        inner.stale = true;
        inner.version += 1;
        std::mem::replace(&mut inner.games, games)
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
        inner.version += 1;
        Ok(())
    }

    /// Reads everything again before the next listing: many games changed.
    pub fn forget(&self) {
        let mut inner = self.inner();
        *inner = Inner {
            version: inner.version + 1,
            ..Inner::default()
        };
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
            if !few {
                let view = view.clone();
                drop(inner);
                self.order_behind(platform);
                return view;
            }
        }
        let view = Arc::new(inner.draft(platform).into_view());
        inner.show(view.clone());
        view
    }

    /// Makes the next view while the old one is still shown.
    fn order_behind(&self, platform: &Platform) {
        let Ok(doing) = self.ordering.clone().try_lock_owned() else {
            return;
        };
        let platform = platform.clone();
        tokio::task::spawn_blocking(move || {
            let catalogue = platform.catalogue();
            let _doing = doing;
            let draft = catalogue.inner().draft(&platform);
            let version = draft.version;
            let view = Arc::new(draft.into_view());
            let mut inner = catalogue.inner();
            // A game that was changed meanwhile must be seen as it is now.
            if inner.version == version {
                inner.show(view);
            }
        });
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every critical section leaves the rows whole, even on a panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn draft(&mut self, platform: &Platform) -> Draft {
        let now_ms = platform.clock().now_ms();
        let mut players: HashMap<String, u32> = HashMap::new();
        for server in platform.fleet().all() {
            let sum = players.entry(server.spec.game_id.clone()).or_default();
            *sum = sum.saturating_add(server.players());
        }
        let place = |entry: &Entry| {
            let players = players.get(&entry.card.summary.id);
            let counted = Counted {
                players: players.copied().unwrap_or(0),
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
        };
        // What is counted from here on is for the next one.
        self.stale = false;
        Draft {
            version: self.version,
            games: self.games.values().map(place).collect(),
            orders: self.orders.clone(),
            now_ms,
        }
    }

    fn show(&mut self, view: Arc<View>) {
        self.orders = Some(view.orders.clone());
        self.view = Some(view);
    }
}

impl Draft {
    fn into_view(self) -> View {
        View::of(self.games, self.orders, self.now_ms)
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

    /// Plays only ever grow, and the database may be behind by those that wait
    /// to be written.
    fn keep_newer_plays(&mut self, known: Option<&Entry>) {
        if let Some(known) = known {
            self.plays = self.plays.max(known.plays);
            self.play_heat = self.play_heat.max(known.play_heat);
        }
    }
}
