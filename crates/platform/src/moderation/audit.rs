//! The moderation log: reports, decisions and appeals. Append-only.

use axum::Json;
use axum::extract::State;
use sqlx::AnyConnection;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Moderator;
use crate::Platform;
use crate::api::{AuditEntry, AuditLog, TargetKind};
use crate::community::rules;
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::ApiQuery;
use crate::core::ids;
use crate::core::paging::PageQuery;

from_row!(AuditEntry {
    entry_id, at => rfc3339, actor_name, action, target_kind => TargetKind::from_name, target_id,
    target_name, rule => rules::title, summary
});

/// A new log entry.
pub struct LogRecord<'a> {
    /// User id and name of the user who acted.
    pub actor: (&'a str, &'a str),
    /// The action.
    pub action: &'static str,
    /// Kind of the target.
    pub target_kind: &'a str,
    /// Id of the target.
    pub target_id: &'a str,
    /// Name of the target.
    pub target_name: &'a str,
    /// Id of the rule.
    pub rule: &'a str,
    /// Reason.
    pub summary: &'a str,
}

pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Writes an entry, in the transaction of the logged action.
///
/// # Errors
/// When the database fails.
pub async fn write(
    connection: &mut AnyConnection,
    now_ms: i64,
    entry: LogRecord<'_>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO audit_log (entry_id, at, actor_id, actor_name, action, target_kind, target_id,
           target_name, rule, summary) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(ids::new_id("entry"))
    .bind(now_ms)
    .bind(entry.actor.0)
    .bind(entry.actor.1)
    .bind(entry.action)
    .bind(entry.target_kind)
    .bind(entry.target_id)
    .bind(entry.target_name)
    .bind(entry.rule)
    .bind(entry.summary)
    .execute(connection)
    .await?;
    Ok(())
}

/// The log of moderation actions
#[utoipa::path(get, path = "/api/moderation/log", tag = "moderation", params(PageQuery),
    security(("bearer" = [])),
    responses((status = 200, body = AuditLog), (status = 403)))]
async fn list(
    State(platform): State<Platform>,
    _: Moderator,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<AuditLog>, ApiError> {
    let page = query.page()?;
    let total: i64 = sqlx::query_scalar("SELECT COUNT(*) AS total FROM audit_log")
        .fetch_one(&platform.core.db)
        .await?;
    let entries = sqlx::query_as(
        "SELECT entry_id, at, actor_name, action, target_kind, target_id, target_name, rule, summary
         FROM audit_log ORDER BY at DESC, entry_id LIMIT $1 OFFSET $2",
    )
    .bind(page.limit())
    .bind(page.offset())
    .fetch_all(&platform.core.db).await?;
    Ok(Json(AuditLog {
        entries,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}
