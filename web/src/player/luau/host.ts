// The functions below the client's Luau: the table `host` that only builtin/ sees. The server's are in
// crates/script/src/host.rs; names and meaning agree.
import type { WireValue } from '../core/events';
import { type Entities, pushValue, readValues } from './values';
import type { HostFunction, LuauVm } from './vm';

export type Triple = [number, number, number];

/** A property of an entity or player; undefined when it is unknown or removed. */
export type Found = WireValue | undefined;

/** Host functions available to client scripts. */
export interface ClientHost {
  /** Without `reliable` the event may be lost. */
  fireServer(name: string, args: WireValue[], reliable: boolean): void;
  /** `call` comes back with the answer, through `ScriptRuntime.dispatchResult`. */
  invokeServer(call: number, name: string, args: WireValue[]): void;
  /** `params` is one value. */
  castSpell(spell: string, params: WireValue): void;
  log(level: 'info' | 'warn' | 'error', text: string): void;
  uiCreate(id: number, kind: string, props: Record<string, unknown>): void;
  uiUpdate(id: number, props: Record<string, unknown>): void;
  uiRemove(id: number): void;
  isKeyDown(name: string): boolean;
  /** Mouse position, mouse movement (z: wheel) since the last frame, left stick, right stick. */
  inputVector(which: number): Triple;
  inputDevice(): string;
  /** Seconds since the world started, as the server counts them. */
  worldTime(): number;
  /** A script requires a missing module: true when it is being loaded. */
  wantModule(path: string): boolean;
  /** Scripts that may still arrive: their paths and whether they are modules. */
  knownScripts(): Iterable<[path: string, module: boolean]>;
  /** `keys` as scripts name them, in their order. */
  bindAction(name: string, keys: string[]): void;
  unbindAction(name: string): void;
  camera: CameraHost;
  sound: SoundHost;
  effects: EffectsHost;
  world: WorldHost;
  terrain: TerrainHost;
}

/** Voxel terrain as replicated to this client. */
export interface TerrainHost {
  exists(): boolean;
  /** Lowest and highest corner, and the size of a block. */
  info(): { min: Triple; max: Triple; block: number };
  /** Empty for air. */
  block(place: Triple): string;
  height(x: number, z: number): number | null;
  raycast(
    origin: Triple,
    direction: Triple,
    max: number,
  ): { distance: number; normal: Triple; block: Triple; material: string } | null;
  /** Asks the server; `size` has one number for a ball, three for a box. */
  request(op: string, center: Triple, size: number[], material: string | null): void;
}

export interface CameraHost {
  position(): Triple;
  forward(): Triple;
  /** Width and height in pixels. */
  viewport(): Triple;
  mode(): string;
  setMode(mode: string): void;
  setPosition(position: Triple): void;
  lookAt(target: Triple): void;
  fieldOfView(): number;
  /** 0 restores the default. */
  setFieldOfView(degrees: number): void;
  /** Pixels, and the distance along the view as z. */
  worldToScreen(place: Triple): Triple;
  /** Direction of the ray through a pixel. */
  screenToRay(x: number, y: number): Triple;
  shake(strength: number, seconds: number): void;
}

export interface SoundHost {
  play(id: number, name: string, options: Record<string, WireValue>): void;
  /** 0 stops all. */
  stop(id: number): void;
  isPlaying(id: number): boolean;
}

export interface EffectsHost {
  particles(at: Triple, options: Record<string, WireValue>): void;
  beam(from: Triple, to: Triple, options: Record<string, WireValue>): void;
}

/** Replicated world and players. */
export interface WorldHost {
  exists(id: number): boolean;
  entity(id: number, property: EntityProperty): Found;
  /** An attribute as last set by the server, or as in the scene. */
  attribute(id: number, name: string): WireValue;
  /** Entities with this name or tag. */
  find(word: string): number[];
  inRadius(center: Triple, radius: number): number[];
  raycast(
    origin: Triple,
    direction: Triple,
    max: number,
    tag: string,
    ignore: number[],
  ): { id: number; distance: number; normal: Triple } | null;
  /** Numbers of all players. */
  players(): number[];
  /** The number of the player whose character this is, or 0. */
  playerOf(entity: number): number;
  localPlayer(): number;
  player(number: number, property: PlayerProperty): Found;
  stat(number: number, name: string): WireValue;
  /** NPCs in view, in the order of their ids. */
  npcs(): number[];
  /** State of a visible NPC and its suspicion from 0 to 1. */
  npc(id: number): { state: string; suspicion: number } | null;
}

