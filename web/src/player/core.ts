// The client core (crates/client-wasm) as the page sees it: its interface, and how it is loaded.
// The wasm module is built by `cargo xtask wasm` into src/wasm and is not in the repository; a glob lets the site be
// type-checked and tested without it.
import type { TerrainMaterial } from '../generated/TerrainMaterial';

/** Connection, replication and prediction of one world. Times are performance.now() milliseconds. */
export interface ClientCore {
  handshake(ticket: string, resumeToken?: string): void;
  /** The newest token that brings this session back; none before the welcome. */
  resume_token(): string | undefined;
  /** Goes on with the session of a core whose connection is lost: what it heard, what it had to say. Before the handshake. */
  take_over(old: ClientCore): void;
  /** One WebSocket message or one datagram. Throws when it makes no sense; false when too many events wait to be taken. */
  receive(packet: Uint8Array, nowMs: number): boolean;
  /** Bytes of the reliable stream, in any split. */
  receive_stream(bytes: Uint8Array, nowMs: number): boolean;
  /** Move is -1…1 (x right, y forward), angles in radians, buttons as in `Button`. */
  set_input(moveX: number, moveY: number, yaw: number, pitch: number, buttons: number): void;
  /** Runs the fixed steps that are due; queues inputs and pings. */
  advance(nowMs: number): void;
  take_reliable(): Uint8Array | undefined;
  take_datagram(): Uint8Array | undefined;
  /** The next event as JSON; see `CoreEvent`. */
  take_event(): string | undefined;
  /** Whose signature the scripts must have: the platform's key in hex, for this game. Before the handshake. */
  trust(publicKey: string, gameId: string): boolean;
  /** Takes a script, a bundle or the list (`@manifest`) from the cache or from its address; false when it is not what the manifest says. */
  offer_script(path: string, bytes: Uint8Array): boolean;
  /** What is to be fetched, in the order it is needed, as JSON; after everything that is cached was offered. */
  missing_scripts(): string;
  /** Asks the server for these. */
  request_scripts(paths: string[]): void;
  /** Every script of the world as JSON (`ScriptList`), after the `scriptList` event. */
  script_list(): string | undefined;
  /** The list as it came, for the cache. */
  script_list_bytes(): Uint8Array | undefined;
  /** Verified bytecode of a client script. */
  script(path: string): Uint8Array | undefined;
  /** The parts that changed since the last call as JSON of `PartChanges`; after the `scene` event, all of them. */
  take_part_changes(): string | undefined;
  /** Settings of the terrain as JSON, for `TerrainMesher`; undefined without a terrain. */
  terrain_settings(): string | undefined;
  /** Corners of a mesh shape's triangles, nine numbers each; after the `scene` event. */
  mesh(asset: string): Float32Array | undefined;
  /** See frame.ts. */
  frame(nowMs: number): Float32Array;
  /** Shots in flight as of the last frame; see view/shots.ts. */
  shots(): Float32Array;
  /**
   * Origin and direction → entity (the bits of the float), distance, normal; or empty. Solids stop the ray, terrain
   * as entity 0, and with `characters` those of other players and NPCs; with a tag only what has it.
   */
  raycast(ray: Float32Array, distanceMax: number, tag: string, ignore: Uint32Array, characters: boolean): Float32Array;
  /** What scripts read of an entity; unknown entities have empty vectors and no texts. */
  entity_exists(id: number): boolean;
  entity_position(id: number): Float32Array;
  entity_velocity(id: number): Float32Array;
  /** Degrees around x, y and z. */
  entity_rotation(id: number): Float32Array;
  entity_name(id: number): string | undefined;
  entity_color(id: number): string | undefined;
  entity_tags(id: number): string[];
  entity_pattern(id: number): string | undefined;
  /** JSON of a `WireValue`. */
  entity_attribute(id: number, name: string): string | undefined;
  /** As in a frame; see npc.ts. */
  entity_mood(id: number): number;
  /** By name or tag. */
  find_entities(word: string): Uint32Array;
  entities_in_radius(x: number, y: number, z: number, radius: number): Uint32Array;
  npcs(): Uint32Array;
  /** JSON of `PlayerInfo[]`. */
  players(): string;
  /** JSON of `PlayerInfo`; also of a player who left not long ago. */
  player(number: number): string | undefined;
  /** Number of the player whose character this is, or 0. */
  player_of(entity: number): number;
  /** Entities gone since the last call. */
  removed(): Uint32Array;
  /** `Network.FireServer`; the arguments as a JSON list. Not `reliable`: may be lost. Throws when they cannot be sent. */
  fire_server(name: string, argsJson: string, reliable: boolean): void;
  /** `Network.InvokeServer`; the answer comes as an `invokeResult` event. */
  invoke_server(id: number, name: string, argsJson: string): void;
  /** Tells the game's creator what scripts printed and raised, as the JSON of a ClientLog. */
  send_log(logJson: string): void;
  /** Asks where the server's time goes; the answer is a `figures` event. */
  ask_figures(): void;
  /** Casts a spell; the parameters as a list of one value. */
  cast_spell(spellId: string, paramsJson: string): void;
  chat(text: string): void;
  /** Keeps chat between this player and another; see `chat.hide` in docs/protocol.md. */
  hide(playerId: string, hidden: boolean): void;
  /** A polite goodbye; send what take_reliable() then gives. */
  leave(): void;
  /** Lowest and highest corner and the size of a block; empty without a terrain. */
  terrain_info(): Float32Array;
  /** The name of the material at a place; empty for air. */
  terrain_block(x: number, y: number, z: number): string;
  terrain_height(x: number, z: number): number | undefined;
  terrain_water(x: number, y: number, z: number): boolean;
  /** Origin and direction of length one → distance, normal, middle of the block, number of its material; or empty. */
  terrain_raycast(ray: Float32Array, distanceMax: number): Float32Array;
  /** Asks the server to change the ground; `size` has one number for a ball, three for a box. */
  terraform(op: string, center: Float32Array, size: Float32Array, material?: string): boolean;
  /** The message behind a `terrain` event. */
  take_terrain(): Uint8Array | undefined;
  /** One of `Liveness`, as of the last advance. */
  liveness(): number;
  /** Seconds since the world started, as the server counts them. */
  world_time(nowMs: number): number;
  /** See `CoreStats`, as JSON. */
  stats(nowMs: number): string;
  free(): void;
}

