// Fetches what the player needs while somebody looks at the store, so that Play is only the join.

const IDLE_WITHIN_MS = 1500;
let warm = false;

/** Once per page, when the browser has nothing better to do; never on a metered line. */
export function warmUpPlayer(): void {
  const { connection } = navigator as Navigator & { connection?: { saveData?: boolean } };
  if (warm || connection?.saveData) return;
  warm = true;
  const fetchParts = () => {
    // A failure here is told when Play is pressed, by the code that needs the part.
    const parts = [
      import('../routes/play/PlayPage.svelte'),
      import('../player/Player.svelte'),
      import('../player/view/world-view'),
      import('../player/core').then((core) => core.prepareCore()),
    ];
    for (const part of parts) part.catch(() => undefined);
  };
  // Safari has no idle callback.
  if ('requestIdleCallback' in window) requestIdleCallback(fetchParts, { timeout: IDLE_WITHIN_MS });
  else setTimeout(fetchParts, IDLE_WITHIN_MS);
}
