// Esc opens and closes the menu. With a locked pointer the browser also releases the lock, and some browsers report the
// same press twice: as a lost lock and as a key. One press must count once, however far apart the two are handled.

/** Tolerance between the timestamps of the two reports. */
const SAME_PRESS_MS = 150;

export class PauseKey {
  /** When a lost lock opened the menu (performance.now()). */
  #openedAt = -Infinity;

  /** Records that a lost pointer lock opened the menu. */
  lockLost(nowMs: number): void {
    this.#openedAt = nowMs;
  }

  /** Whether this Esc press counts. `pressedAt` is the event's timestamp, not the time at which it was handled. */
  escape(pressedAt: number): boolean {
    return pressedAt > this.#openedAt + SAME_PRESS_MS;
  }
}
