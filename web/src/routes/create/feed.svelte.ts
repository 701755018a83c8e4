// Polls a game's console once a second while the page is visible, and stores the lines.
import type { ConsoleEntry, ConsolePage } from '../../generated/rest';
import { getConsole } from '../../lib/store';
import { append } from './console';

const EVERY_MS = 1000;

export class ConsoleFeed {
  page = $state.raw<ConsolePage | null>(null);
  lines = $state.raw<ConsoleEntry[]>([]);
  error = $state.raw<Error | null>(null);
  #after = 0;
  #abort: AbortController | null = null;

  constructor(private readonly gameId: string) {}

  /** Starts polling; returns a function that stops it. */
  start(): () => void {
    let timer: ReturnType<typeof setTimeout>;
    const round = async (): Promise<void> => {
      // A hidden tab does not poll; missed lines arrive with the next response.
      if (!document.hidden || !this.page) await this.ask();
      timer = setTimeout(() => void round(), EVERY_MS);
    };
    void round();
    return () => {
      clearTimeout(timer);
      this.#abort?.abort();
    };
  }

  async ask(): Promise<void> {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    try {
      const page = await getConsole(this.gameId, this.#after, abort.signal);
      if (abort.signal.aborted) return;
      this.lines = append(this.lines, page.lines);
      this.#after = page.last;
      this.page = page;
      this.error = null;
    } catch (error) {
      if (!abort.signal.aborted) this.error = error instanceof Error ? error : new Error(String(error));
    }
  }
}
