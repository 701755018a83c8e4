//! Configuration of `frolic serve`: flags beat environment beats `frolic.toml`
//! beats defaults.

#[cfg(test)]
mod environment;

use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use frolic_platform::signing::write_private;
use frolic_platform::tls::TlsSettings;
use frolic_platform::{BlobLocation, DatabaseKind, IdentitySettings, Settings, ids};
use serde::Deserialize;

const CONFIG_FILE: &str = "frolic.toml";
/// Least bytes of snapshots a second that a player is sent.
pub const CLIENT_BYTES_MIN: u32 = 4096;
const SECRET_FILE: &str = "secret_key";
/// Shorter secrets can be guessed.
const SECRET_CHARS_MIN: usize = 16;

/// Settings from one source; what is absent is left to the next one.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Address to listen on [env: HOST] [default: 127.0.0.1]
    #[arg(long)]
    pub host: Option<String>,
    /// Port to listen on [env: PORT] [default: 5000]
    #[arg(long)]
    pub port: Option<u16>,
    /// Folder of all data [env: DATA_DIR] [default: ./data]
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Database, such as sqlite://data/frolic.db or postgres://user:password@host/database [env: DATABASE_URL] [default: SQLite in the data folder]
    #[arg(long)]
    pub database_url: Option<String>,
    /// Packages and assets: a folder, or s3://bucket/prefix with AWS_ACCESS_KEY_ID and the like in the environment [env: BLOB_URL] [default: in the data folder]
    #[arg(long)]
    pub blob_url: Option<String>,
    /// Signs tickets; other users of this machine can see flags, so prefer the environment
    /// [env: SECRET_KEY] [default: generated once and stored in the data
    /// folder]
    #[arg(long)]
    pub secret_key: Option<String>,
    /// Opens /admin [env: ADMIN_TOKEN] [default: closed]
    #[arg(long)]
    pub admin_token: Option<String>,
    /// Certificate to speak https and wss with, as a PEM file with its chain; see docs/operate/tls.md
    /// [env: TLS_CERT] [default: plain http, for this machine or behind a proxy]
    #[arg(long)]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, as a PEM file [env: TLS_KEY]
    #[arg(long)]
    pub tls_key: Option<PathBuf>,
    /// Where an issuer of identities publishes its keys (JWKS), to log in with its JWTs
    /// [env: IDENTITY_JWKS_URL] [default: passwords only]
    #[arg(long)]
    pub identity_jwks_url: Option<String>,
    /// The expected issuer of its JWTs [env: IDENTITY_ISSUER]
    #[arg(long)]
    pub identity_issuer: Option<String>,
    /// The expected audience of its JWTs [env: IDENTITY_AUDIENCE] [default:
    /// any]
    #[arg(long)]
    pub identity_audience: Option<String>,
    /// Game that a join without any id opens [env: DEFAULT_GAME] [default: the first sample]
    #[arg(long)]
    pub default_game: Option<String>,
    /// Folder to record every session in, for `frolic replay` [env: RECORD_DIR] [default: none is recorded]
    #[arg(long)]
    pub record_dir: Option<PathBuf>,
    /// Bytes of snapshots a second that one player is sent at most [env: CLIENT_BYTES_PER_SECOND] [default: 65536]
    #[arg(long)]
    pub client_bytes_per_second: Option<u32>,
    /// Whether players reach worlds through PORT alone, as in a container that publishes no other port:
    /// over WebSocket, without WebTransport [env: SINGLE_PORT] [default: false]
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    pub single_port: Option<bool>,
    /// Masks swear words, links and phone numbers in chat and refuses such names [env: TEXT_FILTER] [default: true]
    #[arg(long)]
    pub text_filter: Option<bool>,
    /// Key of the language model that writes `.soul` files out; never a flag,
    /// which others on this machine could see.
    #[arg(skip)]
    pub soul_api_key: Option<String>,
    /// Where that model is.
    #[arg(skip)]
    pub soul_api_url: Option<String>,
    /// Which one it is.
    #[arg(skip)]
    pub soul_model: Option<String>,
}

