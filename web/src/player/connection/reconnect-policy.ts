// Reconnect policy: which errors end a session, and which cost one attempt to reconnect.
import { ApiError } from '../../lib/api';

/** The ticket was valid when it was issued; a new one solves it. */
const STALE_TICKET = ['ticket_expired', 'ticket_used'];
/** This page is too old for the server; retrying cannot help. */
const OUTDATED = 'unsupported_version';
/** The same player continued in another tab or on another device. */
const REPLACED = 'replaced';

/** State of the session when the server closes a connection. */
export interface Standing {
  /** The player was in the world, or has a resume token. */
  hasPlace: boolean;
  /** The connection was lost, and no welcome has arrived since. */
  reconnecting: boolean;
  /** The server announced a restart that preserves the session. */
  restarting: boolean;
  /** The join was already retried with a new ticket. */
  joinedAgain: boolean;
  /** Code of the last error on this connection. */
  lastCode: string | null;
}

/** Protocol versions differ: only a newer page can join. */
export function isOutdated({ lastCode }: Standing): boolean {
  return lastCode === OUTDATED;
}

/** Another page of the same player took over. */
export function isReplaced({ lastCode }: Standing): boolean {
  return lastCode === REPLACED;
}

/** The ticket expired on a slow connection, and no other was tried yet. */
export function hasStaleTicket({ joinedAgain, lastCode }: Standing): boolean {
  return !joinedAgain && lastCode !== null && STALE_TICKET.includes(lastCode);
}

/**
 * Whether to reconnect after a kick. During a reconnect it is the refusal of one handshake (the world is full, or its
 * server is stopping), and the next attempt may succeed. A player kicked from the world stays out.
 */
export function comesBack(standing: Standing): boolean {
  const { hasPlace, reconnecting, restarting } = standing;
  if (isOutdated(standing) || isReplaced(standing)) return false;
  if (!hasPlace) return hasStaleTicket(standing);
  return restarting || reconnecting;
}

/** Whether a rejoin failed permanently: the world was deleted, or access was revoked (such as a suspension). */
export function isFinal(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 403 || error.status === 404);
}
