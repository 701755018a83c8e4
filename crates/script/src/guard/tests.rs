//! The guard's slices: which one a stop applies to, and limits by safe points.

use super::*;

const WORK: &str = "local n = 0 for i = 1, 1000 do n += i end";

#[test]
fn the_slice_after_a_condemned_one_goes_on() {
    let lua = Lua::new();
    let guard = Guard::new(&lua, &VmLimits::untimed()).expect("a guard");
    let begin_slice = |number: f64| guard.slot().write_bytes(SLICE, &number.to_ne_bytes());
    begin_slice(7.0);
    let condemned = guard.shared.slice_number();
    let stopped = guard.run(|| {
        guard.shared.condemn(condemned);
        lua.load(WORK).exec()
    });
    assert!(
        matches!(&stopped, Err(Failure::Stopped(stop)) if stop.reason == StopReason::Time),
        "{stopped:?}"
    );
    let next = guard.run(|| {
        guard.shared.condemn(condemned);
        begin_slice(8.0);
        lua.load(WORK).exec()
    });
    assert!(next.is_ok(), "{next:?}");
}

#[test]
fn a_limit_of_safe_points_always_stops_at_the_same_one() {
    let reached = || {
        let lua = Lua::new();
        let limits = VmLimits {
            slice_steps: Some(10_000),
            ..VmLimits::untimed()
        };
        let guard = Guard::new(&lua, &limits).expect("a guard");
        let endless = "n = 0 while true do pcall(function() while true do n += 1 end end) end";
        let stopped = guard.run(|| lua.load(endless).exec());
        assert!(matches!(stopped, Err(Failure::Stopped(_))), "{stopped:?}");
        let n: u64 = lua.globals().get("n").expect("a number");
        let after = guard.run(|| lua.load(WORK).exec());
        assert!(after.is_ok(), "{after:?}");
        n
    };
    let first = reached();
    assert!((9_000..=10_000).contains(&first), "{first}");
    assert_eq!(first, reached());
}
