// One character: a small tree of joints posed in code. Nothing here is drawn directly: the crowd copies the
// joints' matrices into its instanced meshes, so a hundred avatars cost as many draw calls as one.
import { Object3D } from 'three';
import type { Point } from '../core/frame';
import type { AvatarLook } from './look';
import { pose, strideLength, turnTowards, type Motion } from './pose';

/** Sizes in metres; the avatar is as tall as the simulation's capsule. */
export const BODY = {
  leg: [0.25, 0.56, 0.27],
  torso: [0.58, 0.58, 0.34],
  arm: [0.18, 0.54, 0.22],
  head: [0.64, 0.56, 0.58],
  hair: [0.68, 0.2, 0.62],
} as const;
const HIP_Y = 0.56;
const SHOULDER_Y = 1.1;

/** The replicated state of a character in this frame. */
export interface CharacterFrame {
  position: Point;
  velocity: Point;
  yaw: number;
  grounded: boolean;
  /** In water too deep to stand. */
  swimming?: boolean;
  /** Knocked out: lies on the ground. */
  dead?: boolean;
  /** Pitch while holding a weapon; null without one. */
  aim?: number | null;
  /** Set for NPCs, whose avatars turn to their look direction even while standing. */
  mood?: number;
}

/** An event of this frame with a visual or sound effect. */
export type Moment = 'jumped' | 'landed' | 'stepped' | 'splashed';

const JUMP_MS = 2;
/** Minimum vertical speed for a splash. */
const SPLASH_MS = 2.5;
const LANDING_FADE_S = 0.22;
/** Minimum landing speed for dust. */
const HARD_LANDING_MS = 4;

export class Avatar {
  readonly root = new Object3D();
  readonly head = new Object3D();
  readonly hair = new Object3D();
  readonly face = new Object3D();
  readonly hat = new Object3D();
  readonly torso = new Object3D();
  readonly arms = [new Object3D(), new Object3D()] as const;
  readonly legs = [new Object3D(), new Object3D()] as const;
  #spine = new Object3D();
  #motion: Motion = { speed: 0, rise: 0, grounded: true, stride: 0, time: Math.random() * 6, landing: 0 };
  #facing: number | null = null;
  #aim: number | null = null;
  /** 0: upright, 1: on its back. */
  #fallen = 0;

  constructor(
    readonly id: number,
    public look: AvatarLook,
  ) {
    this.root.add(this.#spine, ...this.legs);
    this.#spine.position.y = HIP_Y;
    this.#spine.add(this.torso, this.head, ...this.arms);
    this.torso.position.y = BODY.torso[1] / 2;
    this.head.position.y = BODY.torso[1];
    this.head.add(this.hair, this.face, this.hat);
    this.hat.position.set(0, BODY.head[1] + 0.05, 0.01);
    this.hair.position.set(0, BODY.head[1] - 0.04, 0.015);
    this.face.position.set(0, BODY.head[1] / 2 - 0.03, -BODY.head[2] / 2 - 0.004);
    this.face.rotation.y = Math.PI;
    this.legs[0].position.set(-0.15, HIP_Y, 0);
    this.legs[1].position.set(0.15, HIP_Y, 0);
    const side = BODY.torso[0] / 2 + BODY.arm[0] / 2 + 0.01;
    this.arms[0].position.set(-side, SHOULDER_Y - HIP_Y, 0);
    this.arms[1].position.set(side, SHOULDER_Y - HIP_Y, 0);
  }

  /** Poses the avatar and returns its visible or audible events. */
  update(frame: CharacterFrame, dt: number): Moment | null {
    const motion = this.#motion;
    const speed = Math.hypot(frame.velocity.x, frame.velocity.z);
    const splashed = Boolean(frame.swimming) && !motion.swimming && motion.rise < -SPLASH_MS;
    const landedHard = frame.grounded && !motion.grounded && motion.rise < -HARD_LANDING_MS;
    const jumped = !frame.grounded && motion.grounded && frame.velocity.y > JUMP_MS;
    motion.landing = landedHard ? 1 : Math.max(0, motion.landing - dt / LANDING_FADE_S);
    motion.speed += (speed - motion.speed) * (1 - Math.exp(-dt * 14));
    const footBefore = Math.floor(motion.stride / Math.PI);
    motion.stride += ((speed * dt) / strideLength(speed)) * Math.PI * 2;
    const stepped = frame.grounded && speed > 1 && Math.floor(motion.stride / Math.PI) !== footBefore;
    motion.time += dt;
    motion.rise = frame.velocity.y;
    motion.grounded = frame.grounded;
    motion.swimming = frame.swimming ?? false;
    this.#aim = frame.aim ?? null;
    const lies = frame.dead ? 1 : 0;
    this.#fallen += (lies - this.#fallen) * (1 - Math.exp(-dt * 12));
    this.#turn(frame, speed, dt);
    this.root.position.copy(frame.position);
    this.#apply();
    return splashed ? 'splashed' : landedHard ? 'landed' : jumped ? 'jumped' : stepped ? 'stepped' : null;
  }

  /** Characters face their walking direction and keep it while standing. */
  #turn(frame: CharacterFrame, speed: number, dt: number): void {
    if (this.#facing === null) this.#facing = frame.yaw;
    if (this.#aim !== null && !frame.dead) {
      // Armed characters face where the weapon points.
      this.#facing = turnTowards(this.#facing, frame.yaw, 20, dt);
    } else if (frame.mood) {
      this.#facing = turnTowards(this.#facing, frame.yaw, 13, dt);
    } else if (speed > 0.4) {
      const course = Math.atan2(-frame.velocity.x, -frame.velocity.z);
      this.#facing = turnTowards(this.#facing, course, 13, dt);
    }
    this.root.rotation.set(this.#fallen * 1.5, this.#facing, 0, 'YXZ');
  }

  #apply(): void {
    const p = pose(this.#motion);
    this.legs[0].rotation.x = p.legLeft;
    this.legs[1].rotation.x = p.legRight;
    this.arms[0].rotation.set(p.armLeft, 0, -p.armSpread);
    if (this.#aim === null) this.arms[1].rotation.set(p.armRight, 0, p.armSpread);
    else this.arms[1].rotation.set(Math.PI / 2 + this.#aim, 0, -0.1);
    this.#spine.rotation.x = p.lean;
    this.#spine.position.y = HIP_Y + p.bob;
    this.head.rotation.x = p.headTilt;
    const wide = 1 / Math.sqrt(p.squash);
    this.root.scale.set(wide, p.squash, wide);
    this.root.updateMatrixWorld(true);
  }
}
