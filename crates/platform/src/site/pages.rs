//! Decides which URLs are pages. The site's build generates the list from its
//! router's, so both always agree.

use std::collections::BTreeMap;

use crate::catalog::access::{self, OptionalSession};
use crate::core::Core;
use crate::worlds::invites;

/// File with the list: `{"/games/:game": "game", …}`.
pub const FILE: &str = "pages.json";

/// The pages of a site.
pub struct Pages(Option<Vec<Vec<Segment>>>);

#[derive(Debug, PartialEq, Eq)]
enum Segment {
    /// A fixed word.
    Exactly(String),
    /// The id of a game that is visible without a session.
    Game,
    /// An invitation code.
    Invite,
    /// Any value: the page checks it itself, mostly because only some users may see
    /// it.
    Any,
}

impl Pages {
    /// Parses the list. Without a list, every URL may be a page.
    pub fn read(file: Option<&[u8]>) -> Self {
        let list = file.and_then(|file| {
            serde_json::from_slice::<BTreeMap<String, String>>(file)
                .inspect_err(|error| tracing::error!(%error, "invalid page list of the site"))
                .ok()
        });
        let patterns =
            |list: BTreeMap<String, String>| list.keys().map(|path| read(path)).collect();
        Self(list.map(patterns))
    }

    /// Whether `path` is a page for anonymous visitors. A browser that loads a page
    /// sends no session, so a private game is not a page here.
    pub async fn is_page(&self, core: &Core, path: &str) -> bool {
        let Some(patterns) = &self.0 else {
            return true;
        };
        let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        let found = patterns.iter().find(|pattern| matches(pattern, &parts));
        let Some(pattern) = found else {
            return false;
        };
        for (segment, part) in pattern.iter().zip(parts) {
            if !is_there(core, segment, part).await {
                return false;
            }
        }
        true
    }
}

fn read(pattern: &str) -> Vec<Segment> {
    let parts = pattern.split('/').filter(|part| !part.is_empty());
    parts
        .map(|part| match part.strip_prefix(':') {
            None => Segment::Exactly(part.to_owned()),
            Some("game") => Segment::Game,
            Some("invite") => Segment::Invite,
            Some(_) => Segment::Any,
        })
        .collect()
}

fn matches(pattern: &[Segment], parts: &[&str]) -> bool {
    let same = |(segment, part): (&Segment, &&str)| match segment {
        Segment::Exactly(word) => word == part,
        Segment::Game | Segment::Invite | Segment::Any => true,
    };
    pattern.len() == parts.len() && pattern.iter().zip(parts).all(same)
}

/// When the database is unavailable, assumes that the page exists; the page itself
/// then shows the error.
async fn is_there(core: &Core, segment: &Segment, part: &str) -> bool {
    let db = &core.db;
    let asked = match segment {
        Segment::Exactly(_) | Segment::Any => return true,
        Segment::Game => access::visible(db, part, &OptionalSession(None))
            .await
            .map(drop),
        Segment::Invite => {
            let now_ms = core.clock.now_ms();
            let resolved = invites::resolve(db, part, "", now_ms).await;
            resolved.map(drop)
        }
    };
    !asked.is_err_and(|error| error.is_not_found())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_addresses() {
        let pattern = read("/create/:id/versions");
        for (path, expected) in [
            ("create/obby/versions", true),
            ("create/obby", false),
            ("create/obby/versions/more", false),
            ("create/obby/other", false),
        ] {
            let parts: Vec<_> = path.split('/').collect();
            assert_eq!(matches(&pattern, &parts), expected, "{path}");
        }
        assert!(matches(&read("/"), &[]));
        assert_eq!(read("/play/:game")[1], Segment::Game);
    }
}
