//! The journey of an NPC to a goal: requests a path, follows it, notices when
//! it is stuck, and finally gives up.

use frolic_sim::Vec3;

use crate::nav::grid::{CELL_M, Ground, cell_at};
use crate::nav::{Nav, Path, Request, Step};

/// Distance at which it has arrived.
const ARRIVED_M: f32 = 0.5;
const STEP_REACHED_M: f32 = 0.35;
/// Height difference at which it has arrived.
const HEIGHT_M: f32 = 1.3;
/// A goal that moved further than this is a new goal.
const SAME_GOAL_M: f32 = 0.75;
/// Ticks between checks whether a path is still valid.
const LOOK_TICKS: u32 = 15;
/// Ticks after which a new path to a moving goal is requested.
const RENEW_TICKS: u32 = 24;
/// An NPC that advances less than this within that many seconds is stuck.
const STUCK_M: f32 = 0.4;
const STUCK_S: f32 = 1.0;
/// Failures before it gives up, and seconds between two attempts.
const TRIES_MAX: u32 = 5;
const RETRY_S: f32 = 1.5;
/// Seconds after which it gives up in any case.
const GIVES_UP_S: f32 = 120.0;
const AVOID_MAX: usize = 8;

/// The journey to a goal.
#[derive(Clone, Debug, Default)]
pub struct Journey {
    pub goal: Option<Vec3>,
    pub runs: bool,
    path: Option<Path>,
    next: usize,
    /// When the path was requested, while it is pending.
    asked: Option<u32>,
    planned: u32,
    /// Whether the goal has moved since.
    moved: bool,
    /// Whether it arrived; none while it is underway.
    ended: Option<bool>,
    tries: u32,
    /// The grid's change count at the last failure, and when to try again.
    failed_at_change: u32,
    retry_at: u32,
    avoid: Vec<(i32, i32)>,
    /// The place from which progress is measured.
    anchor: Vec3,
    anchored: u32,
    began: u32,
}

/// Time and place of a walking NPC.
#[derive(Clone, Copy)]
pub struct Here {
    pub who: u32,
    pub feet: Vec3,
    pub tick: u32,
    pub tick_hz: u32,
    /// Whether the goal is in line of sight, so that a straight path may work.
    pub sees_goal: bool,
}

impl Here {
    fn ticks(&self, seconds: f32) -> u32 {
        (seconds * self.tick_hz as f32) as u32
    }
}

impl Journey {
    /// Whether it arrived or gave up; none while it is underway.
    pub fn ended(&self) -> Option<bool> {
        self.ended
    }

    /// Stops and cancels the path request.
    pub fn stop(&mut self, nav: &mut Nav, who: u32) {
        if self.goal.is_some() {
            nav.cancel(who);
            *self = Self::default();
        }
    }

    /// Starts a journey, or continues if the goal is the same.
    pub fn aim(&mut self, nav: &mut Nav, goal: Vec3, runs: bool, here: &Here) {
        self.runs = runs;
        match self.goal {
            Some(old) if (old - goal).length() <= SAME_GOAL_M => {}
            Some(_) if self.ended.is_none() && self.path.is_some() => {
                self.goal = Some(goal);
                self.moved = true;
                self.began = here.tick;
            }
            _ => {
                nav.cancel(here.who);
                *self = Self {
                    goal: Some(goal),
                    runs,
                    anchor: here.feet,
                    anchored: here.tick,
                    began: here.tick,
                    ..Self::default()
                };
            }
        }
    }

    /// The next step of this tick; none while it waits or has arrived.
    pub fn walk(&mut self, nav: &mut Nav, ground: &Ground, here: &Here) -> Option<Step> {
        let goal = self.goal.filter(|_| self.ended.is_none())?;
        let to = goal - here.feet;
        if flat(to) <= ARRIVED_M && to.y.abs() <= HEIGHT_M {
            return self.end(nav, here, true);
        }
        if here.tick.wrapping_sub(self.began) > here.ticks(GIVES_UP_S) {
            return self.end(nav, here, false);
        }
        self.plan(nav, ground, here, goal);
        let path = self.path.as_ref()?;
        while let Some(step) = path.steps.get(self.next) {
            let way = step.place - here.feet;
            if flat(way) > STEP_REACHED_M || way.y.abs() > HEIGHT_M {
                break;
            }
            self.next += 1;
        }
        let Some(step) = path.steps.get(self.next).copied() else {
            // The path ended before the goal: the goal has moved, or there is
            // no path.
            let complete = path.complete;
            self.path = None;
            if !complete {
                self.fail(nav, here);
            }
            return None;
        };
        self.notice_stuck(nav, here, step);
        Some(step)
    }

