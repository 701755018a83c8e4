//! Pagination parameters. Values out of range are rejected, not clamped.

use serde::Deserialize;

use crate::core::error::ApiError;

/// Default page size.
pub const PER_PAGE: u32 = 20;
/// Maximum page size.
const PER_PAGE_MAX: u32 = 100;
/// Highest page number; bounds the cost of the offset.
const PAGE_MAX: u32 = 10_000;

/// `?page=&per_page=`.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Page number, from 1.
    #[param(minimum = 1, maximum = 10_000)]
    page: Option<u32>,
    /// Page size.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
}

/// A valid page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Page number, from 1.
    pub page: u32,
    /// Maximum number of items.
    pub per_page: u32,
}

impl PageQuery {
    /// The validated page.
    ///
    /// # Errors
    /// 400 when a parameter is out of range.
    pub fn page(self) -> Result<Page, ApiError> {
        Page::of(self.page, self.per_page, PER_PAGE)
    }
}

impl Page {
    /// The validated page, with `usual` as the default page size.
    ///
    /// # Errors
    /// 400 when a parameter is out of range.
    pub fn of(page: Option<u32>, per_page: Option<u32>, usual: u32) -> Result<Self, ApiError> {
        let bounded = |name: &str, value: u32, max: u32| {
            let message = || format!("{name} must be from 1 to {max}");
            let fits = (1..=max).contains(&value).then_some(value);
            fits.ok_or_else(|| ApiError::bad_request("invalid_query", message()))
        };
        Ok(Self {
            page: bounded("page", page.unwrap_or(1), PAGE_MAX)?,
            per_page: bounded("per_page", per_page.unwrap_or(usual), PER_PAGE_MAX)?,
        })
    }

    /// Value for `LIMIT`.
    pub fn limit(self) -> i64 {
        i64::from(self.per_page)
    }

    /// Value for `OFFSET`.
    pub fn offset(self) -> i64 {
        i64::from(self.page - 1) * i64::from(self.per_page)
    }

    /// The items of this page, out of a list in memory.
    pub fn cut<T>(self, all: Vec<T>) -> Vec<T> {
        let skip = (self.page - 1) as usize * self.per_page as usize;
        all.into_iter()
            .skip(skip)
            .take(self.per_page as usize)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_bounds() {
        let page = |page, per_page| Page::of(page, per_page, 24);
        assert_eq!(page(None, None).unwrap().limit(), 24);
        assert_eq!(page(None, None).unwrap().offset(), 0);
        assert_eq!(page(Some(3), Some(10)).unwrap().offset(), 20);
        for (number, size) in [
            (Some(0), None),
            (None, Some(0)),
            (None, Some(101)),
            (Some(u32::MAX), None),
        ] {
            assert!(page(number, size).is_err());
        }
    }

    #[test]
    fn a_page_of_a_list_in_memory() {
        let page = |page| Page::of(Some(page), Some(2), PER_PAGE).unwrap();
        assert_eq!(page(2).cut(vec![1, 2, 3]), vec![3]);
        assert_eq!(page(9).cut(vec![1, 2, 3]), Vec::<i32>::new());
    }
}