impl Layer {
    /// Reads the environment through `lookup`. Empty variables count as absent.
    ///
    /// # Errors
    /// Names the variable that cannot be understood.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let get = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let port = get("PORT")
            .map(|port| {
                port.parse()
                    .with_context(|| format!("PORT must be a number from 0 to 65535, not '{port}'"))
            })
            .transpose()?;
        let client_bytes_per_second = get("CLIENT_BYTES_PER_SECOND")
            .map(|bytes| {
                bytes.parse().with_context(|| {
                    format!("CLIENT_BYTES_PER_SECOND must be a number, not '{bytes}'")
                })
            })
            .transpose()?;
        let single_port = get("SINGLE_PORT")
            .map(|text| match text.as_str() {
                "1" | "true" => Ok(true),
                "0" | "false" => Ok(false),
                other => bail!("SINGLE_PORT must be true or false, not '{other}'"),
            })
            .transpose()?;
        let text_filter = get("TEXT_FILTER")
            .map(|filter| match filter.to_ascii_lowercase().as_str() {
                "on" | "true" | "1" => Ok(true),
                "off" | "false" | "0" => Ok(false),
                _ => bail!("TEXT_FILTER must be on or off, not '{filter}'"),
            })
            .transpose()?;
        Ok(Self {
            host: get("HOST"),
            port,
            data_dir: get("DATA_DIR").map(PathBuf::from),
            database_url: get("DATABASE_URL"),
            blob_url: get("BLOB_URL"),
            secret_key: get("SECRET_KEY"),
            admin_token: get("ADMIN_TOKEN"),
            tls_cert: get("TLS_CERT").map(PathBuf::from),
            tls_key: get("TLS_KEY").map(PathBuf::from),
            identity_jwks_url: get("IDENTITY_JWKS_URL"),
            identity_issuer: get("IDENTITY_ISSUER"),
            identity_audience: get("IDENTITY_AUDIENCE"),
            default_game: get("DEFAULT_GAME"),
            record_dir: get("RECORD_DIR").map(PathBuf::from),
            client_bytes_per_second,
            single_port,
            text_filter,
            soul_api_key: get("SOUL_API_KEY"),
            soul_api_url: get("SOUL_API_URL"),
            soul_model: get("SOUL_MODEL"),
        })
    }

    /// Reads a `frolic.toml`. An unknown key is an error: it would be a setting
    /// that silently has no effect.
    ///
    /// # Errors
    /// With line and column.
    pub fn from_toml(text: &str) -> anyhow::Result<Self> {
        Ok(toml::from_str(text)?)
    }

    /// This layer, completed by the one below.
    pub fn over(self, below: Self) -> Self {
        Self {
            host: self.host.or(below.host),
            port: self.port.or(below.port),
            data_dir: self.data_dir.or(below.data_dir),
            database_url: self.database_url.or(below.database_url),
            blob_url: self.blob_url.or(below.blob_url),
            secret_key: self.secret_key.or(below.secret_key),
            admin_token: self.admin_token.or(below.admin_token),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            identity_jwks_url: self.identity_jwks_url.or(below.identity_jwks_url),
            identity_issuer: self.identity_issuer.or(below.identity_issuer),
            identity_audience: self.identity_audience.or(below.identity_audience),
            default_game: self.default_game.or(below.default_game),
            record_dir: self.record_dir.or(below.record_dir),
            client_bytes_per_second: self
                .client_bytes_per_second
                .or(below.client_bytes_per_second),
            single_port: self.single_port.or(below.single_port),
            text_filter: self.text_filter.or(below.text_filter),
            soul_api_key: self.soul_api_key.or(below.soul_api_key),
            soul_api_url: self.soul_api_url.or(below.soul_api_url),
            soul_model: self.soul_model.or(below.soul_model),
        }
    }

    /// The folder of packages, as the platform has it.
    ///
    /// # Errors
    /// When it is not a folder.
    pub fn blob_dir(&self) -> anyhow::Result<PathBuf> {
        match &self.blob_url {
            Some(url) => match BlobLocation::parse(url, [])? {
                BlobLocation::Folder(folder) => Ok(folder),
                BlobLocation::S3(place) => bail!(
                    "the packages are in {place:?}, which this command does not read; say where \
                     the game is with --package"
                ),
            },
            None => {
                let data_dir = self.data_dir.as_deref();
                Ok(data_dir.unwrap_or(Path::new("data")).join("blobs"))
            }
        }
    }

    /// The platform's settings, with a secret from the data folder when none
    /// is configured. Makes the data folder.
    ///
    /// # Errors
    /// Says which setting is wrong and what to write instead.
    pub fn into_settings(self) -> anyhow::Result<Settings> {
        let host = parse_host(self.host.as_deref().unwrap_or("127.0.0.1"))?;
        let data_dir = self.data_dir.unwrap_or_else(|| PathBuf::from("data"));
        fs::create_dir_all(&data_dir)
            .with_context(|| format!("could not create the data folder {}", data_dir.display()))?;
        let secret_key = match self.secret_key {
            Some(secret) => {
                ensure!(
                    secret.chars().count() >= SECRET_CHARS_MIN,
                    "SECRET_KEY is too short: use at least {SECRET_CHARS_MIN} random characters, \
                     or leave it out and one is generated and stored in {}",
                    data_dir.display()
                );
                secret.into_bytes()
            }
            None => stored_secret(&data_dir)?,
        };
        let identity = identity(
            self.identity_jwks_url,
            self.identity_issuer,
            self.identity_audience,
        )?;
        let tls = match (self.tls_cert, self.tls_key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some(TlsSettings::new(cert, key)),
            _ => bail!("set both TLS_CERT and TLS_KEY, or none of them"),
        };
        let mut settings = Settings::new(data_dir, secret_key);
        settings.tls = tls;
        settings.identity = identity;
        settings.host = host;
        settings.port = self.port.unwrap_or(5000);
        settings.database_url = self.database_url.map(checked_database_url).transpose()?;
        settings.blobs = self
            .blob_url
            .map(|url| BlobLocation::parse(&url, aws_variables()))
            .transpose()?;
        settings.admin_token = self.admin_token.filter(|token| !token.is_empty());
        settings.default_game = self.default_game;
        settings.record_dir = self.record_dir;
        let client_bytes = self.client_bytes_per_second;
        ensure!(
            client_bytes.is_none_or(|bytes| bytes >= CLIENT_BYTES_MIN),
            "CLIENT_BYTES_PER_SECOND must be {CLIENT_BYTES_MIN} or more: with less, movement cannot be replicated"
        );
        settings.client_bytes_per_second = client_bytes;
        settings.single_port = self.single_port.unwrap_or(false);
        settings.text_filter = self.text_filter.unwrap_or(true);
        Ok(settings)
    }
}

