// The view of the world: owns the three.js scene and renders each frame of the client core.
// It contains no game logic.
import { NeutralToneMapping, PCFShadowMap, Scene, Vector3, WebGLRenderer } from 'three';
import type { Combat, WeaponInfo } from '../model/combat.svelte';
import type { AvatarLooks } from '../../generated/AvatarLooks';
import { type PlayerInfo, textOf, type WireValue } from '../core/events';
import { type FrameRecord, records } from '../core/frame';
import { looksLike, type Part, type PartChanges, type PartNpc, type Vec3 } from '../core/parts';
import { Avatar, type Moment } from './avatar';
import { ChaseCamera } from './camera';
import { Crowd } from './crowd';
import { BlobShadow, Dust } from './dust';
import { Effects } from './effects';
import { LabelsView } from './labels';
import { avatarLook, npcLook, sameLooks } from './look';
import { MaterialLibrary } from './materials';
import { NameTag } from './nametag';
import { NpcsView } from './npcs';
import { Occluders } from './occluders';
import type { MeshSource } from './geometry';
import { PartsView, spawnYaw } from './parts';
import { GroundView } from './ground';
import { LEVELS, QualityGovernor, startingQuality, type Quality } from './quality';
import { HeldWeapons, ShotsView } from './shots';
import { disposeSky, makeFog, makeSky } from './sky';
import { Lights } from './sun';
import { Underwater } from './water';

/** The look direction from the input. */
export interface Look {
  yaw: number;
  pitch: number;
}

/** Events with a sound. */
export interface Hooks {
  jumped?(own: boolean): void;
  landed?(own: boolean): void;
  stepped?(own: boolean): void;
  splashed?(own: boolean): void;
}

/** Water depth above the feet from which characters swim. */
const SWIM_DEPTH_M = 1;

interface Character {
  avatar: Avatar;
  tag: NameTag | null;
  name: string;
  /** Disconnected: drawn translucently. */
  away: boolean;
}

/** Opacity of disconnected players. */
const AWAY_OPACITY = 0.35;

export class WorldView {
  readonly camera = new ChaseCamera();
  readonly renderer: WebGLRenderer;
  /** Position of the own character as last drawn. */
  readonly ownPosition = new Vector3();
  ownId = 0;
  #scene = new Scene();
  #known = new Map<number, Part>();
  #hasTerrain = false;
  #meshes: MeshSource | undefined;
  #names = new Map<number, string>();
  #chosen = new Map<number, AvatarLooks>();
  /** Characters of disconnected players. */
  #away: ReadonlySet<number> = new Set();
  #characters = new Map<number, Character>();
  #governor: QualityGovernor;
  #forced: Quality | null;
  #drawn = false;
  #parts!: PartsView;
  #materials!: MaterialLibrary;
  #lights!: Lights;
  #sky: ReturnType<typeof makeSky> | null = null;
  #crowd!: Crowd;
  /** The crowd of disconnected players; created on demand. */
  #ghosts: Crowd | null = null;
  #labels = new LabelsView();
  #occluders = new Occluders();
  #dust = new Dust();
  readonly effects = new Effects();
  readonly shots = new ShotsView();
  readonly held = new HeldWeapons();
  #combat: Combat | null = null;
  #weaponOf: (entity: number) => number | undefined = () => undefined;
  readonly ground = new GroundView();
  /** Distance at which a ray hits the voxel terrain; called every frame. */
  occludes: (origin: Vec3, direction: Vec3, max: number) => number = (_origin, _direction, max) => max;
  /** Whether a position is under water; called every frame. */
  isWater: (at: Vector3) => boolean = () => false;
  readonly #underwater = new Underwater();
  #chest = new Vector3();
  #blob = new BlobShadow();
  readonly npcs = new NpcsView();

