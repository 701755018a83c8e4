//! Format 2: prefabs with children, changes of single fields, rotations in degrees.

use super::problems::subjects;
use super::*;

const FOREST: &str = r##"{
  "format": 2,
  "prefabs": {
    "Lamp": {
      "components": {
        "Shape": {"type": "box", "size": [0.5, 0.5, 0.5]},
        "Material": {"color": "#ffc53d", "roughness": 0.3, "opacity": 0.5}
      },
      "children": [
        {
          "name": "Bulb",
          "components": {
            "Transform": {"position": [0, 0.25, 0]},
            "Light": {"type": "point", "color": "#ffffff", "intensity": 1, "range": 6}
          }
        }
      ]
    },
    "Tree": {
      "components": {
        "Shape": {"type": "cylinder", "radius": 0.4, "height": 3},
        "Tag": ["tree"],
        "Attributes": {"Age": 10}
      },
      "children": [
        {
          "name": "Crown",
          "components": {
            "Transform": {"position": [0, 2.5, 0], "rotation_degrees": [0, 45, 0]},
            "Shape": {"type": "sphere", "radius": 1.5}
          },
          "children": [
            {
              "name": "Lamp",
              "prefab": "Lamp",
              "components": {
                "Transform": {"position": [1, 0, 0]},
                "Material": {"opacity": 1}
              }
            }
          ]
        }
      ]
    }
  },
  "entities": [
    {
      "id": 1,
      "name": "Oak",
      "prefab": "Tree",
      "components": {
        "Transform": {"position": [10, 1.5, 0], "scale": [2, 2, 2]},
        "Shape": {"height": 5},
        "Tag": ["old"],
        "Attributes": {"Age": 300}
      },
      "children": {
        "Crown": {"id": 7},
        "Crown/Lamp": {"id": 8, "components": {"Material": {"color": "#ff0000"}, "Tag": ["red"]}},
        "Crown/Lamp/Bulb": {"id": 9, "components": {"Light": {"range": 12}}}
      }
    },
    {
      "id": 2,
      "name": "Spawn",
      "parent": 7,
      "components": {
        "SpawnPoint": {}
      }
    }
  ]
}
"##;

fn warned(text: &str) -> Vec<String> {
    let (_, report) = Scene::parse_with_warnings(text.as_bytes(), &Limits::default())
        .unwrap_or_else(|report| panic!("{report}"));
    report.problems.iter().map(Problem::to_string).collect()
}

#[test]
fn a_saved_scene_of_format_2_round_trips_byte_for_byte() {
    let scene = parse(FOREST).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(scene.to_canonical_json(), FOREST);
    assert_eq!(warned(FOREST), Vec::<String>::new());
}

#[test]
fn an_entity_changes_single_fields_of_its_prefab() {
    let scene = parse(FOREST).unwrap();
    let oak = scene.resolved(&scene.entities[0]);
    let shape = Shape::Cylinder {
        radius: 0.4,
        height: 5.0,
    };
    assert_eq!(oak.shape, Some(shape));
    assert_eq!(oak.tag, Some(vec!["tree".to_owned(), "old".to_owned()]));
    let age = oak.attributes.unwrap()["Age"].clone();
    assert_eq!(age, Attribute::Number(300.0));
    // Format 1 replaces the component as a whole, which then lacks its other fields.
    let old = FOREST.replace("\"format\": 2", "\"format\": 1");
    assert!(refused(&old).broke(Rule::MissingKey));
}

#[test]
fn another_type_of_shape_replaces_all_fields() {
    let text = FOREST.replace(
        r#""Shape": {"height": 5}"#,
        r#""Shape": {"type": "sphere", "radius": 2}"#,
    );
    let scene = parse(&text).unwrap();
    let oak = scene.resolved(&scene.entities[0]);
    assert_eq!(oak.shape, Some(Shape::Sphere { radius: 2.0 }));
}

