//! [`Platform`]: creates the services of all layers and connects them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::api::PublishResponse;
use crate::catalog::Catalog;
use crate::catalog::publish::{self, PublishError, PublishOptions, ScriptChecker};
use crate::catalog::recorder;
use crate::community::Community;
use crate::core::blobs::{BlobLocation, BlobStore};
use crate::core::clock::Clock;
use crate::core::db::{self, OpenDatabaseError};
use crate::core::limits::RateLimiter;
use crate::core::locks::LocalLocks;
use crate::core::metrics::Metrics;
use crate::core::settings::Settings;
use crate::core::sockets::Sockets;
use crate::core::tls::{Certificate, TlsError};
use crate::core::write_health::WriteHealth;
use crate::core::{Core, Provides, signing};
use crate::fleet::address;
use crate::fleet::{Fleet, Launcher};
use crate::site::{Site, SiteFiles};
use crate::spells::{SpellCompiler, Spells};
use crate::worlds::Worlds;

/// Name of the creator of the sample games.
const HOUSE_CREATOR: &str = "Frolic";

/// The control plane: the services of each layer. Cheap to clone.
#[derive(Clone)]
pub struct Platform {
    pub(crate) core: Arc<Core>,
    pub(crate) community: Arc<Community>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) worlds: Arc<Worlds>,
    pub(crate) spells: Arc<Spells>,
    pub(crate) sockets: Arc<Sockets>,
    pub(crate) site: Arc<Site>,
    /// Set if the platform serves TLS itself.
    pub(crate) certificate: Option<Arc<Certificate>>,
    /// User id of the creator of the sample games.
    pub(crate) house_id: Arc<str>,
}

impl Provides<Community> for Platform {
    fn provide(&self) -> &Community {
        &self.community
    }
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
        let core = Arc::new(Core {
            rates: RateLimiter::new(&settings.limits),
            locks: Box::new(LocalLocks::default()),
            metrics: Metrics::default(),
            write_health: Arc::<WriteHealth>::default(),
            clock: parts.clock,
            settings,
            db,
            blobs,
        });
        let community = Arc::new(Community::new(core.clone())?);
        let catalog = Arc::new(Catalog::new(
            community.clone(),
            fleet,
            script_blobs,
            parts.script_checker,
        ));
        let sockets = Arc::<Sockets>::default();
        let worlds = Arc::new(Worlds::new(
            catalog.clone(),
            sockets.clone(),
            signer,
            (port, certificate.is_some()),
        ));
        Ok(Self {
            spells: Arc::new(Spells::new(worlds.clone(), parts.spell_compiler)),
            site: Arc::new(Site::new(core.clone(), parts.site)),
            certificate: certificate.map(Arc::new),
            house_id: house_id.into(),
            core,
            community,
            catalog,
            worlds,
            sockets,
        })
    }

    /// Publishes a sample game, unless the same package is already published. The first one becomes
    /// the default game if none is set.
    ///
    /// # Errors
    /// [`PublishError`] when the package is invalid or cannot be stored.
    pub async fn publish_sample(&self, archive: Bytes) -> Result<PublishResponse, PublishError> {
        let options = PublishOptions::default();
        let published =
            publish::publish_package(&self.catalog, archive, &self.house_id, options).await?;
        self.catalog.set_first_game(&published.game_id);
        Ok(published)
    }

    /// The fleet of game servers.
    pub fn fleet(&self) -> &Fleet {
        &self.worlds.fleet
    }

    /// Records the current number of players of each game for the dashboards of creators. A
    /// platform that serves requests does so every minute by itself.
    pub fn sample_players(&self) {
        recorder::sample_players(&self.catalog);
    }
}
