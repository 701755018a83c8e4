//! Sign-in links: a secret in a URL that opens one session, once. The program that runs the
//! platform creates them for the person who started it, so that `frolic dev` knows its creator
//! without a password.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use sqlx::Row;
use tokio::sync::watch;

use super::sessions::{self, SessionLifetime, User};
use crate::api::{LinkLoginRequest, LoginResponse};
use crate::community::Community;
use crate::community::auth::{Kind, Role};
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::core::ids;
use crate::core::limits::FromThisMachine;

/// Unused links; one more replaces the oldest.
const LINKS_MAX: usize = 16;

/// Links that were issued and not used yet.
#[derive(Default)]
pub struct SignInLinks {
    waiting: Mutex<VecDeque<Link>>,
    /// Number of links that were used.
    pub used: watch::Sender<u64>,
}

struct Link {
    /// Only the hash is stored; the secret itself is only in the URL.
    key_sha256: String,
    user_id: String,
    expires_at: i64,
}

impl SignInLinks {
    /// Creates a secret that signs `user_id` in once, until `expires_at`.
    pub fn issue(&self, user_id: &str, expires_at: i64) -> String {
        let key = ids::new_token();
        let mut waiting = self.waiting();
        if waiting.len() >= LINKS_MAX {
            waiting.pop_front();
        }
        waiting.push_back(Link {
            key_sha256: ids::sha256_hex(key.as_bytes()),
            user_id: user_id.to_owned(),
            expires_at,
        });
        key
    }

    /// User whom the secret signs in. A secret works only once.
    pub fn redeem(&self, key: &str, now_ms: i64) -> Option<String> {
        let hash = ids::sha256_hex(key.as_bytes());
        let mut waiting = self.waiting();
        waiting.retain(|link| link.expires_at > now_ms);
        // Comparing hashes makes the timing independent of the secret.
        let index = waiting.iter().position(|link| link.key_sha256 == hash)?;
        waiting.remove(index).map(|link| link.user_id)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Link>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Signs in with the secret of a link. Works only from the machine that the platform runs on,
/// because the link is for the person who started it.
#[utoipa::path(
    post, path = "/api/login/link", tag = "accounts",
    request_body = LinkLoginRequest,
    responses(
        (status = 200, body = LoginResponse),
        (status = 401, description = "The link was used, has expired or is invalid"),
        (status = 403, description = "The request comes from another machine"),
    )
)]
pub async fn login(
    State(community): State<Arc<Community>>,
    from_here: Option<Extension<FromThisMachine>>,
    headers: HeaderMap,
    ApiJson(request): ApiJson<LinkLoginRequest>,
) -> Result<Json<LoginResponse>, ApiError> {
    if !from_here.is_some_and(|Extension(FromThisMachine(here))| here) {
        return Err(ApiError::forbidden(
            "Sign-in links work only on the machine that runs the platform.",
        ));
    }
    let now = community.core.clock.now_ms();
    let user_id = community.sign_in_links.redeem(&request.key, now);
    let user_id = user_id.ok_or_else(link_used)?;
    let row = sqlx::query("SELECT username, kind, role FROM users WHERE user_id = $1")
        .bind(&user_id)
        .fetch_optional(&community.core.db)
        .await?
        .ok_or_else(link_used)?;
    let user = User {
        username: row.try_get("username")?,
        kind: Kind::from_name(row.try_get("kind")?),
        role: Role::from_name(row.try_get("role")?),
        user_id,
    };
    let mut transaction = crate::core::db::begin(&community.core.db).await?;
    let device = sessions::device(&headers);
    let response = sessions::open(
        &community,
        &mut transaction,
        &user,
        &device,
        SessionLifetime::Short,
    )
    .await?;
    transaction.commit().await?;
    community.core.metrics.logins.add(1);
    community
        .sign_in_links
        .used
        .send_modify(|count| *count += 1);
    Ok(Json(response))
}

fn link_used() -> ApiError {
    ApiError::unauthorized(
        "link_used",
        "This sign-in link was already used or has expired. Use the newest one in the terminal.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_works_once_and_in_time() {
        let links = SignInLinks::default();
        let key = links.issue("user_1", 100);
        assert_eq!(links.redeem("something else", 50), None);
        assert_eq!(links.redeem(&key, 50).as_deref(), Some("user_1"));
        assert_eq!(links.redeem(&key, 50), None);
        let late = links.issue("user_1", 100);
        assert_eq!(links.redeem(&late, 100), None);
    }

    #[test]
    fn only_the_newest_links_are_kept() {
        let links = SignInLinks::default();
        let keys: Vec<String> = (0..=LINKS_MAX)
            .map(|_| links.issue("user_1", 100))
            .collect();
        assert_eq!(links.redeem(&keys[0], 0), None);
        assert!(links.redeem(&keys[1], 0).is_some());
    }
}
