//! What JSON clients receive about scene parts that come and go.

use frolic_sim::Vec3;
use frolic_world::{InterestPolicy, JsonView, PlayerNumber, World, WorldOptions, input};

use super::railway::{CART, OFF, THERE_AND_BACK, railway};

/// A client that draws the cart.
struct Stranger {
    player: PlayerNumber,
    view: JsonView,
    acknowledges: bool,
    cart: Cart,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cart {
    /// No update of it was sent.
    AsInTheScene,
    /// This far along the rails.
    At(f64),
    Gone,
}

impl Stranger {
    fn new(world: &mut World, acknowledges: bool) -> Self {
        let player = world.apply(input::Join::new("s", "Stranger"));
        Self {
            player,
            view: JsonView::new(player),
            acknowledges,
            cart: Cart::AsInTheScene,
        }
    }

    fn goes_to(&self, world: &mut World, x: f32) {
        world.apply(input::Teleport::new(self.player, Vec3::new(x, 0.1, 0.0)));
    }

    fn looks_on(&mut self, world: &mut World, seconds: u32) {
        for _ in 0..seconds * 60 {
            world.apply(input::Step);
            world.collect_changes();
            if !world.update_is_due(self.player) {
                continue;
            }
            if let Some(text) = world.json_snapshot(&mut self.view) {
                self.takes_in(&text);
                if self.acknowledges {
                    self.view.acknowledge(world.tick());
                }
            }
        }
    }

    fn takes_in(&mut self, text: &str) {
        let sent: serde_json::Value = serde_json::from_str(text).expect("a snapshot");
        if sent["mode"] == "full" {
            self.cart = Cart::AsInTheScene;
        }
        let movement = &sent["features"]["movement"];
        let list = |name: &str| movement[name].as_array().cloned().unwrap_or_default();
        if list("removed").iter().any(|id| *id == CART) {
            self.cart = Cart::Gone;
        }
        let entities = list("entities");
        if let Some(cart) = entities.iter().find(|entity| entity["id"] == CART) {
            self.cart = Cart::At(cart["p"][0].as_f64().expect("a place"));
        }
    }
}

fn world(script: &str) -> World {
    let options = WorldOptions {
        interest: Some(InterestPolicy::within(30.0)),
        ..WorldOptions::default()
    };
    World::load(&railway(script), options).expect("the world loads")
}

#[test]
fn a_client_that_joins_later_learns_that_a_part_left_its_scene_place() {
    for acknowledges in [true, false] {
        let mut world = world(OFF);
        for _ in 0..8 * 60 {
            world.apply(input::Step);
            world.collect_changes();
        }
        let mut stranger = Stranger::new(&mut world, acknowledges);
        stranger.looks_on(&mut world, 1);
        assert_eq!(stranger.cart, Cart::Gone, "acknowledges: {acknowledges}");
    }
}

#[test]
fn a_part_that_leaves_the_view_is_removed_and_sent_again_on_return() {
    let mut world = world(THERE_AND_BACK);
    let mut stranger = Stranger::new(&mut world, true);
    stranger.looks_on(&mut world, 2);
    assert!(matches!(stranger.cart, Cart::At(x) if x > 10.0));
    stranger.looks_on(&mut world, 6);
    assert_eq!(stranger.cart, Cart::Gone, "it drove out of view");
    // Nor is it at either end for who goes there and back meanwhile.
    stranger.goes_to(&mut world, -100.0);
    stranger.looks_on(&mut world, 1);
    assert_eq!(stranger.cart, Cart::Gone);
    stranger.goes_to(&mut world, 0.0);
    stranger.looks_on(&mut world, 1);
    assert_eq!(stranger.cart, Cart::Gone);
    stranger.looks_on(&mut world, 9);
    assert_eq!(stranger.cart, Cart::At(5.0), "it is back");
    stranger.goes_to(&mut world, -100.0);
    stranger.looks_on(&mut world, 1);
    assert_eq!(stranger.cart, Cart::Gone, "out of view");
    stranger.goes_to(&mut world, 0.0);
    stranger.looks_on(&mut world, 1);
    assert_eq!(stranger.cart, Cart::At(5.0), "and in view again");
}
