//! Values in both encodings: the same again, and hostile ones refused.

use super::*;
use crate::message::PlayerStat;
use proptest::prelude::*;

pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        (-1e9f64..1e9).prop_map(Value::Number),
        any::<u8>().prop_map(|n| Value::Number(f64::from(n))),
        "[a-zA-Z0-9 é]{0,12}".prop_map(Value::String),
        [-1e6f32..1e6, -1e6f32..1e6, -1e6f32..1e6].prop_map(Value::Vector),
        any::<u32>().prop_map(Value::Entity),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Buffer),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::List),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..8).prop_map(Value::Map),
        ]
    })
}

fn any_number() -> impl Strategy<Value = f64> {
    let edges = [
        0.0,
        -0.0,
        9_007_199_254_740_992.0,
        9_007_199_254_740_994.0,
        1e300,
        0.5,
    ];
    prop_oneof![
        any::<i64>().prop_map(|n| n as f64),
        any::<i32>().prop_map(f64::from),
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
        (prop::sample::select(edges.to_vec()), any::<bool>()).prop_map(|(n, minus)| if minus {
            -n
        } else {
            n
        }),
    ]
}

#[test]
fn whole_numbers_are_integers_in_json() {
    let number = |n: f64| Value::Number(n).to_json().to_string();
    let cases = [
        (3.0, "3"),
        (-30.0, "-30"),
        (0.0, "0"),
        (-0.0, "-0.0"),
        (0.5, "0.5"),
        (9_007_199_254_740_992.0, "9007199254740992"),
        (9_007_199_254_740_994.0, "9007199254740994.0"),
        (1e300, "1e+300"),
        (f64::NAN, "null"),
        (f64::INFINITY, "null"),
    ];
    for (n, text) in cases {
        assert_eq!(number(n), text);
    }
    let tagged = Value::List(vec![Value::Vector([1.0, 2.0, 3.0]), Value::Entity(7)]);
    let text = tagged.to_json().to_string();
    assert_eq!(text, r#"[{"$v":[1.0,2.0,3.0]},{"$e":7}]"#);
}

#[test]
fn buffers_are_base64_in_json_and_bounded_in_both_forms() {
    let limits = ValueLimits::default();
    let buffer = Value::Buffer(vec![0, 255, 16]);
    assert_eq!(buffer.to_json().to_string(), r#"{"$b":"AP8Q"}"#);
    let read = |json: serde_json::Value| Value::from_json(&json, &limits);
    assert_eq!(read(serde_json::json!({ "$b": "AP8Q" })), Ok(buffer));
    for bad in [
        serde_json::json!({ "$b": 5 }),
        serde_json::json!({ "$b": "AP8" }),
        serde_json::json!({ "$b": "not base64!" }),
        serde_json::json!({ "$b": "=" }),
    ] {
        assert_eq!(read(bad), Err(ValueError::Malformed));
    }
    let most = limits.string_bytes_max;
    let full = Value::Buffer(vec![7; most]);
    assert_eq!(read(full.to_json()), Ok(full.clone()));
    let bytes = Args(vec![full.clone()]).to_bytes();
    assert_eq!(Args::from_bytes(&bytes, &limits), Ok(Args(vec![full])));
    let over = Value::Buffer(vec![7; most + 1]);
    let refused = Err(ValueError::BufferTooLong(most));
    assert_eq!(read(over.to_json()), refused.clone());
    let bytes = Args(vec![over.clone()]).to_bytes();
    assert_eq!(
        Args::from_bytes(&bytes, &limits),
        refused.clone().map(|_: Value| Args(vec![]))
    );
    assert_eq!(Args(vec![over]).check(&limits), refused.map(|_| ()));
}

#[test]
fn a_figure_beside_a_name_is_an_integer_in_json_and_the_same_bits_in_binary() {
    for (number, json) in [(3.0, "3"), (-0.5, "-0.5"), (-0.0, "-0.0")] {
        let stat = PlayerStat {
            name: "Coins".into(),
            text: "some".into(),
            number: Some(number),
        };
        let text = serde_json::to_string(&stat).unwrap();
        assert_eq!(
            text,
            format!(r#"{{"name":"Coins","text":"some","number":{json}}}"#)
        );
        assert_eq!(serde_json::from_str::<PlayerStat>(&text).unwrap(), stat);
        let bytes = postcard::to_stdvec(&stat).unwrap();
        assert_eq!(postcard::from_bytes::<PlayerStat>(&bytes).unwrap(), stat);
        assert_eq!(bytes.len(), 1 + 5 + 1 + 4 + 1 + 8);
    }
}

proptest! {
    #[test]
    fn binary_round_trip(values in prop::collection::vec(any_value(), 0..6)) {
        let args = Args(values);
        let bytes = args.to_bytes();
        prop_assert_eq!(Args::from_bytes(&bytes, &ValueLimits::default()).unwrap(), args);
    }

    #[test]
    fn json_round_trip(value in any_value()) {
        let json = value.to_json();
        prop_assert_eq!(Value::from_json(&json, &ValueLimits::default()).unwrap(), value);
    }

    /// As text, to the last bit, and whole numbers as integers.
    #[test]
    fn numbers_survive_their_json_text(number in any_number()) {
        let text = Value::Number(number).to_json().to_string();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let again = Value::from_json(&json, &ValueLimits::default()).unwrap();
        let Value::Number(again) = again else {
            panic!("{text}");
        };
        prop_assert_eq!(again.to_bits(), number.to_bits(), "{}", text);
        let whole = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
        let negative_zero = number.to_bits() == (-0.0f64).to_bits();
        prop_assert_eq!(json.as_i64().is_some(), whole && !negative_zero, "{}", text);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = Args::from_bytes(&bytes, &ValueLimits::default());
    }
}

#[test]
fn deep_nesting_is_refused_in_both_forms() {
    let mut bytes = vec![1];
    bytes.extend([TAG_LIST, 1].repeat(1000));
    bytes.push(TAG_NIL);
    assert_eq!(
        Args::from_bytes(&bytes, &ValueLimits::default()),
        Err(ValueError::TooDeep(32))
    );
    let json: serde_json::Value =
        serde_json::from_str(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap();
    assert_eq!(
        Value::from_json(&json, &ValueLimits::default()),
        Err(ValueError::TooDeep(32))
    );
}

#[test]
fn a_lying_length_is_refused_without_allocating() {
    assert_eq!(
        Args::from_bytes(&[1, TAG_LIST, 0xff, 0xff, 0x7f], &ValueLimits::default()),
        Err(ValueError::Malformed)
    );
}
