//! Local development (`frolic dev`): the local creator's account, their sign-in link,
//! and worlds that follow the game folder.

use bytes::Bytes;
use sqlx::Row;
use tokio::sync::watch;

use crate::Platform;
use crate::api::PublishResponse;
use crate::catalog::publish::{self, PublishError, PublishOptions};
use crate::community::accounts::sessions;
use crate::community::auth::Kind;
use crate::core::names;
use crate::{catalog, worlds};

/// The account of the local creator. Fixed, so that the next start with the same data
/// folder finds it.
const CREATOR_ID: &str = "user_local_creator";
const CREATOR_NAME: &str = "Creator";
/// Names to try before giving up.
const NAMES_MAX: u32 = 1000;

impl Platform {
    /// The account that owns the games made on this machine, created on first use. It
    /// has no password; [`Platform::sign_in_key`] opens it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn local_creator(&self) -> Result<String, sqlx::Error> {
        let now = self.core.clock.now_ms();
        for number in 1..=NAMES_MAX {
            let name = match number {
                1 => CREATOR_NAME.to_owned(),
                _ => names::with_number(CREATOR_NAME, number),
            };
            sqlx::query(
                "INSERT INTO users (user_id, username, username_key, kind, role, created_at, last_seen_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING",
            )
            .bind(CREATOR_ID)
            .bind(&name)
            .bind(names::key(&name))
            .bind(Kind::Account.name())
            .bind(sessions::first_role(Kind::Account).name())
            .bind(now)
            .execute(&self.core.db)
            .await?;
            // Look up by id only: a guest may have taken the name.
            let row = sqlx::query("SELECT user_id FROM users WHERE user_id = $1")
                .bind(CREATOR_ID)
                .fetch_optional(&self.core.db)
                .await?;
            if let Some(row) = row {
                return row.try_get("user_id");
            }
        }
        Err(sqlx::Error::RowNotFound)
    }

    /// A one-time secret that signs `user_id` in, valid for `lifetime_ms`.
    pub fn sign_in_key(&self, user_id: &str, lifetime_ms: i64) -> String {
        let expires_at = self.core.clock.now_ms().saturating_add(lifetime_ms);
        self.community.sign_in_links.issue(user_id, expires_at)
    }

    /// Changes whenever a key of [`Platform::sign_in_key`] is used.
    pub fn sign_ins(&self) -> watch::Receiver<u64> {
        self.community.sign_in_links.used.subscribe()
    }

    /// Publishes a game under development. Everyone who can reach this platform can
    /// play it; a private game is only hidden from the listing.
    ///
    /// # Errors
    /// As [`Platform::publish_sample`].
    pub async fn publish_draft(
        &self,
        archive: Bytes,
        game_id: &str,
        creator_id: &str,
    ) -> Result<PublishResponse, PublishError> {
        // Data folders of earlier versions have the built-in account as creator.
        sqlx::query("UPDATE games SET creator_id = $1 WHERE game_id = $2 AND creator_id = $3")
            .bind(creator_id)
            .bind(game_id)
            .bind(&*self.house_id)
            .execute(&self.core.db)
            .await?;
        let published = publish::publish_package(
            &self.catalog,
            archive,
            creator_id,
            PublishOptions::default(),
        )
        .await?;
        self.catalog.set_first_game(&published.game_id);
        sqlx::query(
            "UPDATE games SET visibility = 'unlisted', chosen_visibility = 'unlisted'
             WHERE game_id = $1 AND visibility = 'private'",
        )
        .bind(&published.game_id)
        .execute(&self.core.db)
        .await?;
        catalog::game_changed(&self.catalog, &published.game_id).await?;
        Ok(published)
    }

    /// Records that a running world switched to another revision of its game, so that
    /// joins to that revision reach it and a restart uses it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn adopt_revision(&self, world_id: &str, revision: &str) -> Result<(), sqlx::Error> {
        if let Some(server) = self.worlds.fleet.server(world_id) {
            server.set_revision(revision);
        }
        worlds::set_revision(&self.core.db, world_id, revision).await
    }

    /// Makes every world of a game start with this revision from now on. Running
    /// worlds are not affected: stop them afterwards, and reconnecting players find
    /// the same world with the new revision.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn move_worlds(&self, game_id: &str, revision: &str) -> Result<(), sqlx::Error> {
        worlds::set_revision_of_game(&self.core.db, game_id, revision).await
    }
}
