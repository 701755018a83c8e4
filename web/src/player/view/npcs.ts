// Visuals of an NPC besides its avatar: the mark above its head, and for NPCs that show their vision the lantern
// in the hand and its cone of light on the ground.
import {
  AdditiveBlending,
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  CanvasTexture,
  Color,
  DoubleSide,
  DynamicDrawUsage,
  Group,
  Mesh,
  MeshBasicMaterial,
  Sprite,
  SpriteMaterial,
  SRGBColorSpace,
  Vector3,
} from 'three';
import type { FrameRecord, Point } from '../core/frame';
import { npcMark, npcState, npcSuspicion } from '../core/npc';
import type { PartNpc } from '../core/parts';
import type { Occluders } from './occluders';

const MARK_ABOVE_FEET_M = 2.45;
const MARK_M = 0.62;
/** Marks are visible from further away than names. */
const MARK_SEEN_M = 70;
const CONE_SEEN_M = 60;
const CONE_ABOVE_FEET_M = 0.07;
/** Rays per cone: enough for a round edge and the shadow of a pillar. */
const CONE_RAYS = 28;
/** Interval of the wall raycasts of a cone; in between it only turns. */
const CONE_EVERY_S = 0.06;
const EYES_M = 1.3;
/** Lantern position: right of the body, slightly ahead. */
const LANTERN = { x: 0.42, y: 0.62, z: -0.24 } as const;
const CALM = new Color('#ffe08a');
const UNSURE = new Color('#ffb02e');
const SURE = new Color('#ff4d4d');
/** Fill levels of the question mark. */
const FILLS = 8;

interface Shown {
  data: PartNpc;
  sprite: Sprite;
  cone: Mesh<BufferGeometry, MeshBasicMaterial> | null;
  lantern: Lantern | null;
  mark: string;
  pop: number;
  cutAgo: number;
}

export class NpcsView {
  readonly group = new Group();
  #shown = new Map<number, Shown>();
  #marks = new Map<string, SpriteMaterial>();
  #from = new Vector3();
  #along = new Vector3();

  /** Updates one NPC for this frame. */
  update(record: FrameRecord, data: PartNpc, occluders: Occluders, eye: Point, dt: number): void {
    const shown = this.#shown.get(record.id) ?? this.#add(record.id, data);
    const { x, y, z } = record.position;
    const distance = Math.hypot(x - eye.x, y - eye.y, z - eye.z);
    this.#mark(shown, record, distance, dt);
    const { cone } = shown;
    if (!cone) return;
    shown.lantern?.place(record, distance < CONE_SEEN_M);
    cone.visible = distance < CONE_SEEN_M;
    shown.cutAgo += dt;
    if (!cone.visible) return;
    const state = npcState(record.mood);
    const sure = state === 'alert' || state === 'chase';
    cone.material.color.copy(sure ? SURE : CALM).lerp(UNSURE, sure ? 0 : Math.min(1, npcSuspicion(record.mood) * 1.6));
    cone.material.opacity = sure ? 0.6 : 0.5;
    shown.lantern?.tint(cone.material.color);
    cone.position.set(x, y + CONE_ABOVE_FEET_M, z);
    cone.rotation.y = record.yaw;
    if (shown.cutAgo >= CONE_EVERY_S) {
      shown.cutAgo = 0;
      this.#cut(cone, shown.data, record, occluders);
    }
  }

