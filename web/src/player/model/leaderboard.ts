// The leaderboard: which columns and rows it has, and in which order.
import type { PlayerInfo } from '../core/events';

export interface Row {
  player: PlayerInfo;
  own: boolean;
  /** The stats, one per column; empty where the player has none. */
  cells: string[];
}

export interface Board {
  columns: string[];
  rows: Row[];
  /** Number of players that did not fit. */
  more: number;
}

export interface Room {
  rows: number;
  columns: number;
}

/** Names of all stats in the order in which the game set them. */
export function statNames(players: readonly PlayerInfo[]): string[] {
  return [...new Set(players.flatMap((player) => player.stats.map((stat) => stat.name)))];
}

/** All players, best first: by the first column that differs, then by name; disconnected players last. */
export function ranked(players: readonly PlayerInfo[]): PlayerInfo[] {
  const columns = statNames(players);
  const figure = (player: PlayerInfo, name: string) =>
    player.stats.find((stat) => stat.name === name)?.number ?? -Infinity;
  return [...players].sort((a, b) => {
    if (a.online !== b.online) return a.online ? -1 : 1;
    for (const name of columns) {
      const [left, right] = [figure(a, name), figure(b, name)];
      if (left !== right) return right - left;
    }
    return a.name.localeCompare(b.name) || a.number - b.number;
  });
}

/** The visible board; null for a single player in a game without stats. */
export function leaderboard(players: readonly PlayerInfo[], ownEntity: number, room: Room): Board | null {
  const columns = statNames(players).slice(0, room.columns);
  if (players.length === 0 || (players.length === 1 && columns.length === 0)) return null;
  const order = ranked(players);
  const shown = order.slice(0, room.rows);
  const own = order.find((player) => player.entityId === ownEntity);
  // The own row is always included, if necessary as the last.
  if (own && !shown.includes(own)) shown[shown.length - 1] = own;
  const rows = shown.map((player) => ({
    player,
    own: player.entityId === ownEntity,
    cells: columns.map((name) => player.stats.find((stat) => stat.name === name)?.text ?? ''),
  }));
  return { columns, rows, more: players.length - rows.length };
}
