// Actions that scripts have bound: touch screens show a button for each.

/** More buttons than this would cover the screen. */
const BUTTONS_MAX = 6;

export class ActionButtons {
  #names = $state.raw<string[]>([]);

  /** Those that fit, in the order they were bound. */
  get shown(): string[] {
    return this.#names.slice(0, BUTTONS_MAX);
  }

  bind(name: string): void {
    if (!this.#names.includes(name)) this.#names = [...this.#names, name];
  }

  unbind(name: string): void {
    this.#names = this.#names.filter((known) => known !== name);
  }

  clear(): void {
    this.#names = [];
  }
}