#[test]
fn instances_become_entities_with_their_recorded_ids() {
    let scene = parse(FOREST).unwrap().expand();
    let found: Vec<_> = scene
        .entities
        .iter()
        .map(|entity| (entity.id, entity.name.as_str(), entity.parent))
        .collect();
    let expected = [
        (1, "Oak", None),
        (7, "Crown", Some(1)),
        (8, "Lamp", Some(7)),
        (9, "Bulb", Some(8)),
        (2, "Spawn", Some(7)),
    ];
    assert_eq!(found, expected);
    let lamp = &scene.entities[2].components;
    let material = lamp.material.clone().unwrap();
    // The colour of the instance, the opacity of the child, the roughness of the prefab.
    assert_eq!(material.color, Color([255, 0, 0]));
    assert_eq!((material.opacity, material.roughness), (1.0, 0.3));
    assert_eq!(lamp.tag, Some(vec!["red".to_owned()]));
    let bulb = scene.entities[3].components.light.unwrap();
    assert_eq!((bulb.kind, bulb.range), (LightKind::Point, 12.0));
    // The crown is turned by 45 degrees, and everything is twice as large.
    let place = scene.world_transforms()[2];
    let at = 2.0 * 0.5_f32.sqrt();
    for (value, wanted) in place.position.into_iter().zip([10.0 + at, 6.5, -at]) {
        assert!((value - wanted).abs() < 1e-5, "{place:?}");
    }
}

#[test]
fn clients_receive_an_equal_scene_in_format_1() {
    let scene = parse(FOREST).unwrap().expand();
    let for_clients = parse(&scene.for_clients().to_canonical_json()).unwrap();
    assert_eq!(for_clients.format, 1);
    assert_eq!(for_clients.world_transforms(), scene.world_transforms());
    let pairs = for_clients.entities.iter().zip(&scene.entities);
    for (seen, own) in pairs {
        assert_eq!(
            (seen.id, &seen.name, seen.parent),
            (own.id, &own.name, own.parent)
        );
        assert_eq!(
            for_clients.resolved(seen),
            scene.resolved(own).for_clients()
        );
    }
}

#[test]
fn children_without_a_recorded_id_get_one_that_is_then_recorded() {
    let text = r#"{"format": 2, "prefabs": {"Lamp": {"children": [{"name": "Bulb"}, {"name": "Foot"}]}},
        "entities": [{"id": 3, "name": "A", "prefab": "Lamp", "children": {"Foot": {"id": 40}}},
        {"id": 1, "name": "S", "prefab": "Lamp", "components": {"SpawnPoint": {}}}]}"#;
    let found = warned(text);
    assert_eq!(found.len(), 2, "{found:?}");
    let saved = parse(text).unwrap().to_canonical_json();
    let ids: Vec<u32> = parse(&saved)
        .unwrap()
        .expand()
        .entities
        .iter()
        .map(|e| e.id)
        .collect();
    assert_eq!(ids, [3, 41, 40, 1, 42, 43]);
    assert_eq!(warned(&saved), Vec::<String>::new());
}

