//! [`Platform`]: the state that every handler shares, and how it is opened.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use frolic_protocol::signature::ManifestSigner;
use sqlx::AnyPool;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::accounts::Attempts;
use crate::accounts::identity::Identity;
use crate::accounts::links::SignInLinks;
use crate::accounts::passwords::Hasher;
use crate::address;
use crate::api::PublishResponse;
use crate::blobs::{BlobPlace, BlobStore};
use crate::clock::Clock;
use crate::console::Consoles;
use crate::datastore::turns::Turns;
use crate::db::{self, OpenDatabaseError};
use crate::derived::Derived;
use crate::error::ApiError;
use crate::fleet::{Fleet, Launcher};
use crate::health::WriteHealth;
use crate::join::PendingJoins;
use crate::limits::RateLimiter;
use crate::metrics::Metrics;
use crate::moderation::Expulsions;
use crate::publish::{self, PublishError, ScriptChecker, Wishes};
use crate::rooms::Newcomers;
use crate::settings::Settings;
use crate::signing;
use crate::site::{Site, SiteFiles};
use crate::socketio::Sockets;
use crate::spells::SpellCompiler;
use crate::store::catalogue::Catalogue;
use crate::store::recorder::Recorder;
use crate::store::{self, Uploads};
use crate::tls::{Certificate, TlsError};
use crate::world_log::Committer;

/// Who the sample games are by.
const HOUSE_CREATOR: &str = "Frolic";
/// Packages that are unpacked and checked at once.
const UPLOADS_AT_ONCE: usize = 2;

/// The control plane. Cheap to clone.
#[derive(Clone)]
pub struct Platform(Arc<Inner>);

struct Inner {
    settings: Settings,
    clock: Clock,
    db: AnyPool,
    blobs: BlobStore,
    /// Compiled client scripts, which everybody may have.
    script_blobs: BlobStore,
    signer: ManifestSigner,
    fleet: Fleet,
    site: Site,
    /// Packed and small copies of blobs.
    derived: Derived,
    metrics: Metrics,
    consoles: Consoles,
    store_turns: Turns,
    catalogue: Catalogue,
    recorder: Recorder,
    uploads: Uploads,
    committer: Committer,
    write_health: Arc<WriteHealth>,
    waits: PendingJoins,
    rates: RateLimiter,
    /// Counts proxied sockets, so that opening them uses up nobody's joins.
    socket_rates: RateLimiter,
    newcomers: Newcomers,
    attempts: Attempts,
    sign_in_links: SignInLinks,
    passwords: Hasher,
    identity: Option<Identity>,
    expulsions: Expulsions,
    certificate: Option<Certificate>,
    port: u16,
    house_id: String,
    default_game: Mutex<Option<String>>,
    game_turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    upload_turns: Arc<Semaphore>,
    sockets: Arc<Semaphore>,
    socketio: Sockets,
    spell_compiler: Arc<dyn SpellCompiler>,
    spell_jobs: Notify,
    script_checker: Arc<dyn ScriptChecker>,
}

/// What a platform is given by whoever runs it.
pub struct Parts {
    /// Starts game servers.
    pub launcher: Box<dyn Launcher>,
    /// Compiles the spells that players make, and has them written.
    pub spell_compiler: Arc<dyn SpellCompiler>,
    /// Checks the scripts of packages that are published.
    pub script_checker: Arc<dyn ScriptChecker>,
    /// The site's files.
    pub site: Box<dyn SiteFiles>,
    /// The time of day.
    pub clock: Clock,
    /// Where the platform listens, once that is known.
    pub listens_on: SocketAddr,
}

