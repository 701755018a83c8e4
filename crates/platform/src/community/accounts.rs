//! Accounts: registration, passwords, sessions, API keys, and identities of other issuers. Tokens
//! are sent as bearer tokens only, never as cookies, so no other site can make a browser send one.

mod attempts;
mod guests;
pub mod identity;
pub mod keys;
pub mod links;
pub mod me;
pub mod passwords;
mod register;
pub mod roles;
pub mod sessions;

use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::community::Community;
use crate::core::limits::limit_rate;

pub use attempts::Attempts;

/// REST routes for the caller's own account.
pub fn routes(community: &Community) -> OpenApiRouter<Arc<Community>> {
    // Rate-limited because these routes create users or check and hash passwords.
    let rated = OpenApiRouter::new()
        .routes(routes!(guests::login))
        .routes(routes!(register::register))
        .routes(routes!(register::login))
        .routes(routes!(identity::login))
        .routes(routes!(links::login))
        .routes(routes!(me::rename))
        .routes(routes!(me::change_password))
        .layer(from_fn_with_state(community.core.clone(), limit_rate));
    OpenApiRouter::new()
        .routes(routes!(register::logout))
        .routes(routes!(me::show))
        .routes(routes!(sessions::list, sessions::end_others))
        .routes(routes!(sessions::end))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .merge(rated)
}
