// Shots in flight (streaks and balls, one draw call per kind), and the weapons that characters hold.
import {
  AdditiveBlending,
  type BoxGeometry,
  Color,
  CylinderGeometry,
  DynamicDrawUsage,
  Group,
  InstancedMesh,
  Matrix4,
  Mesh,
  MeshBasicMaterial,
  MeshLambertMaterial,
  type Object3D,
  type PerspectiveCamera,
  Quaternion,
  SphereGeometry,
  Vector3,
} from 'three';
import { RoundedBoxGeometry } from 'three/examples/jsm/geometries/RoundedBoxGeometry.js';
import { SHOT_OWN, SHOT_POSITION, SHOT_STRIDE, SHOT_VELOCITY, SHOT_WEAPON } from '../../generated/layout';
import type { WeaponInfo } from '../model/combat.svelte';

const SHOTS_MAX = 1024;
/** Length of a streak, in seconds of flight. */
const TRACER_S = 0.035;
const TRACER_MIN_M = 0.5;
const TRACER_MAX_M = 4;
/** Distance from which an own shot is drawn at its true position. */
const JOIN_M = 14;
const FORWARD = new Vector3(0, 0, -1);

export class ShotsView {
  readonly group = new Group();
  readonly #tracers: InstancedMesh;
  readonly #balls: InstancedMesh;
  readonly #place = new Vector3();
  readonly #way = new Vector3();
  readonly #aside = new Vector3();
  readonly #turn = new Quaternion();
  readonly #matrix = new Matrix4();
  readonly #scale = new Vector3();
  readonly #color = new Color();

  constructor() {
    const light = new MeshBasicMaterial({
      transparent: true,
      opacity: 0.92,
      depthWrite: false,
      blending: AdditiveBlending,
    });
    this.#tracers = new InstancedMesh(new CylinderGeometry(0.5, 0.2, 1, 6).rotateX(-Math.PI / 2), light, SHOTS_MAX);
    this.#balls = new InstancedMesh(
      new SphereGeometry(1, 12, 8),
      new MeshLambertMaterial({ emissiveIntensity: 0.35 }),
      SHOTS_MAX,
    );
    for (const mesh of [this.#tracers, this.#balls]) {
      mesh.count = 0;
      mesh.frustumCulled = false;
      mesh.instanceMatrix.setUsage(DynamicDrawUsage);
      this.group.add(mesh);
    }
  }

  /** Number of drawn shots, for tests. */
  get count(): number {
    return this.#tracers.count + this.#balls.count;
  }

