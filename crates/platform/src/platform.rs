//! [`Platform`]: the state that all handlers share, and how it is created.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use frolic_protocol::signature::ManifestSigner;
use sqlx::AnyPool;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::api::PublishResponse;
use crate::catalog::cache::CatalogCache;
use crate::catalog::derived::DerivedBlobs;
use crate::catalog::publish::{self, PublishError, PublishOptions, ScriptChecker};
use crate::catalog::recorder::Recorder;
use crate::catalog::{self, Uploads};
use crate::community::accounts::Attempts;
use crate::community::accounts::identity::Identity;
use crate::community::accounts::links::SignInLinks;
use crate::community::accounts::passwords::Hasher;
use crate::community::expulsions::Expulsions;
use crate::core::blobs::{BlobLocation, BlobStore};
use crate::core::clock::Clock;
use crate::core::db::{self, OpenDatabaseError};
use crate::core::error::ApiError;
use crate::core::limits::RateLimiter;
use crate::core::metrics::Metrics;
use crate::core::settings::Settings;
use crate::core::signing;
use crate::core::tls::{Certificate, TlsError};
use crate::fleet::address;
use crate::fleet::{Fleet, Launcher};
use crate::health::WriteHealth;
use crate::site::{Site, SiteFiles};
use crate::socketio::Sockets;
use crate::spells::SpellCompiler;
use crate::worlds::console::Consoles;
use crate::worlds::datastore::reservations::Reservations;
use crate::worlds::join::PendingJoins;
use crate::worlds::log::Committer;
use crate::worlds::rooms::Newcomers;

/// Name of the creator of the sample games.
const HOUSE_CREATOR: &str = "Frolic";
/// Packages that are unpacked and checked at the same time.
const CONCURRENT_UPLOADS_MAX: usize = 2;

/// The control plane. Cheap to clone.
#[derive(Clone)]
pub struct Platform(Arc<Inner>);

struct Inner {
    settings: Settings,
    clock: Clock,
    db: AnyPool,
    blobs: BlobStore,
    /// Compiled client scripts, which are public.
    script_blobs: BlobStore,
    signer: ManifestSigner,
    fleet: Fleet,
    site: Site,
    /// Compressed and scaled-down copies of blobs.
    derived: DerivedBlobs,
    metrics: Metrics,
    consoles: Consoles,
    store_reservations: Reservations,
    catalog_cache: CatalogCache,
    recorder: Recorder,
    uploads: Uploads,
    committer: Committer,
    write_health: Arc<WriteHealth>,
    pending_joins: PendingJoins,
    rates: RateLimiter,
    /// Limits proxied sockets separately, so that they do not count as joins.
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
    game_locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    upload_permits: Arc<Semaphore>,
    sockets: Arc<Semaphore>,
    socketio: Sockets,
    spell_compiler: Arc<dyn SpellCompiler>,
    spell_jobs: Notify,
    script_checker: Arc<dyn ScriptChecker>,
}

/// What the binary that runs a platform provides.
pub struct Parts {
    /// Starts game servers.
    pub launcher: Box<dyn Launcher>,
    /// Compiles the spells that players create, and generates their code.
    pub spell_compiler: Arc<dyn SpellCompiler>,
    /// Checks the scripts of published packages.
    pub script_checker: Arc<dyn ScriptChecker>,
    /// Files of the web site.
    pub site: Box<dyn SiteFiles>,
    /// Source of the wall-clock time.
    pub clock: Clock,
    /// Address and port that the platform listens on.
    pub listens_on: SocketAddr,
}

