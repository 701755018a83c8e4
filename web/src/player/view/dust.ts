// Dust puffs on landing and the blob shadow under the own character, which make jumps easier to judge.
import {
  CanvasTexture,
  DoubleSide,
  Group,
  Mesh,
  MeshBasicMaterial,
  PlaneGeometry,
  Sprite,
  SpriteMaterial,
  Vector3,
} from 'three';
import type { Point } from '../core/frame';
import type { Occluders } from './occluders';

const PUFFS_PER_LANDING = 7;
const POOL = 28;
const LIFE_S = 0.55;

interface Puff {
  sprite: Sprite;
  velocity: Vector3;
  age: number;
}

export class Dust {
  readonly group = new Group();
  #puffs: Puff[] = [];
  #next = 0;
  #texture = softDisc('255 250 240');

  constructor() {
    for (let i = 0; i < POOL; i++) {
      const material = new SpriteMaterial({ map: this.#texture, transparent: true, depthWrite: false });
      const sprite = new Sprite(material);
      sprite.visible = false;
      this.group.add(sprite);
      this.#puffs.push({ sprite, velocity: new Vector3(), age: LIFE_S });
    }
  }

  burst(at: Point): void {
    for (let i = 0; i < PUFFS_PER_LANDING; i++) {
      const puff = this.#puffs[this.#next++ % POOL];
      if (!puff) return;
      const angle = (i / PUFFS_PER_LANDING) * Math.PI * 2 + Math.random() * 0.6;
      const speed = 1.1 + Math.random() * 0.8;
      puff.velocity.set(Math.cos(angle) * speed, 0.5 + Math.random() * 0.4, Math.sin(angle) * speed);
      puff.sprite.position.copy(at).addScaledVector(puff.velocity, 0.12);
      puff.age = 0;
      puff.sprite.visible = true;
    }
  }

  update(dt: number): void {
    for (const puff of this.#puffs) {
      if (puff.age >= LIFE_S) continue;
      puff.age += dt;
      const life = Math.min(1, puff.age / LIFE_S);
      puff.velocity.multiplyScalar(Math.exp(-dt * 4));
      puff.sprite.position.addScaledVector(puff.velocity, dt);
      puff.sprite.scale.setScalar(0.22 + 0.45 * life);
      puff.sprite.material.opacity = 0.55 * (1 - life);
      puff.sprite.visible = life < 1;
    }
  }

  dispose(): void {
    this.#texture.dispose();
    for (const { sprite } of this.#puffs) sprite.material.dispose();
  }
}

const DOWN = new Vector3(0, -1, 0);
const SHADOW_DEPTH_M = 14;

/** Shows where the own character will land; also the only shadow at low quality. */
export class BlobShadow {
  readonly mesh: Mesh<PlaneGeometry, MeshBasicMaterial>;

  constructor() {
    const material = new MeshBasicMaterial({
      map: softDisc('20 16 40'),
      transparent: true,
      depthWrite: false,
      side: DoubleSide,
      polygonOffset: true,
      polygonOffsetFactor: -2,
    });
    this.mesh = new Mesh(new PlaneGeometry(1.15, 1.15).rotateX(-Math.PI / 2), material);
    this.mesh.renderOrder = 2;
  }

  update(feet: Vector3, occluders: Occluders): void {
    const start = new Vector3(feet.x, feet.y + 0.4, feet.z);
    const drop = occluders.cast(start, DOWN, SHADOW_DEPTH_M) - 0.4;
    this.mesh.visible = drop < SHADOW_DEPTH_M - 0.5;
    this.mesh.position.set(feet.x, feet.y - drop + 0.02, feet.z);
    this.mesh.material.opacity = 0.5 * (1 - drop / SHADOW_DEPTH_M);
  }

  dispose(): void {
    this.mesh.geometry.dispose();
    this.mesh.material.map?.dispose();
    this.mesh.material.dispose();
  }
}

function softDisc(rgb: string): CanvasTexture {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 64;
  const c = canvas.getContext('2d');
  if (c) {
    const gradient = c.createRadialGradient(32, 32, 4, 32, 32, 31);
    gradient.addColorStop(0, `rgb(${rgb} / 100%)`);
    gradient.addColorStop(0.6, `rgb(${rgb} / 55%)`);
    gradient.addColorStop(1, `rgb(${rgb} / 0%)`);
    c.fillStyle = gradient;
    c.fillRect(0, 0, 64, 64);
  }
  return new CanvasTexture(canvas);
}
