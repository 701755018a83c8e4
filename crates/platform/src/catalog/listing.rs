//! The listings: Popular, New, Featured, search, tags, by creator.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;

use super::TaggedBody;
use super::cache::{Order, PageKey};
use crate::api::{GameList, TagList};
use crate::catalog::Catalog;
use crate::core::error::ApiError;
use crate::core::extract::ApiQuery;
use crate::core::names;
use crate::core::paging::Page;

const PAGE_SIZE: u32 = 24;
/// Maximum number of characters of a search, tag or name that are used.
const QUERY_CHARS_MAX: usize = 64;

/// Query of `GET /api/games`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Sort order; `featured` lists only games that moderators featured.
    #[serde(default)]
    #[param(inline)]
    sort: Sort,
    /// Words to find in titles, descriptions, tags and creators' names. The best
    /// matches come first; words with typos match too.
    #[serde(default)]
    q: String,
    /// Only games with this tag.
    #[serde(default)]
    tag: String,
    /// Only games of the creator with this name.
    #[serde(default)]
    creator: String,
    /// Page number, from 1.
    #[param(minimum = 1, maximum = 10_000)]
    page: Option<u32>,
    /// Page size; default 24.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Popular,
    New,
    Featured,
}

/// Lists public games.
///
/// # Errors
/// 400 for an invalid query.
#[utoipa::path(
    get, path = "/api/games", tag = "store",
    params(ListQuery),
    responses(
        (status = 200, body = GameList),
        (status = 304, description = "Not modified since `If-None-Match`"),
    )
)]
pub async fn list(
    State(catalog): State<Arc<Catalog>>,
    ApiQuery(query): ApiQuery<ListQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let paging = Page::of(query.page, query.per_page, PAGE_SIZE)?;
    let key = PageKey {
        order: match query.sort {
            Sort::Popular => Order::Popular,
            Sort::New => Order::New,
            Sort::Featured => Order::Featured,
        },
        search: trim_query(&query.q).to_lowercase(),
        tag: trim_query(&query.tag).to_lowercase(),
        creator: names::key(&trim_query(&query.creator)),
        page: paging.page,
        per_page: paging.per_page,
    };
    let view = catalog.cache.view(&catalog).await?;
    let page = view.page(key, |games, total| {
        TaggedBody::json(&GameList {
            games,
            total,
            page: paging.page,
            page_size: paging.per_page,
        })
    })?;
    Ok(page.answer(&headers))
}

/// Tags of the public games, the most used first.
///
/// # Errors
/// When the database fails.
#[utoipa::path(
    get, path = "/api/tags", tag = "store",
    responses((status = 200, body = TagList))
)]
pub async fn tags(State(catalog): State<Arc<Catalog>>) -> Result<Json<TagList>, ApiError> {
    let view = catalog.cache.view(&catalog).await?;
    Ok(Json(TagList {
        tags: view.tags().to_vec(),
    }))
}

/// Trims and bounds a query parameter.
fn trim_query(typed: &str) -> String {
    typed.trim().chars().take(QUERY_CHARS_MAX).collect()
}