/// All layers of this process: flags over environment over file. Without
/// `file`, `frolic.toml` in the current folder is read where there is one.
///
/// # Errors
/// Names the file or variable that cannot be understood.
pub fn load(flags: Layer, file: Option<&Path>) -> anyhow::Result<Layer> {
    let path = file.unwrap_or(Path::new(CONFIG_FILE));
    let from_file = match fs::read_to_string(path) {
        Ok(text) => {
            Layer::from_toml(&text).with_context(|| format!("{} cannot be used", path.display()))?
        }
        Err(error) if error.kind() == ErrorKind::NotFound && file.is_none() => Layer::default(),
        Err(error) => {
            return Err(error).with_context(|| format!("could not read {}", path.display()));
        }
    };
    let from_env = Layer::from_env(|name| std::env::var(name).ok())?;
    Ok(flags.over(from_env).over(from_file))
}

fn parse_host(host: &str) -> anyhow::Result<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(IpAddr::from([127, 0, 0, 1]));
    }
    host.trim_start_matches('[').trim_end_matches(']').parse().with_context(|| {
        format!(
            "HOST must be an address of this machine such as 127.0.0.1, or 0.0.0.0 for all of them, not '{host}'"
        )
    })
}

/// An issuer needs its name and its keys: anyone can write the name alone.
fn identity(
    jwks_url: Option<String>,
    issuer: Option<String>,
    audience: Option<String>,
) -> anyhow::Result<Option<IdentitySettings>> {
    match (jwks_url, issuer) {
        (None, None) if audience.is_none() => Ok(None),
        (Some(jwks_url), Some(issuer)) => {
            ensure!(
                jwks_url.starts_with("https://") || jwks_url.starts_with("http://"),
                "IDENTITY_JWKS_URL must be an address such as https://issuer.example/.well-known/jwks.json, not '{jwks_url}'"
            );
            let mut settings = IdentitySettings::new(jwks_url, issuer);
            settings.audience = audience;
            Ok(Some(settings))
        }
        _ => bail!("set both IDENTITY_JWKS_URL and IDENTITY_ISSUER, or none of them"),
    }
}

fn checked_database_url(url: String) -> anyhow::Result<String> {
    ensure!(
        DatabaseKind::of(&url).is_some(),
        "DATABASE_URL must start with sqlite: or postgres:, such as sqlite://data/frolic.db or \
         postgres://user:password@host/database"
    );
    Ok(url)
}

/// The environment variables for an S3 server. They are not settings of Frolic:
/// the names are those of the AWS tools, and keys are never flags.
fn aws_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty())
}