/** In the order of crates/script/builtin/client/entity.luau. */
const ENTITY_PROPERTIES = ['position', 'velocity', 'rotation', 'name', 'color', 'tags', 'pattern'] as const;
export type EntityProperty = (typeof ENTITY_PROPERTIES)[number];
/** In the order of crates/script/builtin/client/players.luau. */
const PLAYER_PROPERTIES = ['name', 'userId', 'character', 'team'] as const;
export type PlayerProperty = (typeof PLAYER_PROPERTIES)[number];

/** The parts of the runtime used by native functions. */
export interface Natives {
  readonly host: ClientHost;
  readonly entities: Entities;
  bytecode(path: string): Uint8Array | undefined;
  /** Every loaded or pending script and whether it is a module. */
  scripts(): Map<string, boolean>;
  /** Number of loaded scripts; changes when scripts arrive. */
  scriptCount(): number;
}

/** The environment of spell code. */
export const SPELLS = 'spells/';

const text = (vm: LuauVm, at: number): string => vm.string(at) ?? '';

const triple = (vm: LuauVm, v: readonly [number, number, number]): number => {
  vm.pushVector(v[0], v[1], v[2]);
  return 1;
};

const place = (vm: LuauVm, at: number): Triple => vm.vector(at) ?? [0, 0, 0];

/** Pushes nil and an error text, which the Luau above raises at the creator's line. */
function refuse(vm: LuauVm, message: string): number {
  vm.pushNil();
  vm.pushString(message);
  return 2;
}

