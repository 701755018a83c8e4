//! Reads rows. sqlx's own derive would compile the database drivers a second time, for the build.

use serde::de::DeserializeOwned;

/// Implements `FromRow` for a struct. Each field is the column of its name, or the column named
/// after the colon, converted by the function after the arrow.
macro_rules! from_row {
    ($type:ident { $($field:ident $(: $column:literal)? $(=> $convert:expr)?),* $(,)? }) => {
        impl sqlx::FromRow<'_, sqlx::any::AnyRow> for $type {
            fn from_row(row: &sqlx::any::AnyRow) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                Ok(Self {
                    $($field: $crate::core::db::from_row!(
                        @convert
                        row.try_get($crate::core::db::from_row!(@column $field $(: $column)?))?
                        $(=> $convert)?
                    )),*
                })
            }
        }
    };
    (@column $field:ident) => { stringify!($field) };
    (@column $field:ident: $column:literal) => { $column };
    (@convert $value:expr) => { $value };
    (@convert $value:expr => $convert:expr) => { $convert($value) };
}
pub(crate) use from_row;

/// Converts a column that is 0 or 1.
pub(crate) fn flag(value: i64) -> bool {
    value != 0
}

/// Converts a text column in which an empty text means none.
pub(crate) fn non_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Converts a JSON column; damaged JSON counts as missing.
pub(crate) fn json<T: DeserializeOwned + Default>(text: String) -> T {
    serde_json::from_str(&text).unwrap_or_default()
}
