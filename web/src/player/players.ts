// The list of players, and merging presence updates into it.
import type { PlayerInfo } from './events';

export interface Merged {
  /** All players of the world by number, disconnected ones included. */
  players: PlayerInfo[];
  /** Players that were not in the list before. */
  came: PlayerInfo[];
  /** Players that were in the list and left the world. */
  left: PlayerInfo[];
}

/** Removes only players who left: a disconnected player stays for a minute. */
export function mergePlayers(known: readonly PlayerInfo[], changed: readonly PlayerInfo[]): Merged {
  const others = known.filter((player) => !changed.some((update) => update.id === player.id));
  const players = [...others, ...changed.filter((update) => !update.left)].sort((a, b) => a.number - b.number);
  const wasHere = (update: PlayerInfo) => known.some((player) => player.number === update.number);
  return {
    players,
    came: changed.filter((update) => !update.left && !wasHere(update)),
    left: changed.filter((update) => update.left && wasHere(update)),
  };
}

/** Players who left and whose names scripts may still read. */
const DEPARTED_MAX = 100;

/** Adds a player who left to `departed` and drops the oldest entry above the limit. */
export function rememberDeparted(departed: Map<number, PlayerInfo>, player: PlayerInfo): void {
  departed.set(player.number, player);
  const [oldest] = departed.keys();
  if (departed.size > DEPARTED_MAX && oldest !== undefined) departed.delete(oldest);
}
