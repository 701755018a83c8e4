// Prefetches the player's code while the store is open, so that Play only needs to join.

const IDLE_WITHIN_MS = 1500;
let warm = false;

/** Once per page, when the browser is idle; never on a metered connection. */
export function warmUpPlayer(): void {
  const { connection } = navigator as Navigator & { connection?: { saveData?: boolean } };
  if (warm || connection?.saveData) return;
  warm = true;
  const fetchParts = () => {
    // A failure is reported when Play is pressed, by the code that needs the module.
    const parts = [
      import('../routes/play/PlayPage.svelte'),
      import('../player/Player.svelte'),
      import('../player/view/world-view'),
      import('../player/core/core').then((core) => core.prepareCore()),
    ];
    for (const part of parts) part.catch(() => undefined);
  };
  // Safari has no idle callback.
  if ('requestIdleCallback' in window) requestIdleCallback(fetchParts, { timeout: IDLE_WITHIN_MS });
  else setTimeout(fetchParts, IDLE_WITHIN_MS);
}
