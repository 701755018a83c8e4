// The session of a guest or an account, stored in the browser between visits.
import type { LoginResponse } from '../generated/rest';

export interface Session {
  token: string;
  clientId: string;
  username: string;
  /** Sessions stored before accounts existed have no kind: they are guests. */
  kind?: 'guest' | 'account';
  role?: string;
}

const KEY = 'frolic.session';
let inMemory: Session | null = null; // when storage is blocked, the session lasts as long as the page
let blocked = false;
let changed: (session: Session | null) => void = () => undefined;

/** The one listener of changes: `account.svelte.ts`. */
export function onSessionChange(listener: (session: Session | null) => void): void {
  changed = listener;
}

export function loadSession(): Session | null {
  if (blocked) return inMemory;
  try {
    // Always read from storage: another tab may have signed in or out.
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? 'null');
    return isSession(value) ? value : null;
  } catch {
    return inMemory;
  }
}

export function saveSession(session: Session): void {
  inMemory = session;
  try {
    localStorage.setItem(KEY, JSON.stringify(session));
    blocked = false;
  } catch {
    blocked = true; // inMemory still has it
  }
  changed(session);
}

export function forgetSession(): void {
  inMemory = null;
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Nothing was stored.
  }
  changed(null);
}

/** The stored part of a login. */
export function sessionOf(answer: LoginResponse): Session {
  return {
    token: answer.session_token,
    clientId: answer.client_id,
    username: answer.username,
    kind: answer.kind === 'account' ? 'account' : 'guest',
    role: answer.role,
  };
}

/** Whether a storage event concerns the session. */
export const isSessionKey = (key: string | null): boolean => key === null || key === KEY;

function isSession(value: unknown): value is Session {
  if (typeof value !== 'object' || value === null) return false;
  const { token, clientId, username } = value as Record<string, unknown>;
  return typeof token === 'string' && typeof clientId === 'string' && typeof username === 'string';
}
