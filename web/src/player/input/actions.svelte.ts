// Actions bound by scripts: touch screens show a button for each, hints show their keys.

/** More buttons than this would cover the screen. */
const BUTTONS_MAX = 6;

export interface BoundAction {
  name: string;
  /** As scripts name them: "Q", "MouseLeft", "ButtonX". */
  keys: readonly string[];
}

export class ActionButtons {
  #bound = $state.raw<BoundAction[]>([]);

  /** All actions in the order in which they were bound. */
  get all(): readonly BoundAction[] {
    return this.#bound;
  }

  /** Names of the actions that fit on the screen. */
  get shown(): string[] {
    return this.#bound.slice(0, BUTTONS_MAX).map((action) => action.name);
  }

  /** Binding a name again replaces its keys. */
  bind(name: string, keys: readonly string[] = []): void {
    const at = this.#bound.findIndex((action) => action.name === name);
    this.#bound = at < 0 ? [...this.#bound, { name, keys }] : this.#bound.with(at, { name, keys });
  }

  unbind(name: string): void {
    this.#bound = this.#bound.filter((action) => action.name !== name);
  }

  clear(): void {
    this.#bound = [];
  }
}
