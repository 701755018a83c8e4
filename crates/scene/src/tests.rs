//! Scenes read, refused with places, and written back byte for byte.

mod format_2;
mod hostile;
mod problems;

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::*;

const SMALL: &str = r##"{
  "format": 1,
  "prefabs": {
    "Coin": {
      "components": {
        "Shape": {"type": "cylinder", "radius": 0.5, "height": 0.1},
        "Tag": ["coin"],
        "Attributes": {"Shiny": true, "Value": 1}
      }
    }
  },
  "entities": [
    {
      "id": 1,
      "name": "Spawn",
      "components": {
        "Transform": {"position": [0, 1.5, -3.25]},
        "SpawnPoint": {}
      }
    },
    {
      "id": 2,
      "name": "Coin",
      "parent": 1,
      "prefab": "Coin",
      "components": {
        "Transform": {"position": [1, 0, 0], "rotation": [0, 1, 0, 0], "scale": [2, 2, 2]},
        "Material": {"color": "#ffc53d", "metalness": 0.5},
        "Tag": ["rare", "coin"],
        "Attributes": {"Value": 5}
      }
    }
  ]
}
"##;

fn parse(text: &str) -> Result<Scene, Report> {
    Scene::parse(text.as_bytes(), &Limits::default())
}

fn refused(text: &str) -> Report {
    parse(text).expect_err("the scene should be refused")
}

/// The problems of a scene with one entity that has these components, as `line:column rule`.
fn component_problems(components: &str) -> Vec<String> {
    let text = format!(
        "{{\"format\": 1, \"entities\": [{{\"id\": 1, \"name\": \"A\", \"components\": {{\n{components}\n}}}}]}}"
    );
    let report = match Scene::parse_with_warnings(text.as_bytes(), &Limits::default()) {
        Ok((_, warnings)) => warnings,
        Err(report) => report,
    };
    let problems = report.problems.iter();
    problems
        // One entity is no whole scene.
        .filter(|problem| !problem.message.contains("SpawnPoint"))
        .filter(|problem| !problem.message.contains("Material without Shape"))
        .map(|p| {
            format!(
                "{}:{} {}",
                p.line.unwrap(),
                p.column.unwrap(),
                p.rule.name()
            )
        })
        .collect()
}

#[test]
fn a_saved_scene_round_trips_byte_for_byte() {
    let scene = parse(SMALL).unwrap();
    assert_eq!(scene.to_canonical_json(), SMALL);
}

#[test]
fn a_hand_written_scene_settles_after_one_save() {
    let loose = r##"{"entities":[{"components":{"Npc":{"patrol":[[1.50,0,2.0],"Gate"],"walk_speed":2.50,"run_speed":5.5},
        "Light":{"color":"#FFFFFF","type":"point"}},"name":"A","id":7}],"format":1}"##;
    let saved = parse(loose).unwrap().to_canonical_json();
    assert_eq!(parse(&saved).unwrap().to_canonical_json(), saved);
    assert!(saved.contains("\"color\": \"#ffffff\""), "{saved}");
}

#[test]
fn prefab_components_lie_under_those_of_the_entity() {
    let scene = parse(SMALL).unwrap();
    let coin = scene.resolved(&scene.entities[1]);
    assert!(matches!(coin.shape, Some(Shape::Cylinder { .. })));
    assert_eq!(coin.material.unwrap().color, Color([0xff, 0xc5, 0x3d]));
    assert_eq!(coin.tag.unwrap(), ["coin", "rare"]);
    let attributes = coin.attributes.unwrap();
    assert_eq!(attributes["Value"], Attribute::Number(5.0));
    assert_eq!(attributes["Shiny"], Attribute::Bool(true));
}