/** How the connection is doing, by what came lately: see crates/client/src/liveness.rs. */
export const Liveness = { alive: 0, stalled: 1, lost: 2 } as const;

export const Button = { jump: 1, run: 2, fire: 4, interact: 8 } as const;

/** A copy of the ground that makes triangles; for the worker in terrain/. */
export interface TerrainMesher {
  /** First chunk, chunks along each axis, metres along a chunk: seven numbers. */
  grid(): Float32Array;
  /** Takes a message of the server in; gives the chunks to be drawn anew, three numbers each. */
  apply(packet: Uint8Array): Int32Array;
  /** Makes a chunk's triangles; false when there is nothing to draw. */
  make(x: number, y: number, z: number): boolean;
  take_positions(): Uint8Array<ArrayBuffer>;
  take_normals(): Int8Array<ArrayBuffer>;
  take_colors(): Uint8Array<ArrayBuffer>;
  take_indices(): Uint32Array<ArrayBuffer>;
  clear_from(): number;
}

interface CoreModule {
  default(options: { module_or_path: string }): Promise<unknown>;
  ClientCore: new () => ClientCore;
  TerrainMesher: new (settings: string) => TerrainMesher;
  /** As JSON. */
  terrain_materials(): string;
  /** The parts of a scene without a world: the text of scene.json to the JSON of a list of `Part`. */
  parts_of_scene(sceneJson: string): string;
}

const modules = import.meta.glob<CoreModule>('../wasm/frolic_client_wasm.js');
const binaries = import.meta.glob<string>('../wasm/frolic_client_wasm_bg.wasm', { query: '?url', import: 'default' });

let ready: Promise<CoreModule> | null = null;

/** Loads the wasm module once per page and makes a core. */
export async function loadCore(): Promise<ClientCore> {
  const { ClientCore } = await prepareCore();
  return new ClientCore();
}

/** The materials of the ground; empty before the core is loaded. */
export function terrainMaterials(): TerrainMaterial[] {
  return materials;
}

let materials: TerrainMaterial[] = [];

/** Begins to load the wasm module, so that it is there when it is needed. */
export function prepareCore(): Promise<CoreModule> {
  ready ??= initialise();
  return ready;
}

async function initialise(): Promise<CoreModule> {
  const [loadModule] = Object.values(modules);
  const [loadUrl] = Object.values(binaries);
  if (!loadModule || !loadUrl)
    throw new Error('This build of the site has no client core. Run `cargo xtask wasm`, then build again.');
  const [module, url] = await Promise.all([loadModule(), loadUrl()]);
  await module.default({ module_or_path: url });
  materials = JSON.parse(module.terrain_materials()) as TerrainMaterial[];
  return module;
}
