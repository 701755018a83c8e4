// One request and its three states (loading, value, error), restarted at will; late answers are dropped.

export class Resource<T> {
  value = $state.raw<T | null>(null);
  error = $state.raw<Error | null>(null);
  loading = $state(false);
  #abort: AbortController | null = null;

  constructor(private readonly fetcher: (signal: AbortSignal) => Promise<T>) {}

  /** Asks (again). The last value stays visible until the new one is there. */
  async load(): Promise<void> {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    this.loading = true;
    this.error = null;
    try {
      const value = await this.fetcher(abort.signal);
      if (!abort.signal.aborted) this.value = value;
    } catch (error) {
      if (!abort.signal.aborted) this.error = error instanceof Error ? error : new Error(String(error));
    } finally {
      if (!abort.signal.aborted) this.loading = false;
    }
  }

  cancel(): void {
    this.#abort?.abort();
  }
}
