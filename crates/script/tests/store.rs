//! Stores that answer late, not at all, or too much is asked of.

use crate::support::Stage;
use frolic_fleet_api::store::requests_per_minute;
use frolic_protocol::Value;
use frolic_script::ScriptEvent;

const PATH: &str = "ServerScriptService/Save.luau";

fn start(source: &str) -> Stage {
    let mut stage = Stage::new();
    stage.start(&[(PATH, source)]);
    stage
}

#[test]
fn a_store_that_does_not_answer_is_an_error_after_ten_seconds() {
    let mut stage = start("Store.Set(\"a\", 1)\nprint(\"saved\")");
    stage.ticks(590);
    assert!(stage.errors().is_empty());
    stage.ticks(20);
    let errors = stage.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("did not answer within 10 seconds"));
    let world = stage.world.borrow();
    let line = world.logs.last().unwrap();
    assert_eq!((line.script.as_str(), line.line), (PATH, Some(1)));
    assert_eq!(line.source_line.as_deref(), Some("Store.Set(\"a\", 1)"));
    drop(world);
    // The answer that arrives afterwards is ignored.
    stage.answer_store();
    stage.ticks(2);
    assert!(stage.prints().is_empty());
}

#[test]
fn an_error_of_the_store_is_raised_at_the_call() {
    let mut stage = start("local x = 1\nlocal n = Store.Increment(\"a\")\nprint(n)");
    let id = stage.world.borrow().store_requests[0].id;
    let result = Err("the store is full".to_owned());
    stage.vm.dispatch(ScriptEvent::StoreAnswer { id, result });
    let world = stage.world.borrow();
    let line = world.logs.last().unwrap();
    assert_eq!(line.message, "the store is full");
    assert_eq!(line.line, Some(2));
}

#[test]
fn unrequested_answers_change_nothing() {
    let mut stage = start("print(Store.Get(\"a\"))");
    for id in [0, 99, u32::MAX] {
        let result = Ok(vec![Value::Number(1.0)]);
        stage.vm.dispatch(ScriptEvent::StoreAnswer { id, result });
    }
    stage.answer_store();
    stage.ticks(1);
    // Twice the same answer is one answer.
    stage.answer_store();
    assert_eq!(stage.prints(), ["nil"]);
    assert!(stage.errors().is_empty());
}

#[test]
fn too_many_requests_are_refused_and_the_limit_is_named() {
    let source = "
        local done, refused = 0, nil
        for i = 1, 1000 do
            task.spawn(function()
                local ok, text = pcall(Store.Set, `k{i}`, i)
                if ok then done += 1 else refused = text end
            end)
        end
        task.wait(1)
        print(done)
        print(refused)
    ";
    let mut stage = start(source);
    for _ in 0..90 {
        stage.answer_store();
        stage.ticks(1);
    }
    let limit = requests_per_minute(1);
    let prints = stage.prints();
    assert_eq!(prints[0], limit.to_string());
    assert!(
        prints[1].contains(&format!("{limit} requests a minute")),
        "{prints:?}"
    );
}

#[test]
fn an_update_that_others_get_in_the_way_of_tries_again() {
    let mut stage = start("print(Store.Update(\"n\", function(old) return (old or 0) + 1 end))");
    let answer = |stage: &mut Stage, values: Vec<Value>| {
        let id = stage.world.borrow().store_requests.last().unwrap().id;
        let result = Ok(values);
        stage.vm.dispatch(ScriptEvent::StoreAnswer { id, result });
    };
    let number = Value::Number;
    answer(&mut stage, vec![Value::Nil, number(0.0)]);
    answer(
        &mut stage,
        vec![Value::Bool(false), number(41.0), number(3.0)],
    );
    answer(&mut stage, vec![Value::Bool(true)]);
    assert_eq!(stage.prints(), ["42"]);

    // Up to a bound.
    let mut stage = start("Store.Update(\"n\", function(old) return 1 end)");
    answer(&mut stage, vec![Value::Nil, number(0.0)]);
    for _ in 0..50 {
        answer(
            &mut stage,
            vec![Value::Bool(false), Value::Nil, number(0.0)],
        );
    }
    let errors = stage.errors();
    assert!(errors[0].contains("other servers changed"), "{errors:?}");
}
