// Ping to the worlds: the minimum of several round trips to the machine that runs them.

const ROUNDS = 3;

/** Milliseconds, or `null` without a response. The first trip warms up the connection. */
export async function measurePing(signal?: AbortSignal, now = () => performance.now()): Promise<number | null> {
  let best: number | null = null;
  for (let round = 0; round < ROUNDS; round++) {
    const start = now();
    try {
      await fetch('/healthz', { cache: 'no-store', signal });
    } catch {
      return best;
    }
    const took = now() - start;
    best = best === null ? took : Math.min(best, took);
  }
  return best;
}
