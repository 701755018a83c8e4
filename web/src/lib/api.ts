// Calls to the control plane, typed by its OpenAPI document: `call('GET', '/api/games/{id}', { path: { id } })`.
// Every failure becomes an ApiError with a user-facing message.
import type { ErrorBody, GameList } from '../generated/rest';
import type { Answer, Method, Parameters, PathOf, Request } from './rest-types';
import { forgetSession, loadSession, saveSession, sessionOf, type Session } from './session';

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

export type GameWish = NonNullable<Parameters<'GET', '/api/games'>['query']>;
export type GameSort = NonNullable<GameWish['sort']>;

export const listGames = (query: GameWish, signal?: AbortSignal): Promise<GameList> =>
  call('GET', '/api/games', { query, as: 'anonymous', signal });

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
  const fresh = sessionOf(await call('POST', '/login', { body: {}, as: 'anonymous' }));
  saveSession(fresh);
  return fresh;
}

/**
 * Identity of a call: none, the saved session if there is one, the saved session (required), a guest created on demand,
 * or the admin token of this tab before the saved session.
 */
export type CallAs = 'anonymous' | 'anyone' | 'me' | 'guest' | 'operator';

interface Common {
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  as?: CallAs;
}

/** The options of a call; they may be omitted when the operation requires no parameter and no body. */
type Options<M extends Method, P extends PathOf<M>> =
  Partial<Request<M, P>> extends Request<M, P> ? [options?: Request<M, P> & Common] : [options: Request<M, P> & Common];

/** The options of any call. */
interface AnyOptions extends Common {
  path?: Record<string, string>;
  query?: Record<string, unknown>;
  /** Sent as JSON; a Blob is sent unchanged. */
  body?: unknown;
}

/** A call to the REST interface. Answers without a body give `undefined`. */
export async function call<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  ...[options]: Options<M, P>
): Promise<Answer<M, P>> {
  return answer(await retried(method, path, options));
}

/** As `call`, for responses that are not JSON. */
export function download<P extends PathOf<'GET'>>(path: P, ...[options]: Options<'GET', P>): Promise<Response> {
  return retried('GET', path, options);
}

/** The URL of an operation, for links. */
export function urlOf<P extends PathOf<'GET'>>(path: P, parameters: Parameters<'GET', P> & AnyOptions): string {
  return resolve(path, parameters);
}

function resolve(template: string, { path = {}, query = {} }: AnyOptions): string {
  const address = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  return search.size > 0 ? `${address}?${search}` : address;
}

async function retried(method: Method, path: string, options: AnyOptions = {}): Promise<Response> {
  const used = loadSession();
  try {
    return await send(method, path, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    // A wrong token must not take precedence over the user's session.
    if (options.as === 'operator') forgetOperatorToken();
    // An expired guest session is replaced by a new one; other users are asked to sign in.
    if (options.as !== 'guest') throw error;
    const saved = loadSession();
    // Another tab has signed in meanwhile: use its session.
    if (used && saved && saved.token !== used.token) return send(method, path, options);
    forgetSession();
    // A user with an account never becomes a guest silently.
    if (saved?.kind === 'account') {
      throw new ApiError(
        401,
        'session_over',
        `${saved.username}, your session has ended. Sign in again, or try again to play as a guest.`,
      );
    }
    return send(method, path, options);
  }
}

async function send(method: Method, path: string, options: AnyOptions): Promise<Response> {
  const { body, signal, as = 'anyone' } = options;
  const headers = new Headers(options.headers);
  const token = await tokenOf(as);
  if (token) headers.set('Authorization', `Bearer ${token}`);
  else if (as === 'me' || as === 'operator')
    throw new ApiError(401, 'no_session', 'You’re not signed in. Sign in and try again.');
  const raw = body instanceof Blob;
  if (body !== undefined && !raw) headers.set('Content-Type', 'application/json');
  return reach(resolve(path, options), {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : raw ? body : JSON.stringify(body),
  });
}

async function tokenOf(as: CallAs): Promise<string | null | undefined> {
  if (as === 'anonymous') return null;
  if (as === 'guest') return (await session()).token;
  return (as === 'operator' ? operatorToken() : null) ?? loadSession()?.token;
}

/** Saves a downloaded file. */
export async function saveFile(response: Response, name: string): Promise<void> {
  const url = URL.createObjectURL(await response.blob());
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
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
