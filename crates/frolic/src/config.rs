//! Configuration of `frolic serve`: flags beat environment beats `frolic.toml`
//! beats defaults. [`Layer`] is the only list of settings.

#[cfg(test)]
mod environment;
#[cfg(test)]
mod page;

use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use frolic_platform::signing::write_private;
use frolic_platform::tls::TlsSettings;
use frolic_platform::{BlobLocation, DatabaseKind, IdentitySettings, Settings, ids};
use serde::{Deserialize, Serialize};

const CONFIG_FILE: &str = "frolic.toml";
/// Least bytes of snapshots a second that a player is sent.
pub const CLIENT_BYTES_MIN: u32 = 4096;
const SECRET_FILE: &str = "secret_key";
/// Shorter secrets can be guessed.
const SECRET_CHARS_MIN: usize = 16;

/// Settings from one source; what is absent is left to the next one. A field's name is the key in `frolic.toml`,
/// in upper case the environment variable, and with hyphens the flag. `docs/operate/settings.md` is generated from
/// the comments.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[command(mut_args(with_variable))]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long)]
    pub host: Option<String>,
    /// Port to listen on [default: 5000]
    #[arg(long)]
    pub port: Option<u16>,
    /// Folder of database, packages and keys [default: ./data]
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Database, such as sqlite://data/frolic.db or postgres://user:password@host/database; see
    /// docs/operate/storage.md [default: SQLite in the data folder]
    #[arg(long)]
    pub database_url: Option<String>,
    /// Packages and assets: a folder, or s3://bucket/prefix with AWS_ACCESS_KEY_ID and the like in the environment;
    /// see docs/operate/storage.md [default: in the data folder]
    #[arg(long)]
    pub blob_url: Option<String>,
    /// Signs tickets and sessions; other users of this machine can see flags, so prefer the environment [default:
    /// generated once and stored in the data folder]
    #[arg(long)]
    pub secret_key: Option<String>,
    /// Opens /admin, to appoint the first admin; see docs/operate/accounts.md [default: closed]
    #[arg(long)]
    pub admin_token: Option<String>,
    /// Certificate to serve https and wss without a proxy, as a PEM file with its chain; see docs/operate/tls.md
    /// [default: plain http, for this machine or behind a proxy]
    #[arg(long)]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, as a PEM file
    #[arg(long)]
    pub tls_key: Option<PathBuf>,
    /// Where an issuer of identities publishes its keys (JWKS), to accept its JWTs for login; see
    /// docs/operate/accounts.md [default: passwords only]
    #[arg(long)]
    pub identity_jwks_url: Option<String>,
    /// The expected issuer of its JWTs
    #[arg(long)]
    pub identity_issuer: Option<String>,
    /// The expected audience of its JWTs [default: any]
    #[arg(long)]
    pub identity_audience: Option<String>,
    /// Game that a join without any id opens [default: the first sample]
    #[arg(long)]
    pub default_game: Option<String>,
    /// Folder to record every session in, for `frolic replay` and reports; see docs/operate/moderation.md. Old files
    /// are not deleted automatically [default: none is recorded]
    #[arg(long)]
    pub record_dir: Option<PathBuf>,
    /// Snapshot bandwidth limit per player in bytes per second, at least 4096 [default: 65536]
    #[arg(long)]
    pub client_bytes_per_second: Option<u32>,
    /// Whether players reach worlds through PORT alone, as in a container that publishes no other port: over
    /// WebSocket, without WebTransport; see docs/operate/deploy.md [default: false]
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    pub single_port: Option<bool>,
    /// Whether to mask swear words, links and phone numbers in chat and to refuse such names [default: true]
    #[arg(long)]
    pub text_filter: Option<bool>,
    /// Key of the language model that builds spells from a prompt and translates `.soul` files; see
    /// docs/create/soul.md. Never a flag, because other users of this machine can see flags
    #[arg(skip)]
    pub soul_api_key: Option<String>,
    /// Address of that model's API
    #[arg(skip)]
    pub soul_api_url: Option<String>,
    /// Name of that model
    #[arg(skip)]
    pub soul_model: Option<String>,
}

impl Layer {
    /// The names of all settings.
    fn names() -> impl Iterator<Item = String> {
        let empty = serde_json::to_value(Self::default()).unwrap_or_default();
        let fields = empty.as_object().cloned().unwrap_or_default();
        fields.into_iter().map(|(name, _)| name)
    }

    /// Reads the environment through `lookup`. Empty variables count as absent.
    ///
    /// # Errors
    /// Names the variable that cannot be understood.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let mut layer = Self::default();
        for name in Self::names() {
            let variable = name.to_uppercase();
            if let Some(text) = lookup(&variable).filter(|text| !text.is_empty()) {
                let one = Self::from_text(&name, text)
                    .with_context(|| format!("{variable} is not valid"))?;
                layer = one.over(layer)?;
            }
        }
        Ok(layer)
    }

    /// One setting from the text of its variable.
    fn from_text(name: &str, text: String) -> anyhow::Result<Self> {
        let with = |value: toml::Value| {
            let layer = toml::Table::from_iter([(name.to_owned(), value)]);
            layer.try_into::<Self>()
        };
        if with(true.into()).is_ok() {
            return match text.to_ascii_lowercase().as_str() {
                "on" | "true" | "1" => Ok(with(true.into())?),
                "off" | "false" | "0" => Ok(with(false.into())?),
                _ => bail!("it must be true or false, not '{text}'"),
            };
        }
        match text.parse::<i64>() {
            Ok(number) if with(0.into()).is_ok() => Ok(with(number.into())?),
            _ => Ok(with(text.into())?),
        }
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
    ///
    /// # Errors
    /// For a path that is not Unicode.
    pub fn over(&self, below: Self) -> anyhow::Result<Self> {
        let mut merged = toml::Table::try_from(below)?;
        merged.extend(toml::Table::try_from(self)?);
        Ok(merged.try_into()?)
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
    flags.over(from_env)?.over(from_file)
}

/// Adds the environment variable to the help of a setting.
fn with_variable(arg: clap::Arg) -> clap::Arg {
    let variable = arg.get_id().as_str().to_uppercase();
    match arg.get_help() {
        Some(help) => {
            let help = format!("{help} [env: {variable}]");
            arg.help(help)
        }
        None => arg,
    }
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
        let merged = flags.over(env).unwrap().over(file).unwrap();
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
            Layer::from_env(|name| (name == "SINGLE_PORT").then(|| "2".to_owned())).unwrap_err();
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
