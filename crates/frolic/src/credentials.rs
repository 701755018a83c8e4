//! API keys that `frolic login` stores for `frolic publish`: one per server, in
//! a file that only its user may read.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use frolic_platform::ids;
use frolic_platform::signing::write_private;
use serde::{Deserialize, Serialize};

/// The environment's key beats the file's.
pub const KEY_VARIABLE: &str = "FROLIC_API_KEY";
const FILE: &str = "credentials.toml";

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Credentials {
    /// Where the last login was; commands go there when nothing else is said.
    #[serde(default)]
    pub server: Option<String>,
    /// Keys by server.
    #[serde(default)]
    keys: BTreeMap<String, String>,
}

impl Credentials {
    /// Reads them from the user's folder for settings; none there is none yet.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn load() -> anyhow::Result<Self> {
        match file() {
            Some(path) => Self::load_from(&path),
            None => Ok(Self::default()),
        }
    }

    fn load_from(path: &Path) -> anyhow::Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => {
                toml::from_str(&text).with_context(|| format!("{} cannot be used", path.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Adds a key and writes the file.
    ///
    /// # Errors
    /// When there is no place to store it.
    pub fn store(mut self, server: &str, key: &str) -> anyhow::Result<PathBuf> {
        let Some(path) = file() else {
            bail!("neither XDG_CONFIG_HOME nor HOME is set; use {KEY_VARIABLE} instead");
        };
        self.server = Some(server.to_owned());
        self.keys.insert(server.to_owned(), key.to_owned());
        self.save_to(&path)?;
        Ok(path)
    }

    fn save_to(&self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        // A new file takes the old one's place: private from its first byte.
        let partial = folder.join(ids::new_id("credentials"));
        write_private(&partial, &toml::to_string(self)?)
            .and_then(|()| fs::rename(&partial, path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// The key for a server.
    ///
    /// # Errors
    /// Says how to get one.
    pub fn key_for(&self, server: &str) -> anyhow::Result<String> {
        let from_env = std::env::var(KEY_VARIABLE).ok();
        let key = from_env.filter(|key| !key.trim().is_empty());
        match key.or_else(|| self.keys.get(server).cloned()) {
            Some(key) => Ok(key.trim().to_owned()),
            None => bail!(
                "no API key for {server}: make one at {server}/account, then run \
                 `frolic login --server {server}` or set {KEY_VARIABLE}"
            ),
        }
    }
}

/// The address of a platform, in the normalized form that keys are stored
/// under.
///
/// # Errors
/// When it is invalid.
pub fn server_address(typed: &str) -> anyhow::Result<String> {
    let address = typed.trim().trim_end_matches('/');
    if !address.starts_with("http://") && !address.starts_with("https://") {
        bail!("'{typed}' is not the address of a platform; write it like https://play.example.org");
    }
    Ok(address.to_owned())
}

fn file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let settings = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(settings.join("frolic").join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_stored_per_server_and_private() {
        let folder = std::env::temp_dir().join(ids::new_id("frolic-credentials"));
        let path = folder.join("deep").join(FILE);
        let mut credentials = Credentials::load_from(&path).unwrap();
        for (server, key) in [
            ("https://a", "one"),
            ("https://b", "two"),
            ("https://a", "three"),
        ] {
            credentials.keys.insert(server.to_owned(), key.to_owned());
            credentials.save_to(&path).unwrap();
        }
        let read = Credentials::load_from(&path).unwrap();
        assert_eq!(read.keys["https://a"], "three");
        assert_eq!(read.keys["https://b"], "two");
        let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "no partial file is left behind");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn addresses_are_brought_to_one_form() {
        assert_eq!(server_address(" https://x.org/ ").unwrap(), "https://x.org");
        assert!(server_address("x.org").is_err());
    }
}
