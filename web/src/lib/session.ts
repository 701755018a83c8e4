// The visitor's guest session, kept in the browser between visits.

export interface Session {
  token: string;
  clientId: string;
  username: string;
}

const KEY = 'frolic.session';
let inMemory: Session | null = null; // when storage is blocked, the session lasts as long as the page

export function loadSession(): Session | null {
  if (inMemory) return inMemory;
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? 'null');
    return isSession(value) ? value : null;
  } catch {
    return null;
  }
}

export function saveSession(session: Session): void {
  inMemory = session;
  try {
    localStorage.setItem(KEY, JSON.stringify(session));
  } catch {
    // inMemory still has it.
  }
}

export function forgetSession(): void {
  inMemory = null;
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
}

function isSession(value: unknown): value is Session {
  if (typeof value !== 'object' || value === null) return false;
  const { token, clientId, username } = value as Record<string, unknown>;
  return typeof token === 'string' && typeof clientId === 'string' && typeof username === 'string';
}
