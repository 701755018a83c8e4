//! Edits on the site: a game's title, description, tags and visibility, publishing
//! it, and featuring by moderators.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sqlx::{AnyConnection, Row};

use super::channels::{bump_edition, refresh_visibility};
use super::{access, creator, edition_conflict, game_changed, games, text};
use crate::api::limits::{GAME_DESCRIPTION_CHARS_MAX, GAME_NAME_CHARS_MAX, TAGS_MAX};
use crate::api::{AtEdition, CreatorGame, EditGame, FeatureRequest};
use crate::catalog::Catalog;
use crate::community::auth::{Role, Session};
use crate::community::sanctions::ActiveSession;
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath};
use crate::core::texts;

/// Changes the page of your game. Omitted fields stay unchanged.
///
/// # Errors
/// 400 for a text that is too long, 409 when the game was changed in the meantime.
#[utoipa::path(
    patch, path = "/api/games/{id}", tag = "creator",
    request_body = EditGame,
    responses(
        (status = 200, body = CreatorGame),
        (status = 403), (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn edit(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiPath(game_id): ApiPath<String>,
    ApiJson(request): ApiJson<EditGame>,
) -> Result<Json<CreatorGame>, ApiError> {
    let changes = Changes::of(&request)?;
    change(
        &catalog,
        &session,
        &game_id,
        request.edition,
        async |connection| changes.write(connection, &game_id).await,
    )
    .await
}

/// Publishes your game with its chosen visibility.
///
/// # Errors
/// 409 for a game without a stable version, or one that moderators took down.
#[utoipa::path(
    post, path = "/api/games/{id}/publish", tag = "creator",
    request_body = AtEdition,
    responses(
        (status = 200, body = CreatorGame),
        (status = 403), (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn publish(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiPath(game_id): ApiPath<String>,
    ApiJson(request): ApiJson<AtEdition>,
) -> Result<Json<CreatorGame>, ApiError> {
    change(
        &catalog,
        &session,
        &game_id,
        request.edition,
        async |connection| {
            let row = sqlx::query(
                "SELECT g.taken_down, COALESCE(c.revision, '') AS stable FROM games g
             LEFT JOIN game_channels c ON c.game_id = g.game_id AND c.channel = 'stable'
             WHERE g.game_id = $1",
            )
            .bind(&game_id)
            .fetch_one(&mut *connection)
            .await?;
            let conflict = |code, message| ApiError::new(StatusCode::CONFLICT, code, message);
            if row.try_get::<i64, _>("taken_down")? != 0 {
                return Err(conflict(
                    "taken_down",
                    "moderators took this game down; you can appeal in the notice about it",
                ));
            }
            if row.try_get::<String, _>("stable")?.is_empty() {
                return Err(conflict(
                    "nothing_to_publish",
                    "this game has no stable version; release one of its versions to the stable \
                    channel first",
                ));
            }
            set_published(connection, &game_id, true).await
        },
    )
    .await
}

/// Hides your game from other users. Current players may continue; new players cannot
/// join.
///
/// # Errors
/// 409 when the game was changed in the meantime.
#[utoipa::path(
    post, path = "/api/games/{id}/unpublish", tag = "creator",
    request_body = AtEdition,
    responses(
        (status = 200, body = CreatorGame),
        (status = 403), (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn unpublish(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
    ApiJson(request): ApiJson<AtEdition>,
) -> Result<Json<CreatorGame>, ApiError> {
    change(
        &catalog,
        &session,
        &game_id,
        request.edition,
        async |connection| set_published(connection, &game_id, false).await,
    )
    .await
}

/// Features a game on the front page, or stops featuring it; for moderators.
///
/// # Errors
/// 403 for other users.
#[utoipa::path(
    put, path = "/api/games/{id}/featured", tag = "store",
    request_body = FeatureRequest,
    responses(
        (status = 204, description = "Done"),
        (status = 403),
    ),
    security(("bearer" = []))
)]
pub async fn feature(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
    ApiJson(request): ApiJson<FeatureRequest>,
) -> Result<StatusCode, ApiError> {
    session.require(Role::Moderator)?;
    let changed =
        sqlx::query("UPDATE games SET featured = $1, featured_at = $2 WHERE game_id = $3")
            .bind(i64::from(request.featured))
            .bind(catalog.core.clock.now_ms())
            .bind(&game_id)
            .execute(&catalog.core.db)
            .await?;
    if changed.rows_affected() == 0 {
        return Err(games::unknown_game());
    }
    game_changed(&catalog, &game_id).await?;
    tracing::info!(
        game_id,
        featured = request.featured,
        by = session.user_id,
        "featured"
    );
    Ok(StatusCode::NO_CONTENT)
}

/// Runs a change of the user's own game if its edition is current.
pub(super) async fn change(
    catalog: &Catalog,
    session: &Session,
    game_id: &str,
    edition: u32,
    work: impl AsyncFnOnce(&mut AnyConnection) -> Result<(), ApiError>,
) -> Result<Json<CreatorGame>, ApiError> {
    let db = &catalog.core.db;
    let game = access::owned(db, game_id, session).await?;
    let now = catalog.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(db).await?;
    if !bump_edition(&mut transaction, game_id, Some(edition), now).await? {
        return Err(edition_conflict(game.edition));
    }
    work(&mut transaction).await?;
    transaction.commit().await?;
    game_changed(catalog, game_id).await?;
    Ok(Json(creator::find(catalog, game_id).await?))
}

async fn set_published(
    connection: &mut AnyConnection,
    game_id: &str,
    published: bool,
) -> Result<(), ApiError> {
    sqlx::query("UPDATE games SET published = $1 WHERE game_id = $2")
        .bind(i64::from(published))
        .bind(game_id)
        .execute(&mut *connection)
        .await?;
    refresh_visibility(connection, game_id).await?;
    Ok(())
}

/// A validated edit.
struct Changes {
    /// Column, value, and the field name that is marked as edited.
    texts: Vec<(&'static str, String)>,
    downloads: Option<bool>,
}

impl Changes {
    fn of(request: &EditGame) -> Result<Self, ApiError> {
        let invalid = |message: String| ApiError::bad_request("invalid_field", message);
        let mut texts = Vec::new();
        if let Some(name) = &request.name {
            let name = texts::whole_line(name, GAME_NAME_CHARS_MAX);
            let max = GAME_NAME_CHARS_MAX;
            let name =
                name.ok_or_else(|| invalid(format!("name must have 1 to {max} characters")))?;
            texts.push(("name", name));
        }
        if let Some(description) = &request.description {
            let max = GAME_DESCRIPTION_CHARS_MAX;
            let description = texts::whole_lines(description, max);
            let description = description.ok_or_else(|| {
                invalid(format!("description must have at most {max} characters"))
            })?;
            texts.push(("description", description));
        }
        if let Some(tags) = &request.tags {
            let tags = text::tags(tags).ok_or_else(|| {
                invalid(format!(
                    "at most {} tags, each of at most 24 lower-case letters, digits and dashes",
                    TAGS_MAX
                ))
            })?;
            let tags = serde_json::to_string(&tags).map_err(std::io::Error::other)?;
            texts.push(("tags", tags));
        }
        if let Some(visibility) = request.visibility {
            texts.push(("visibility", visibility.name().to_owned()));
        }
        Ok(Self {
            texts,
            downloads: request.downloads,
        })
    }

    async fn write(&self, connection: &mut AnyConnection, game_id: &str) -> Result<(), ApiError> {
        for (name, value) in &self.texts {
            let column = match *name {
                "visibility" => "chosen_visibility",
                other => other,
            };
            // The column name comes from this program, never from a client.
            let query = format!("UPDATE games SET {column} = $1 WHERE game_id = $2");
            sqlx::query(sqlx::AssertSqlSafe(query))
                .bind(value)
                .bind(game_id)
                .execute(&mut *connection)
                .await?;
        }
        if let Some(downloads) = self.downloads {
            sqlx::query("UPDATE games SET downloads = $1 WHERE game_id = $2")
                .bind(i64::from(downloads))
                .bind(game_id)
                .execute(&mut *connection)
                .await?;
        }
        let names: Vec<&str> = self.texts.iter().map(|(name, _)| *name).collect();
        mark_edited(connection, game_id, &names, &[]).await?;
        refresh_visibility(connection, game_id).await?;
        Ok(())
    }
}

/// Records which fields no longer follow `game.toml`, and which follow it again. The
/// transaction must hold the game's row.
pub(super) async fn mark_edited(
    connection: &mut AnyConnection,
    game_id: &str,
    now_edited: &[&str],
    not_any_more: &[&str],
) -> Result<(), sqlx::Error> {
    let row = sqlx::query("SELECT edited FROM games WHERE game_id = $1")
        .bind(game_id)
        .fetch_one(&mut *connection)
        .await?;
    let edited: String = row.try_get("edited")?;
    let mut edited: Vec<String> = serde_json::from_str(&edited).unwrap_or_default();
    edited.retain(|name| !not_any_more.contains(&name.as_str()));
    for name in now_edited {
        if !edited.iter().any(|known| known == name) {
            edited.push((*name).to_owned());
        }
    }
    sqlx::query("UPDATE games SET edited = $1 WHERE game_id = $2")
        .bind(serde_json::to_string(&edited).unwrap_or_else(|_| "[]".to_owned()))
        .bind(game_id)
        .execute(connection)
        .await?;
    Ok(())
}