/// Why a platform could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder cannot be used.
    #[error("could not use the data folder {}: {source}", folder.display())]
    DataFolder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The blobs cannot be used.
    #[error("could not use {place} for blobs: {source}")]
    Blobs {
        /// Folder or bucket.
        place: String,
        /// What the system or the server says.
        source: std::io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] OpenDatabaseError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The keys of the issuer of identities cannot be asked for.
    #[error("no HTTPS client for the keys of the identity issuer: {0}")]
    Identity(#[from] reqwest::Error),
    /// The database refused a first query.
    #[error("the database refused a query: {0}")]
    Query(#[from] sqlx::Error),
}

impl OpenError {
    fn folder(folder: &Path, source: std::io::Error) -> Self {
        OpenError::DataFolder {
            folder: folder.to_owned(),
            source,
        }
    }
}

async fn open_blobs(place: BlobPlace) -> Result<BlobStore, OpenError> {
    let name = place.to_string();
    let opened = BlobStore::open(place).await;
    opened.map_err(|source| OpenError::Blobs {
        place: name,
        source,
    })
}

impl Platform {
    /// Opens data and database, bringing the schema up to date.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(settings: Settings, parts: Parts) -> Result<Self, OpenError> {
        crate::tls::use_ring();
        let certificate = settings.tls.clone().map(Certificate::open).transpose()?;
        let data_dir = &settings.data_dir;
        let place = settings
            .blobs
            .clone()
            .unwrap_or_else(|| BlobPlace::Folder(data_dir.join("blobs")));
        tokio::fs::create_dir_all(data_dir)
            .await
            .map_err(|source| OpenError::folder(data_dir, source))?;
        let blobs = open_blobs(place.clone()).await?;
        let script_blobs = open_blobs(place.join("scripts")).await?;
        let signer =
            signing::open(data_dir).map_err(|source| OpenError::folder(data_dir, source))?;
        let url = settings
            .database_url
            .clone()
            .unwrap_or_else(|| db::default_url(&settings.data_dir));
        let db = db::open(&url).await?;
        let house_id =
            publish::ensure_house_account(&db, HOUSE_CREATOR, parts.clock.now_ms()).await?;
        // Whoever was in a world when the last run ended is not any more.
        sqlx::query("UPDATE worlds SET player_count = 0 WHERE player_count <> 0")
            .execute(&db)
            .await?;
        let port = parts.listens_on.port();
        let internal = SocketAddr::new(address::local_ip(parts.listens_on.ip()), port);
        let fleet = Fleet::new(
            parts.launcher,
            settings.fleet.clone(),
            format!("http://{internal}"),
            parts.listens_on.ip(),
            settings.secret_key.clone(),
            (db.clone(), parts.clock.clone()),
        );
        fleet.adopt_survivors().await?;
        let identity = settings.identity.clone().map(Identity::new).transpose()?;
        let write_health = Arc::<WriteHealth>::default();
        Ok(Self(Arc::new(Inner {
            rates: RateLimiter::new(&settings.limits),
            socket_rates: RateLimiter::new(&settings.limits),
            newcomers: Newcomers::new(settings.limits.proxied_newcomers_max),
            attempts: Attempts::new(&settings.limits),
            sign_in_links: SignInLinks::default(),
            passwords: Hasher::default(),
            identity,
            expulsions: Expulsions::default(),
            sockets: Arc::new(Semaphore::new(settings.limits.proxied_sockets_max)),
            upload_turns: Arc::new(Semaphore::new(UPLOADS_AT_ONCE)),
            default_game: Mutex::new(settings.default_game.clone()),
            game_turns: Mutex::default(),
            site: Site::new(parts.site),
            derived: Derived::default(),
            metrics: Metrics::default(),
            socketio: Sockets::default(),
            spell_compiler: parts.spell_compiler,
            spell_jobs: Notify::new(),
            script_checker: parts.script_checker,
            consoles: Consoles::default(),
            store_turns: Turns::default(),
            catalogue: Catalogue::default(),
            recorder: Recorder::default(),
            uploads: Uploads::default(),
            committer: Committer::start(db.clone(), write_health.clone()),
            write_health,
            waits: PendingJoins::default(),
            clock: parts.clock,
            settings,
            db,
            blobs,
            script_blobs,
            signer,
            fleet,
            certificate,
            port,
            house_id,
        })))
    }

    /// Publishes a sample game, unless this very package is there already. The
    /// first one becomes the default game where none is set.
    ///
    /// # Errors
    /// [`PublishError`].
    pub async fn publish_sample(&self, archive: Bytes) -> Result<PublishResponse, PublishError> {
        let published =
            publish::publish_package(self, archive, &self.0.house_id, Wishes::default()).await?;
        self.set_first_game(&published.game_id);
        Ok(published)
    }

    /// The game that a join without any id opens, unless one was chosen.
    pub(crate) fn set_first_game(&self, game_id: &str) {
        let mut default_game = self
            .0
            .default_game
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        default_game.get_or_insert_with(|| game_id.to_owned());
    }

    /// The platform's own creator.
    pub(crate) fn house_id(&self) -> &str {
        &self.0.house_id
    }

    pub(crate) fn sign_in_links(&self) -> &SignInLinks {
        &self.0.sign_in_links
    }

    /// The fleet of game servers.
    pub fn fleet(&self) -> &Fleet {
        &self.0.fleet
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn db(&self) -> &AnyPool {
        &self.0.db
    }

    pub(crate) fn blobs(&self) -> &BlobStore {
        &self.0.blobs
    }

    pub(crate) fn script_blobs(&self) -> &BlobStore {
        &self.0.script_blobs
    }

    pub(crate) fn signer(&self) -> &ManifestSigner {
        &self.0.signer
    }

    pub(crate) fn derived(&self) -> &Derived {
        &self.0.derived
    }

    pub(crate) fn site(&self) -> &Site {
        &self.0.site
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn consoles(&self) -> &Consoles {
        &self.0.consoles
    }

    pub(crate) fn store_turns(&self) -> &Turns {
        &self.0.store_turns
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    pub(crate) fn uploads(&self) -> &Uploads {
        &self.0.uploads
    }

    /// Notes how many play each game at this moment, for the dashboards of
    /// creators; a platform that serves does so every minute by itself.
    pub fn sample_players(&self) {
        store::recorder::sample(self);
    }

    pub(crate) fn committer(&self) -> &Committer {
        &self.0.committer
    }

    /// Whether the database stores what it is given.
    pub(crate) fn write_health(&self) -> &WriteHealth {
        &self.0.write_health
    }

    pub(crate) fn waits(&self) -> &PendingJoins {
        &self.0.waits
    }

    pub(crate) fn rates(&self) -> &RateLimiter {
        &self.0.rates
    }

    pub(crate) fn socket_rates(&self) -> &RateLimiter {
        &self.0.socket_rates
    }

    pub(crate) fn newcomers(&self) -> &Newcomers {
        &self.0.newcomers
    }

    /// What is told to Socket.IO clients.
    pub(crate) fn sockets(&self) -> &Sockets {
        &self.0.socketio
    }

    pub(crate) fn spell_compiler(&self) -> &Arc<dyn SpellCompiler> {
        &self.0.spell_compiler
    }

    pub(crate) fn script_checker(&self) -> &Arc<dyn ScriptChecker> {
        &self.0.script_checker
    }

    /// Wakes whoever builds spells.
    pub(crate) fn spell_jobs(&self) -> &Notify {
        &self.0.spell_jobs
    }

    pub(crate) fn attempts(&self) -> &Attempts {
        &self.0.attempts
    }

    pub(crate) fn passwords(&self) -> &Hasher {
        &self.0.passwords
    }

    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.0.identity.as_ref()
    }

    pub(crate) fn expulsions(&self) -> &Expulsions {
        &self.0.expulsions
    }

    /// What TLS is spoken with, where the platform speaks it itself.
    pub(crate) fn certificate(&self) -> Option<&Certificate> {
        self.0.certificate.as_ref()
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port
    }

    pub(crate) fn default_game(&self) -> Option<String> {
        self.0
            .default_game
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The lock under which worlds of one game are opened. Games exist before
    /// they get one, so there are never more locks than games.
    pub(crate) fn game_turn(&self, game_id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self
            .0
            .game_turns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        turns.entry(game_id.to_owned()).or_default().clone()
    }

    pub(crate) async fn upload_turn(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.0
            .upload_turns
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| ApiError::unavailable("shutting_down", "the platform is shutting down", 5))
    }

    pub(crate) fn socket_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.0.sockets.clone().try_acquire_owned().ok()
    }
}