/// Reason why a platform could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder cannot be used.
    #[error("could not use the data folder {}: {source}", folder.display())]
    DataFolder {
        /// The folder.
        folder: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The blobs cannot be used.
    #[error("could not use {place} for blobs: {source}")]
    Blobs {
        /// Folder or bucket.
        place: String,
        /// Error of the system or the server.
        source: std::io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] OpenDatabaseError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No HTTP client could be created for the keys of the identity issuer.
    #[error("could not create an HTTPS client for the identity provider's keys: {0}")]
    Identity(#[from] reqwest::Error),
    /// The database refused one of the first queries.
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

async fn open_blobs(place: BlobLocation) -> Result<BlobStore, OpenError> {
    let name = place.to_string();
    let opened = BlobStore::open(place).await;
    opened.map_err(|source| OpenError::Blobs {
        place: name,
        source,
    })
}

impl Platform {
    /// Opens the data folder and the database, and migrates the schema.
    ///
    /// # Errors
    /// [`OpenError`] when the data, the database or the certificate cannot be used.
    pub async fn open(settings: Settings, parts: Parts) -> Result<Self, OpenError> {
        crate::core::tls::use_ring();
        let certificate = settings.tls.clone().map(Certificate::open).transpose()?;
        let data_dir = &settings.data_dir;
        let place = settings
            .blobs
            .clone()
            .unwrap_or_else(|| BlobLocation::Folder(data_dir.join("blobs")));
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
            publish::ensure_builtin_account(&db, HOUSE_CREATOR, parts.clock.now_ms()).await?;
        // Player counts of the last run are no longer valid.
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
        fleet.adopt_running_servers().await?;
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
            upload_permits: Arc::new(Semaphore::new(CONCURRENT_UPLOADS_MAX)),
            default_game: Mutex::new(settings.default_game.clone()),
            game_locks: Mutex::default(),
            site: Site::new(parts.site),
            derived: DerivedBlobs::default(),
            metrics: Metrics::default(),
            socketio: Sockets::default(),
            spell_compiler: parts.spell_compiler,
            spell_jobs: Notify::new(),
            script_checker: parts.script_checker,
            consoles: Consoles::default(),
            store_reservations: Reservations::default(),
            catalog_cache: CatalogCache::default(),
            recorder: Recorder::default(),
            uploads: Uploads::default(),
            committer: Committer::start(db.clone(), write_health.clone()),
            write_health,
            pending_joins: PendingJoins::default(),
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

    /// Publishes a sample game, unless the same package is already published. The first one becomes
    /// the default game if none is set.
    ///
    /// # Errors
    /// [`PublishError`] when the package is invalid or cannot be stored.
    pub async fn publish_sample(&self, archive: Bytes) -> Result<PublishResponse, PublishError> {
        let published =
            publish::publish_package(self, archive, &self.0.house_id, PublishOptions::default())
                .await?;
        self.set_first_game(&published.game_id);
        Ok(published)
    }

    /// Sets the game that a join without a target opens, unless one is set.
    pub(crate) fn set_first_game(&self, game_id: &str) {
        let mut default_game = self
            .0
            .default_game
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        default_game.get_or_insert_with(|| game_id.to_owned());
    }

    /// User id of the creator of the sample games.
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

    pub(crate) fn derived(&self) -> &DerivedBlobs {
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

    pub(crate) fn store_reservations(&self) -> &Reservations {
        &self.0.store_reservations
    }

    pub(crate) fn catalog_cache(&self) -> &CatalogCache {
        &self.0.catalog_cache
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    pub(crate) fn uploads(&self) -> &Uploads {
        &self.0.uploads
    }

    /// Records the current number of players of each game for the dashboards of creators. A
    /// platform that serves requests does so every minute by itself.
    pub fn sample_players(&self) {
        catalog::recorder::sample_players(self);
    }

    pub(crate) fn committer(&self) -> &Committer {
        &self.0.committer
    }

    /// Whether the database stores writes.
    pub(crate) fn write_health(&self) -> &WriteHealth {
        &self.0.write_health
    }

    pub(crate) fn pending_joins(&self) -> &PendingJoins {
        &self.0.pending_joins
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

    /// Connections of Socket.IO clients.
    pub(crate) fn sockets(&self) -> &Sockets {
        &self.0.socketio
    }

    pub(crate) fn spell_compiler(&self) -> &Arc<dyn SpellCompiler> {
        &self.0.spell_compiler
    }

    pub(crate) fn script_checker(&self) -> &Arc<dyn ScriptChecker> {
        &self.0.script_checker
    }

    /// Notifies the workers that build spells.
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

    /// The certificate, if the platform serves TLS itself.
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

    /// The lock under which worlds of one game are created. Only existing games get one, so there
    /// are never more locks than games.
    pub(crate) fn game_lock(&self, game_id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self
            .0
            .game_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        locks.entry(game_id.to_owned()).or_default().clone()
    }

    pub(crate) async fn upload_permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.0
            .upload_permits
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| ApiError::unavailable("shutting_down", "the platform is shutting down", 5))
    }

    pub(crate) fn socket_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.0.sockets.clone().try_acquire_owned().ok()
    }
}