  constructor(
    canvas: HTMLCanvasElement,
    forced: Quality | null,
    private readonly hooks: Hooks = {},
  ) {
    this.renderer = new WebGLRenderer({ canvas, antialias: forced !== 'low', powerPreference: 'high-performance' });
    // Checking each shader for errors would wait for them one after the other.
    this.renderer.debug.checkShaderErrors = import.meta.env.DEV;
    this.renderer.toneMapping = NeutralToneMapping;
    this.renderer.toneMappingExposure = 1;
    this.renderer.shadowMap.type = PCFShadowMap;
    this.#forced = forced;
    this.#governor = new QualityGovernor(forced ?? startingQuality(rendererName(this.renderer)));
    this.#rebuild();
  }

  get quality(): Quality {
    return this.#governor.quality;
  }

  /** Sets a fixed quality, or follows the frame time again (null). */
  forceQuality(quality: Quality | null): void {
    this.#forced = quality;
    if (quality && quality !== this.quality) this.#setQuality(quality);
  }

  /** Shows a scene of these parts; `meshes` returns the triangles of a mesh shape. */
  setScene(parts: Iterable<Part>, hasTerrain: boolean, meshes?: MeshSource): void {
    this.#known = new Map(Array.from(parts, (part) => [part.id, part]));
    this.#hasTerrain = hasTerrain;
    this.#meshes = meshes;
    // After a reconnect all entity ids may differ.
    for (const id of [...this.#characters.keys()]) this.#remove(id);
    this.ownId = 0;
    this.effects.clear();
    this.camera.snap();
    this.#rebuild();
  }

  /** Shows parts that appeared or changed, and hides those that disappeared. */
  changeParts({ changed, removed }: PartChanges): void {
    let lightsChanged = false;
    for (const part of changed) {
      const before = this.#known.get(part.id);
      this.#known.set(part.id, part);
      lightsChanged ||= lightOf(before) !== lightOf(part);
      if (before && looksLike(before, part)) continue;
      this.#hidePart(part.id);
      this.#parts.add(part);
      this.#labels.add(part);
      this.#occluders.add(part);
    }
    for (const id of removed) {
      lightsChanged ||= lightOf(this.#known.get(id)) !== '';
      this.#known.delete(id);
      this.#hidePart(id);
    }
    if (lightsChanged) this.#relight();
  }

  #relight(): void {
    const { sunDirection } = this.#lights;
    const level = LEVELS[this.quality];
    const lights = new Lights(this.#known.values(), level.shadowMapSize, level.pointLightsMax);
    // Sky and fog depend on the sun.
    if (!lights.sunDirection.equals(sunDirection)) return this.#rebuild();
    this.#scene.remove(this.#lights.group);
    this.#lights.dispose();
    this.#lights = lights;
    this.#scene.add(lights.group);
  }

  #hidePart(id: number): void {
    this.#parts.remove(id);
    this.#labels.remove(id);
    this.#occluders.remove(id);
  }

  /** Draw distance of the voxel terrain in metres. */
  get groundDistance(): number {
    return LEVELS[this.quality].groundDistance;
  }

  /** Far distance: fog hides the edge of the terrain. */
  get #viewDistance(): number {
    const level = LEVELS[this.quality];
    return this.#hasTerrain ? Math.min(level.viewDistance, level.groundDistance) : level.viewDistance;
  }

  particles(at: Vec3, options: Record<string, WireValue>): void {
    const towards = (options.Direction as { $v?: Vec3 } | undefined)?.$v;
    this.effects.burst(new Vector3(...at), { ...options, Direction: towards && new Vector3(...towards) });
  }

  /** A muzzle flash; for own shots slightly ahead, so that it does not fill the view. */
  muzzle(at: Vec3, velocity: Vec3, own: boolean, weapon: WeaponInfo): void {
    const way = new Vector3(...velocity).normalize();
    const place = (own && this.held.muzzle?.clone()) || new Vector3(...at).addScaledVector(way, 0.6);
    this.effects.burst(place, {
      Count: own ? 4 : 7,
      Color: hex(weapon),
      Size: own ? 0.07 : 0.14,
      Speed: 2,
      Lifetime: 0.16,
      Gravity: 0,
      Direction: way,
      Spread: 50,
    });
  }

  /** Sparks at an impact; more and rounder ones when a character was hit. */
  impact(at: Vec3, normal: Vec3, somebody: boolean, weapon: WeaponInfo): void {
    const place = new Vector3(...at);
    const away = new Vector3(...normal);
    this.effects.burst(place, {
      Count: somebody ? 18 : 10,
      Color: hex(weapon),
      Size: somebody ? 0.2 : 0.13,
      Speed: somebody ? 4.5 : 3.2,
      Lifetime: 0.45,
      Gravity: 9,
      Direction: away,
      Spread: 70,
    });
    if (somebody)
      this.effects.burst(place, { Count: 6, Color: '#ffffff', Size: 0.26, Speed: 1.6, Lifetime: 0.25, Gravity: 0 });
  }

  beam(from: Vec3, to: Vec3, options: Record<string, WireValue>): void {
    this.effects.beam(new Vector3(...from), new Vector3(...to), options);
  }

  /** Yaw of the spawn point under the own character, so that players start facing forward. */
  spawnYaw(): number {
    return spawnYaw(this.#known.values(), this.ownPosition);
  }

  /** Updates names and looks of player characters. */
  setPlayers(players: readonly Pick<PlayerInfo, 'entityId' | 'name' | 'looks' | 'online'>[]): void {
    this.#away = new Set(players.filter((player) => !player.online).map((player) => player.entityId));
    this.#names = new Map(players.map((player) => [player.entityId, player.name]));
    const before = this.#chosen;
    this.#chosen = new Map(players.map((player) => [player.entityId, player.looks]));
    for (const [id, looks] of this.#chosen) {
      const character = this.#characters.get(id);
      if (!character || sameLooks(before.get(id), looks)) continue;
      character.avatar.look = avatarLook(id, looks);
      this.#crowd.repaint();
      this.#ghosts?.repaint();
    }
  }

  /** The looks of a character, for tests. */
  wornBy(id: number): { hat: string; face: string; shirt: string } | null {
    const look = this.#characters.get(id)?.avatar.look;
    return look ? { hat: look.hat, face: look.face, shirt: `#${look.shirt.getHexString()}` } : null;
  }

  /** Whether a character is drawn as disconnected, for tests. */
  isFaded(id: number): boolean {
    return this.#characters.get(id)?.away ?? false;
  }

  /** Drawn position of an entity, for scripts and tests. */
  characterPosition(id: number): Vector3 | null {
    return this.#characters.get(id)?.avatar.root.position ?? null;
  }

  resize(width: number, height: number): void {
    const level = LEVELS[this.quality];
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, level.pixelRatioMax));
    this.renderer.setSize(width, height, false);
    this.camera.resize(width, height, this.#viewDistance);
    // Resizing clears the canvas, which would flicker until the next frame.
    if (this.#drawn) this.renderer.render(this.#scene, this.camera.camera);
  }

  /** Sets the source of weapons. */
  setCombat(combat: Combat, weaponOf: (entity: number) => number | undefined): void {
    this.#combat = combat;
    this.#weaponOf = weaponOf;
  }

  /** Applies the current shot positions. */
  applyShots(shots: Float32Array): void {
    if (this.#combat) this.shots.update(shots, this.#combat.weapons, this.camera.camera.position, this.held.muzzle);
  }

  /** Applies a frame of the core. */
  apply(frame: Float32Array, removed: ArrayLike<number>, dt: number): void {
    for (let i = 0; i < removed.length; i++) this.#remove(removed[i] ?? 0);
    for (const record of records(frame)) {
      if (record.isPlayer) {
        const npc = record.mood > 0 ? this.#known.get(record.id)?.npc : null;
        // The definition of an NPC may arrive after its first snapshot.
        if (npc === undefined) continue;
        const character = this.#character(record.id, record.own, npc);
        if (npc) this.npcs.update(record, npc, this.#occluders, this.camera.camera.position, dt);
        if (record.own) {
          this.ownId = record.id;
          this.ownPosition.copy(record.position);
        }
        const weapon = this.#weapon(record.id);
        const aim = weapon && !record.dead ? record.pitch : null;
        this.#notice(character.avatar.update({ ...moving(record), aim, swimming: this.#swims(record) }, dt), record);
        const inHand = weapon && !record.dead && !(record.own && this.camera.firstPerson) ? weapon : null;
        this.held.show(record.id, inHand, character.avatar.arms[1], record.pitch);
      } else {
        this.#parts.move(record.id, record.position, record.rotation);
        this.#labels.move(record.id, record.position);
        this.#occluders.move(record.id, record.position, record.rotation);
      }
    }
  }

  /** Draws. */
  render(look: Look, dt: number): void {
    this.camera.update(this.ownPosition, look.yaw, look.pitch, dt, this.#occluders);
    this.#underwater.update(this.#scene, this.#sky, this.#hasWater && this.isWater(this.camera.camera.position), dt);
    this.#lights.follow(this.ownPosition);
    const own = this.#combat?.alive ? (this.#combat.weapon ?? null) : null;
    this.held.showOwn(own, this.camera.camera, this.camera.firstPerson, dt);
    this.#dust.update(dt);
    this.effects.update(dt);
    this.#blob.update(this.ownPosition, this.#occluders);
    this.#crowd.setHidden(this.ownId, this.camera.firstPerson);
    this.#crowd.update();
    this.#ghosts?.update();
    const eye = this.camera.camera.position;
    for (const { avatar, tag } of this.#characters.values()) tag?.update(avatar.root.position, eye);
    this.#labels.update(eye);
    this.renderer.render(this.#scene, this.camera.camera);
    this.#drawn = true;
    const change = this.#forced ? null : this.#governor.frame(dt * 1000);
    if (change) this.#setQuality(change);
  }

  dispose(): void {
    for (const id of [...this.#characters.keys()]) this.#remove(id);
    this.#tearDown();
    this.#dust.dispose();
    this.effects.dispose();
    this.shots.dispose();
    this.held.dispose();
    this.ground.dispose();
    this.#blob.dispose();
    this.npcs.dispose();
    this.renderer.dispose();
  }

  #notice(moment: Moment | null, record: FrameRecord): void {
    if (moment === 'landed') this.#dust.burst(record.position);
    if (moment === 'splashed') this.#splash(record.position);
    if (moment) this.hooks[moment]?.(record.own);
  }

  get #hasWater(): boolean {
    return this.#hasTerrain;
  }

  #swims({ position, grounded }: FrameRecord): boolean {
    if (!this.#hasWater || grounded) return false;
    return this.isWater(this.#chest.set(position.x, position.y + SWIM_DEPTH_M, position.z));
  }

  /** Drops at the surface above the feet. */
  #splash({ x, y, z }: { x: number; y: number; z: number }): void {
    const at = new Vector3(x, y + SWIM_DEPTH_M, z);
    this.effects.burst(at, {
      Count: 26,
      Color: '#d8f1ff',
      Size: 0.16,
      Speed: 3.6,
      Lifetime: 0.7,
      Gravity: 9,
      Direction: new Vector3(0, 1, 0),
      Spread: 65,
    });
  }

  #character(id: number, own: boolean, npc: PartNpc | null): Character {
    let character = this.#characters.get(id);
    if (!character) {
      character = {
        avatar: new Avatar(id, npc ? npcLook(id, npc) : avatarLook(id, this.#chosen.get(id))),
        tag: null,
        name: '',
        away: false,
      };
      this.#characters.set(id, character);
      this.#crowd.add(character.avatar);
    }
    const name = own ? '' : (this.#names.get(id) ?? textOf(this.#known.get(id)?.attributes.NameTag));
    const away = !own && this.#away.has(id);
    if (name !== character.name || away !== character.away) {
      this.#dropTag(character);
      character.name = name;
      if (away !== character.away) this.#fade(character, away);
      if (name) {
        character.tag = new NameTag(name, away);
        this.#scene.add(character.tag.sprite);
      }
    }
    return character;
  }

  #weapon(entity: number) {
    const index = this.#weaponOf(entity);
    return (index !== undefined && this.#combat?.weapons.get(index)) || null;
  }

  /** Moves an avatar between the connected and the disconnected crowd. */
  #fade(character: Character, away: boolean): void {
    this.#crowdOf(character).remove(character.avatar);
    character.away = away;
    this.#crowdOf(character).add(character.avatar);
  }

  #crowdOf({ away }: Character): Crowd {
    if (!away) return this.#crowd;
    if (!this.#ghosts) {
      const level = LEVELS[this.quality];
      this.#ghosts = new Crowd(level.roundShapes, level.physicalMaterials, AWAY_OPACITY);
      this.#scene.add(this.#ghosts.group);
    }
    return this.#ghosts;
  }

  #dropTag(character: Character): void {
    if (!character.tag) return;
    this.#scene.remove(character.tag.sprite);
    character.tag.dispose();
    character.tag = null;
  }

  #remove(id: number): void {
    const character = this.#characters.get(id);
    if (character) {
      this.#dropTag(character);
      this.#crowdOf(character).remove(character.avatar);
      this.held.show(id, null, null, 0);
      this.#characters.delete(id);
      this.npcs.remove(id);
    }
  }

  #setQuality(quality: Quality): void {
    this.#governor.quality = quality;
    this.#rebuild();
    const canvas = this.renderer.domElement;
    this.resize(canvas.clientWidth, canvas.clientHeight);
  }

  /** Rebuilds everything that depends on the quality; also after a new scene. */
  #rebuild(): void {
    this.#tearDown();
    const level = LEVELS[this.quality];
    this.renderer.shadowMap.enabled = level.shadowMapSize > 0;
    this.#materials = new MaterialLibrary(level.physicalMaterials);
    this.#parts = new PartsView(this.#materials, level.roundShapes, this.#meshes);
    this.#parts.addAll(this.#known.values());
    this.#labels.addAll(this.#known.values());
    this.#lights = new Lights(this.#known.values(), level.shadowMapSize, level.pointLightsMax);
    this.#crowd = new Crowd(level.roundShapes, level.physicalMaterials);
    for (const character of this.#characters.values()) this.#crowdOf(character).add(character.avatar);
    this.ground.setQuality(level.physicalMaterials, level.shadowMapSize > 0);
    this.#occluders = new Occluders(
      this.#hasTerrain ? (origin, direction, max) => this.occludes(origin, direction, max) : null,
    );
    for (const part of this.#known.values()) this.#occluders.add(part);
    this.#scene.background = null;
    this.#underwater.reset();
    this.#scene.fog = makeFog(this.#viewDistance, this.#lights.sunDirection);
    this.#sky = makeSky(this.#lights.sunDirection);
    this.#scene.add(this.#sky, this.#lights.group, this.#parts.group, this.#labels.group, this.#crowd.group);
    this.#scene.add(this.#dust.group, this.effects.group, this.#blob.mesh, this.shots.group, this.held.group);
    this.#scene.add(this.npcs.group, this.ground.group);
    for (const { tag } of this.#characters.values()) if (tag) this.#scene.add(tag.sprite);
  }

  #tearDown(): void {
    this.#scene.clear();
    if (this.#sky) disposeSky(this.#sky);
    this.#parts?.dispose();
    this.#labels.dispose();
    this.#materials?.dispose();
    this.#lights?.dispose();
    this.#crowd?.dispose();
    this.#ghosts?.dispose();
    this.#ghosts = null;
  }
}

const hex = ({ color }: WeaponInfo) => `#${color.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;

/** The light of a part as text, for comparison; empty without one. */
function lightOf(part: Part | undefined): string {
  return part?.light ? JSON.stringify(part.light) : '';
}

/** The record is reused for the next one, so the avatar stores a copy. */
function moving({ position, velocity, yaw, grounded, dead }: FrameRecord) {
  return { position, velocity, yaw, grounded, dead };
}

function rendererName(renderer: WebGLRenderer): string {
  const gl = renderer.getContext();
  const info = gl.getExtension('WEBGL_debug_renderer_info');
  return String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
}
