//! Predicted steps after reconciliation with the server.

use frolic_sim::{Buttons, Meshes, step_character};

use super::*;

const TICK_HZ: u32 = 60;
/// The server tick that executes the first input.
const FIRST_TICK: u32 = 100;

fn meadow() -> ClientScene {
    let json = r#"{"format":1,"prefabs":{},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[200,1,200]}}}]}"#;
    ClientScene::load(json.as_bytes(), TICK_HZ, Meshes::default()).expect("a scene")
}

/// A different direction in each step, so that none can replace another.
fn input(seq: u32) -> CharacterInput {
    CharacterInput::new(0.0, 1.0, seq as f32 * 0.2, 0.0, Buttons::default())
}

fn own(ack_seq: u32, character: CharacterState) -> OwnState {
    OwnState {
        ack_seq,
        late_ticks: 0,
        queued_inputs: 2,
        character,
    }
}

/// The result of the same inputs on the server, from a state on.
fn walked(
    scene: &ClientScene,
    mut state: CharacterState,
    inputs: std::ops::RangeInclusive<u32>,
) -> CharacterState {
    for seq in inputs {
        let params = CharacterParams::default();
        let dt = 1.0 / TICK_HZ as f32;
        step_character(&scene.collision, &params, &mut state, &input(seq), dt);
    }
    state
}

/// A character that the server has placed, and ten steps since.
fn ten_steps(scene: &mut ClientScene) -> (Prediction, CharacterState) {
    let start = walked(scene, CharacterState::at(Vec3::ZERO), 0..=0);
    let mut prediction = Prediction::new(CharacterParams::default(), TICK_HZ);
    prediction.reconcile(scene, FIRST_TICK - 1, &own(0, start));
    for seq in 1..=10 {
        prediction.step(scene, input(seq));
    }
    assert_eq!(prediction.pending_count(), 10);
    (prediction, start)
}

#[test]
fn acknowledged_inputs_are_dropped_and_nothing_moves() {
    let mut scene = meadow();
    let (mut prediction, start) = ten_steps(&mut scene);
    let predicted = *prediction.state();
    assert_eq!(predicted, walked(&scene, start, 1..=10), "the same sim");
    let truth = walked(&scene, start, 1..=4);
    prediction.reconcile(&mut scene, FIRST_TICK + 3, &own(4, truth));
    assert_eq!(*prediction.state(), predicted);
    assert_eq!((prediction.pending_count(), prediction.corrections), (6, 0));
}

#[test]
fn after_a_correction_the_unacknowledged_inputs_are_replayed() {
    let mut scene = meadow();
    let (mut prediction, start) = ten_steps(&mut scene);
    let shown = prediction.shown(1.0);
    // Another character blocked the fourth step.
    let mut truth = walked(&scene, start, 1..=4);
    truth.feet.x += 0.3;
    prediction.reconcile(&mut scene, FIRST_TICK + 3, &own(4, truth));
    assert_eq!(*prediction.state(), walked(&scene, truth, 5..=10));
    assert_eq!((prediction.pending_count(), prediction.corrections), (6, 1));
    assert!((prediction.last_correction_m - 0.3).abs() < 0.01);
    // It is not visible at once …
    let jump = (prediction.shown(1.0) - shown).length();
    assert!(jump < 1e-4, "a jump of {jump} m");
    // … and soon there is nothing left of it.
    for seq in 11..=40 {
        prediction.step(&mut scene, input(seq));
    }
    let left = (prediction.shown(1.0) - prediction.state().feet).length();
    assert!(left < 0.01, "{left} m off after half a second");
    // Replayed inputs count as predicted: the next matching state is no correction.
    let truth = walked(&scene, truth, 5..=7);
    prediction.reconcile(&mut scene, FIRST_TICK + 6, &own(7, truth));
    assert_eq!(
        (prediction.pending_count(), prediction.corrections),
        (33, 1)
    );
}

/// The server repeated the held input, and inputs that arrive later than that count
/// as used.
#[test]
fn inputs_that_arrived_too_late_are_not_replayed() {
    let mut scene = meadow();
    let (mut prediction, start) = ten_steps(&mut scene);
    let truth = walked(&scene, start, 1..=4);
    let late = OwnState {
        late_ticks: 2,
        ..own(4, truth)
    };
    prediction.reconcile(&mut scene, FIRST_TICK + 5, &late);
    assert_eq!(prediction.pending_count(), 4);
    assert_eq!(*prediction.state(), walked(&scene, truth, 7..=10));
}

#[test]
fn a_respawn_is_shown_as_the_jump_it_is() {
    let mut scene = meadow();
    let (mut prediction, _) = ten_steps(&mut scene);
    let far = CharacterState::at(Vec3::new(50.0, 0.0, 50.0));
    prediction.reconcile(&mut scene, FIRST_TICK + 9, &own(10, far));
    assert_eq!(prediction.shown(1.0), far.feet);
    assert_eq!(prediction.pending_count(), 0);
}

/// A platform started before we were notified. It is drawn with the same offset as
/// its rider, so that the rider does not slide over it while both catch up.
#[test]
fn a_platform_catches_up_together_with_its_rider() {
    let mut scene = meadow();
    let (mut prediction, start) = ten_steps(&mut scene);
    let mut ground = frolic_protocol::EntityState::new(1, frolic_protocol::EntityKind::Thing);
    ground.motion = Some(frolic_sim::Motion {
        from: Vec3::new(0.0, -0.5, 0.0),
        to: Vec3::new(6.0, -0.5, 0.0),
        start_tick: FIRST_TICK + 1,
        end_tick: FIRST_TICK + 61,
    });
    let shown = prediction.shown(1.0);
    // The server had not carried us yet in that state.
    scene.apply_states([(FIRST_TICK, &ground)].into_iter());
    let truth = walked(&meadow(), start, 1..=1);
    prediction.reconcile(&mut scene, FIRST_TICK, &own(1, truth));
    let carried = prediction.state().feet - shown;
    assert!((carried.x - 0.8).abs() < 0.02, "with the ground: {carried}");
    let of_ground = prediction.ground_error();
    assert!((of_ground.x + 0.8).abs() < 0.02, "{of_ground}");
    assert!((prediction.shown(1.0) - shown).length() < 1e-4);
    for seq in 11..=40 {
        prediction.step(&mut scene, input(seq));
        let error = prediction.shown(1.0) - prediction.state().feet;
        let apart = (error - prediction.ground_error()).length();
        assert!(apart < 0.02, "{apart} m apart");
    }
    assert!(prediction.ground_error().length() < 0.01, "and arrives");
}
