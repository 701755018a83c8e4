//! A scene with every kind of mistake is refused with all of them at once, each with its place,
//! entity, component and field. `hostile.txt` is the report on `hostile.json`.

use super::*;

#[test]
fn a_hostile_scene_is_refused_with_all_problems_at_once() {
    let report = refused(include_str!("hostile.json"));
    let lines = report.problems.iter().map(|problem| {
        let Subject {
            entity,
            prefab,
            component,
            field,
        } = &problem.subject;
        let entity = entity.map(|id| id.to_string());
        let parts = [
            entity.as_ref(),
            prefab.as_ref(),
            component.as_ref(),
            field.as_ref(),
        ];
        let parts = parts.map(|part| part.map_or("-", String::as_str));
        format!("{problem}\n    {}\n", parts.join(" / "))
    });
    let found: String = lines.collect();
    if found != include_str!("hostile.txt") {
        panic!("the report has changed; where that is intended, hostile.txt becomes:\n{found}");
    }
}
