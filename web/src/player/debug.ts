// `window.__frolic`: a read-only view of the running player for tests and debugging. Not an API for games;
// it may change with any version.
import type { CoreStats, PlayerInfo } from './core/events';
import type { Point } from './core/frame';
import { type Moment, moments } from './perf-marks';
import { npcState, type NpcState } from './core/npc';
import type { PlaySession } from './session.svelte';

export interface DebugEntity {
  id: number;
  kind: 'player' | 'npc' | 'entity';
  /** State of an NPC. */
  npc: NpcState | null;
  own: boolean;
  grounded: boolean;
  position: [number, number, number];
  velocity: [number, number, number];
  yaw: number;
}

export interface FrolicDebug {
  /** The world and the own character are on screen. */
  readonly ready: boolean;
  readonly phase: string;
  /** 'webtransport', 'websocket', or null before the connection. */
  readonly transport: string | null;
  readonly quality: string | null;
  readonly worldId: string | null;
  readonly roomCode: string;
  /** Entity id of the own character. */
  readonly entityId: number;
  /** Predicted position of the own character, as drawn. */
  position(): [number, number, number] | null;
  /** All visible moving entities, including the own character. */
  entities(): DebugEntity[];
  players(): PlayerInfo[];
  /** Looks of an avatar, as drawn. */
  worn(entityId: number): { hat: string; face: string; shirt: string } | null;
  /** Whether an avatar is drawn as disconnected. */
  faded(entityId: number): boolean;
  /** The connection is open, but nothing is received. */
  readonly stalled: boolean;
  /** Seconds since the world started, as scripts see them. */
  worldTime(): number;
  stats(): CoreStats;
  /** Performance marks of the join, in milliseconds since navigation start. */
  moments(): Partial<Record<Moment, number>>;
  /** Marks above NPCs: entity id and '?' or '!'. */
  npcMarks(): [number, string][];
  /** Names of the parts in the world. */
  sceneNames(): string[];
  /** Visible texts of script widgets. */
  hudTexts(): string[];
  /** Voxel terrain: material at a position, number of drawn chunks, time of the last change (Date.now). */
  readonly ground: {
    block(x: number, y: number, z: number): string;
    readonly chunks: number;
    readonly drawnAt: number;
  };
  /** Look direction in radians. */
  view(): { yaw: number; pitch: number };
  /** Weapons and health. */
  combat(): { weapon: string | null; health: number; alive: boolean; shots: number; hits: number; drawn: number };
  chat(): { from: string; text: string }[];
  /** Presses or releases the fire button. */
  fire(down: boolean): void;
  /** Turns the view, as the mouse would. */
  look(yaw: number, pitch: number): void;
}

declare global {
  interface Window {
    __frolic?: FrolicDebug;
  }
}

/** Exposes the session as `window.__frolic`; the returned function removes it. */
export function exposeDebug(session: PlaySession): () => void {
  const own = () => session.entity(session.ownEntity());
  const debug: FrolicDebug = {
    get ready() {
      return session.connection.phase === 'playing';
    },
    get phase() {
      return session.connection.phase;
    },
    get transport() {
      return session.connection.link?.kind ?? null;
    },
    get quality() {
      return session.view?.quality ?? null;
    },
    get worldId() {
      return session.connection.link?.join.world_id ?? null;
    },
    get roomCode() {
      return session.connection.roomCode;
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
      return session.connection.stalled;
    },
    worldTime: () => session.scripts.worldTime(),
    stats: () => session.stats,
    moments,
    npcMarks: () => [...(session.view?.npcs.marks() ?? [])],
    sceneNames: () => Array.from(session.parts.values(), (part) => part.name),
    hudTexts: () => session.model.hud.texts(),
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
      weapon: session.model.combat.weapon?.name ?? null,
      health: session.model.combat.health,
      alive: session.model.combat.alive,
      shots: session.model.combat.shots,
      hits: session.model.combat.hits,
      drawn: session.view?.shots.count ?? 0,
    }),
    chat: () => session.model.chat.lines.map(({ from, text }) => ({ from, text })),
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
