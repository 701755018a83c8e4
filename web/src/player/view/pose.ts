// Avatar animation in code: from how a character moves to the angles of its limbs. Pure numbers, no three.js.

/** The animation input of a character in one frame. */
export interface Motion {
  /** Horizontal speed in m/s. */
  speed: number;
  /** Upward speed in m/s. */
  rise: number;
  grounded: boolean;
  /** Phase of the walk cycle in radians: two steps per cycle. */
  stride: number;
  /** Seconds, for breathing. */
  time: number;
  /** 1 at the moment of landing, then fading to 0. */
  landing: number;
  /** In water too deep to stand. */
  swimming?: boolean;
}

/** Angles in radians (positive swings forwards), offsets in metres. */
export interface Pose {
  legLeft: number;
  legRight: number;
  armLeft: number;
  armRight: number;
  armSpread: number;
  lean: number;
  headTilt: number;
  bob: number;
  squash: number;
}

const RUN_SPEED = 6.5;

/** Metres of one full walk cycle: longer when running. */
export function strideLength(speed: number): number {
  return 1.5 + 0.16 * Math.min(speed, 12);
}

export function pose(motion: Motion): Pose {
  if (motion.swimming) return inWater(motion);
  return motion.grounded ? onGround(motion) : inAir(motion);
}

/** Treads water, or swims when moving. */
function inWater({ speed, time }: Motion): Pose {
  const going = Math.min(1, speed / 2.5);
  const stroke = time * (2.2 + 3 * going);
  const kick = Math.sin(stroke * 1.6) * (0.25 + 0.2 * going);
  return {
    legLeft: kick - 0.55 * going,
    legRight: -kick - 0.55 * going,
    armLeft: 0.5 + going * 0.9 + Math.sin(stroke) * (0.25 + 0.9 * going),
    armRight: 0.5 + going * 0.9 - Math.sin(stroke) * (0.25 + 0.9 * going),
    armSpread: 0.8 - 0.5 * going,
    lean: -0.75 * going,
    headTilt: 0.5 * going,
    bob: Math.sin(time * 2) * 0.03,
    squash: 1,
  };
}

function onGround({ speed, stride, time, landing }: Motion): Pose {
  const effort = Math.min(1.25, speed / RUN_SPEED);
  const swing = Math.sin(stride) * (0.25 + 0.75 * effort) * Math.min(1, speed / 1.2);
  const breath = Math.sin(time * 2.1) * (1 - Math.min(1, effort * 2));
  return {
    legLeft: swing * 0.95,
    legRight: -swing * 0.95,
    armLeft: -swing * 0.85 + breath * 0.03,
    armRight: swing * 0.85 - breath * 0.03,
    armSpread: 0.06 + 0.03 * breath + 0.05 * effort,
    lean: -0.16 * Math.max(0, effort - 0.15),
    headTilt: 0.08 * Math.max(0, effort - 0.15) + breath * 0.02,
    bob: Math.abs(Math.cos(stride)) * 0.05 * Math.min(1, effort * 1.5) + breath * 0.008,
    squash: 1 - 0.16 * landing,
  };
}

function inAir({ rise, time }: Motion): Pose {
  // -1 falling fast … +1 just jumped.
  const going = Math.max(-1, Math.min(1, rise / 6));
  const flail = going < -0.6 ? Math.sin(time * 18) * 0.22 * (-going - 0.6) * 2.5 : 0;
  return {
    legLeft: 0.55 + 0.25 * going,
    legRight: -0.35 + 0.1 * going,
    armLeft: 0.5 - going * 0.5 + flail,
    armRight: 0.5 - going * 0.5 - flail,
    armSpread: 0.35 + (1 - going) * 0.55,
    lean: -0.08 * going,
    headTilt: 0.14 * going,
    bob: 0,
    squash: 1 + 0.06 * Math.max(0, going),
  };
}

/** Turns `from` towards `to` the short way round, by a fraction that depends on the elapsed time. */
export function turnTowards(from: number, to: number, rate: number, dt: number): number {
  const difference = Math.atan2(Math.sin(to - from), Math.cos(to - from));
  return from + difference * (1 - Math.exp(-rate * dt));
}