#[test]
fn transforms_follow_parents_in_any_order() {
    let text = r#"{"format": 1, "entities": [
        {"id": 2, "name": "Child", "parent": 1, "components": {"Transform": {"position": [0, 0, -1]}}},
        {"id": 1, "name": "Turned", "components": {"Transform":
            {"position": [10, 0, 0], "rotation": [0, 0.70710678, 0, 0.70710678], "scale": [2, 2, 2]}}}
    ]}"#;
    let world = parse(text).unwrap().world_transforms();
    // A quarter turn to the left takes -z to -x.
    let [x, y, z] = world[0].position;
    assert!((x - 8.0).abs() < 1e-5 && y.abs() < 1e-5 && z.abs() < 1e-5);
    assert_eq!(world[0].scale, [2.0; 3]);
}

#[test]
fn shapes_scale_and_round_ones_stay_round() {
    let scaled = Shape::Sphere { radius: 1.0 }.scaled([1.0, 3.0, 2.0]);
    assert_eq!(scaled, Shape::Sphere { radius: 3.0 });
    let capsule = Shape::Capsule {
        radius: 1.0,
        height: 3.0,
    };
    let squat = Shape::Capsule {
        radius: 2.0,
        height: 4.0,
    };
    assert_eq!(capsule.scaled([2.0, 1.0, 1.0]), squat);
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let report = refused(
        r#"{
  "format": 3,
  "extra": true,
  "entities": [
    {"id": 1, "name": "A", "prefab": "Nope"},
    {"id": 1, "name": "", "parent": 9},
    {"name": "C", "colour": 1},
    {"id": 0, "name": "D", "components": {
      "Transform": {"position": [0, 0]},
      "Shape": {"type": "sphere", "radius": -1},
      "Wings": {}
    }}
  ]
}"#,
    );
    let found: Vec<String> = report
        .problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(|p| {
            format!(
                "{}:{} {}",
                p.line.unwrap(),
                p.column.unwrap(),
                p.rule.name()
            )
        })
        .collect();
    let expected = [
        "2:13 invalid-value",
        "3:3 unknown-key",
        "5:38 unknown-reference",
        "6:5 invalid-value",
        "6:5 duplicate-id",
        "6:37 unknown-reference",
        "7:5 missing-key",
        "7:19 unknown-key",
        "8:5 invalid-value",
        "9:38 invalid-value",
        "10:16 invalid-value",
        "11:7 unknown-key",
    ];
    assert_eq!(found, expected, "{report}");
}

