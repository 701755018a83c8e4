// The camera as client scripts see it: over the view's chase camera and the player's look.
import { Vector3 } from 'three';
import type { PlayerInput } from '../input/input';
import type { CameraHost, Triple } from '../luau/host';
import { CAMERA_MODES, type ChaseCamera } from '../view/camera';

export interface CameraSource {
  readonly input: PlayerInput;
  /** Undefined before the renderer is loaded. */
  chaseCamera(): ChaseCamera | null;
  /** Viewport size in CSS pixels. */
  viewportSize(): { width: number; height: number };
}

const NOWHERE: Triple = [0, 0, 0];

export class ScriptCamera implements CameraHost {
  constructor(private readonly source: CameraSource) {}

  position = (): Triple => this.source.chaseCamera()?.camera.position.toArray() ?? NOWHERE;

  forward = (): Triple => {
    const chase = this.source.chaseCamera();
    if (chase?.mode === 'Fixed') return chase.camera.getWorldDirection(new Vector3()).toArray();
    // The current look direction, not that of the last frame.
    const { yaw, pitch } = this.source.input;
    const flat = Math.cos(pitch);
    return [-Math.sin(yaw) * flat, Math.sin(pitch), -Math.cos(yaw) * flat];
  };

  viewport = (): Triple => {
    const { width, height } = this.source.viewportSize();
    return [width, height, 0];
  };

  mode(): string {
    return this.source.chaseCamera()?.mode ?? 'Follow';
  }

  setMode(mode: string): void {
    const [chase, known] = [this.source.chaseCamera(), CAMERA_MODES.find((name) => name === mode)];
    if (chase && known) chase.setMode(known);
  }

  setPosition(position: Triple): void {
    this.source.chaseCamera()?.hold(new Vector3(...position));
  }

  lookAt(target: Triple): void {
    const chase = this.source.chaseCamera();
    if (!chase) return;
    if (chase.mode === 'Fixed') return chase.holdTowards(new Vector3(...target));
    const way = new Vector3(...target).sub(chase.focus);
    if (way.lengthSq() < 1e-6) return;
    way.normalize();
    this.source.input.yaw = Math.atan2(-way.x, -way.z);
    this.source.input.pitch = Math.max(-1.45, Math.min(1.45, Math.asin(way.y)));
  }

  fieldOfView(): number {
    return this.source.chaseCamera()?.camera.fov ?? 70;
  }

  setFieldOfView(degrees: number): void {
    this.source.chaseCamera()?.setFieldOfView(degrees);
  }

  worldToScreen(place: Triple): Triple {
    const chase = this.source.chaseCamera();
    if (!chase) return NOWHERE;
    const { width, height } = this.source.viewportSize();
    const point = new Vector3(...place);
    const depth = -point.clone().applyMatrix4(chase.camera.matrixWorldInverse).z;
    point.project(chase.camera);
    const [x, y] = [((point.x + 1) / 2) * width, ((1 - point.y) / 2) * height];
    // A point in the camera plane has no screen position.
    return Number.isFinite(x) && Number.isFinite(y) ? [x, y, depth] : [0, 0, -1];
  }

  screenToRay(x: number, y: number): Triple {
    const chase = this.source.chaseCamera();
    const { width, height } = this.source.viewportSize();
    if (!chase || width <= 0 || height <= 0) return this.forward();
    const point = new Vector3((x / width) * 2 - 1, 1 - (y / height) * 2, 0.5).unproject(chase.camera);
    return point.sub(chase.camera.position).normalize().toArray();
  }

  shake(strength: number, seconds: number): void {
    this.source.chaseCamera()?.shake(strength, seconds);
  }
}
