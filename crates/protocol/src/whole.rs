//! Whole numbers, as clients write them.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde_json::Value as Json;

/// The largest number below which a double can be every whole one.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A whole number. Where every number is a double a client writes 42 as `42.0`,
/// and means the same. 42.5, or what does not fit, is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole<T>(pub T);

/// Reads a whole number, if it is one that fits.
pub(crate) fn whole_number<T: TryFrom<i64>>(json: &Json) -> Option<T> {
    let read = Whole::deserialize(json).ok();
    read.map(|Whole(number)| number)
}

impl<'de, T: TryFrom<i64>> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor(PhantomData))
    }
}

struct WholeVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i64>> Visitor<'_> for WholeVisitor<T> {
    type Value = Whole<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let kind = std::any::type_name::<T>();
        write!(formatter, "a whole number ({kind})")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        let whole = T::try_from(number).map(Whole);
        whole.map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
            self.visit_i64(number as i64)
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_may_be_written_as_a_double() {
        let check = |text: &str, small: Option<u32>, signed: Option<i32>| {
            let json: Json = serde_json::from_str(text).unwrap();
            assert_eq!(whole_number(&json), small, "{text}");
            assert_eq!(whole_number(&json), signed, "{text}");
            let read: Result<Whole<u32>, _> = serde_json::from_str(text);
            assert_eq!(read.ok().map(|Whole(number)| number), small, "{text}");
        };
        check("42", Some(42), Some(42));
        check("42.0", Some(42), Some(42));
        check("4.2e1", Some(42), Some(42));
        check("0.0", Some(0), Some(0));
        check("-0.0", Some(0), Some(0));
        check("-7", None, Some(-7));
        check("-7.0", None, Some(-7));
        check("4294967295.0", Some(u32::MAX), None);
        for none in [
            "42.5",
            "4294967296",
            "4294967296.0",
            "18446744073709551615",
            "1e20",
            "-1e300",
            "\"42\"",
            "true",
            "null",
            "[42]",
            "{}",
        ] {
            check(none, None, None);
        }
    }
}
