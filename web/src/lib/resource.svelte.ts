// One request and its three states (loading, value, error); late responses are dropped. A request that
// did not reach the server is retried automatically: when the browser is back online, and with increasing delays.
import { ApiError } from './api';

const RETRY_MS_FIRST = 2000;
const RETRY_MS_MAX = 30_000;

export class Resource<T> {
  value = $state.raw<T | null>(null);
  error = $state.raw<Error | null>(null);
  loading = $state(false);
  #abort: AbortController | null = null;
  #retryMs = RETRY_MS_FIRST;

  constructor(private readonly fetcher: (signal: AbortSignal) => Promise<T>) {}

  /** Starts or restarts the request. The last value stays visible until the new one arrives. */
  async load(): Promise<void> {
    this.#retryMs = RETRY_MS_FIRST;
    await this.#ask();
  }

  /** Aborts the request and its retries; call it when the page is destroyed. */
  cancel(): void {
    this.#abort?.abort();
  }

  async #ask(): Promise<void> {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    this.loading = true;
    try {
      const value = await this.fetcher(abort.signal);
      if (abort.signal.aborted) return;
      this.value = value;
      this.error = null;
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = error instanceof Error ? error : new Error(String(error));
      if (error instanceof ApiError && error.status === 0) this.#askLater(abort.signal);
    }
    this.loading = false;
  }

  #askLater(signal: AbortSignal): void {
    const again = () => {
      if (!signal.aborted) void this.#ask();
    };
    const timer = setTimeout(again, this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
    globalThis.addEventListener?.('online', again, { once: true, signal });
  }
}
