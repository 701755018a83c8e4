//! Joints between two bodies, or between a body and the world.

use frolic_scene::{Joint, JointKind};
use frolic_sim::{Pose, Rotation, Vec3};
use rapier3d::prelude::{
    GenericJoint, GenericJointBuilder, JointAxesMask, JointAxis, RigidBodyBuilder,
    RopeJointBuilder, SpringJointBuilder,
};

use super::{Bodies, Kind};
use crate::space::Space;

/// How strongly a motor works towards its target speed.
const MOTOR_FACTOR: f32 = 1.0;

impl Bodies {
    /// Creates an entity's joint, if it has one and both bodies exist.
    pub(super) fn join(&mut self, space: &Space, id: u32) {
        let Some(entity) = space.alive(id) else {
            return;
        };
        let (Some(joint), pose) = (entity.components.joint, entity.pose()) else {
            return;
        };
        let other = match joint.with {
            None => None,
            Some(with) => match space.alive(with) {
                Some(other) => Some((with, other.pose())),
                None => return,
            },
        };
        let Some(own) = self
            .links
            .get(&id)
            .filter(|link| link.kind == Kind::Dynamic)
        else {
            return;
        };
        let Some(own) = own.body else {
            return;
        };
        let (other, other_pose) = match other {
            Some((with, pose)) => (self.set_moving(with), pose),
            None => {
                let physics = &mut *self.physics;
                let fixed = || physics.insert_body(RigidBodyBuilder::fixed());
                (
                    Some(*self.ground.get_or_insert_with(fixed)),
                    Pose::identity(),
                )
            }
        };
        let Some(other) = other.filter(|other| *other != own) else {
            return;
        };
        let made = made(&joint, &pose, &other_pose);
        self.physics.impulse_joints.insert(other, own, made, true);
    }
}

/// Creates the joint of a body at `pose` with a body at `other`; the current
/// poses are its rest position.
fn made(joint: &Joint, pose: &Pose, other: &Pose) -> GenericJoint {
    let anchor = Vec3::from(joint.anchor);
    let here = pose.transform_point(anchor);
    let made = match joint.kind {
        JointKind::Rope | JointKind::Spring => return tether(joint, anchor, here, other),
        JointKind::Fixed => JointAxesMask::LOCKED_FIXED_AXES,
        JointKind::Ball => JointAxesMask::LOCKED_SPHERICAL_AXES,
        JointKind::Hinge => JointAxesMask::LOCKED_REVOLUTE_AXES,
        JointKind::Slider => JointAxesMask::LOCKED_PRISMATIC_AXES,
    };
    // The joint's local x is its axis; the current rotation is angle zero.
    let axis = Vec3::from(joint.axis).try_normalize().unwrap_or(Vec3::Y);
    let own_frame = Pose::from_parts(anchor, Rotation::from_rotation_arc(Vec3::X, axis));
    let mut other_frame = other.inverse() * *pose * own_frame;
    if let Some(place) = joint.other_anchor {
        other_frame.translation = Vec3::from(place);
    }
    let free = match joint.kind {
        JointKind::Hinge => Some((JointAxis::AngX, core::f32::consts::PI / 180.0)),
        JointKind::Slider => Some((JointAxis::LinX, 1.0)),
        _ => None,
    };
    let mut made = GenericJointBuilder::new(made)
        .local_frame1(other_frame)
        .local_frame2(own_frame)
        .contacts_enabled(joint.collide);
    if let Some((axis, unit)) = free {
        if let Some(limits) = joint.limits {
            made = made.limits(axis, limits.map(|limit| limit * unit));
        }
        if let Some(speed) = joint.speed {
            made = made.motor_velocity(axis, speed * unit, MOTOR_FACTOR);
        }
    }
    made.build()
}

fn tether(joint: &Joint, anchor: Vec3, here: Vec3, other: &Pose) -> GenericJoint {
    let other_anchor = Vec3::from(joint.other_anchor.unwrap_or_default());
    let there = other.transform_point(other_anchor);
    let length = joint.length.unwrap_or_else(|| (here - there).length());
    match joint.kind {
        JointKind::Rope => RopeJointBuilder::new(length.max(0.01))
            .local_anchor1(other_anchor)
            .local_anchor2(anchor)
            .contacts_enabled(joint.collide)
            .build()
            .into(),
        _ => SpringJointBuilder::new(length, joint.stiffness, joint.damping)
            .local_anchor1(other_anchor)
            .local_anchor2(anchor)
            .contacts_enabled(joint.collide)
            .build()
            .into(),
    }
}
