//! A connection that dies without a word: the client notices within seconds,
//! stops its character instead of walking alone, and goes on without a jump.

use frolic_client::Liveness;
use frolic_sim::{CharacterInput, Vec3};

use crate::harness::{Run, walk};
use crate::network::Quality;

/// Nothing gets through.
const DEAD: Quality = Quality {
    loss: 1.0,
    ..Quality::GOOD
};

fn drawn_at(run: &mut Run, player: usize) -> Vec3 {
    let entity = run.entity(player);
    let own = run.drawn(player).into_iter().find(|one| one.id == entity);
    own.expect("the own character is drawn").position
}

#[test]
fn a_silent_connection_is_detected_within_three_seconds_and_prediction_stops() {
    for seed in 1..=4 {
        let mut run = Run::new(&crate::meadow(), seed, Quality::GOOD);
        let player = run.join("Ada");
        run.for_ms(1_000);
        run.steer(player, walk(0.3));
        run.for_ms(1_000);
        assert_eq!(run.client(player).liveness(), Liveness::Alive);

        run.change_quality(DEAD);
        run.for_ms(1_500);
        assert_eq!(run.client(player).liveness(), Liveness::Alive, "a hiccup");
        run.for_ms(1_500);
        assert_eq!(run.client(player).liveness(), Liveness::Stalled);
        let stopped = drawn_at(&mut run, player);
        let sent = run.client(player).stats(0.0).input_seq;
        run.measure(true);
        run.for_ms(5_000);
        assert_eq!(
            drawn_at(&mut run, player),
            stopped,
            "seed {seed}: walks alone"
        );
        assert_eq!(run.client(player).stats(0.0).input_seq, sent);
        assert_eq!(run.client(player).liveness(), Liveness::Stalled);

        run.heal();
        let entity = run.entity(player);
        let largest_step = |run: &Run| {
            let steps = run.drawn_steps(player, entity);
            steps.iter().map(|step| step.length()).fold(0.0, f32::max)
        };
        run.for_ms(1_000);
        assert_eq!(run.client(player).liveness(), Liveness::Alive);
        run.steer(player, CharacterInput::default());
        run.for_ms(3_000);
        let truth = run.server_character(player).feet;
        let shown = drawn_at(&mut run, player);
        println!(
            "seed {seed}: put right over {:.1} m, largest step {:.2} m",
            (stopped - truth).length(),
            largest_step(&run)
        );
        assert!((shown - truth).length() < 0.01, "{shown} is not {truth}");
        assert!(
            largest_step(&run) < 2.5,
            "a jump of {} m",
            largest_step(&run)
        );
    }
}

#[test]
fn twelve_seconds_of_silence_are_a_lost_connection() {
    let mut run = Run::new(&crate::meadow(), 3, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(1_000);
    run.change_quality(DEAD);
    run.for_ms(11_500);
    assert_eq!(run.client(player).liveness(), Liveness::Stalled);
    run.for_ms(1_000);
    assert_eq!(run.client(player).liveness(), Liveness::Lost);
}

#[test]
fn the_clock_of_clients_is_that_of_the_world_however_rarely_they_look() {
    for quality in [Quality::GOOD, Quality::BAD, Quality::AWFUL] {
        let mut run = Run::new(&crate::meadow(), 5, quality);
        run.for_ms(7_000);
        let player = run.join("Ada");
        run.for_ms(1_000);
        let mut last = 0.0;
        for gap in [16, 900, 33, 2_500, 700, 5, 100, 1_700, 16] {
            run.for_ms(gap);
            let (shown, server) = (run.world_time_s(player), run.server_time_s());
            assert!(shown >= last, "{shown} after {last}");
            assert!(
                (shown - server).abs() < 0.35,
                "{shown} s on the client, {server} s on the server, {quality:?}"
            );
            last = shown;
        }
        // A dead connection does not turn it back, and neither does a resumed
        // one.
        run.change_quality(DEAD);
        for _ in 0..60 {
            run.for_ms(100);
            let shown = run.world_time_s(player);
            assert!(shown >= last, "{shown} after {last}");
            last = shown;
        }
        run.heal();
        for _ in 0..60 {
            run.for_ms(100);
            let shown = run.world_time_s(player);
            assert!(shown >= last, "{shown} after {last}");
            last = shown;
        }
        assert!((last - run.server_time_s()).abs() < 0.35);
    }
}
