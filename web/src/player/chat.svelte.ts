// The lines of the chat, and whether somebody is writing one.

export interface ChatLine {
  id: number;
  /** Empty for the game itself. */
  from: string;
  text: string;
  /** Who said it; empty for the game itself. */
  playerId: string;
  /** When it came, as performance.now() says. */
  at: number;
}

/** Older lines are gone. */
const LINES_MAX = 100;
export const LINE_BYTES_MAX = 300;

export class ChatLog {
  lines = $state.raw<ChatLine[]>([]);
  /** The box to write in has the keyboard. */
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

/** Cuts what is written to what the server takes, between two letters. */
export function fitLine(text: string): string {
  let line = text.trim();
  while (new TextEncoder().encode(line).length > LINE_BYTES_MAX) line = [...line].slice(0, -1).join('');
  return line;
}
