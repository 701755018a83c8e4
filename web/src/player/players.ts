// Who is in the world: what is known, and what a message of the server makes of it.
import type { PlayerInfo } from './events';

export interface Merged {
  /** Everybody in the world, those who are away (not online) among them, by number. */
  players: PlayerInfo[];
  /** Who was not known before. */
  came: PlayerInfo[];
  /** Who was, and is out of the world for good. */
  left: PlayerInfo[];
}

/** Whoever loses their connection stays for a minute, so that only who left is dropped. */
export function mergePlayers(known: readonly PlayerInfo[], changed: readonly PlayerInfo[]): Merged {
  const others = known.filter((player) => !changed.some((told) => told.id === player.id));
  const players = [...others, ...changed.filter((told) => !told.left)].sort((a, b) => a.number - b.number);
  const wasHere = (told: PlayerInfo) => known.some((player) => player.number === told.number);
  return {
    players,
    came: changed.filter((told) => !told.left && !wasHere(told)),
    left: changed.filter((told) => told.left && wasHere(told)),
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
