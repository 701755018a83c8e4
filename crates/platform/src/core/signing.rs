//! The key with which the platform signs the client scripts of its games. Created once, stored in
//! the data folder, never sent to a game server.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use frolic_protocol::signature::{KEY_BYTES, ManifestSigner, from_hex, to_hex};

use crate::core::ids;

const KEY_FILE: &str = "signing_key";

/// Reads the key in `data_dir`, or creates it on first use.
///
/// # Errors
/// When the disk fails, or the file does not contain a key.
pub fn open(data_dir: &Path) -> io::Result<ManifestSigner> {
    let path = data_dir.join(KEY_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let secret = from_hex(text.trim()).ok_or_else(|| {
                let message = format!(
                    "{} is damaged; delete it to create a new one (players must then join again)",
                    path.display()
                );
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?;
            Ok(ManifestSigner::new(&secret))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let secret = ids::random_bytes::<KEY_BYTES>();
            write_private(&path, &to_hex(&secret))?;
            Ok(ManifestSigner::new(&secret))
        }
        Err(error) => Err(error),
    }
}

/// Writes a secret to a new file that only its owner may read.
///
/// # Errors
/// When the disk fails, or the file already exists.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    // `create_new` never follows a link and never overwrites a file.
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_created_once_and_is_private() {
        let folder = std::env::temp_dir().join(ids::new_id("frolic-signing-test"));
        fs::create_dir_all(&folder).unwrap();
        let first = open(&folder).unwrap().public_key();
        assert_eq!(open(&folder).unwrap().public_key(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.join(KEY_FILE))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(folder.join(KEY_FILE), "short").unwrap();
        assert!(open(&folder).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
