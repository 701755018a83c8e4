// The 3D preview of the editor: one avatar on a round platform, drawn by the player's code.
import {
  AmbientLight,
  Color,
  CylinderGeometry,
  DirectionalLight,
  HemisphereLight,
  Mesh,
  MeshLambertMaterial,
  NeutralToneMapping,
  PerspectiveCamera,
  Scene,
  WebGLRenderer,
} from 'three';
import type { AvatarLooks } from '../../generated/AvatarLooks';
import { Avatar } from '../../player/view/avatar';
import { Crowd } from '../../player/view/crowd';
import { avatarLook } from '../../player/view/look';

/** Animation of the avatar. */
export type Act = 'stand' | 'walk' | 'jump';

const ORIGIN = { x: 0, y: 0, z: 0 };
const SPEED_MS = 4;
const JUMP_S = 0.9;

export class Stage {
  act: Act = 'stand';
  /** Rotation in radians; 0 faces the camera. */
  turn = 0.45;
  #renderer: WebGLRenderer;
  #scene = new Scene();
  #camera = new PerspectiveCamera(30, 1, 0.1, 50);
  #crowd = new Crowd(true, false);
  #avatar = new Avatar(1, avatarLook(1));
  #frame = 0;
  #last = performance.now();
  #time = 0;
  #still: boolean;

  constructor(canvas: HTMLCanvasElement) {
    this.#still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.#renderer = new WebGLRenderer({ canvas, antialias: true, alpha: true });
    this.#renderer.toneMapping = NeutralToneMapping;
    const sun = new DirectionalLight('#fff1d6', 2.2);
    sun.position.set(2, 4, 3);
    const floor = new Mesh(
      new CylinderGeometry(1.05, 1.15, 0.16, 48),
      new MeshLambertMaterial({ color: new Color('#ffd27a') }),
    );
    floor.position.y = -0.08;
    this.#scene.add(
      new AmbientLight('#ffffff', 0.7),
      new HemisphereLight('#dff0ff', '#ffd8a8', 1.3),
      sun,
      floor,
      this.#crowd.group,
    );
    this.#crowd.add(this.#avatar);
    this.#camera.position.set(0, 1.35, 5.6);
    this.#camera.lookAt(0, 1.02, 0);
    this.#frame = requestAnimationFrame(this.#draw);
  }

  show(looks: Partial<AvatarLooks>): void {
    this.#avatar.look = avatarLook(1, looks);
    this.#crowd.repaint();
  }

  resize(width: number, height: number): void {
    if (width === 0 || height === 0) return;
    this.#renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.#renderer.setSize(width, height, false);
    this.#camera.aspect = width / height;
    // A narrow viewport would cut the avatar off at the sides.
    this.#camera.position.z = 5.6 * Math.max(1, 0.72 / this.#camera.aspect);
    this.#camera.updateProjectionMatrix();
  }

  dispose(): void {
    cancelAnimationFrame(this.#frame);
    this.#crowd.dispose();
    this.#renderer.dispose();
  }

  #draw = (now: number): void => {
    this.#frame = requestAnimationFrame(this.#draw);
    const dt = Math.min(0.1, (now - this.#last) / 1000);
    this.#last = now;
    if (!this.#still) this.#time += dt;
    // The avatar walks in place in its look direction; the whole scene is rotated instead.
    const walking = this.act === 'walk' ? SPEED_MS : 0;
    const hop = (this.#time % JUMP_S) / JUMP_S;
    const jumping = this.act === 'jump' && !this.#still;
    const height = jumping ? 2.4 * hop * (1 - hop) : 0;
    this.#avatar.update(
      {
        position: { ...ORIGIN, y: height },
        velocity: { x: 0, y: jumping ? 4 - 8 * hop : 0, z: walking },
        yaw: Math.PI,
        grounded: !jumping || hop < 0.08,
      },
      this.#still ? 0 : dt,
    );
    this.#crowd.update();
    this.#crowd.group.rotation.y = this.turn;
    this.#renderer.render(this.#scene, this.#camera);
  };
}