  /** Records of ClientCore.shots(). Own shots start at the `muzzle` and blend into their true path. */
  update(shots: Float32Array, weapons: ReadonlyMap<number, WeaponInfo>, eye: Vector3, muzzle: Vector3 | null): void {
    let [tracers, balls] = [0, 0];
    for (let at = 0; at + SHOT_STRIDE <= shots.length; at += SHOT_STRIDE) {
      const weapon = weapons.get(shots[at + SHOT_WEAPON] ?? -1);
      if (!weapon || weapon.look === 'nothing') continue;
      this.#place.fromArray(shots, at + SHOT_POSITION);
      this.#way.fromArray(shots, at + SHOT_VELOCITY);
      const speed = this.#way.length();
      // The part that has left the muzzle: a streak must not fill the view in first person.
      let out = TRACER_MAX_M;
      if (muzzle && shots[at + SHOT_OWN]) {
        const gone = this.#place.distanceTo(eye);
        out = gone - 1;
        this.#place.addScaledVector(this.#aside.subVectors(muzzle, eye), 1 - Math.min(1, gone / JOIN_M));
      }
      if (out < TRACER_MIN_M / 2) continue;
      const [r, g, b] = weapon.color;
      this.#color.setRGB(r / 255, g / 255, b / 255, 'srgb');
      if (weapon.look === 'tracer' && tracers < SHOTS_MAX) {
        const length = Math.min(TRACER_MAX_M, out, Math.max(TRACER_MIN_M, speed * TRACER_S));
        const width = Math.max(0.07, weapon.radius * 1.6);
        this.#turn.setFromUnitVectors(FORWARD, speed > 0 ? this.#way.divideScalar(speed) : FORWARD);
        // The head of the streak is the position of the shot.
        this.#place.addScaledVector(this.#way, -length / 2);
        this.#matrix.compose(this.#place, this.#turn, this.#scale.set(width, width, length));
        this.#tracers.setMatrixAt(tracers, this.#matrix);
        this.#tracers.setColorAt(tracers++, this.#color);
      } else if (weapon.look === 'ball' && balls < SHOTS_MAX) {
        this.#matrix.compose(this.#place, this.#turn.identity(), this.#scale.setScalar(Math.max(0.06, weapon.radius)));
        this.#balls.setMatrixAt(balls, this.#matrix);
        this.#balls.setColorAt(balls++, this.#color);
      }
    }
    draw(this.#tracers, tracers);
    draw(this.#balls, balls);
  }

  dispose(): void {
    for (const mesh of [this.#tracers, this.#balls]) {
      mesh.geometry.dispose();
      (mesh.material as MeshBasicMaterial).dispose();
      mesh.dispose();
    }
  }
}

function draw(mesh: InstancedMesh, count: number): void {
  mesh.count = count;
  mesh.visible = count > 0;
  if (count === 0) return;
  mesh.instanceMatrix.needsUpdate = true;
  if (mesh.instanceColor) mesh.instanceColor.needsUpdate = true;
}

/** Recoil distance and recovery speed of the own weapon. */
const KICK_M = 0.09;
const KICK_FADE_S = 0.14;

/** A blaster: rounded, friendly, in the weapon's colour. */
function makeBlaster(): Group {
  const body = new MeshLambertMaterial({ color: '#f4f1ea' });
  const dark = new MeshLambertMaterial({ color: '#3b3654' });
  const glow = new MeshBasicMaterial({ color: '#ffffff' });
  const box = (x: number, y: number, z: number) => new RoundedBoxGeometry(x, y, z, 2, Math.min(x, y, z) * 0.3);
  const part = (
    geometry: BoxGeometry | CylinderGeometry,
    material: MeshLambertMaterial | MeshBasicMaterial,
    x: number,
    y: number,
    z: number,
  ) => {
    const mesh = new Mesh(geometry, material);
    mesh.position.set(x, y, z);
    return mesh;
  };
  const group = new Group();
  group.add(
    part(box(0.09, 0.12, 0.34), body, 0, 0, -0.1),
    part(box(0.07, 0.17, 0.08), dark, 0, -0.11, 0.02),
    part(box(0.1, 0.035, 0.22), glow, 0, 0.02, -0.12),
    part(new CylinderGeometry(0.035, 0.045, 0.16, 12).rotateX(Math.PI / 2), dark, 0, 0.01, -0.34),
    part(new CylinderGeometry(0.028, 0.028, 0.02, 12).rotateX(Math.PI / 2), glow, 0, 0.01, -0.425),
  );
  group.userData.glow = glow;
  return group;
}

/** Visible weapons: the own one in first person, others in their hands. */
export class HeldWeapons {
  readonly group = new Group();
  readonly #own = makeBlaster();
  readonly #muzzle = new Vector3();
  readonly #others = new Map<number, Group>();
  #kick = 0;

  constructor() {
    this.#own.visible = false;
    this.group.add(this.#own);
  }

  /** The own weapon just fired. */
  kick(): void {
    this.#kick = 1;
  }

  /** Muzzle position of the own weapon; null while it is hidden. */
  get muzzle(): Vector3 | null {
    return this.#own.visible ? this.#own.localToWorld(this.#muzzle.set(0, 0.01, -0.45)) : null;
  }

  /** Places the own weapon in front of the camera in first person. */
  showOwn(weapon: WeaponInfo | null, camera: PerspectiveCamera, shown: boolean, dt: number): void {
    this.#kick = Math.max(0, this.#kick - dt / KICK_FADE_S);
    this.#own.visible = weapon !== null && shown;
    if (!weapon || !shown) return;
    tint(this.#own, weapon);
    // Closer to the middle on a portrait phone.
    const aside = camera.aspect < 1 ? 0.13 : 0.26;
    this.#own.scale.setScalar(0.62);
    this.#own.position.set(aside, -0.22, -0.5 + this.#kick * KICK_M).applyMatrix4(camera.matrixWorld);
    this.#own.quaternion.copy(camera.quaternion);
    this.#own.rotateX(this.#kick * 0.12);
  }

  /** Sets the weapon in a character's right hand; null removes it. */
  show(id: number, weapon: WeaponInfo | null, hand: Object3D | null, pitch: number): void {
    let held = this.#others.get(id);
    if (!weapon || !hand) {
      if (held) this.group.remove(held);
      this.#others.delete(id);
      return;
    }
    if (!held) {
      held = makeBlaster();
      held.scale.setScalar(1.5);
      this.#others.set(id, held);
      this.group.add(held);
    }
    tint(held, weapon);
    held.position.set(0, -0.5, -0.08).applyMatrix4(hand.matrixWorld);
    hand.parent?.parent?.getWorldQuaternion(held.quaternion);
    held.rotateX(pitch);
  }

  /** Removes the weapons of characters that are gone. */
  keepOnly(there: (id: number) => boolean): void {
    for (const id of [...this.#others.keys()]) if (!there(id)) this.show(id, null, null, 0);
  }

  dispose(): void {
    this.group.traverse((thing) => {
      if (!(thing instanceof Mesh)) return;
      (thing as Mesh<BoxGeometry, MeshBasicMaterial>).geometry.dispose();
      (thing as Mesh<BoxGeometry, MeshBasicMaterial>).material.dispose();
    });
  }
}

function tint(group: Group, weapon: WeaponInfo): void {
  const [r, g, b] = weapon.color;
  (group.userData.glow as MeshBasicMaterial).color.setRGB(r / 255, g / 255, b / 255, 'srgb');
}
