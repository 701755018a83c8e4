//! `/api/characters`: creating, editing and selecting characters.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use frolic_fleet_api::ticket::LOOKS_BYTES_MAX;
use frolic_protocol::avatar::Rgb;
use sqlx::Row;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{
    Character, CharacterList, CharacterLooks, EditCharacter, NewCharacter, PublicProfile,
};
use crate::community::Community;
use crate::community::auth::Session;
use crate::core::clock::rfc3339;
use crate::core::db::{flag, from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath};
use crate::core::{ids, names};

/// Characters per user.
const CHARACTERS_MAX: u32 = 12;

const SELECT: &str =
    "SELECT c.character_id, c.name, c.looks, c.version, c.created_at, c.updated_at,
        CASE WHEN a.character_id IS NULL THEN 0 ELSE 1 END AS active
    FROM characters c LEFT JOIN active_characters a
        ON a.user_id = c.user_id AND a.character_id = c.character_id
    WHERE c.user_id = $1";

/// Routes of characters and public profiles.
pub fn routes() -> OpenApiRouter<Arc<Community>> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(edit, remove))
        .routes(routes!(activate))
        .routes(routes!(profile))
}

from_row!(Character {
    character_id, name, looks => parse_looks, active => flag, version => to_u32,
    created_at => rfc3339, updated_at => rfc3339
});

/// Your characters
#[utoipa::path(get, path = "/api/characters", tag = "profiles", security(("bearer" = [])),
    responses((status = 200, body = CharacterList)))]
async fn list(
    State(community): State<Arc<Community>>,
    session: Session,
) -> Result<Json<CharacterList>, ApiError> {
    // Creates the default character first, so that the list is never empty.
    let now = community.core.clock.now_ms();
    super::active(&community.core.db, &session.user_id, &session.username, now).await?;
    let select = format!("{SELECT} ORDER BY c.created_at, c.character_id LIMIT $2");
    let characters = sqlx::query_as(sqlx::AssertSqlSafe(select))
        .bind(&session.user_id)
        .bind(i64::from(CHARACTERS_MAX) * 2)
        .fetch_all(&community.core.db)
        .await?;
    Ok(Json(CharacterList {
        characters,
        limit: CHARACTERS_MAX,
    }))
}

/// Create another character
#[utoipa::path(post, path = "/api/characters", tag = "profiles", security(("bearer" = [])),
    request_body = NewCharacter,
    responses((status = 201, body = Character), (status = 409)))]
async fn create(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiJson(new): ApiJson<NewCharacter>,
) -> Result<(StatusCode, Json<Character>), ApiError> {
    let name = clean_name(&community, &new.name)?;
    let looks = stored_looks(&new.looks)?;
    let now = community.core.clock.now_ms();
    super::active(&community.core.db, &session.user_id, &session.username, now).await?;
    let character_id = ids::new_id("character");
    // The count and the insert are one statement: concurrent requests cannot exceed the limit on
    // SQLite, and by one at most on Postgres.
    let made = sqlx::query(
        "INSERT INTO characters (user_id, character_id, name, looks, version, created_at, updated_at)
         SELECT $1, $2, $3, $4, 1, $5, $5
         WHERE (SELECT COUNT(*) FROM characters WHERE user_id = $1) < $6",
    )
    .bind(&session.user_id)
    .bind(&character_id)
    .bind(&name)
    .bind(&looks)
    .bind(now)
    .bind(i64::from(CHARACTERS_MAX))
    .execute(&community.core.db)
    .await?;
    if made.rows_affected() == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_characters",
            format!("you already have {CHARACTERS_MAX} characters; delete one first"),
        ));
    }
    let made = find(&community, &session.user_id, &character_id).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Change a character
#[utoipa::path(put, path = "/api/characters/{id}", tag = "profiles", security(("bearer" = [])),
    request_body = EditCharacter,
    responses((status = 200, body = Character),
        (status = 409, description = "the character was edited in the meantime")))]
async fn edit(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiPath(id): ApiPath<String>,
    ApiJson(edit): ApiJson<EditCharacter>,
) -> Result<Json<Character>, ApiError> {
    let name = clean_name(&community, &edit.name)?;
    let looks = stored_looks(&edit.looks)?;
    let changed = sqlx::query(
        "UPDATE characters SET name = $1, looks = $2, version = version + 1, updated_at = $3
         WHERE user_id = $4 AND character_id = $5 AND version = $6",
    )
    .bind(&name)
    .bind(&looks)
    .bind(community.core.clock.now_ms())
    .bind(&session.user_id)
    .bind(&id)
    .bind(i64::from(edit.version))
    .execute(&community.core.db)
    .await?;
    let now = find(&community, &session.user_id, &id).await?;
    if changed.rows_affected() == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "version_conflict",
            "this character was edited in the meantime; reload it and edit again",
        )
        .with_details(serde_json::json!({ "version": now.version })));
    }
    Ok(Json(now))
}

/// Delete a character
#[utoipa::path(delete, path = "/api/characters/{id}", tag = "profiles", security(("bearer" = [])),
    responses((status = 204),
        (status = 409, description = "the last character cannot be deleted")))]
async fn remove(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiPath(id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    let removed = sqlx::query(
        "DELETE FROM characters WHERE user_id = $1 AND character_id = $2
           AND (SELECT COUNT(*) FROM characters WHERE user_id = $1) > 1",
    )
    .bind(&session.user_id)
    .bind(&id)
    .execute(&community.core.db)
    .await?;
    if removed.rows_affected() == 0 {
        find(&community, &session.user_id, &id).await?;
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "last_character",
            "you need at least one character; create another one before you delete this one",
        ));
    }
    // If it was the active one, another one is selected.
    let now = community.core.clock.now_ms();
    super::active(&community.core.db, &session.user_id, &session.username, now).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Play as this character from the next join on