/** Returns nothing, or an error message about the arguments. */
function send(vm: LuauVm, count: number, work: () => void): number {
  try {
    work();
    return 0;
  } catch (error) {
    vm.setTop(count);
    vm.pushString(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

const properties = (vm: LuauVm, at: number, natives: Natives): Record<string, unknown> =>
  readValues(vm, at, at, natives.entities)[0] as Record<string, unknown>;

export function nativeFunctions(natives: Natives): Record<string, HostFunction> {
  const { host } = natives;
  return {
    load: (vm) => {
      const path = text(vm, 1);
      const code = natives.bytecode(path);
      if (!code) return refuse(vm, `there is no script ${path} on this client`);
      // A spell sees less than the globals it would be resolved in.
      if (!path.startsWith(SPELLS)) vm.safeEnvironment(2);
      const problem = vm.load(path, code, 2);
      return problem === null ? 1 : refuse(vm, problem);
    },
    scriptCount: (vm) => (vm.pushNumber(natives.scriptCount()), 1),
    scriptPaths: (vm) => {
      const all = [...natives.scripts()].sort(([a], [b]) => (a < b ? -1 : 1));
      for (const wanted of [true, false]) {
        const paths = all.filter(([, module]) => module === wanted).map(([path]) => path);
        pushValue(vm, paths, natives.entities);
      }
      return 2;
    },
    report: (vm) => {
      const frames = text(vm, 3)
        .split('\n')
        .map((line) => line.trim());
      const readable = frames.filter((line) => line && !line.startsWith('@builtin') && !line.startsWith('[C]'));
      host.log('error', [located(text(vm, 2), readable), ...readable].join('\n'));
      return 0;
    },
    log: (vm) => {
      const line = vm.number(3);
      const where = line > 0 ? `${text(vm, 2)}:${line}` : text(vm, 2);
      host.log(vm.number(1) === 0 ? 'info' : 'warn', `${where}: ${text(vm, 4)}`);
      return 0;
    },
    wantModule: (vm) => (vm.pushBoolean(!natives.bytecode(text(vm, 1)) && host.wantModule(text(vm, 1))), 1),
    freeze: (vm) => {
      vm.freeze(1);
      vm.pushCopy(1);
      return 1;
    },
    setVectorMetatable: (vm) => {
      vm.pushCopy(1);
      vm.setVectorMetatable();
      return 0;
    },
    fireServer: (vm, count) =>
      send(vm, count, () => host.fireServer(text(vm, 1), readValues(vm, 2, count, natives.entities), true)),
    fireServerUnreliable: (vm, count) =>
      send(vm, count, () => host.fireServer(text(vm, 1), readValues(vm, 2, count, natives.entities), false)),
    castSpell: (vm, count) =>
      send(vm, count, () =>
        host.castSpell(text(vm, 1), count > 1 ? (readValues(vm, 2, 2, natives.entities)[0] ?? null) : null),
      ),
    invokeServer: (vm, count) =>
      send(vm, count, () => host.invokeServer(vm.number(1), text(vm, 2), readValues(vm, 3, count, natives.entities))),
    uiCreate: (vm) => (host.uiCreate(vm.number(1), text(vm, 2), properties(vm, 3, natives)), 0),
    uiUpdate: (vm) => (host.uiUpdate(vm.number(1), properties(vm, 2, natives)), 0),
    uiRemove: (vm) => (host.uiRemove(vm.number(1)), 0),
    isKeyDown: (vm) => (vm.pushBoolean(host.isKeyDown(text(vm, 1))), 1),
    inputVector: (vm) => triple(vm, host.inputVector(vm.number(1))),
    inputDevice: (vm) => (vm.pushString(host.inputDevice()), 1),
    worldTime: (vm) => (vm.pushNumber(host.worldTime()), 1),
    bindAction: (vm) => (host.bindAction(text(vm, 1), text(vm, 2).split(' ').filter(Boolean)), 0),
    unbindAction: (vm) => (host.unbindAction(text(vm, 1)), 0),
    ...cameraFunctions(host.camera),
    ...soundAndEffects(natives),
    ...worldFunctions(natives),
    ...terrainFunctions(host.terrain),
  };
}

function terrainFunctions(terrain: TerrainHost): Record<string, HostFunction> {
  return {
    terrainExists: (vm) => (vm.pushBoolean(terrain.exists()), 1),
    terrainInfo: (vm) => {
      const { min, max, block } = terrain.info();
      triple(vm, min);
      triple(vm, max);
      vm.pushNumber(block);
      return 3;
    },
    terrainBlock: (vm) => (vm.pushString(terrain.block(place(vm, 1))), 1),
    terrainHeight: (vm) => {
      const height = terrain.height(vm.number(1), vm.number(2));
      vm.pushBoolean(height !== null);
      vm.pushNumber(height ?? 0);
      return 2;
    },
    terrainRaycast: (vm) => {
      const hit = terrain.raycast(place(vm, 1), place(vm, 2), vm.number(3));
      vm.pushString(hit?.material ?? '');
      vm.pushNumber(hit?.distance ?? 0);
      triple(vm, hit?.normal ?? [0, 0, 0]);
      triple(vm, hit?.block ?? [0, 0, 0]);
      return 4;
    },
    terrainRequest: (vm) => {
      const radius = vm.number(3);
      terrain.request(text(vm, 1), place(vm, 2), radius > 0 ? [radius] : place(vm, 4), text(vm, 5) || null);
      return 0;
    },
  };
}

function cameraFunctions(camera: CameraHost): Record<string, HostFunction> {
  return {
    cameraVector: (vm) => triple(vm, [camera.position, camera.forward, camera.viewport][vm.number(1)]?.() ?? [0, 0, 0]),
    cameraMode: (vm) => (vm.pushString(camera.mode()), 1),
    setCameraMode: (vm) => (camera.setMode(text(vm, 1)), 0),
    setCameraPosition: (vm) => (camera.setPosition(place(vm, 1)), 0),
    cameraLookAt: (vm) => (camera.lookAt(place(vm, 1)), 0),
    fieldOfView: (vm) => (vm.pushNumber(camera.fieldOfView()), 1),
    setFieldOfView: (vm) => (camera.setFieldOfView(vm.number(1)), 0),
    worldToScreen: (vm) => triple(vm, camera.worldToScreen(place(vm, 1))),
    screenToRay: (vm) => triple(vm, camera.screenToRay(vm.number(1), vm.number(2))),
    shake: (vm) => (camera.shake(vm.number(1), vm.number(2)), 0),
  };
}

function soundAndEffects(natives: Natives): Record<string, HostFunction> {
  const { sound, effects } = natives.host;
  const options = (vm: LuauVm, at: number) => properties(vm, at, natives) as Record<string, WireValue>;
  return {
    soundPlay: (vm) => (sound.play(vm.number(1), text(vm, 2), options(vm, 3)), 0),
    soundStop: (vm) => (sound.stop(vm.number(1)), 0),
    soundPlaying: (vm) => (vm.pushBoolean(sound.isPlaying(vm.number(1))), 1),
    particles: (vm) => (effects.particles(place(vm, 1), options(vm, 2)), 0),
    beam: (vm) => (effects.beam(place(vm, 1), place(vm, 2), options(vm, 3)), 0),
  };
}

function worldFunctions(natives: Natives): Record<string, HostFunction> {
  const { world } = natives.host;
  const give = (vm: LuauVm, value: Found, absent: () => string): number => {
    if (value === undefined) return refuse(vm, absent());
    pushValue(vm, value, natives.entities);
    return 1;
  };
  return {
    entityProperty: (vm) => {
      const [id, property] = [vm.number(1), ENTITY_PROPERTIES[vm.number(2)]];
      const value = property && world.entity(id, property);
      return give(vm, value, () => `entity ${id} is not here (any more); check \`entity.Exists\` first`);
    },
    entityExists: (vm) => (vm.pushBoolean(world.exists(vm.number(1))), 1),
    entityAttribute: (vm) => (pushValue(vm, world.attribute(vm.number(1), text(vm, 2)), natives.entities), 1),
    findEntities: (vm) => give(vm, world.find(text(vm, 1)), () => ''),
    entitiesInRadius: (vm) => give(vm, world.inRadius(place(vm, 1), vm.number(2)), () => ''),
    raycast: (vm, count) => {
      const ignore = Array.from({ length: Math.max(0, count - 4) }, (_, i) => vm.number(5 + i));
      const hit = world.raycast(place(vm, 1), place(vm, 2), vm.number(3), text(vm, 4), ignore);
      vm.pushNumber(hit?.id ?? 0);
      vm.pushNumber(hit?.distance ?? 0);
      return 2 + triple(vm, hit?.normal ?? [0, 0, 0]);
    },
    players: (vm) => give(vm, world.players(), () => ''),
    playerOf: (vm) => (vm.pushNumber(world.playerOf(vm.number(1))), 1),
    localPlayer: (vm) => (vm.pushNumber(world.localPlayer()), 1),
    playerProperty: (vm) => {
      const [number, property] = [vm.number(1), PLAYER_PROPERTIES[vm.number(2)]];
      return give(
        vm,
        property && world.player(number, property),
        () => `player ${number} is not in this world (any more)`,
      );
    },
    npcs: (vm) => give(vm, world.npcs(), () => ''),
    npc: (vm) => {
      const npc = world.npc(vm.number(1));
      if (!npc) return 0;
      vm.pushString(npc.state);
      vm.pushNumber(npc.suspicion);
      return 2;
    },
    playerStat: (vm) => (pushValue(vm, world.stat(vm.number(1), text(vm, 2)), natives.entities), 1),
  };
}

/** Errors in builtin files are reported at the creator's line that called them. */
function located(message: string, frames: string[]): string {
  const stated = /^(.+?\.luau:\d+): (.*)$/s.exec(message);
  if (stated && !stated[1]!.startsWith('@builtin')) return message;
  return frames[0] ? `${frames[0]}: ${stated?.[2] ?? message}` : (stated?.[2] ?? message);
}
