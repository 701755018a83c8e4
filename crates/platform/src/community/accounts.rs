//! Accounts: registration, passwords, sessions, API keys, and identities of other issuers. Tokens
//! are sent as bearer tokens only, never as cookies, so no other site can make a browser send one.

mod attempts;
mod delete;
pub mod identity;
pub mod keys;
pub mod links;
mod me;
pub mod passwords;
mod register;
pub mod sessions;

use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::core::auth;
use crate::core::limits::limit_rate;

pub use attempts::Attempts;

/// REST routes for the caller's own account.
pub fn routes(platform: &Platform) -> OpenApiRouter<Platform> {
    // Rate-limited because these routes create users or check and hash passwords.
    let rated = OpenApiRouter::new()
        .routes(routes!(auth::login))
        .routes(routes!(register::register))
        .routes(routes!(register::login))
        .routes(routes!(identity::login))
        .routes(routes!(links::login))
        .routes(routes!(me::rename))
        .routes(routes!(me::change_password))
        .routes(routes!(delete::delete))
        .layer(from_fn_with_state(platform.clone(), limit_rate));
    OpenApiRouter::new()
        .routes(routes!(register::logout))
        .routes(routes!(me::show))
        .routes(routes!(sessions::list, sessions::end_others))
        .routes(routes!(sessions::end))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .merge(rated)
}
