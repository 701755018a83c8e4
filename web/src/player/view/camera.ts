// The chase camera: behind the player, with a gentle lag, pulled in by walls, and zoomed by wheel or pinch into
// first person.
import { PerspectiveCamera, Vector3 } from 'three';
import type { Occluders } from './occluders';

const EYE_HEIGHT_M = 1.55;
const DISTANCE_MAX = 16;
const DISTANCE_START = 6.5;
/** Nearer than this there is no room for the avatar: first person. */
const FIRST_PERSON_M = 0.9;
const WALL_GAP_M = 0.25;
export const PITCH_MAX = 1.45;

export class ChaseCamera {
  readonly camera = new PerspectiveCamera(70, 1, 0.1, 1000);
  #wanted = DISTANCE_START;
  #distance = DISTANCE_START;
  #focus = new Vector3();
  #settled = false;
  #back = new Vector3();

  get firstPerson(): boolean {
    return this.#wanted < FIRST_PERSON_M;
  }

  /** Where the camera looks at. */
  get focus(): Vector3 {
    return this.#focus;
  }

  /** Positive moves away. Steps grow with the distance, so that zooming feels even. */
  zoom(steps: number): void {
    const next = this.#wanted * Math.exp(steps * 0.14) + (this.#wanted < FIRST_PERSON_M && steps > 0 ? 1 : 0);
    this.#wanted = Math.min(DISTANCE_MAX, next < FIRST_PERSON_M ? 0 : next);
  }

  /** Jumps to the player without lag: after a teleport. */
  snap(): void {
    this.#settled = false;
  }

  update(feet: Vector3, yaw: number, pitch: number, dt: number, occluders: Occluders): void {
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
    // In at once, lest the wall be seen from inside; out again slowly.
    this.#distance = free < this.#distance ? free : this.#distance + (free - this.#distance) * (1 - Math.exp(-dt * 7));
    this.camera.position.copy(this.#focus).addScaledVector(back, this.#distance);
    this.camera.rotation.set(pitch, yaw, 0, 'YXZ');
    this.camera.updateMatrixWorld();
  }

  resize(width: number, height: number, viewDistance: number): void {
    this.camera.aspect = width / Math.max(1, height);
    // Upright phones see the same width of the world as a square window.
    this.camera.fov = this.camera.aspect < 1 ? 82 : 68;
    this.camera.far = viewDistance * 1.5;
    this.camera.updateProjectionMatrix();
  }

  #freeDistance(back: Vector3, occluders: Occluders): number {
    const hit = occluders.cast(this.#focus, back, this.#wanted + WALL_GAP_M);
    return Math.max(0.35, Math.min(this.#wanted, hit - WALL_GAP_M));
  }
}
