// The chase camera: behind the player, with a gentle lag, pulled in by walls, and zoomed by wheel or pinch into
// first person.
import { PerspectiveCamera, Vector3 } from 'three';
import type { Occluders } from './occluders';

const EYE_HEIGHT_M = 1.55;
const DISTANCE_MAX = 16;
const DISTANCE_START = 6.5;
/** Below this distance the view is first person. */
const FIRST_PERSON_M = 0.9;
const WALL_GAP_M = 0.25;
export const PITCH_MAX = 1.45;

/** Third person, first person, or fixed by a script. */
export const CAMERA_MODES = ['Follow', 'First', 'Fixed'] as const;
export type CameraMode = (typeof CAMERA_MODES)[number];

/** Maximum shake offset. */
const SHAKE_M = 0.5;

export class ChaseCamera {
  readonly camera = new PerspectiveCamera(70, 1, 0.1, 1000);
  #mode: CameraMode = 'Follow';
  /** Target of a held camera; none keeps its orientation. */
  #heldTowards: Vector3 | null = null;
  /** Field of view set by a script in degrees; 0 uses the default. */
  #fieldOfView = 0;
  /** Current shake offset. */
  #thrown = new Vector3();
  #shaking = { strength: 0, seconds: 0, left: 0 };
  #wanted = DISTANCE_START;
  #distance = DISTANCE_START;
  #focus = new Vector3();
  #settled = false;
  #back = new Vector3();

  get firstPerson(): boolean {
    return this.#mode === 'First' || (this.#mode === 'Follow' && this.#wanted < FIRST_PERSON_M);
  }

  get mode(): CameraMode {
    return this.#mode;
  }

  setMode(mode: CameraMode): void {
    this.#mode = mode;
    this.#heldTowards = null;
    if (mode !== 'Fixed') this.snap();
  }

  /** Holds the camera at a position until the mode changes. */
  hold(position: Vector3): void {
    this.#mode = 'Fixed';
    this.#thrown.set(0, 0, 0);
    this.camera.position.copy(position);
    this.camera.updateMatrixWorld();
  }

  holdTowards(target: Vector3): void {
    this.#heldTowards = target;
    this.camera.lookAt(target);
    this.camera.updateMatrixWorld();
  }

  /** 0 restores the default. */
  setFieldOfView(degrees: number): void {
    this.#fieldOfView = degrees;
    this.#project();
  }

  shake(strength: number, seconds: number): void {
    this.#shaking = { strength, seconds, left: seconds };
  }

  /** Resets everything that scripts changed. */
  release(): void {
    this.setMode('Follow');
    this.setFieldOfView(0);
    this.#shaking.left = 0;
  }

  /** The point the camera looks at. */
  get focus(): Vector3 {
    return this.#focus;
  }

  /** Positive moves away. Steps grow with the distance, so that zooming feels even. */
  zoom(steps: number): void {
    const next = this.#wanted * Math.exp(steps * 0.14) + (this.#wanted < FIRST_PERSON_M && steps > 0 ? 1 : 0);
    this.#wanted = Math.min(DISTANCE_MAX, next < FIRST_PERSON_M ? 0 : next);
  }

  /** Snaps to the player without lag, after a teleport. */
  snap(): void {
    this.#settled = false;
  }

  update(feet: Vector3, yaw: number, pitch: number, dt: number, occluders: Occluders): void {
    if (this.#mode === 'Fixed') this.#stand();
    else this.#follow(feet, yaw, pitch, dt, occluders);
    this.camera.updateMatrixWorld();
    this.#rattle(dt);
  }

  /** Removes the shake offset from a camera that nothing else moves. */
  #stand(): void {
    this.camera.position.sub(this.#thrown);
    this.#thrown.set(0, 0, 0);
    if (this.#heldTowards) this.camera.lookAt(this.#heldTowards);
  }

  #rattle(dt: number): void {
    const { strength, seconds, left } = this.#shaking;
    if (left <= 0) return;
    this.#shaking.left = left - dt;
    const reach = strength * SHAKE_M * (left / seconds);
    this.#thrown.set(Math.random() - 0.5, Math.random() - 0.5, Math.random() - 0.5).multiplyScalar(reach);
    this.camera.position.add(this.#thrown);
    this.camera.updateMatrixWorld();
  }

  #follow(feet: Vector3, yaw: number, pitch: number, dt: number, occluders: Occluders): void {
    this.#thrown.set(0, 0, 0);
    const target = new Vector3(feet.x, feet.y + EYE_HEIGHT_M, feet.z);
    const far = this.#focus.distanceToSquared(target) > 36;
    if (!this.#settled || far || this.firstPerson) {
      this.#focus.copy(target);
      this.#settled = true;
    } else {
      // Height follows more slowly than the ground plane: jumps and steps do not shake the picture.
      const level = 1 - Math.exp(-dt * 22);
      this.#focus.x += (target.x - this.#focus.x) * level;
      this.#focus.z += (target.z - this.#focus.z) * level;
      this.#focus.y += (target.y - this.#focus.y) * (1 - Math.exp(-dt * 11));
    }
    const back = this.#back.set(Math.sin(yaw) * Math.cos(pitch), -Math.sin(pitch), Math.cos(yaw) * Math.cos(pitch));
    const free = this.firstPerson ? 0 : this.#freeDistance(back, occluders);
    // Moves in immediately, so that the camera never enters the wall; moves out slowly.
    this.#distance = free < this.#distance ? free : this.#distance + (free - this.#distance) * (1 - Math.exp(-dt * 7));
    this.camera.position.copy(this.#focus).addScaledVector(back, this.#distance);
    this.camera.rotation.set(pitch, yaw, 0, 'YXZ');
  }

  resize(width: number, height: number, viewDistance: number): void {
    this.camera.aspect = width / Math.max(1, height);
    this.camera.far = viewDistance * 1.5;
    this.#project();
  }

  #project(): void {
    // Upright phones see the same width of the world as a square window.
    this.camera.fov = this.#fieldOfView || (this.camera.aspect < 1 ? 82 : 68);
    this.camera.updateProjectionMatrix();
  }

  #freeDistance(back: Vector3, occluders: Occluders): number {
    const hit = occluders.cast(this.#focus, back, this.#wanted + WALL_GAP_M);
    return Math.max(0.35, Math.min(this.#wanted, hit - WALL_GAP_M));
  }
}
