//! Pages of lists: which one is asked for, within bounds.

use serde::Deserialize;

use crate::error::ApiError;

/// Things on a page when nobody says how many.
const PER_PAGE: u32 = 20;
/// Most things on a page.
const PER_PAGE_MAX: u32 = 100;
/// Nobody turns this many pages by hand.
const PAGE_MAX: u32 = 100_000;

/// `?page=&per_page=`.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// From 1.
    #[param(minimum = 1, maximum = 100_000)]
    pub page: Option<u32>,
    /// At most 100.
    #[param(minimum = 1, maximum = 100)]
    pub per_page: Option<u32>,
}

/// A page that can be asked of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// From 1.
    pub page: u32,
    /// Most things on it.
    pub per_page: u32,
}

impl PageQuery {
    /// The page that is meant.
    ///
    /// # Errors
    /// 400 when it is out of bounds.
    pub fn page(self) -> Result<Page, ApiError> {
        let page = self.page.unwrap_or(1);
        let per_page = self.per_page.unwrap_or(PER_PAGE);
        if !(1..=PAGE_MAX).contains(&page) || !(1..=PER_PAGE_MAX).contains(&per_page) {
            return Err(ApiError::bad_request(
                "invalid_page",
                format!("pages count from 1 to {PAGE_MAX}, with 1 to {PER_PAGE_MAX} things each"),
            ));
        }
        Ok(Page { page, per_page })
    }
}

impl Page {
    /// For `LIMIT`.
    pub fn limit(self) -> i64 {
        i64::from(self.per_page)
    }

    /// For `OFFSET`.
    pub fn offset(self) -> i64 {
        i64::from(self.page - 1) * i64::from(self.per_page)
    }
}
