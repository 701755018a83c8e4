//! Identities of other issuers: a JWT of Clerk, Auth0 or any OpenID provider, verified against the
//! issuer's published keys. The first login of an identity creates an account; roles are always
//! assigned by this platform.

mod jwks;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde::Deserialize;

use super::register::promote_guest;
use super::sessions::{self, SessionLifetime, User};
use crate::api::{IdentityLoginRequest, LoginResponse};
use crate::community::Community;
use crate::community::auth::{AuthMethod, Kind, Session};
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::core::settings::IdentitySettings;
use crate::core::{ids, names};
use jwks::{KeyError, KeySet};

/// Longest token that is parsed.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
const SUBJECT_BYTES_MAX: usize = 255;
/// Tolerated difference between the issuer's clock and the platform's.
const LEEWAY_S: f64 = 60.0;
/// Never a symmetric algorithm: the published key would then be the secret.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The trusted issuer and its keys.
pub struct Identity {
    settings: IdentitySettings,
    keys: KeySet,
}

/// The claims of a JWT that the platform uses.
#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
    #[serde(default)]
    preferred_username: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    nickname: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

impl Claims {
    /// Initial user name: the name that the issuer gives, or a generated one.
    fn initial_name(&self) -> String {
        let given = [
            &self.preferred_username,
            &self.username,
            &self.nickname,
            &self.name,
        ];
        // Some issuers put an e-mail address there; other players must not see it.
        let mut given = given.into_iter().flatten();
        given
            .find_map(|name| names::clean(name.split('@').next().unwrap_or_default()))
            .unwrap_or_else(|| names::generate(ids::random_bytes()))
    }
}

impl Identity {
    /// Trusts the issuer of `settings`.
    ///
    /// # Errors
    /// When no HTTP client can be created.
    pub fn new(settings: IdentitySettings) -> Result<Self, reqwest::Error> {
        Ok(Self {
            keys: KeySet::new(&settings)?,
            settings,
        })
    }

    async fn check(&self, token: &str, now_ms: i64) -> Result<Claims, ApiError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(invalid("it is too long"));
        }
        let header = decode_header(token).map_err(|_| invalid("it is not a JWT"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(invalid("its algorithm is not accepted"));
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let key = key.map_err(|error| match error {
            KeyError::Unknown => {
                invalid("it is signed with a key that the issuer does not publish")
            }
            KeyError::Unavailable => ApiError::unavailable(
                "identity_unavailable",
                "the identity provider does not respond; try again",
                5,
            ),
        })?;
        let mut validation = Validation::new(header.alg);
        // The lifetime is checked below, because the time comes from the platform's clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.set_issuer(&[&self.settings.issuer]);
        match &self.settings.audience {
            Some(audience) => {
                validation.set_audience(&[audience]);
                validation.set_required_spec_claims(&["exp", "iss", "sub", "aud"]);
            }
            None => {
                validation.validate_aud = false;
                validation.set_required_spec_claims(&["exp", "iss", "sub"]);
            }
        }
        let claims = decode::<Claims>(token, &key, &validation)
            .map_err(|error| {
                tracing::debug!(%error, "rejected a JWT");
                invalid("its signature, issuer or audience is wrong")
            })?
            .claims;
        let now_s = now_ms as f64 / 1000.0;
        // A lifetime that is not a number counts as expired.
        if claims.exp.is_nan() || claims.exp + LEEWAY_S <= now_s {
            return Err(ApiError::unauthorized(
                "session_expired",
                "this identity token has expired; get a new one from its issuer",
            ));
        }
        if claims.nbf.is_some_and(|nbf| nbf > now_s + LEEWAY_S) {
            return Err(invalid("it is not valid yet"));
        }
        if claims.sub.is_empty() || claims.sub.len() > SUBJECT_BYTES_MAX {
            return Err(invalid("its subject is empty or too long"));
        }
        Ok(claims)
    }
}