#[test]
fn prefab_trees_that_are_wrong_are_refused_with_all_problems() {
    let text = r#"{"format": 2, "prefabs": {
"Snake": {"children": [{"name": "Tail", "prefab": "Snake"}]},
"Hen": {"children": [{"name": "Egg", "prefab": "Egg"}]},
"Egg": {"children": [{"name": "Hen", "prefab": "Hen"}]},
"Twins": {"children": [{"name": "A"}, {"name": "A"}]},
"Lost": {"children": [{"name": "a/b", "prefab": "Nowhere"}, {"components": {}}, {"name": "X", "kind": 1}]},
"Lamp": {"components": {"Light": {"type": "point"}}, "children": [{"name": "Bulb", "components": {"Light": {"type": "sun", "intensity": -1}}}]}
}, "entities": [
{"id": 1, "name": "A", "prefab": "Lamp", "components": {"Light": {"rang": 4}}, "children": {"Bulb": {"id": 1}, "Shade": {"id": 5}}},
{"id": 2, "name": "B", "prefab": "Lamp", "components": {"Light": {"intensity": 1e6}}, "children": {"Bulb": {"id": 2000000, "components": {"Light": {"intensity": "x"}}}}},
{"id": 3, "name": "C", "components": {"Sound": {"asset": "assets/a.ogg"}, "SpawnPoint": {"team": "Red"}, "NetworkIdentity": {}}},
{"id": 4, "name": "D", "parent": 5, "components": {"Transform": {"rotation": [0, 0, 0, 1], "rotation_degrees": [0, 90, 0]}}},
{"id": 5, "name": "E", "parent": 4}
]}"#;
    let expected = [
        "- Snake - children parent-cycle",
        "- Hen - children parent-cycle",
        "- Egg - children parent-cycle",
        "- Twins - children duplicate-id",
        "- Lost - name invalid-value",
        "- Lost - prefab unknown-reference",
        "- Lost - name missing-key",
        "- Lost - kind unknown-key",
        "- Lamp Light intensity invalid-value",
        "1 - Light rang unknown-key",
        "1 - - children unknown-reference",
        "1 - - children duplicate-id",
        "2 - Light intensity invalid-value",
        "2 - Light intensity invalid-value",
        "2 - - children invalid-value",
        "3 - Sound - no-effect",
        "3 - SpawnPoint team no-effect",
        "3 - NetworkIdentity - no-effect",
        "4 - - parent parent-cycle",
        "4 - Transform - invalid-value",
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
fn prefabs_that_multiply_are_refused_before_they_are_made() {
    let mut prefabs = vec![r#""P0": {"children": [{"name": "A"}, {"name": "B"}]}"#.to_owned()];
    for level in 1..30 {
        let below = level - 1;
        prefabs.push(format!(
            "\"P{level}\": {{\"children\": [{{\"name\": \"A\", \"prefab\": \"P{below}\"}}, \
             {{\"name\": \"B\", \"prefab\": \"P{below}\"}}]}}"
        ));
    }
    let text = format!("{{\"format\": 2, \"prefabs\": {{{}}}}}", prefabs.join(", "));
    let report = refused(&text);
    assert!(report.broke(Rule::EntityCount), "{report}");
    let instances: Vec<String> = (1..=300)
        .map(|id| format!("{{\"id\": {id}, \"name\": \"A\", \"prefab\": \"P6\"}}"))
        .collect();
    let text = format!(
        "{{\"format\": 2, \"prefabs\": {{{}}}, \"entities\": [{}]}}",
        prefabs[..7].join(", "),
        instances.join(", ")
    );
    let limits = Limits {
        entities_max: 10_000,
        ..Limits::default()
    };
    let report = Scene::parse(text.as_bytes(), &limits).expect_err("254 for each of 300");
    assert!(report.broke(Rule::EntityCount), "{report}");
}

#[test]
fn rotations_in_degrees_are_those_of_scripts() {
    let text = r#"{"format": 2, "entities": [{"id": 1, "name": "A", "components": {
        "Transform": {"rotation_degrees": [0, 90, 0]}, "SpawnPoint": {}}}]}"#;
    let mut scene = parse(text).unwrap();
    let transform = scene.entities[0].components.transform.unwrap();
    let half = 0.5_f32.sqrt();
    for (value, wanted) in transform.rotation.into_iter().zip([0.0, half, 0.0, half]) {
        assert!((value - wanted).abs() < 1e-6, "{transform:?}");
    }
    assert!(
        scene
            .to_canonical_json()
            .contains(r#""rotation_degrees": [0, 90, 0]"#)
    );
    // Another rotation is not written as the old degrees.
    let turned = Transform {
        rotation: [1.0, 0.0, 0.0, 0.0],
        ..transform
    };
    scene.entities[0].components.transform = Some(turned);
    let saved = scene.to_canonical_json();
    assert!(saved.contains(r#""rotation": [1, 0, 0, 0]"#), "{saved}");
    let old = text.replace("\"format\": 2", "\"format\": 1");
    assert!(refused(&old).broke(Rule::UnknownKey));
}
