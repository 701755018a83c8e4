// Cache of client scripts between visits, by the SHA-256 of their bytecode. The core checks the hash of what it
// is offered, so a damaged or forged entry costs a download and nothing else.

const DATABASE = 'frolic-scripts';
const STORE = 'bytecode';
const ENTRIES_MAX = 5000;

export class ScriptCache {
  #database: Promise<IDBDatabase | null> | null = null;

  async get(hash: string): Promise<Uint8Array | null> {
    const store = await this.#store('readonly');
    if (!store) return null;
    const value = await settled<unknown>(store.get(hash)).catch(() => undefined);
    return value instanceof Uint8Array ? value : null;
  }

  /** In the order of the hashes; in one go, since a game may have hundreds. */
  async getAll(hashes: string[]): Promise<(Uint8Array | null)[]> {
    const store = await this.#store('readonly');
    if (!store) return hashes.map(() => null);
    const found = hashes.map((hash) => settled<unknown>(store.get(hash)).catch(() => undefined));
    return (await Promise.all(found)).map((value) => (value instanceof Uint8Array ? value : null));
  }

  async put(hash: string, bytes: Uint8Array): Promise<void> {
    const store = await this.#store('readwrite');
    if (!store) return;
    try {
      // Full: clear it. Scripts are small and are fetched again on the next join.
      if ((await settled(store.count())) >= ENTRIES_MAX) await settled(store.clear());
      await settled(store.put(bytes, hash));
    } catch {
      // No space or a private window: play without a cache.
    }
  }

  async #store(mode: IDBTransactionMode): Promise<IDBObjectStore | null> {
    this.#database ??= open();
    const database = await this.#database;
    return database?.transaction(STORE, mode).objectStore(STORE) ?? null;
  }
}

function open(): Promise<IDBDatabase | null> {
  return new Promise((resolve) => {
    try {
      const request = indexedDB.open(DATABASE, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE);
      request.onsuccess = () => resolve(request.result);
      request.onerror = request.onblocked = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
