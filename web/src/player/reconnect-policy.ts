// Reconnect policy: which errors end a session, and which cost one attempt to reconnect.
import { ApiError } from '../lib/api';

/** The ticket was good when it was made: a new one is all that is needed. */
const STALE_TICKET = ['ticket_expired', 'ticket_used'];
/** This page is too old for the server, and stays so however often one asks. */
const OUTDATED = 'unsupported_version';
/** The same person plays on in another tab or on another device. */
const REPLACED = 'replaced';

/** How things stand when the server ends a connection. */
export interface Standing {
  /** We were in, or have a token from before: there may be a place to come back to. */
  hasPlace: boolean;
  /** The connection was lost, and no welcome has come since. */
  reconnecting: boolean;
  /** The server has said that it stops, and that our place is kept. */
  restarting: boolean;
  /** It was tried once more with a new ticket. */
  joinedAgain: boolean;
  /** Code of the last error on this connection. */
  lastCode: string | null;
}

/** The server speaks another version: only another page can come in. */
export function isOutdated({ lastCode }: Standing): boolean {
  return lastCode === OUTDATED;
}

/** Another page of the same person has taken the place. */
export function isReplaced({ lastCode }: Standing): boolean {
  return lastCode === REPLACED;
}

/** The ticket grew old on a slow line, and no other was tried yet. */
export function hasStaleTicket({ joinedAgain, lastCode }: Standing): boolean {
  return !joinedAgain && lastCode !== null && STALE_TICKET.includes(lastCode);
}

/**
 * Whether a kick is not the end. On the way back it is the refusal of one handshake (the world is full at this moment, or its
 * server just stops), and the next attempt may do better. Who is in and is shown out stays out.
 */
export function comesBack(standing: Standing): boolean {
  const { hasPlace, reconnecting, restarting } = standing;
  if (isOutdated(standing) || isReplaced(standing)) return false;
  if (!hasPlace) return hasStaleTicket(standing);
  return restarting || reconnecting;
}

/** Whether a join on the way back failed for good: the world is gone, or we may not be in it any more (a suspension, say). */
export function isFinal(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 403 || error.status === 404);
}