#[utoipa::path(post, path = "/api/characters/{id}/activate", tag = "profiles", security(("bearer" = [])),
    responses((status = 200, body = Character)))]
async fn activate(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Character>, ApiError> {
    sqlx::query(
        "INSERT INTO active_characters (user_id, character_id)
         SELECT user_id, character_id FROM characters WHERE user_id = $1 AND character_id = $2
         ON CONFLICT (user_id) DO UPDATE SET character_id = excluded.character_id",
    )
    .bind(&session.user_id)
    .bind(&id)
    .execute(&community.core.db)
    .await?;
    Ok(Json(find(&community, &session.user_id, &id).await?))
}

/// Public profile of a user
#[utoipa::path(get, path = "/api/users/{id}", tag = "profiles",
    responses((status = 200, body = PublicProfile)))]
async fn profile(
    State(community): State<Arc<Community>>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<PublicProfile>, ApiError> {
    let row = sqlx::query(
        "SELECT u.user_id, u.username, u.created_at, c.looks FROM users u
         LEFT JOIN active_characters a ON a.user_id = u.user_id
         LEFT JOIN characters c ON c.user_id = a.user_id AND c.character_id = a.character_id
         WHERE u.user_id = $1",
    )
    .bind(&id)
    .fetch_optional(&community.core.db)
    .await?
    .ok_or_else(unknown_user)?;
    let looks: Option<String> = row.try_get("looks")?;
    Ok(Json(PublicProfile {
        user_id: row.try_get("user_id")?,
        username: row.try_get("username")?,
        looks: parse_looks(looks.as_deref().unwrap_or("{}")),
        joined_at: rfc3339(row.try_get("created_at")?),
    }))
}

/// 404 response for a user.
pub fn unknown_user() -> ApiError {
    ApiError::not_found("user_not_found", "there is no user with this id")
}

async fn find(community: &Community, user_id: &str, id: &str) -> Result<Character, ApiError> {
    let select = format!("{SELECT} AND c.character_id = $2");
    let character = sqlx::query_as(sqlx::AssertSqlSafe(select))
        .bind(user_id)
        .bind(id)
        .fetch_optional(&community.core.db)
        .await?;
    character.ok_or_else(|| {
        ApiError::not_found("character_not_found", "you have no character with this id")
    })
}

/// Parses stored looks; unknown values become defaults.
pub fn parse_looks(text: &str) -> CharacterLooks {
    serde_json::from_str(text).unwrap_or_default()
}

fn clean_name(community: &Community, typed: &str) -> Result<String, ApiError> {
    let refused = |why| ApiError::bad_request("invalid_name", why);
    if typed.chars().count() > names::TYPED_CHARS_MAX {
        return Err(refused("a character's name can have at most 20 characters"));
    }
    let name = names::clean(typed);
    let name = name.ok_or_else(|| refused("a character's name must contain letters or digits"))?;
    names::check_inoffensive(&community.core.settings, &name)?;
    Ok(name)
}

fn stored_looks(looks: &CharacterLooks) -> Result<String, ApiError> {
    let CharacterLooks {
        skin,
        hair,
        shirt,
        trousers,
        accent,
        ..
    } = looks;
    let colors = [skin, hair, shirt, trousers, accent];
    if colors
        .into_iter()
        .flatten()
        .any(|color| Rgb::parse(color).is_none())
    {
        return Err(ApiError::bad_request(
            "invalid_color",
            "a colour must have the form #rrggbb, such as #ff5d5d",
        ));
    }
    let text = serde_json::to_string(looks).unwrap_or_else(|_| "{}".to_owned());
    debug_assert!(text.len() <= LOOKS_BYTES_MAX, "{text}");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_protocol::avatar::{AvatarLooks, Face, Hat};

    #[test]
    fn worlds_read_the_looks_that_the_site_stores() {
        use crate::api::{FaceName as F, HatName as H};
        let hats = [
            (H::None, Hat::None),
            (H::Cap, Hat::Cap),
            (H::Beanie, Hat::Beanie),
            (H::TopHat, Hat::TopHat),
            (H::Crown, Hat::Crown),
            (H::Party, Hat::Party),
            (H::Straw, Hat::Straw),
            (H::Horns, Hat::Horns),
        ];
        let faces = [
            (F::Smile, Face::Smile),
            (F::Grin, Face::Grin),
            (F::Wink, Face::Wink),
            (F::Cool, Face::Cool),
            (F::Surprised, Face::Surprised),
            (F::Sleepy, Face::Sleepy),
            (F::Fierce, Face::Fierce),
        ];
        for (index, (hat, seen_hat)) in hats.into_iter().enumerate() {
            let (face, seen_face) = faces[index % faces.len()];
            let looks = CharacterLooks {
                skin: Some("#FFdcb8".into()),
                hair: Some("#010203".into()),
                shirt: Some("#040506".into()),
                trousers: Some("#070809".into()),
                accent: Some("#0a0b0c".into()),
                hat,
                face,
            };
            let seen = AvatarLooks::from_json(&stored_looks(&looks).unwrap());
            assert_eq!((seen.hat, seen.face), (seen_hat, seen_face));
            assert_eq!(seen.skin, Some(Rgb([255, 0xdc, 0xb8])));
            assert_eq!(seen.accent, Some(Rgb([10, 11, 12])));
        }
        let bad = CharacterLooks {
            hair: Some("red".into()),
            ..CharacterLooks::default()
        };
        assert!(stored_looks(&bad).is_err());
    }
}
