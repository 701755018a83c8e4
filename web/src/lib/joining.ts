// The way into a world: asks for a place, and while there is none, asks after it until there is.
import type { JoinProgress, JoinRequest, JoinResponse } from '../generated/rest';
import { ApiError, call } from './api';

export interface JoinOptions {
  /** Hears what the join waits for, each time there is news. */
  onwait?: (wait: JoinProgress) => void;
  /** Gives the join up; its turn goes to the next one. */
  signal?: AbortSignal | undefined;
}

/** The server answers when there is news, at the latest after so long. */
const NEWS_WAIT_S = 15;
/** A line may be gone for a moment; the place in the queue is kept for 20 seconds. */
const RETRIES_MAX = 4;
const RETRY_MS = 1000;

/** A place in a world. Waits through cold starts and full worlds; a guest whose session ran out becomes a new one. */
export async function join(wish: JoinRequest, { onwait, signal }: JoinOptions = {}): Promise<JoinResponse> {
  const headers = { Prefer: 'respond-async' };
  let answer = await call<JoinResponse | JoinProgress>('POST', '/join', {
    as: 'guest',
    body: wish,
    headers,
    ...(signal && { signal }),
  });
  while ('join_id' in answer) {
    onwait?.(answer);
    answer = await news(answer, signal);
  }
  return answer;
}

async function news(wait: JoinProgress, signal?: AbortSignal): Promise<JoinResponse | JoinProgress> {
  const path = `/join/${encodeURIComponent(wait.join_id)}`;
  for (let retries = 0; ; retries += 1) {
    try {
      return await call('GET', path, {
        as: 'me',
        query: { after: wait.step, wait_s: NEWS_WAIT_S },
        ...(signal && { signal }),
      });
    } catch (error) {
      if (signal?.aborted) {
        void call('DELETE', path, { as: 'me' }).catch(() => undefined); // it ends by itself when nobody asks
        throw error;
      }
      const unreachable = error instanceof ApiError && error.status === 0;
      if (!unreachable || retries >= RETRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** What a join waits for and how long that may take, in one line. */
export function waitText(wait: JoinProgress): string {
  const long = wait.expected_s !== null && wait.expected_s >= 3;
  return long ? `${wait.message}, about ${duration(wait.expected_s ?? 0)}` : wait.message;
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.max(5, Math.ceil(seconds / 5) * 5)} seconds`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
}
