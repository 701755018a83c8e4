// Uploads a package in resumable parts: resumes automatically after a lost connection, and after a reload when the same file is chosen.
import type { Channel, PackageReport, PublishResponse, UploadState } from '../../generated/rest';
import { ApiError, call } from '../../lib/api';

const PART_BYTES = 1 << 20;
/** Retry delays after a lost connection; then the user decides. */
const RETRY_MS = [500, 1500, 4000, 8000];
const STORAGE_KEY = 'frolic.uploads';
const STORED_MAX = 8;

export type UploadStage = 'ready' | 'reading' | 'sending' | 'checking' | 'done' | 'failed';

export interface UploadWish {
  channel: Channel;
  notes: string;
}

export class PackageUpload {
  stage = $state<UploadStage>('ready');
  sent = $state(0);
  size = $state(0);
  /** Set while waiting for the connection. */
  waiting = $state(false);
  error = $state.raw<Error | null>(null);
  /** The validation report, if the package was refused. */
  report = $state.raw<PackageReport | null>(null);
  result = $state.raw<PublishResponse | null>(null);
  #abort: AbortController | null = null;
  #id: string | null = null;

  get busy(): boolean {
    return this.stage === 'reading' || this.stage === 'sending' || this.stage === 'checking';
  }

  async start(file: Blob, wish: UploadWish): Promise<void> {
    if (this.busy) return;
    const abort = (this.#abort = new AbortController());
    this.error = this.report = this.result = null;
    this.sent = 0;
    this.size = file.size;
    this.stage = 'reading';
    try {
      const sha256 = await hashOf(file);
      const key = sha256 && `${sha256}-${wish.channel}`;
      let state = await this.#resume(key, abort.signal);
      state ??= await call('POST', '/api/uploads', {
        as: 'guest',
        signal: abort.signal,
        body: {
          size_bytes: file.size,
          sha256: sha256 ?? undefined,
          channel: wish.channel,
          notes: wish.notes.trim() || undefined,
        },
      });
      this.#id = state.upload_id;
      if (key) remember(key, state.upload_id);
      this.stage = 'sending';
      await this.#send(file, state, abort.signal);
      this.stage = 'checking';
      this.result = await call('POST', '/api/uploads/{id}/finish', {
        path: { id: state.upload_id },
        as: 'me',
        signal: abort.signal,
      });
      this.stage = 'done';
      if (key) forget(key);
    } catch (error) {
      this.#fail(error, abort.signal.aborted);
    }
  }

  /** Cancels the upload; the server deletes its parts. */
  async cancel(): Promise<void> {
    this.#abort?.abort();
    const id = this.#id;
    this.#id = null;
    this.stage = 'ready';
    if (!id) return;
    forgetId(id);
    // If this fails, the upload expires on the server.
    await call('DELETE', '/api/uploads/{id}', { as: 'me', path: { id } }).catch(() => undefined);
  }

  /** Pauses the upload; it can be resumed. */
  stop(): void {
    this.#abort?.abort();
  }

  async #send(file: Blob, state: UploadState, signal: AbortSignal): Promise<void> {
    let at = state.received_bytes;
    let failures = 0;
    const part = Math.max(1, Math.min(PART_BYTES, state.part_bytes_max));
    while (at < file.size) {
      this.sent = at;
      try {
        const next = await call('PUT', '/api/uploads/{id}/part', {
          path: { id: state.upload_id },
          as: 'me',
          signal,
          query: { offset: at },
          body: file.slice(at, at + part),
        });
        at = next.received_bytes;
        failures = 0;
      } catch (error) {
        const wait = RETRY_MS[failures++];
        if (signal.aborted || wait === undefined || !mayPass(error)) throw error;
        this.waiting = true;
        await pause(wait, signal);
        // The part may have arrived although its response did not.
        const known = await call('GET', '/api/uploads/{id}', { as: 'me', path: { id: state.upload_id }, signal }).catch(
          () => null,
        );
        if (known) at = known.received_bytes;
        this.waiting = false;
      }
    }
    this.sent = file.size;
  }

  async #resume(key: string | null, signal: AbortSignal): Promise<UploadState | null> {
    const id = key === null ? null : (storedUploads()[key] ?? null);
    if (id === null) return null;
    return call('GET', '/api/uploads/{id}', { as: 'me', path: { id }, signal }).catch(() => null);
  }

  #fail(error: unknown, aborted: boolean): void {
    this.waiting = false;
    if (aborted) return;
    this.stage = 'failed';
    this.error = error instanceof Error ? error : new Error(String(error));
    if (error instanceof ApiError && isReport(error.details)) {
      this.report = error.details;
      // The package itself is refused: sending it again would not help.
      if (this.#id) forgetId(this.#id);
    }
  }
}

/** Whether an error is transient: connection, busy server, or a conflict of concurrent requests. */
export function mayPass(error: unknown): boolean {
  return (
    error instanceof ApiError &&
    (error.status === 0 || error.status === 409 || error.status === 429 || error.status >= 500)
  );
}

export function isReport(value: unknown): value is PackageReport {
  return typeof value === 'object' && value !== null && Array.isArray((value as { problems?: unknown }).problems);
}

/** SHA-256 in hex; `null` where the browser requires a secure context. */
async function hashOf(file: Blob): Promise<string | null> {
  if (!globalThis.crypto?.subtle) return null;
  const digest = await crypto.subtle.digest('SHA-256', await file.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new DOMException('given up', 'AbortError'));
    });
  });
}

function storedUploads(): Record<string, string> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? '{}');
    return typeof value === 'object' && value !== null ? (value as Record<string, string>) : {};
  } catch {
    return {};
  }
}

function keep(all: Record<string, string>): void {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(Object.fromEntries(Object.entries(all).slice(-STORED_MAX))));
  } catch {
    // It cannot be resumed after a reload; everything else works.
  }
}

const remember = (key: string, id: string): void => keep({ ...storedUploads(), [key]: id });
const forget = (key: string): void =>
  keep(Object.fromEntries(Object.entries(storedUploads()).filter(([known]) => known !== key)));
const forgetId = (id: string): void =>
  keep(Object.fromEntries(Object.entries(storedUploads()).filter(([, known]) => known !== id)));
