//! The contents of the binary, so that it needs no other file: the built site
//! and the folders of the sample games.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::BTreeMap;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../web/dist"]
#[allow_missing = true]
struct SiteFolder;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../games"]
#[allow_missing = true]
struct GamesFolder;

/// A file of the site.
pub fn site_file(path: &str) -> Option<Cow<'static, [u8]>> {
    SiteFolder::get(path).map(|file| file.data)
}

/// The sample that newcomers land in, and that benchmarks play.
const FIRST_SAMPLE: &str = "obby";

/// Every sample game: the name of its folder, and its files by path. The first
/// is the default game of players who choose none.
pub fn sample_games() -> Vec<(String, BTreeMap<String, Vec<u8>>)> {
    let mut games: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for path in GamesFolder::iter() {
        // Left out as `frolic pack` leaves it out: files beside the games,
        // hidden ones, packages made before. The revision must be the same.
        let Some((folder, inner)) = path.split_once('/') else {
            continue;
        };
        let hidden = path.split('/').any(|part| part.starts_with('.'));
        if hidden || (!inner.contains('/') && inner.ends_with(".game")) {
            continue;
        }
        if let Some(file) = GamesFolder::get(&path) {
            let files = games.entry(folder.to_owned()).or_default();
            files.insert(inner.to_owned(), file.data.into_owned());
        }
    }
    games.retain(|_, files| files.contains_key("game.toml"));
    let mut games: Vec<_> = games.into_iter().collect();
    games.sort_by_key(|(folder, _)| folder != FIRST_SAMPLE);
    games
}