    fn plan(&mut self, nav: &mut Nav, ground: &Ground, here: &Here, goal: Vec3) {
        if self.asked.is_some()
            && let Some(path) = nav.take(here.who)
        {
            self.asked = None;
            self.planned = here.tick;
            self.next = 0;
            (self.anchor, self.anchored) = (here.feet, here.tick);
            if path.steps.is_empty() {
                self.path = None;
                self.fail(nav, here);
            } else {
                self.path = Some(path);
            }
        }
        let turn = (here.tick.wrapping_add(here.who)).is_multiple_of(LOOK_TICKS);
        if turn && self.path.as_ref().is_some_and(|path| !nav.holds(path)) {
            self.path = None;
            self.asked = None;
        }
        if here.sees_goal && turn && nav.is_straight(ground, here.feet, goal) {
            nav.cancel(here.who);
            self.asked = None;
            self.moved = false;
            self.next = 0;
            self.path = Some(Path::straight(goal));
            return;
        }
        let due = here.tick.wrapping_sub(self.planned) >= RENEW_TICKS;
        let wanted = self.path.is_none() || self.moved && due;
        let again = here.tick >= self.retry_at || nav.changes() != self.failed_at_change;
        if wanted && again && self.asked.is_none() {
            self.asked = Some(here.tick);
            self.moved = false;
            nav.request(Request {
                who: here.who,
                from: here.feet,
                to: goal,
                avoid: self.avoid.clone(),
            });
        }
    }

    /// There is no complete path. It tries again, because a door may open.
    fn fail(&mut self, nav: &mut Nav, here: &Here) {
        self.tries += 1;
        self.avoid.clear();
        self.failed_at_change = nav.changes();
        self.retry_at = here.tick + here.ticks(RETRY_S);
        if self.tries >= TRIES_MAX {
            self.end(nav, here, false);
        }
    }

    fn notice_stuck(&mut self, nav: &mut Nav, here: &Here, step: Step) {
        if (here.feet - self.anchor).length() > STUCK_M {
            (self.anchor, self.anchored) = (here.feet, here.tick);
        } else if here.tick.wrapping_sub(self.anchored) > here.ticks(STUCK_S) {
            (self.anchor, self.anchored) = (here.feet, here.tick);
            self.tries += 1;
            if self.tries >= TRIES_MAX {
                self.end(nav, here, false);
                return;
            }
            // An obstacle that the grid does not know: avoid it.
            let way = step.place - here.feet;
            let way = Vec3::new(way.x, 0.0, way.z).normalize_or_zero();
            let (own, ahead) = (cell_at(here.feet), cell_at(here.feet + way * CELL_M * 1.5));
            if ahead != own && self.avoid.len() < AVOID_MAX {
                self.avoid.push(ahead);
            }
            self.path = None;
            self.asked = None;
            self.retry_at = here.tick;
        }
    }

    fn end(&mut self, nav: &mut Nav, here: &Here, reached: bool) -> Option<Step> {
        nav.cancel(here.who);
        self.ended = Some(reached);
        self.path = None;
        self.asked = None;
        None
    }

    /// The state that determines future results, as numbers for a fingerprint.
    pub fn words(&self) -> [u64; 6] {
        let pair = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        let goal = self.goal.unwrap_or(Vec3::NAN).to_array().map(f32::to_bits);
        let steps = self.path.as_ref().map_or(0, |path| path.steps.len());
        [
            pair(goal[0], goal[1]),
            pair(goal[2], self.tries << 8 | self.avoid.len() as u32),
            pair(steps as u32, self.next as u32),
            pair(self.planned, self.asked.map_or(u32::MAX, |tick| tick)),
            pair(self.anchored, self.retry_at),
            pair(
                self.began,
                u32::from(self.runs)
                    | u32::from(self.moved) << 1
                    | self.ended.map_or(0, |reached| 1 + u32::from(reached)) << 2,
            ),
        ]
    }
}

fn flat(way: Vec3) -> f32 {
    Vec3::new(way.x, 0.0, way.z).length()
}
