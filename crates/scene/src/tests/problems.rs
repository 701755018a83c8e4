//! Problems name the part of the scene that they are about.

use super::*;

/// Entity, prefab, component and field of each problem.
pub(super) fn subjects(text: &str) -> Vec<String> {
    let report = match Scene::parse_with_warnings(text.as_bytes(), &Limits::default()) {
        Ok((_, warnings)) => warnings,
        Err(report) => report,
    };
    let problems = report.problems.into_iter();
    problems
        .filter(|problem| problem.severity == Severity::Error)
        .map(|Problem { rule, subject, .. }| {
            let Subject {
                entity,
                prefab,
                component,
                field,
            } = subject;
            let entity = entity.map(|id| id.to_string());
            let parts = [entity, prefab, component, field];
            let parts = parts.map(|part| part.unwrap_or_else(|| "-".to_owned()));
            format!("{} {}", parts.join(" "), rule.name())
        })
        .collect()
}

#[test]
fn problems_name_entity_component_and_field() {
    let text = r##"{"format": 1, "prefabs": {"Tree": {"components": {
"Material": {"opacity": 2}
}}}, "entities": [
{"id": 1, "name": "A", "components": {
"Transform": {"position": [1e7, 0, 0]},
"Shape": {"type": "box"},
"Material": {"colour": "#ffffff"},
"Light": {"type": "sun", "intensity": "high"},
"Npc": {"walk_speed": 99},
"Helth": {}
}},
{"components": {"Body": {"type": "static", "group": 40}}, "id": 2, "name": ""},
{"id": 3, "name": "C", "parent": 9, "prefab": "Bush"},
{"id": 3, "name": "D", "parent": 3},
{"id": 5, "name": "E", "extra": 1, "extra": 2},
{"id": 6, "components": {"Joint": {"type": "ball", "with": 77}}}
]}"##;
    let expected = [
        "- Tree Material opacity invalid-value",
        "1 - Transform position invalid-value",
        "1 - Shape size missing-key",
        "1 - Material colour unknown-key",
        "1 - Light intensity invalid-value",
        "1 - Npc walk_speed invalid-value",
        "1 - - Helth unknown-key",
        "2 - - name invalid-value",
        "2 - Body group invalid-value",
        "3 - - parent unknown-reference",
        "3 - - prefab unknown-reference",
        "3 - - id duplicate-id",
        "3 - - parent parent-cycle",
        "5 - - extra unknown-key",
        "5 - - extra duplicate-key",
        "6 - - name missing-key",
        "6 - Joint with unknown-reference",
    ];
    let mut found = subjects(text);
    for wanted in expected {
        let index = found.iter().position(|problem| problem == wanted);
        let index = index.unwrap_or_else(|| panic!("{wanted} is not among {found:#?}"));
        found.remove(index);
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn problems_name_the_entity_for_people_and_for_programs() {
    let text = r#"{"format": 1, "entities": [{"id": 7, "name": "A", "components": {
"Material": {"opacity": 2}}}]}"#;
    let report = refused(text);
    let errors = report.problems.iter();
    let problem = errors.clone().find(|p| p.severity == Severity::Error);
    let problem = problem.unwrap();
    assert_eq!(
        problem.to_string(),
        "scene.json:2:13: error[invalid-value]: entity 7: Material: opacity must be from 0 to 1, \
         not 2"
    );
    let json = serde_json::to_value(problem).unwrap();
    assert_eq!(json["entity"], 7);
    assert_eq!(json["component"], "Material");
    assert_eq!(json["field"], "opacity");
    let back: Problem = serde_json::from_value(json).unwrap();
    assert_eq!(&back, problem);
}

#[test]
fn misspelt_names_are_suggested() {
    for (components, suggestion) in [
        (r#""Matrial": {}"#, "did you mean \"Material\"?"),
        (
            r##""Material": {"colour": "#ffffff"}"##,
            "did you mean `color`?",
        ),
        (r#""Npc": {"walkspeed": 2}"#, "did you mean `walk_speed`?"),
    ] {
        let text = format!(
            "{{\"format\": 1, \"entities\": [{{\"id\": 1, \"name\": \"A\", \
             \"components\": {{{components}}}}}]}}"
        );
        let report = refused(&text);
        assert!(report.to_string().contains(suggestion), "{report}");
    }
}
