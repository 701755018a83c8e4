//! `/api/spells` and `/api/jobs`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::drafts::SpellFilter;
use super::{content, drafts, jobs};
use crate::api::{
    BuildRequest, BuildStarted, CreateSpellRequest, DraftCreated, JobInfo, PublishSpellRequest,
    RevisionList, SpellInfo, SpellList, SpellManifest, SpellPublished,
};
use crate::community::auth::{Principal, Session};
use crate::community::sanctions::ActiveSession;
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath, ApiQuery, OptionalJson};
use crate::core::paging::{PER_PAGE, Page, PageQuery};
use crate::spells::Spells;

/// All routes of spells.
pub fn routes() -> OpenApiRouter<Arc<Spells>> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show))
        .routes(routes!(build))
        .routes(routes!(publish))
        .routes(routes!(revisions))
        .routes(routes!(manifest))
        .routes(routes!(file))
        .routes(routes!(spell_jobs))
        .routes(routes!(job))
        .routes(routes!(cancel))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Substring of the name, description or id.
    #[serde(default)]
    q: Option<String>,
    /// Only your own spells.
    #[serde(default)]
    mine: Option<bool>,
    /// Page number, from 1.
    #[param(minimum = 1, maximum = 10_000)]
    page: Option<u32>,
    /// Page size; at most 100.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
}

/// Lists published spells and your own; the last changed first.
#[utoipa::path(
    get, path = "/api/spells", tag = "spells", params(ListQuery),
    responses(
        (status = 200, body = SpellList),
        (status = 401, description = "Invalid token"),
    ),
    security((), ("bearer" = []))
)]
async fn list(
    State(spells): State<Arc<Spells>>,
    actor: Principal,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<SpellList>, ApiError> {
    let filter = SpellFilter {
        query: query.q.unwrap_or_default(),
        mine: query.mine.unwrap_or(false),
        page: Page::of(query.page, query.per_page, PER_PAGE)?,
    };
    Ok(Json(drafts::list(&spells, &actor, &filter).await?))
}

/// Creates a spell. Returns the existing spell if the id is already yours.
#[utoipa::path(
    post, path = "/api/spells", tag = "spells", request_body = Option<CreateSpellRequest>,
    responses(
        (status = 201, body = DraftCreated),
        (status = 200, description = "The spell exists already and is yours", body = DraftCreated),
        (status = 400, description = "Invalid spell id"),
        (status = 403, description = "You are suspended"),
        (status = 409, description = "The id is taken by another user"),
        (status = 413, description = "The body is too large"),
        (status = 429, description = "Too many spells"),
    ),
    security(("bearer" = []))
)]
async fn create(
    State(spells): State<Arc<Spells>>,
    ActiveSession(session): ActiveSession,
    OptionalJson(request): OptionalJson<CreateSpellRequest>,
) -> Result<(StatusCode, Json<DraftCreated>), ApiError> {
    let created = drafts::create(&spells, &Principal::from(&session), &request).await?;
    let status = if created.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(created)))
}

/// One spell.
#[utoipa::path(
    get, path = "/api/spells/{id}", tag = "spells",
    responses(
        (status = 200, body = SpellInfo),
        (status = 401, description = "Invalid token"),
        (status = 404, description = "Spell not found"),
    ),
    security((), ("bearer" = []))
)]
async fn show(
    State(spells): State<Arc<Spells>>,
    actor: Principal,
    ApiPath(spell_id): ApiPath<String>,
) -> Result<Json<SpellInfo>, ApiError> {
    Ok(Json(
        drafts::show(&spells.core.db, &actor, &spell_id).await?,
    ))
}

/// Builds a revision in the background, from code or a prompt; creates the spell if
/// it does not exist.
#[utoipa::path(
    post, path = "/api/spells/{id}/build", tag = "spells",
    request_body = BuildRequest,
    responses(
        (status = 202, body = BuildStarted),
        (status = 400, description = "Nothing to build"),
        (status = 403, description = "The spell belongs to another user"),
        (status = 404, description = "Parent revision not found"),
        (status = 409, description = "The id is taken, or the draft changed in the meantime"),
        (status = 413, description = "The code or prompt is too long"),
        (status = 429, description = "Too many unfinished builds"),
        (status = 503, description = "The build queue is full"),
    ),
    security(("bearer" = []))
)]
async fn build(
    State(spells): State<Arc<Spells>>,
    ActiveSession(session): ActiveSession,
    ApiPath(spell_id): ApiPath<String>,
    ApiJson(request): ApiJson<BuildRequest>,
) -> Result<(StatusCode, Json<BuildStarted>), ApiError> {
    let started = jobs::start(&spells, &Principal::from(&session), &spell_id, request).await?;
    Ok((StatusCode::ACCEPTED, Json(started)))
}

/// Makes a revision the active one of a channel; running worlds load it.
#[utoipa::path(
    post, path = "/api/spells/{id}/publish", tag = "spells",
    request_body = PublishSpellRequest,
    responses(
        (status = 200, body = SpellPublished),
        (status = 403, description = "The spell belongs to another user"),
        (status = 404, description = "Spell or revision not found"),
        (status = 413, description = "The body is too large"),
    ),
    security(("bearer" = []))
)]
async fn publish(
    State(spells): State<Arc<Spells>>,
    ActiveSession(session): ActiveSession,
    ApiPath(spell_id): ApiPath<String>,
    ApiJson(request): ApiJson<PublishSpellRequest>,
) -> Result<Json<SpellPublished>, ApiError> {
    let actor = Principal::from(&session);
    Ok(Json(
        super::publish(&spells, &actor, &spell_id, &request).await?,
    ))
}