/// Whether the token has the three parts of a JWT.
pub fn is_jwt(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Session for a JWT that is sent as the bearer token itself.
///
/// # Errors
/// 401 when the JWT is not valid, 503 when the issuer's keys cannot be fetched.
pub async fn session(community: &Community, token: &str) -> Result<Session, ApiError> {
    let identity = community.identity.as_ref().ok_or_else(off)?;
    let claims = identity.check(token, community.core.clock.now_ms()).await?;
    let user = find_or_create(community, identity, &claims, None).await?;
    Ok(Session {
        user_id: user.user_id,
        username: user.username,
        kind: user.kind,
        role: user.role,
        method: AuthMethod::Identity,
        expires_at: Some((claims.exp.clamp(0.0, 4e9) * 1000.0) as i64),
        token: token.to_owned(),
    })
}

/// Opens a session for a JWT of the issuer that this platform trusts. If the request also carries a
/// guest's token and the identity is new, that guest becomes the account.
#[utoipa::path(
    post, path = "/api/login/identity", tag = "accounts", security((), ("bearer" = [])),
    request_body = IdentityLoginRequest,
    responses(
        (status = 200, body = LoginResponse),
        (status = 401, description = "The JWT or the guest's token is not valid"),
        (status = 404, description = "No issuer is configured"),
        (status = 503, description = "The issuer does not respond"),
    )
)]
pub async fn login(
    State(community): State<Arc<Community>>,
    guest: Option<Session>,
    headers: HeaderMap,
    ApiJson(request): ApiJson<IdentityLoginRequest>,
) -> Result<Json<LoginResponse>, ApiError> {
    let identity = community.identity.as_ref().ok_or_else(off)?;
    let now = community.core.clock.now_ms();
    let claims = identity.check(&request.token, now).await?;
    let guest = guest.filter(|guest| guest.kind == Kind::Guest);
    let user = find_or_create(&community, identity, &claims, guest).await?;
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
    Ok(Json(response))
}

async fn find_or_create(
    community: &Community,
    identity: &Identity,
    claims: &Claims,
    guest: Option<Session>,
) -> Result<User, ApiError> {
    if let Some(user) = find(community, identity, claims).await? {
        return Ok(user);
    }
    let now = community.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(&community.core.db).await?;
    let user = match guest {
        Some(guest) => {
            let user = promote_guest(&mut transaction, &guest.user_id, &guest.username).await?;
            sessions::end_all(&mut transaction, &user.user_id, None).await?;
            user
        }
        None => {
            let wanted = claims.initial_name();
            sessions::create_user(&mut transaction, &wanted, Kind::Account, now).await?
        }
    };
    let inserted = sqlx::query(
        "INSERT INTO identities (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (issuer, subject) DO NOTHING",
    )
    .bind(&identity.settings.issuer)
    .bind(&claims.sub)
    .bind(&user.user_id)
    .bind(now)
    .execute(&mut *transaction)
    .await?;
    if inserted.rows_affected() == 1 {
        transaction.commit().await?;
        tracing::info!(user_id = user.user_id, "first login of an identity");
        return Ok(user);
    }
    // Another request with the same JWT created the account first; use that one.
    transaction.rollback().await?;
    find(community, identity, claims).await?.ok_or_else(|| {
        ApiError::unavailable("busy", "the account could not be created; try again", 1)
    })
}

async fn find(
    community: &Community,
    identity: &Identity,
    claims: &Claims,
) -> Result<Option<User>, sqlx::Error> {
    sqlx::query_as(
        "SELECT u.user_id, u.username, u.kind, u.role FROM identities i
         JOIN users u ON u.user_id = i.user_id WHERE i.issuer = $1 AND i.subject = $2",
    )
    .bind(&identity.settings.issuer)
    .bind(&claims.sub)
    .fetch_optional(&community.core.db)
    .await
}

fn invalid(why: &str) -> ApiError {
    ApiError::unauthorized("invalid_token", format!("invalid identity token: {why}"))
}

fn off() -> ApiError {
    ApiError::not_found(
        "identity_off",
        "this platform has no external identity provider; log in with a password",
    )
}
