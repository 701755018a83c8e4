//! The header `Prefer` (RFC 7240): whether a join may answer before it is done,
//! and how long it may take until it answers.

use std::time::Duration;

use axum::http::HeaderMap;

/// What a client prefers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// Answer with 202 rather than late.
    pub respond_async: bool,
    /// Whether `wait` was said at all.
    pub asked_to_wait: bool,
    /// How long to try before answering.
    pub wait: Duration,
}

impl Preference {
    /// What the headers say; what makes no sense is ignored, as the standard
    /// wants it.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut preference = Self::default();
        let values = headers.get_all("prefer").iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        for token in texts.flat_map(|text| text.split(',')) {
            let token = token.split(';').next().unwrap_or_default().trim();
            let (name, value) = token.split_once('=').unwrap_or((token, ""));
            if name.trim().eq_ignore_ascii_case("respond-async") {
                preference.respond_async = true;
            }
            if name.trim().eq_ignore_ascii_case("wait")
                && let Ok(seconds) = value.trim().trim_matches('"').parse::<u32>()
            {
                preference.asked_to_wait = true;
                preference.wait = Duration::from_secs(u64::from(seconds));
            }
        }
        preference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_read_as_the_standard_writes_them() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("prefer", value.parse().unwrap());
            }
            let read = Preference::of(&headers);
            (read.respond_async, read.asked_to_wait, read.wait.as_secs())
        };
        assert_eq!(of(&[]), (false, false, 0));
        assert_eq!(of(&["respond-async"]), (true, false, 0));
        assert_eq!(of(&["Respond-Async, wait=10"]), (true, true, 10));
        assert_eq!(of(&["wait = \"7\"; x=1", "respond-async"]), (true, true, 7));
        assert_eq!(
            of(&["wait=-1, wait=x, , =, return=minimal"]),
            (false, false, 0)
        );
    }
}