/// Lists the revisions of a spell, the newest first. Drafts are visible only to their
/// creator.
#[utoipa::path(
    get, path = "/api/spells/{id}/revisions", tag = "spells",
    params(PageQuery),
    responses(
        (status = 200, body = RevisionList),
        (status = 401, description = "Invalid token"),
        (status = 404, description = "Spell not found"),
    ),
    security((), ("bearer" = []))
)]
async fn revisions(
    State(spells): State<Arc<Spells>>,
    actor: Principal,
    ApiPath(spell_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<RevisionList>, ApiError> {
    let page = query.page()?;
    let list = content::revisions(&spells.core.db, &actor, &spell_id, page).await?;
    Ok(Json(list))
}

/// The manifest of a revision. It never changes.
#[utoipa::path(
    get, path = "/api/spells/{id}/revisions/{rev}/manifest", tag = "spells",
    responses(
        (status = 200, body = SpellManifest),
        (status = 304, description = "Not modified since `If-None-Match`"),
        (status = 401, description = "Invalid token"),
        (status = 404, description = "Revision not found"),
    ),
    security((), ("bearer" = []))
)]
async fn manifest(
    State(spells): State<Arc<Spells>>,
    actor: Principal,
    ApiPath((spell_id, revision)): ApiPath<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let revision = content::revision(&spells.core.db, &actor, &spell_id, &revision).await?;
    let tag = format!("\"{}\"", revision.revision_id);
    Ok(unless_known(&headers, &tag, || {
        Json(revision.manifest).into_response()
    }))
}

/// A file of a revision by path, such as `spell.luau`. It never changes.
#[utoipa::path(
    get, path = "/api/spells/{id}/revisions/{rev}/files/{path}", tag = "spells",
    responses(
        (status = 200, description = "The content of the file", content_type = "text/plain", body = String),
        (status = 304, description = "Not modified since `If-None-Match`"),
        (status = 401, description = "Invalid token"),
        (status = 404, description = "File not found"),
    ),
    security((), ("bearer" = []))
)]
async fn file(
    State(spells): State<Arc<Spells>>,
    actor: Principal,
    ApiPath((spell_id, revision, path)): ApiPath<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let revision = content::revision(&spells.core.db, &actor, &spell_id, &revision).await?;
    let (file, bytes) = content::file(&spells, &revision, &path).await?;
    let tag = format!("\"{}\"", file.sha256);
    Ok(unless_known(&headers, &tag, || {
        // Untrusted text: served as plain text, so that a browser never renders it as
        // a page.
        let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        (kind, Body::from(bytes)).into_response()
    }))
}

/// 304 if the client has this version already.
fn unless_known(headers: &HeaderMap, tag: &str, answer: impl FnOnce() -> Response) -> Response {
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(',').any(|one| one.trim() == tag));
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        answer()
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    // Shared caches must not store drafts.
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    response
}

/// The newest builds of your spell.
#[utoipa::path(
    get, path = "/api/spells/{id}/jobs", tag = "spells",
    responses(
        (status = 200, body = Vec<JobInfo>),
        (status = 403, description = "The spell belongs to another user"),
        (status = 404, description = "Spell not found"),
    ),
    security(("bearer" = []))
)]
async fn spell_jobs(
    State(spells): State<Arc<Spells>>,
    session: Session,
    ApiPath(spell_id): ApiPath<String>,
) -> Result<Json<Vec<JobInfo>>, ApiError> {
    let actor = Principal::from(&session);
    Ok(Json(
        jobs::of_spell(&spells.core.db, &actor, &spell_id).await?,
    ))
}

/// The state of a build. The log is only for the user who requested the build.
#[utoipa::path(
    get, path = "/api/jobs/{id}", tag = "spells",
    responses(
        (status = 200, body = JobInfo),
        (status = 401, description = "Invalid token"),
        (status = 404, description = "Build not found"),
    ),
    security((), ("bearer" = []))
)]
async fn job(
    State(spells): State<Arc<Spells>>,
    actor: Principal,
    ApiPath(job_id): ApiPath<String>,
) -> Result<Json<JobInfo>, ApiError> {
    let job = jobs::progress(&spells.core.db, &actor, &job_id).await?;
    Ok(Json(job))
}

/// Cancels a build.
#[utoipa::path(
    post, path = "/api/jobs/{id}/cancel", tag = "spells",
    responses(
        (status = 200, body = JobInfo),
        (status = 404, description = "Build not found, or not yours"),
        (status = 409, description = "The build is finished already"),
    ),
    security(("bearer" = []))
)]
async fn cancel(
    State(spells): State<Arc<Spells>>,
    session: Session,
    ApiPath(job_id): ApiPath<String>,
) -> Result<Json<JobInfo>, ApiError> {
    let actor = Principal::from(&session);
    let job = jobs::cancel(&spells, &actor, &job_id).await?;
    Ok(Json(job.info))
}
