// Short messages after an action: `toasts.say('Saved')`, `toasts.fail(error)`. <Page> shows them; elsewhere put <Toasts /> once.

export interface Toast {
  id: number;
  text: string;
  tone: 'good' | 'bad';
}

const SHOWN_MS = 5000;
const SHOWN_MAX = 3;

class ToastList {
  shown = $state.raw<Toast[]>([]);
  #next = 1;

  say(text: string): void {
    this.#show(text, 'good');
  }

  /** Shows the message of an error. */
  fail(error: unknown): void {
    this.#show(error instanceof Error ? error.message : String(error), 'bad');
  }

  dismiss(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }

  #show(text: string, tone: Toast['tone']): void {
    const id = this.#next++;
    this.shown = [...this.shown, { id, text, tone }].slice(-SHOWN_MAX);
    setTimeout(() => this.dismiss(id), SHOWN_MS);
  }
}

export const toasts = new ToastList();