/// The secret in the data folder, made on first use.
fn stored_secret(data_dir: &Path) -> anyhow::Result<Vec<u8>> {
    let path = data_dir.join(SECRET_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let secret = text.trim();
            ensure!(
                secret.chars().count() >= SECRET_CHARS_MIN,
                "{} is damaged; delete it to have a new one made (players must then join again)",
                path.display()
            );
            Ok(secret.as_bytes().to_vec())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let secret = ids::new_token();
            write_private(&path, &secret)
                .with_context(|| format!("could not store a secret in {}", path.display()))?;
            Ok(secret.into_bytes())
        }
        Err(error) => Err(error).with_context(|| format!("could not read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temp_dir() -> PathBuf {
        std::env::temp_dir().join(ids::new_id("frolic-config-test"))
    }

    #[test]
    fn flags_beat_environment_beats_file() {
        let file =
            Layer::from_toml("port = 1\nhost = \"0.0.0.0\"\nadmin_token = \"file\"").unwrap();
        let env = Layer::from_env(|name| match name {
            "PORT" => Some("2".to_owned()),
            "ADMIN_TOKEN" => Some("env".to_owned()),
            "DATA_DIR" => Some(String::new()),
            _ => None,
        })
        .unwrap();
        let flags = Layer {
            port: Some(3),
            ..Layer::default()
        };
        let merged = flags.over(env).over(file);
        assert_eq!(merged.port, Some(3));
        assert_eq!(merged.admin_token.as_deref(), Some("env"));
        assert_eq!(merged.host.as_deref(), Some("0.0.0.0"));
        assert_eq!(merged.data_dir, None);
    }

    #[test]
    fn the_list_of_variables_is_that_of_what_is_read() {
        let asked = std::cell::RefCell::new(vec![
            // Read by the command line, and by the library for S3.
            crate::credentials::KEY_VARIABLE.to_owned(),
            "AWS_*".to_owned(),
        ]);
        let lookup = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            None
        };
        Layer::from_env(lookup).unwrap();
        let mut asked = asked.into_inner();
        asked.sort();
        let listed: Vec<&str> = environment::variables().collect();
        assert_eq!(listed, asked, "config/variables.txt");
        let mut command = std::process::Command::new("frolic");
        environment::without_settings(&mut command);
        let taken: Vec<_> = command.get_envs().collect();
        for name in listed.iter().filter(|name| !name.ends_with('*')) {
            assert!(taken.contains(&(name.as_ref(), None)), "{name}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = Layer::from_toml("prot = 80").unwrap_err().to_string();
        assert!(
            error.contains("prot") && error.contains("line 1"),
            "{error}"
        );
        let error =
            Layer::from_env(|name| (name == "PORT").then(|| "http".to_owned())).unwrap_err();
        assert!(format!("{error:#}").contains("PORT"), "{error:#}");
        let error =
            Layer::from_env(|name| (name == "SINGLE_PORT").then(|| "on".to_owned())).unwrap_err();
        assert!(format!("{error:#}").contains("true or false"), "{error:#}");
        for wrong in [
            Layer {
                secret_key: Some("changeme".to_owned()),
                ..Layer::default()
            },
            Layer {
                host: Some("example.org".to_owned()),
                ..Layer::default()
            },
            Layer {
                tls_cert: Some(PathBuf::from("cert.pem")),
                ..Layer::default()
            },
            Layer {
                blob_url: Some("ftp://bucket".to_owned()),
                ..Layer::default()
            },
            Layer {
                identity_issuer: Some("https://issuer.test/".to_owned()),
                ..Layer::default()
            },
            Layer {
                identity_issuer: Some("https://issuer.test/".to_owned()),
                identity_jwks_url: Some("jwks.json".to_owned()),
                ..Layer::default()
            },
        ] {
            let data_dir = temp_dir();
            let layer = Layer {
                data_dir: Some(data_dir.clone()),
                ..wrong
            };
            assert!(layer.clone().into_settings().is_err(), "{layer:?}");
            let _ = fs::remove_dir_all(data_dir);
        }
    }

    #[test]
    fn a_secret_is_made_once_and_is_private() {
        let data_dir = temp_dir();
        let layer = Layer {
            data_dir: Some(data_dir.clone()),
            ..Layer::default()
        };
        let first = layer.clone().into_settings().unwrap().secret_key;
        let second = layer.into_settings().unwrap().secret_key;
        assert_eq!(first, second);
        assert_eq!(first.len(), 64);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(data_dir.join(SECRET_FILE))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::remove_dir_all(data_dir).unwrap();
    }
}
