//! Pages of lists: which one is asked for. One that cannot be is refused, not
//! replaced by another.

use serde::Deserialize;

use crate::error::ApiError;

/// Things on a page when nobody says how many.
pub const PER_PAGE: u32 = 20;
/// Most things on a page.
const PER_PAGE_MAX: u32 = 100;
/// Pages past this are somebody's mistake; the offset stays cheap.
const PAGE_MAX: u32 = 10_000;

/// `?page=&per_page=`.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// From 1.
    #[param(minimum = 1, maximum = 10_000)]
    page: Option<u32>,
    /// Things on a page.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
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
        Page::of(self.page, self.per_page, PER_PAGE)
    }
}

impl Page {
    /// The page that is meant, with `usual` things on it when nobody says how
    /// many.
    ///
    /// # Errors
    /// 400 when it is out of bounds.
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

    /// For `LIMIT`.
    pub fn limit(self) -> i64 {
        i64::from(self.per_page)
    }

    /// For `OFFSET`.
    pub fn offset(self) -> i64 {
        i64::from(self.page - 1) * i64::from(self.per_page)
    }

    /// This page of a list that is in memory.
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
