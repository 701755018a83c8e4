//! People: accounts, profiles with characters, and who blocks whom. Knows no games and no worlds.

pub mod accounts;
pub mod auth;
pub mod blocks;
pub mod expulsions;
pub mod profiles;
pub mod rules;
pub mod sanctions;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use self::accounts::Attempts;
use self::accounts::identity::Identity;
use self::accounts::links::SignInLinks;
use self::accounts::passwords::Hasher;
use self::expulsions::{Expulsions, LocalExpulsions};
use crate::core::Core;

/// The services of this layer.
pub struct Community {
    pub core: Arc<Core>,
    /// Recent wrong passwords.
    pub attempts: Attempts,
    pub sign_in_links: SignInLinks,
    pub passwords: Hasher,
    /// The trusted issuer of identities, if there is one.
    pub identity: Option<Identity>,
    pub expulsions: Box<dyn Expulsions>,
}

impl Community {
    /// # Errors
    /// When no HTTP client can be created for the keys of the identity issuer.
    pub fn new(core: Arc<Core>) -> Result<Self, reqwest::Error> {
        let identity = core.settings.identity.clone();
        Ok(Self {
            attempts: Attempts::new(&core.settings.limits),
            sign_in_links: SignInLinks::default(),
            passwords: Hasher::default(),
            identity: identity.map(Identity::new).transpose()?,
            expulsions: Box::new(LocalExpulsions::default()),
            core,
        })
    }
}

/// The routes of this layer.
pub fn routes(community: &Arc<Community>) -> OpenApiRouter {
    accounts::routes(community)
        .merge(profiles::routes())
        .merge(blocks::routes())
        .merge(rules::routes())
        .with_state(community.clone())
}
