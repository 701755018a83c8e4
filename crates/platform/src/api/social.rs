//! Blocks and invitations.

use serde::{Deserialize, Serialize};

/// Somebody you have blocked.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Block {
    /// Their id.
    pub user_id: String,
    /// Their name.
    pub username: String,
    /// RFC 3339.
    pub blocked_at: String,
}

/// `GET /api/blocks`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct BlockList {
    /// This page, the newest first.
    pub blocks: Vec<Block>,
    /// On all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// On a full page.
    pub per_page: u32,
}

/// `POST /api/invites`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct NewInvite {
    /// The world you are in.
    pub world_id: String,
}

/// Answer of `POST /api/invites`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Invite {
    /// For `POST /join`.
    pub code: String,
    /// What to put behind the site's address.
    pub path: String,
    /// RFC 3339.
    pub expires_at: String,
}

/// `GET /api/invites/{code}`: what a friend sees before they come.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct InviteInfo {
    /// The code.
    pub code: String,
    /// Who invites.
    pub inviter: String,
    /// How they look.
    pub looks: super::CharacterLooks,
    /// The game.
    pub game_id: String,
    /// Its title.
    pub game_name: String,
    /// Its picture, when it has one.
    pub thumbnail_url: Option<String>,
    /// Whether the world runs now; else it is started.
    pub running: bool,
    /// Players in it.
    pub players: u32,
    /// Players that fit.
    pub max_players: u32,
    /// RFC 3339.
    pub expires_at: String,
}
