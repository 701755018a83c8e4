//! The header `Prefer` (RFC 7240): whether a join may respond before it is placed, and how long it
//! may wait.

use std::time::Duration;

use axum::http::HeaderMap;

/// Preferences of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// Respond with 202 instead of waiting.
    pub respond_async: bool,
    /// Whether the header contained `wait`.
    pub asked_to_wait: bool,
    /// How long to wait before responding.
    pub wait: Duration,
}

impl Preference {
    /// Parses the headers. Invalid preferences are ignored, as the standard requires.
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
    fn preferences_are_parsed_as_in_the_standard() {
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
