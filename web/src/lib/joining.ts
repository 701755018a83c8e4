// Joining a world: requests a seat and polls until one is available.
import type { JoinProgress, JoinRequest, JoinResponse } from '../generated/rest';
import { ApiError, call } from './api';

export interface JoinOptions {
  /** Called with the reason for waiting whenever it changes. */
  onwait?: (wait: JoinProgress) => void;
  /** Cancels the join and leaves the queue. */
  signal?: AbortSignal | undefined;
}

/** Long-poll timeout of the server. */
const NEWS_WAIT_S = 15;
/** The server reserves the queue position for 20 seconds without a poll. */
const RETRIES_MAX = 4;
const RETRY_MS = 1000;

/** Requests a seat in a world. Waits through cold starts and full worlds; replaces an expired guest session. */
export async function join(wish: JoinRequest, { onwait, signal }: JoinOptions = {}): Promise<JoinResponse> {
  const headers = { Prefer: 'respond-async' };
  let answer = await call('POST', '/join', {
    as: 'guest',
    body: wish,
    headers,
    signal,
  });
  while ('join_id' in answer) {
    onwait?.(answer);
    answer = await news(answer, signal);
  }
  return answer;
}

async function news(wait: JoinProgress, signal?: AbortSignal): Promise<JoinResponse | JoinProgress> {
  const path = { id: wait.join_id };
  for (let retries = 0; ; retries += 1) {
    try {
      return await call('GET', '/join/{id}', {
        path,
        as: 'me',
        query: { after: wait.step, wait_s: NEWS_WAIT_S },
        signal,
      });
    } catch (error) {
      if (signal?.aborted) {
        void call('DELETE', '/join/{id}', { as: 'me', path }).catch(() => undefined); // the join expires without polling
        throw error;
      }
      const unreachable = error instanceof ApiError && error.status === 0;
      if (!unreachable || retries >= RETRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** The reason for waiting and the expected time, in one line. */
export function waitText(wait: JoinProgress): string {
  const long = wait.expected_s !== null && wait.expected_s >= 3;
  return long ? `${wait.message}, about ${duration(wait.expected_s ?? 0)}` : wait.message;
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.max(5, Math.ceil(seconds / 5) * 5)} seconds`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
}
