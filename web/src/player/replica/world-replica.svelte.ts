// The world of the current connection as the page holds it: its players, its parts and its terrain, handed to the view.
import type { ClientCore } from '../core/core';
import type { PlayerInfo } from '../core/events';
import { type PartChanges, PartMap } from '../core/parts';
import { TerrainFeed } from '../terrain/feed';
import type { FromWorker } from '../terrain/messages';
import type { WorldView } from '../view/world-view';

/** The parts of a session used here; both arrive while it loads. */
export interface ReplicaSource {
  core(): ClientCore | undefined;
  readonly view: WorldView | null;
}

export class WorldReplica {
  players = $state.raw<PlayerInfo[]>([]);
  readonly parts = new PartMap();
  /** Whether the view shows this world, and not that of the connection before. */
  isShown = false;
  #hasScene = false;
  #feed: TerrainFeed | null = null;
  /** Metres along a chunk of the terrain. */
  #chunkM = 32;

  constructor(private readonly source: ReplicaSource) {}

  /** Forgets the world of the previous connection; the view shows it until the next scene arrives. */
  clear(): void {
    this.isShown = false;
    this.#hasScene = false;
    this.parts.clear();
    this.players = [];
  }

  dispose(): void {
    this.#feed?.dispose();
  }

  sceneArrived(): void {
    this.#hasScene = true;
    this.takeParts();
    this.#beginTerrain();
  }

  /** Applies what changed since the last call. */
  takeParts(): void {
    const json = this.source.core()?.take_part_changes();
    if (json === undefined) return;
    const changes = JSON.parse(json) as PartChanges;
    this.parts.apply(changes);
    if (this.isShown) this.source.view?.changeParts(changes);
  }

  /** Applies the new states of players who joined, changed or left. */
  takePlayers(changed: readonly PlayerInfo[]): void {
    const others = this.players.filter(({ id }) => !changed.some((player) => player.id === id));
    const present = changed.filter((player) => !player.left);
    this.players = [...others, ...present].sort((a, b) => a.number - b.number);
    this.source.view?.setPlayers(this.players);
  }

  /** Passes on the message of a `terrain` event. */
  takeTerrain(): void {
    const packet = this.source.core()?.take_terrain();
    if (packet) this.#feed?.change(packet);
  }

  /** Tells the terrain's worker where the player is; called every frame. */
  look({ ownPosition: { x, y, z }, groundDistance }: WorldView): void {
    this.#feed?.look(x, y, z, groundDistance);
  }

  /** Scene and renderer arrive in either order. Returns whether the world is shown from now on. */
  show(): boolean {
    const [core, { view }] = [this.source.core(), this.source];
    if (!core || !view || this.isShown || !this.#hasScene) return false;
    view.setScene(this.parts.values(), core.terrain_settings() !== undefined, (asset) =>
      this.source.core()?.mesh(asset),
    );
    view.setPlayers(this.players);
    this.isShown = true;
    return true;
  }

  /** A worker with a copy of the terrain makes its meshes, and receives every change from here on. */
  #beginTerrain(): void {
    this.#feed?.dispose();
    this.#feed = null;
    this.source.view?.ground.clear();
    const settings = this.source.core()?.terrain_settings();
    if (settings && typeof Worker !== 'undefined')
      this.#feed = new TerrainFeed(settings, (message) => this.#meshed(message));
  }

  #meshed(message: FromWorker): void {
    const ground = this.source.view?.ground;
    if (message.type === 'ready') this.#chunkM = message.chunkM;
    else if (message.type === 'mesh') {
      ground?.setChunkSize(this.#chunkM);
      ground?.put(message.mesh);
    } else if (message.type === 'drop') ground?.drop(message.place);
    else console.error('the terrain cannot be drawn:', message.message);
  }
}
