// `window.__frolic`: a read-only look into the running player for tests and for the curious. Not an API for games;
// it may change with any version.
import type { CoreStats, PlayerInfo } from './events';
import type { Point } from './frame';
import { type Moment, moments } from './perf-marks';
import { npcState, type NpcState } from './npc';
import type { PlaySession } from './session.svelte';

export interface DebugEntity {
  id: number;
  kind: 'player' | 'npc' | 'entity';
  /** What an NPC is about. */
  npc: NpcState | null;
  own: boolean;
  grounded: boolean;
  position: [number, number, number];
  velocity: [number, number, number];
  yaw: number;
}

export interface FrolicDebug {
  /** The world is on screen and the own character stands in it. */
  readonly ready: boolean;
  readonly phase: string;
  /** 'webtransport', 'websocket', or null before the connection. */
  readonly transport: string | null;
  readonly quality: string | null;
  readonly worldId: string | null;
  readonly roomCode: string;
  /** Entity id of the own character. */
  readonly entityId: number;
  /** Feet of the own character: predicted, as drawn. */
  position(): [number, number, number] | null;
  /** Everything that moves and can be seen, the own character included. */
  entities(): DebugEntity[];
  players(): PlayerInfo[];
  /** What an avatar wears, as drawn. */
  worn(entityId: number): { hat: string; face: string; shirt: string } | null;
  /** Whether an avatar is drawn as that of somebody who is away. */
  faded(entityId: number): boolean;
  /** The connection is open, and nothing comes through it. */
  readonly stalled: boolean;
  /** Seconds since the world started, as scripts see them. */
  worldTime(): number;
  stats(): CoreStats;
  /** When what happened on the way into the world, in milliseconds since the page was opened. */
  moments(): Partial<Record<Moment, number>>;
  /** What stands above the heads of NPCs: entity id and '?' or '!'. */
  npcMarks(): [number, string][];
  /** Names of what stands in the scene that is shown. */
  sceneNames(): string[];
  /** Visible texts of script widgets. */
  hudTexts(): string[];
  /** The ground of blocks: what is at a place, how many chunks are drawn, when that last changed (Date.now). */
  readonly ground: {
    block(x: number, y: number, z: number): string;
    readonly chunks: number;
    readonly drawnAt: number;
  };
  /** Where the player looks, in radians. */
  view(): { yaw: number; pitch: number };
  /** What is known of weapons and health. */
  combat(): { weapon: string | null; health: number; alive: boolean; shots: number; hits: number; drawn: number };
  chat(): { from: string; text: string }[];
  /** Holds the fire button, or lets it go. */
  fire(down: boolean): void;
  /** Turns the view, as the mouse would. */
  look(yaw: number, pitch: number): void;
}

declare global {
  interface Window {
    __frolic?: FrolicDebug;
  }
}

/** Shows the session as `window.__frolic` until the returned function is called. */
export function exposeDebug(session: PlaySession): () => void {
  const own = () => session.entity(session.ownEntity());
  const debug: FrolicDebug = {
    get ready() {
      return session.phase === 'playing';
    },
    get phase() {
      return session.phase;
    },
    get transport() {
      return session.link?.kind ?? null;
    },
    get quality() {
      return session.view?.quality ?? null;
    },
    get worldId() {
      return session.link?.join.world_id ?? null;
    },
    get roomCode() {
      return session.roomCode;
    },
    get entityId() {
      return session.ownEntity();
    },
    position: () => {
      const record = own();
      return record && triple(record.position);
    },
    entities: () =>
      Array.from(session.frameRecords(), (record) => ({
        id: record.id,
        kind: !record.isPlayer ? ('entity' as const) : record.mood > 0 ? ('npc' as const) : ('player' as const),
        npc: npcState(record.mood),
        own: record.own,
        grounded: record.grounded,
        position: triple(record.position),
        velocity: triple(record.velocity),
        yaw: record.yaw,
      })),
    players: () => session.players,
    worn: (entityId) => session.view?.wornBy(entityId) ?? null,
    faded: (entityId) => session.view?.isFaded(entityId) ?? false,
    get stalled() {
      return session.stalled;
    },
    worldTime: () => session.worldTime(),
    stats: () => session.stats,
    moments,
    npcMarks: () => [...(session.view?.npcs.marks() ?? [])],
    sceneNames: () => session.scene()?.entities.map((entity) => entity.name ?? '') ?? [],
    hudTexts: () => session.hud.texts(),
    ground: {
      block: (x, y, z) => session.terrain.block([x, y, z]),
      get chunks() {
        return session.view?.ground.chunkCount ?? 0;
      },
      get drawnAt() {
        return session.view?.ground.drawnAt ?? 0;
      },
    },
    view: () => ({ yaw: session.input.yaw, pitch: session.input.pitch }),
    combat: () => ({
      weapon: session.combat.weapon?.name ?? null,
      health: session.combat.health,
      alive: session.combat.alive,
      shots: session.combat.shots,
      hits: session.combat.hits,
      drawn: session.view?.shots.count ?? 0,
    }),
    chat: () => session.chat.lines.map(({ from, text }) => ({ from, text })),
    fire: (down) => session.input.fire(down),
    look: (yaw, pitch) => {
      session.input.yaw = yaw;
      session.input.pitch = pitch;
    },
  };
  window.__frolic = debug;
  return () => {
    if (window.__frolic === debug) delete window.__frolic;
  };
}

const triple = (point: Point): [number, number, number] => [point.x, point.y, point.z];