#[test]
fn values_out_of_range_are_refused() {
    for (components, expected) in [
        (
            r#""Transform": {"position": [1e39, 0, 0]}"#,
            "2:31 non-finite-number",
        ),
        (
            r#""Transform": {"position": [1e7, 0, 0]}"#,
            "2:14 invalid-value",
        ),
        (
            r#""Transform": {"rotation": [0, 0, 0, 0]}"#,
            "2:14 invalid-value",
        ),
        (
            r#""Transform": {"rotation": [0, 1, 0, 1]}"#,
            "2:14 invalid-value",
        ),
        (r#""Transform": {"scale": [0, 1, 1]}"#, "2:14 invalid-value"),
        (
            r#""Shape": {"type": "capsule", "radius": 1, "height": 1}"#,
            "2:10 invalid-value",
        ),
        (
            r#""Shape": {"type": "mesh", "asset": "a.glb"}"#,
            "2:10 invalid-value",
        ),
        (r#""Material": {"opacity": 2}"#, "2:13 invalid-value"),
        (
            r#""Model": {"asset": "assets/a.png"}"#,
            "2:10 invalid-value",
        ),
        (
            r#""Script": {"path": "scripts/Workspace/A.luau"}"#,
            "2:11 invalid-value",
        ),
        (r#""Attributes": {"no spaces": 1}"#, "2:15 invalid-value"),
        (r#""Tag": [""]"#, "2:8 invalid-value"),
        (r#""Trigger": {}"#, "2:12 suspicious"),
        (r#""NetworkIdentity": {"net_id": 3}"#, "2:20 no-effect"),
    ] {
        assert_eq!(component_problems(components), [expected], "{components}");
    }
}

#[test]
fn values_of_the_wrong_type_are_refused_by_their_rule() {
    for (components, expected) in [
        (
            r#""Transform": {"position": [1e999, 0, 0]}"#,
            "non-finite-number",
        ),
        (r#""Transform": {"rotaton": [0, 0, 0, 1]}"#, "unknown-key"),
        (r#""Shape": {"type": "box"}"#, "missing-key"),
        (
            r#""Shape": {"type": "box", "size": [1, 1, 1], "radius": 1}"#,
            "unknown-key",
        ),
        (r#""Shape": {"type": "blob"}"#, "invalid-value"),
        (
            r#""Body": {"type": "static", "type": "static"}"#,
            "duplicate-key",
        ),
        (r#""Attributes": {"A": 1, "A": 2}"#, "duplicate-key"),
        (r#""Attributes": {"A": [1, 2]}"#, "invalid-value"),
        (r#""Material": {"color": "red"}"#, "invalid-value"),
        (r#""Tag": [], "Tag": []"#, "duplicate-key"),
        (r#""Transform": null, "Npc": []"#, "invalid-value"),
        (r#""Npc": {"sight": 5}"#, "unknown-key"),
        (r#""Npc": {"walk_speed": "fast"}"#, "invalid-value"),
        (r#""Npc": {"walk_speed": -1}"#, "invalid-value"),
        (r#""Npc": {"sight_distance": 1e30}"#, "invalid-value"),
        (r#""Npc": {"run_speed": 1e39}"#, "non-finite-number"),
        (r#""Npc": {"hostile": "everybody"}"#, "invalid-value"),
        (r#""Npc": {"patrol": [[1, 2]]}"#, "invalid-value"),
        (r#""Npc": {"patrol": [""]}"#, "invalid-value"),
        (r#""Npc": {"shirt": "red"}"#, "invalid-value"),
        (
            r#""Npc": {}, "Shape": {"type": "sphere", "radius": 1}"#,
            "invalid-value",
        ),
    ] {
        let found = component_problems(components);
        assert!(
            found.iter().all(|problem| problem.ends_with(expected)) && !found.is_empty(),
            "{components}: {found:?}"
        );
    }
}

#[test]
fn an_npc_round_trips_and_its_patrol_is_bounded() {
    let text = r##"{"format": 1, "entities": [{"id": 1, "name": "G", "components": {"Npc": {
        "sight_distance": 9.5, "patrol": ["Gate", [1, 0, -2.25]], "team": "Guards",
        "hostile": "other_teams", "vision_cone": true, "shirt": "#102030"}}}]}"##;
    let scene = parse(text).unwrap();
    let npc = scene.entities[0].components.npc.clone().unwrap();
    assert_eq!(npc.patrol[1], PatrolPoint::At([1.0, 0.0, -2.25]));
    assert_eq!((npc.hostile, npc.walk_speed), (Hostility::OtherTeams, 2.0));
    let saved = scene.to_canonical_json();
    assert_eq!(parse(&saved).unwrap(), scene);
    assert_eq!(parse(&saved).unwrap().to_canonical_json(), saved);
    assert!(!saved.contains("walk_speed"), "defaults stay out: {saved}");
    let many = |count: usize| {
        let points = vec!["[0, 0, 0]"; count].join(",");
        component_problems(&format!(r#""Npc": {{"patrol": [{points}]}}"#))
    };
    assert!(many(256).is_empty());
    assert_eq!(many(257).len(), 1);
    assert!(!many(10_000).is_empty());
}

#[test]
fn parents_that_go_in_circles_or_too_deep_are_refused() {
    let circle = r#"{"format": 1, "entities": [
        {"id": 1, "name": "A", "parent": 2}, {"id": 2, "name": "B", "parent": 1},
        {"id": 3, "name": "C", "parent": 3}]}"#;
    assert_eq!(refused(circle).error_count(), 2);
    assert!(refused(circle).broke(Rule::ParentCycle));
    let chain = |length: u32| {
        let entity = |id| match id {
            1 => r#"{"id": 1, "name": "E"}"#.to_owned(),
            _ => format!(r#"{{"id": {id}, "name": "E", "parent": {}}}"#, id - 1),
        };
        let entities: Vec<String> = (1..=length).rev().map(entity).collect();
        format!(r#"{{"format": 1, "entities": [{}]}}"#, entities.join(","))
    };
    assert!(parse(&chain(64)).is_ok());
    assert!(refused(&chain(65)).broke(Rule::ParentCycle));
    assert!(refused(&chain(20_000)).broke(Rule::ParentCycle));
}

#[test]
fn hostile_text_is_refused() {
    let deep = "[".repeat(1_000_000);
    for (text, rule) in [
        ("", Rule::Syntax),
        ("[]", Rule::InvalidValue),
        ("{\"format\": 1", Rule::Syntax),
        ("{\"format\": NaN}", Rule::Syntax),
        ("{\"format\": 1} x", Rule::Syntax),
        (deep.as_str(), Rule::JsonNesting),
    ] {
        let report = refused(text);
        let start: String = text.chars().take(20).collect();
        assert!(report.broke(rule), "{start}: {report}");
    }
    let not_utf8 = Scene::parse(b"{\n\xff}", &Limits::default()).unwrap_err();
    assert_eq!(not_utf8.problems[0].line, Some(2));
    let tiny = Limits {
        entities_max: 2,
        scene_bytes_max: 200,
        ..Limits::default()
    };
    let three = br#"{"format": 1, "entities": [{"id": 1, "name": "A"}, 2, 3]}"#;
    assert!(
        Scene::parse(three, &tiny)
            .unwrap_err()
            .broke(Rule::EntityCount)
    );
    assert!(
        Scene::parse(&[b' '; 201], &tiny)
            .unwrap_err()
            .broke(Rule::FileSize)
    );
}

#[test]
fn components_from_scripts_are_held_to_the_same_rules() {
    let spawned: Components = serde_json::from_str(r#"{"Shape": {"type": "sphere", "radius": 0}}"#)
        .expect("the types are right");
    assert_eq!(spawned.check()[0].component, "Shape");
    assert!(serde_json::from_str::<Components>(r#"{"Wings": {}}"#).is_err());
    assert!(serde_json::from_str::<Components>(r#"{"Attributes": {"A": 1, "A": 1}}"#).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Scene::parse(&bytes, &Limits::default());
    }

    #[test]
    fn a_damaged_scene_is_read_or_refused_without_a_panic(
        at in 0..SMALL.len(), with in "[\\[\\]{}\",:0-9a-z\\\\ é-]{0,4}", skip in 0..6_usize
    ) {
        let mut bytes = SMALL.as_bytes()[..at].to_vec();
        bytes.extend(with.as_bytes());
        bytes.extend(SMALL.as_bytes().get(at + skip..).unwrap_or_default());
        let _ = Scene::parse(&bytes, &Limits::default());
    }

    #[test]
    fn every_number_survives_saving(
        position in prop::array::uniform3(-1e6_f32..1e6),
        tiny in prop::array::uniform3(-1e-3_f32..1e-3),
        number in any::<f64>().prop_filter("JSON has finite numbers only", |n| n.is_finite()),
        text in "\\PC{0,20}",
    ) {
        let attributes = [
            ("N".to_owned(), Attribute::Number(number)),
            ("S".to_owned(), Attribute::String(text)),
            ("V".to_owned(), Attribute::Vector(tiny)),
        ];
        let entity = SceneEntity {
            id: 1,
            name: "E".into(),
            parent: None,
            prefab: None,
            components: Components {
                transform: Some(Transform { position, ..Transform::default() }),
                attributes: Some(attributes.into()),
                ..Components::default()
            },
            overrides: Overrides::default(),
            children: BTreeMap::new(),
        };
        let scene = Scene { format: 1, prefabs: BTreeMap::new(), entities: vec![entity], terrain: None };
        let saved = scene.to_canonical_json();
        let loaded = parse(&saved).unwrap();
        prop_assert_eq!(loaded.to_canonical_json(), saved);
        prop_assert_eq!(loaded, scene);
    }
}

/// A scene with nothing but this terrain.
fn with_terrain(terrain: &str) -> String {
    format!(
        "{{\n  \"format\": 1,\n  \"prefabs\": {{}},\n  \"entities\": [],\n  \"terrain\": {terrain}\n}}\n"
    )
}

#[test]
fn terrain_is_read_and_written_back_byte_for_byte() {
    let text = with_terrain(
        r#"{
    "size": [512, 128, 512],
    "origin": [-256, -32, -256],
    "block": 0.5,
    "generator": {"type": "hills", "seed": 7, "height": 40, "amplitude": 22, "scale": 110, "water": 37, "trees": 0.6, "clearing": {"center": [0, 0], "radius": 20, "height": 42}},
    "materials": ["stone", "planks"],
    "protected": [{"min": [-4, -32, -4], "max": [5, 96.5, 5]}],
    "editable": false,
    "reach": 6.5,
    "brush": 2,
    "rate": 12,
    "ops": [{"op": "paint", "center": [0.5, 9.5, 0.5], "size": [7, 1, 7], "material": "planks"}, {"op": "subtract", "center": [1, 2, 3], "radius": 2.5}]
  }"#,
    );
    let scene = parse(&text).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(scene.to_canonical_json(), text);
    let terrain = scene.terrain.unwrap();
    assert!(!terrain.editable && terrain.ops.len() == 2 && terrain.reach == 6.5);
    let flat = with_terrain(
        "{\n    \"size\": [32, 32, 32],\n    \"generator\": {\"type\": \"flat\", \"height\": 8}\n  }",
    );
    assert_eq!(parse(&flat).unwrap().to_canonical_json(), flat);
}

#[test]
fn problems_of_terrain_have_their_places() {
    let problems = |terrain: &str| -> Vec<String> {
        let report = refused(&with_terrain(terrain));
        let problems = report
            .problems
            .iter()
            .filter(|p| p.severity == Severity::Error);
        problems
            .map(|p| {
                format!(
                    "{}:{} {}",
                    p.line.unwrap(),
                    p.column.unwrap(),
                    p.rule.name()
                )
            })
            .collect()
    };
    assert_eq!(problems("{}"), ["5:14 missing-key"]);
    assert_eq!(problems("[]").len(), 2, "no object, and so no size");
    assert_eq!(problems("{\"size\": [1, 2, 3]}"), ["5:23 invalid-value"]);
    assert_eq!(problems("{\"size\": [32, 32]}"), ["5:30 invalid-value"]);
    assert_eq!(
        problems("{\"size\": [32, 32, 32],\n\"wet\": true}"),
        ["6:1 unknown-key"]
    );
    assert_eq!(
        problems("{\"size\": [32, 32, 32],\n\"reach\": -1,\n\"rate\": 1e9}"),
        ["6:10 invalid-value", "7:9 invalid-value"]
    );
    for wrong in [
        r#""generator": {"type": "caves"}"#,
        r#""generator": {"type": "flat"}"#,
        r#""generator": {"type": "flat", "height": 8, "wet": 1}"#,
        r#""generator": {"type": "flat", "height": -8}"#,
        r#""materials": ["gold"]"#,
        r#""materials": []"#,
        r#""protected": [{"min": [0, 0, 0]}]"#,
        r#""protected": [{"min": [1, 1, 1], "max": [0, 0, 0]}]"#,
        r#""ops": [{"op": "burn", "center": [0, 0, 0], "radius": 1}]"#,
        r#""ops": [{"op": "add", "center": [0, 0, 0], "radius": 1}]"#,
        r#""ops": [{"op": "add", "center": [0, 0, 0], "radius": 1, "size": [1, 1, 1], "material": "sand"}]"#,
        r#""ops": [{"op": "add", "center": [0, 0, 0], "radius": 1e39, "material": "sand"}]"#,
        r#""block": 0.3"#,
        r#""origin": [5, 0, 0]"#,
        r#""editable": "yes""#,
        r#""size": [32, 32, 32]"#,
    ] {
        let found = problems(&format!("{{\"size\": [32, 32, 32],\n{wrong}}}"));
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        assert!(found[0].starts_with("6:"), "{wrong}: {found:?}");
    }
}

/// Messages with their lines of what deserves a warning.
fn warnings(text: &str) -> Vec<(u32, String)> {
    let (_, report) = Scene::parse_with_warnings(text.as_bytes(), &Limits::default()).unwrap();
    let found = report.problems.into_iter();
    found
        .map(|problem| {
            assert_eq!(problem.severity, Severity::Warning);
            (problem.line.unwrap(), problem.message)
        })
        .collect()
}

#[test]
fn what_is_accepted_and_does_nothing_is_said_with_its_line() {
    let text = r##"{"format": 1, "prefabs": {"Tree": {"components": {
"Shape": {"type": "box", "size": [1, 1, 1]},
"Model": {"asset": "assets/tree.glb"}
}}}, "entities": [{"id": 1, "name": "A", "components": {
"SpawnPoint": {"team": "Red"},
"Sound": {"asset": "assets/wind.ogg"},
"Shape": {"type": "mesh", "asset": "assets/tree.glb"},
"Trigger": {},
"Body": {"type": "static", "mass": 5},
"Joint": {"type": "ball", "limits": [0, 1], "length": 3},
"Light": {"type": "sun", "range": 5}
}}, {"id": 2, "name": "B", "components": {
"Material": {"color": "#ffffff"}
}}]}"##;
    let found = warnings(text);
    let expected = [
        (3, "Model is not drawn"),
        (5, "team has no effect"),
        (6, "Sound is not played"),
        (8, "Trigger has no effect on a mesh"),
        (9, "mass has no effect"),
        (10, "limits and length have no effect"),
        (11, "range has no effect on a sun"),
        (13, "Material without Shape"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((line, message), (wanted_line, part)) in found.iter().zip(expected) {
        assert!(
            *line == wanted_line && message.contains(part),
            "{line} {message}"
        );
    }
}

#[test]
fn what_has_an_effect_is_not_warned_of() {
    let text = r##"{"format": 1, "entities": [{"id": 1, "name": "A", "components": {
"SpawnPoint": {}, "Shape": {"type": "box", "size": [1, 1, 1]}, "Material": {"color": "#ffffff"},
"Body": {"type": "dynamic", "mass": 5}, "Joint": {"type": "spring", "length": 3, "stiffness": 9}
}}, {"id": 2, "name": "B", "components": {"Light": {"type": "point", "range": 5}}}]}"##;
    assert_eq!(warnings(text), []);
}

#[test]
fn a_rotation_that_is_no_quaternion_is_told_what_one_is() {
    for (rotation, count) in [("[90, 0, 0]", 3), ("[0, 0, 0, 1, 0]", 5), ("[]", 0)] {
        let text = format!(
            "{{\"format\": 1, \"entities\": [{{\"id\": 1, \"name\": \"A\", \"components\": {{\n\
             \"Transform\": {{\"rotation\": {rotation}}}}}}}]}}"
        );
        let report = refused(&text);
        let wanted = format!("quaternion [x, y, z, w], four numbers and not {count}");
        let mut errors = report.problems.iter();
        let problem = errors.find(|p| p.severity == Severity::Error).unwrap();
        assert!(problem.message.contains(&wanted), "{report}");
        assert_eq!(problem.line, Some(2));
    }
}
