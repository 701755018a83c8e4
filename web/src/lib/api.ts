// Calls to the control plane. Every failure becomes an ApiError with a user-facing message.
import type { ConsolePage, ErrorBody, GameDetail, GameList, LoginResponse } from '../generated/rest';
import { forgetSession, loadSession, saveSession, sessionOf, type Session } from './session';

export type GameSort = 'popular' | 'new' | 'featured';

/** A refused or failed request: `status` 0 means that the server was not reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Structured details, such as validation problems. */
    readonly details?: unknown,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** A page of the store. */
export interface GameWish {
  sort?: GameSort;
  q?: string;
  tag?: string;
  creator?: string;
  page?: number;
  per_page?: number;
}

export function listGames(wish: GameWish, signal?: AbortSignal): Promise<GameList> {
  return call<GameList>('GET', '/api/games', { query: { ...wish }, as: 'anonymous', signal });
}

/** A game's page, with fields for its creator and for the caller's like. */
export function getGame(id: string, signal?: AbortSignal): Promise<GameDetail> {
  return call<GameDetail>('GET', `/api/games/${encodeURIComponent(id)}`, { signal });
}

/** Output and costs of a game's scripts after a line; for its creator, or with an admin token. */
export async function getConsole(id: string, after: number, signal?: AbortSignal): Promise<ConsolePage> {
  const operator = operatorToken();
  const token = operator ?? loadSession()?.token;
  if (!token) throw new ApiError(401, 'no_session', 'You’re not signed in. Sign in and try again.');
  const query = new URLSearchParams({ after: String(after) });
  try {
    return await request<ConsolePage>(`/api/games/${encodeURIComponent(id)}/console?${query}`, {
      signal,
      headers: { Authorization: `Bearer ${token}` },
    });
  } catch (error) {
    // A wrong token must not take precedence over the user's session.
    if (operator && error instanceof ApiError && error.status === 401) sessionStorage.removeItem(OPERATOR_KEY);
    throw error;
  }
}

const OPERATOR_KEY = 'frolic.operator';

/** Stores an admin token until the tab closes, not longer, because it grants full access. */
export function rememberOperatorToken(token: string): void {
  sessionStorage.setItem(OPERATOR_KEY, token);
}

export function forgetOperatorToken(): void {
  try {
    sessionStorage.removeItem(OPERATOR_KEY);
  } catch {
    // Nothing was stored.
  }
}

export function operatorToken(): string | null {
  try {
    return sessionStorage.getItem(OPERATOR_KEY);
  } catch {
    return null;
  }
}

/** The stored session, or a new guest session. */
export async function session(): Promise<Session> {
  const saved = loadSession();
  if (saved) return saved;
  const answer = await request<LoginResponse>('/login', { method: 'POST', body: '{}' });
  const fresh = sessionOf(answer);
  saveSession(fresh);
  return fresh;
}

/** Identity of a call: none, the saved session if there is one, the saved session (required), or a guest created on demand. */
export type CallAs = 'anonymous' | 'anyone' | 'me' | 'guest';

export interface CallOptions {
  /** Sent as JSON; a Blob or buffer is sent unchanged. */
  body?: unknown;
  query?: Record<string, string | number | undefined>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  as?: CallAs;
}

/** A call to the REST interface: `call<GameList>('GET', '/api/games')`. Answers without a body give `undefined`. */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  return (await callFull<T>(method, path, options)).value;
}

/** As `call`, with the ETag of the answer: send it back as If-Match to change exactly what was read. */
export async function callFull<T>(
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<{ value: T; etag: string | null }> {
  const { as = 'anyone' } = options;
  const used = loadSession();
  try {
    return await callOnce<T>(method, path, options);
  } catch (error) {
    // An expired guest session is replaced by a new one; other users are asked to sign in.
    if (as !== 'guest' || !(error instanceof ApiError) || error.status !== 401) throw error;
    const saved = loadSession();
    // Another tab has signed in meanwhile: use its session.
    if (used && saved && saved.token !== used.token) return callOnce<T>(method, path, options);
    forgetSession();
    // A user with an account never becomes a guest silently.
    if (saved?.kind === 'account') {
      throw new ApiError(
        401,
        'session_over',
        `${saved.username}, your session has ended. Sign in again, or try again to play as a guest.`,
      );
    }
    return callOnce<T>(method, path, options);
  }
}

async function callOnce<T>(
  method: string,
  path: string,
  { body, query, headers, signal, as = 'anyone' }: CallOptions,
): Promise<{ value: T; etag: string | null }> {
  const all = new Headers(headers);
  const saved = as === 'guest' ? await session() : as === 'anonymous' ? null : loadSession();
  if (saved && !all.has('Authorization')) all.set('Authorization', `Bearer ${saved.token}`);
  else if (as === 'me' && !saved) throw new ApiError(401, 'no_session', 'You’re not signed in. Sign in and try again.');
  const raw = body instanceof Blob || body instanceof ArrayBuffer;
  if (body !== undefined && !raw) all.set('Content-Type', 'application/json');
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== undefined && value !== '') search.set(name, String(value));
  const url = search.size > 0 ? `${path}?${search}` : path;
  const response = await reach(url, {
    method,
    headers: all,
    signal,
    body: body === undefined ? undefined : raw ? body : JSON.stringify(body),
  });
  return { value: await answer<T>(response), etag: response.headers.get('ETag') };
}

/** Downloads a file with the user's session and saves it. */
export async function saveFile(path: string, name: string): Promise<void> {
  const saved = loadSession();
  if (!saved) throw new ApiError(401, 'no_session', 'You’re not signed in. Sign in and try again.');
  const response = await reach(path, { headers: { Authorization: `Bearer ${saved.token}` } });
  const url = URL.createObjectURL(await response.blob());
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  const headers = new Headers(init.headers);
  if (init.body) headers.set('Content-Type', 'application/json');
  return answer<T>(await reach(path, { ...init, headers }));
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'unreachable', 'We couldn’t reach Frolic. Check your connection and try again.');
  }
  if (!response.ok) throw await apiError(response);
  return response;
}

async function answer<T>(response: Response): Promise<T> {
  if (response.status === 204 || response.headers.get('content-length') === '0') return undefined as T;
  try {
    return (await response.json()) as T;
  } catch {
    throw new ApiError(response.status, 'bad_answer', 'Frolic sent an unexpected response. Reload the page.');
  }
}

export async function apiError(response: Response): Promise<ApiError> {
  try {
    const body = (await response.json()) as Partial<ErrorBody>;
    if (body.error?.message)
      return new ApiError(response.status, body.error.code, body.error.message, body.error.details);
  } catch {
    // Not our JSON format: a proxy answered. The status is all we know.
  }
  return new ApiError(
    response.status,
    'error',
    `Frolic is having trouble (status ${response.status}). Try again in a moment.`,
  );
}
