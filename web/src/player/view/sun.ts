// Light: a bright sky, one sun whose shadow follows the player, and the lamps of the scene.
import { Color, DirectionalLight, Group, HemisphereLight, PointLight, Quaternion, SpotLight, Vector3 } from 'three';
import type { Part, PartLight } from '../core/parts';
import { atDusk, dusk } from './dusk';

/** Shadow radius around the player. */
const SHADOW_REACH_M = 36;
const SUN_DISTANCE_M = 90;
/** Distance the player moves before the active lamps are chosen again. */
const LAMPS_MOVE_M = 4;
const SUN_INTENSITY = 2.5;

export class Lights {
  readonly group = new Group();
  /** From the ground towards the sun. */
  readonly sunDirection = new Vector3(0.55, 0.62, 0.42).normalize();
  #sun = new DirectionalLight('#ffdca6', SUN_INTENSITY);
  #shadowMapSize: number;
  #lampParts: Part[] = [];
  #lamps = new Group();
  #lampsMax = 0;
  #litAround = new Vector3(Infinity, 0, 0);

  constructor(parts: Iterable<Part>, shadowMapSize: number, pointLightsMax: number) {
    this.#shadowMapSize = shadowMapSize;
    const sky = new HemisphereLight('#d9ecff', '#d8b48a', 1.9);
    this.group.add(this.#lamps, sky);
    this.#setUpSun();
    for (const part of parts) {
      if (part.light?.type === 'sun') this.#takeSun(part, part.light);
      else if (part.light) this.#lampParts.push(part);
    }
    const evening = dusk(this.sunDirection);
    sky.color = atDusk(sky.color, new Color('#9a94d8'), evening);
    sky.groundColor = atDusk(sky.groundColor, new Color('#6a5a80'), evening);
    sky.intensity *= 1 - 0.15 * evening;
    this.#lampsMax = Math.min(pointLightsMax, this.#lampParts.length);
    this.#moveLamps(new Vector3());
  }

  /** Enables the lamps nearest to the player, because shaders support a limited number. Cheap enough for every frame. */
  #moveLamps(target: Vector3): void {
    if (this.#lampsMax === 0 || this.#litAround.distanceToSquared(target) < LAMPS_MOVE_M ** 2) return;
    this.#litAround.copy(target);
    const at = new Vector3();
    const distance = (part: Part) => at.fromArray(part.position).distanceToSquared(target);
    this.#lampParts.sort((a, b) => distance(a) - distance(b));
    this.#lamps.clear();
    for (const part of this.#lampParts.slice(0, this.#lampsMax)) if (part.light) this.#addLamp(part, part.light);
  }

  /** Moves the shadow's window to the player, in whole texels so that edges do not crawl. */
  follow(target: Vector3): void {
    const texel = this.#shadowMapSize > 0 ? (2 * SHADOW_REACH_M) / this.#shadowMapSize : 1;
    const snapped = target.clone().divideScalar(texel).round().multiplyScalar(texel);
    this.#sun.target.position.copy(snapped);
    this.#sun.position.copy(snapped).addScaledVector(this.sunDirection, SUN_DISTANCE_M);
    this.#moveLamps(target);
  }

  dispose(): void {
    this.#sun.dispose();
  }

  #setUpSun(): void {
    const sun = this.#sun;
    if (this.#shadowMapSize > 0) {
      sun.castShadow = true;
      sun.shadow.mapSize.setScalar(this.#shadowMapSize);
      const camera = sun.shadow.camera;
      camera.left = camera.bottom = -SHADOW_REACH_M;
      camera.right = camera.top = SHADOW_REACH_M;
      camera.near = 1;
      camera.far = SUN_DISTANCE_M * 2;
      sun.shadow.normalBias = 0.03;
      sun.shadow.bias = -0.0003;
      sun.shadow.radius = 1.3;
    }
    this.group.add(sun, sun.target);
    this.follow(new Vector3());
  }

  /** A sun in the scene shines along its own -Z. */
  #takeSun(part: Part, light: PartLight): void {
    this.sunDirection.set(0, 0, 1).applyQuaternion(new Quaternion(...part.rotation));
    if (this.sunDirection.y < 0.05) this.sunDirection.y = 0.05; // a sun under the floor lights nothing
    this.sunDirection.normalize();
    this.#sun.color = new Color(light.color);
    this.#sun.intensity = SUN_INTENSITY * Math.min(4, Math.max(0, light.intensity));
    this.follow(new Vector3());
  }

  #addLamp({ position, rotation }: Part, { type, color, intensity, range }: PartLight): void {
    // In scenes an intensity of 1 is a normal lamp; three.js uses candela.
    const candela = intensity * range;
    if (type === 'spot') {
      const spot = new SpotLight(color, candela * 2, range, Math.PI / 5, 0.4);
      spot.position.fromArray(position);
      spot.target.position.fromArray(position).add(forward(new Quaternion(...rotation)));
      this.#lamps.add(spot, spot.target);
    } else {
      const lamp = new PointLight(color, candela, range);
      lamp.position.fromArray(position);
      this.#lamps.add(lamp);
    }
  }
}

function forward(rotation: Quaternion): Vector3 {
  return new Vector3(0, 0, -1).applyQuaternion(rotation);
}
