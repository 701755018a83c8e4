// Focus trap for menus: Tab cycles, a gamepad moves up and down.

const FOCUSABLE =
  'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), [tabindex="0"]';

function reachable(menu: HTMLElement): HTMLElement[] {
  return [...menu.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((element) => element.checkVisibility());
}

/** Moves the focus by one element, wrapping around. */
export function moveFocus(menu: HTMLElement, by: 1 | -1): void {
  const all = reachable(menu);
  const at = all.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length;
  all[next]?.focus();
}

/** A Svelte action that keeps Tab within the element. */
export function trapFocus(menu: HTMLElement): { destroy(): void } {
  const key = (event: KeyboardEvent) => {
    if (event.code !== 'Tab' || event.ctrlKey || event.altKey || event.metaKey) return;
    // Native dialogs trap the focus themselves.
    if (document.querySelector('dialog[open]')) return;
    event.preventDefault();
    moveFocus(menu, event.shiftKey ? -1 : 1);
  };
  addEventListener('keydown', key);
  return { destroy: () => removeEventListener('keydown', key) };
}