  /** The marks by entity, for tests. */
  marks(): Map<number, string> {
    return new Map([...this.#shown].filter(([, shown]) => shown.sprite.visible).map(([id, shown]) => [id, shown.mark]));
  }

  remove(id: number): void {
    const shown = this.#shown.get(id);
    if (!shown) return;
    this.#shown.delete(id);
    this.group.remove(shown.sprite);
    if (shown.lantern) {
      this.group.remove(shown.lantern.group);
      shown.lantern.dispose();
    }
    if (shown.cone) {
      this.group.remove(shown.cone);
      shown.cone.geometry.dispose();
      shown.cone.material.dispose();
    }
  }

  clear(): void {
    for (const id of [...this.#shown.keys()]) this.remove(id);
  }

  dispose(): void {
    this.clear();
    for (const material of this.#marks.values()) {
      material.map?.dispose();
      material.dispose();
    }
    this.#marks.clear();
  }

  #add(id: number, data: PartNpc): Shown {
    const sprite = new Sprite(this.#material('?', FILLS));
    sprite.visible = false;
    sprite.renderOrder = 6;
    const cone = data.visionCone ? makeCone() : null;
    // The first raycast happens in the first frame.
    const lantern = cone ? new Lantern() : null;
    const shown = { data, sprite, cone, lantern, mark: '', pop: 0, cutAgo: CONE_EVERY_S };
    this.group.add(sprite);
    if (lantern) this.group.add(lantern.group);
    if (cone) this.group.add(cone);
    this.#shown.set(id, shown);
    return shown;
  }

  #mark(shown: Shown, record: FrameRecord, distance: number, dt: number): void {
    const mark = npcMark(record.mood);
    const fill =
      mark === '!' || npcState(record.mood) === 'search'
        ? FILLS
        : Math.max(1, Math.round(npcSuspicion(record.mood) * FILLS));
    if (mark !== shown.mark) {
      shown.mark = mark;
      shown.pop = 1;
    }
    shown.pop = Math.max(0, shown.pop - dt * 4);
    shown.sprite.visible = mark !== '' && distance < MARK_SEEN_M;
    if (!shown.sprite.visible) return;
    shown.sprite.material = this.#material(mark, fill);
    // Larger at a distance, to stay readable on a phone; jumps when it changes.
    const size = MARK_M * Math.max(1, distance / 16) * (1 + 0.6 * shown.pop * shown.pop);
    shown.sprite.scale.set(size, size, 1);
    shown.sprite.position.set(
      record.position.x,
      record.position.y + MARK_ABOVE_FEET_M + 0.25 * shown.pop,
      record.position.z,
    );
  }

  #material(mark: string, fill: number): SpriteMaterial {
    const key = `${mark} ${fill}`;
    let material = this.#marks.get(key);
    if (!material) {
      const map = new CanvasTexture(paint(mark, fill / FILLS));
      map.colorSpace = SRGBColorSpace;
      material = new SpriteMaterial({
        map,
        transparent: true,
        depthWrite: false,
        depthTest: false,
        fog: false,
        toneMapped: false,
      });
      this.#marks.set(key, material);
    }
    return material;
  }

  /** Each ray ends where the NPC's view is blocked. */
  #cut(cone: Mesh<BufferGeometry>, data: PartNpc, record: FrameRecord, occluders: Occluders): void {
    const angle = (data.fieldOfView * Math.PI) / 180;
    const corners = cone.geometry.getAttribute('position') as BufferAttribute;
    this.#from.set(record.position.x, record.position.y + EYES_M, record.position.z);
    for (let ray = 0; ray <= CONE_RAYS; ray++) {
      const aside = (ray / CONE_RAYS - 0.5) * angle;
      const yaw = record.yaw + aside;
      this.#along.set(-Math.sin(yaw), 0, -Math.cos(yaw));
      const far = occluders.cast(this.#from, this.#along, data.sightDistance);
      corners.setXYZ(ray + 1, -Math.sin(aside) * far, 0, -Math.cos(aside) * far);
    }
    corners.needsUpdate = true;
  }
}

/** A lantern in the right hand in the colour of the cone. */
class Lantern {
  readonly group = new Group();
  readonly #glass = new Mesh(new BoxGeometry(0.17, 0.2, 0.17), new MeshBasicMaterial({ toneMapped: false }));
  readonly #frame = new Mesh(new BoxGeometry(0.2, 0.05, 0.2), new MeshBasicMaterial({ color: '#2b2840' }));
  readonly #glow = new Sprite(
    new SpriteMaterial({
      map: glow(),
      blending: AdditiveBlending,
      transparent: true,
      depthWrite: false,
      toneMapped: false,
    }),
  );

  constructor() {
    this.#glass.position.set(LANTERN.x, LANTERN.y, LANTERN.z);
    this.#frame.position.set(LANTERN.x, LANTERN.y + 0.12, LANTERN.z);
    this.#glow.position.copy(this.#glass.position);
    this.#glow.scale.setScalar(1.5);
    this.group.add(this.#glass, this.#frame, this.#glow);
  }

  place({ position, yaw }: FrameRecord, visible: boolean): void {
    this.group.visible = visible;
    this.group.position.copy(position);
    this.group.rotation.y = yaw;
  }

  tint(color: Color): void {
    this.#glass.material.color.copy(color);
    this.#glow.material.color.copy(color);
  }

  dispose(): void {
    for (const part of [this.#glass, this.#frame]) {
      part.geometry.dispose();
      part.material.dispose();
    }
    this.#glow.material.map?.dispose();
    this.#glow.material.dispose();
  }
}

function glow(): CanvasTexture {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 64;
  const c = canvas.getContext('2d');
  if (c) {
    const light = c.createRadialGradient(32, 32, 2, 32, 32, 32);
    light.addColorStop(0, 'rgb(255 255 255 / 75%)');
    light.addColorStop(0.35, 'rgb(255 255 255 / 22%)');
    light.addColorStop(1, 'rgb(255 255 255 / 0%)');
    c.fillStyle = light;
    c.fillRect(0, 0, 64, 64);
  }
  return new CanvasTexture(canvas);
}

function makeCone(): Mesh<BufferGeometry, MeshBasicMaterial> {
  const geometry = new BufferGeometry();
  const corners = new BufferAttribute(new Float32Array((CONE_RAYS + 2) * 3), 3);
  corners.setUsage(DynamicDrawUsage);
  const triangles: number[] = [];
  for (let ray = 1; ray <= CONE_RAYS; ray++) triangles.push(0, ray, ray + 1);
  geometry.setAttribute('position', corners);
  geometry.setIndex(triangles);
  const material = new MeshBasicMaterial({
    transparent: true,
    opacity: 0.3,
    depthWrite: false,
    side: DoubleSide,
    toneMapped: false,
    polygonOffset: true,
    polygonOffsetFactor: -2,
    polygonOffsetUnits: -2,
  });
  const cone = new Mesh(geometry, material);
  cone.frustumCulled = false; // its corners move
  cone.renderOrder = 1;
  return cone;
}

/** A round sign; the question mark fills from below with rising suspicion. */
function paint(mark: string, fill: number): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 96;
  const c = canvas.getContext('2d');
  if (!c) return canvas;
  const [middle, radius] = [48, 42];
  c.beginPath();
  c.arc(middle, middle, radius, 0, Math.PI * 2);
  c.fillStyle = 'rgb(29 27 46 / 82%)';
  c.fill();
  c.save();
  c.clip();
  c.fillStyle = mark === '!' ? '#ff4d4d' : '#ffb02e';
  c.fillRect(0, middle + radius - 2 * radius * fill, 96, 96);
  c.restore();
  c.lineWidth = 5;
  c.strokeStyle = '#ffffff';
  c.stroke();
  c.font = `900 64px 'Nunito Variable', sans-serif`;
  c.fillStyle = '#ffffff';
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  c.fillText(mark, middle, middle + 5);
  return canvas;
}
