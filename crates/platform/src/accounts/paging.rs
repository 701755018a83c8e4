//! Which part of a list is asked for.

use serde::Deserialize;

use crate::db::to_u32;

/// Most entries of one answer.
pub const PER_PAGE_MAX: u32 = 100;
const PER_PAGE: u32 = 50;
/// Pages past this are somebody's mistake; the offset stays cheap.
const PAGE_MAX: u32 = 10_000;

/// `?page=&per_page=`; what is out of range is brought into it.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Page number, from 1.
    #[param(minimum = 1, maximum = 10000)]
    page: Option<u32>,
    /// Entries on a page.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
}

impl PageQuery {
    /// With these numbers, as they came.
    pub fn new(page: Option<u32>, per_page: Option<u32>) -> Self {
        Self { page, per_page }
    }

    /// Page number, from 1.
    pub fn page(self) -> u32 {
        self.page.unwrap_or(1).clamp(1, PAGE_MAX)
    }

    /// Entries on a page.
    pub fn per_page(self) -> u32 {
        self.per_page.unwrap_or(PER_PAGE).clamp(1, PER_PAGE_MAX)
    }

    /// For `LIMIT`.
    pub fn limit(self) -> i64 {
        i64::from(self.per_page())
    }

    /// For `OFFSET`.
    pub fn offset(self) -> i64 {
        i64::from(self.page() - 1) * self.limit()
    }

    /// This page of a list that is in memory.
    pub fn of<T>(self, all: Vec<T>) -> Vec<T> {
        let skip = usize::try_from(self.offset()).unwrap_or(usize::MAX);
        let take = usize::try_from(self.limit()).unwrap_or(0);
        all.into_iter().skip(skip).take(take).collect()
    }

    /// A total as answers write it.
    pub fn total(count: i64) -> u32 {
        to_u32(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stay_in_range() {
        let page = |page, per_page| PageQuery { page, per_page };
        for (query, expected) in [
            (page(None, None), (1, 50, 0)),
            (page(Some(0), Some(0)), (1, 1, 0)),
            (page(Some(3), Some(20)), (3, 20, 40)),
            (page(Some(u32::MAX), Some(u32::MAX)), (10_000, 100, 999_900)),
        ] {
            assert_eq!((query.page(), query.per_page(), query.offset()), expected);
        }
        assert_eq!(page(Some(2), Some(2)).of(vec![1, 2, 3]), vec![3]);
        assert_eq!(page(Some(9), Some(2)).of(vec![1, 2, 3]), Vec::<i32>::new());
    }
}
