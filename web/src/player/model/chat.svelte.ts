// The chat log and whether the chat input is open.

import { CHAT_BYTES_MAX } from '../../generated/limits';
export interface ChatLine {
  id: number;
  /** Empty for the game itself. */
  from: string;
  text: string;
  /** Player id of the sender; empty for the game itself. */
  playerId: string;
  /** Arrival time (performance.now()). */
  at: number;
}

/** Messages in the log; older ones are dropped. */
const LINES_MAX = 100;

export class ChatLog {
  lines = $state.raw<ChatLine[]>([]);
  /** The chat input has keyboard focus. */
  writing = $state(false);
  #count = 0;

  add(from: string, text: string, at = performance.now(), playerId = ''): void {
    this.lines = [...this.lines, { id: this.#count++, from, text, playerId, at }].slice(-LINES_MAX);
  }

  clear(): void {
    this.lines = [];
    this.writing = false;
  }
}

/** Cuts text to the server's limit, at a character boundary. */
export function fitLine(text: string): string {
  let line = text.trim();
  while (new TextEncoder().encode(line).length > CHAT_BYTES_MAX) line = [...line].slice(0, -1).join('');
  return line;
}
