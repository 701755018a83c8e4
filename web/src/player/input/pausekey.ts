// Esc opens and closes the menu. With a locked pointer the browser takes the lock away as well, and some report the
// same press twice: as a lost lock and as a key. However far apart the two are handled, one press must count once.

/** The clocks of the two reports may differ by a little. */
const SAME_PRESS_MS = 150;

export class PauseKey {
  /** When a lost lock opened the menu, as performance.now() says. */
  #openedAt = -Infinity;

  /** The pointer lock was lost, and the menu opens for it. */
  lockLost(nowMs: number): void {
    this.#openedAt = nowMs;
  }

  /** Whether Esc counts. `pressedAt` is when the key went down (the event's timestamp), not when the page had time for it. */
  escape(pressedAt: number): boolean {
    return pressedAt > this.#openedAt + SAME_PRESS_MS;
  }
}
