// Somebody who plays in a browser page: enters a world, walks, looks, and
// knows what the page shows (through `window.__frolic`, web/src/player/debug.ts).
import { openPage } from './browser.mjs';

/** Time for anything that should happen at once: software rendering is slow. */
const PATIENCE_MS = 90_000;
/** How often a condition in the page is looked at. */
const POLLING_MS = 50;

export class Player {
  /** Opens the play page of a game and waits until the character stands in the world. */
  static async enter(browser, server, { game, world, query = {}, ...pageOptions }) {
    const page = await openPage(browser, pageOptions);
    const parameters = new URLSearchParams({ gfx: 'low', ...query });
    if (world) parameters.set('world', world);
    await page.goto(`${server.url}/play/${game}?${parameters}`);
    const player = new Player(page);
    await player.ready(server);
    return player;
  }

  constructor(page) {
    this.page = page;
  }

  /** Waits for the world; a failure tells what the page and the server say. */
  async ready(server) {
    try {
      await this.until(() => window.__frolic?.ready && window.__frolic.position() !== null);
    } catch (error) {
      const phase = await this.page.evaluate(() => window.__frolic?.phase).catch(() => undefined);
      const text = await this.page.evaluate(() => document.body.innerText).catch(() => '');
      throw new Error(
        `not in the world (phase ${phase}): ${error.message}\npage: ${text}\n` +
          `complaints: ${(this.page.complaints ?? []).join('\n')}\nserver: ${server?.log()}`,
        { cause: error },
      );
    }
  }

  /** Waits until `holds(argument)` is true in the page, and returns what it gave. */
  async until(holds, argument, timeout = PATIENCE_MS) {
    const handle = await this.page.waitForFunction(holds, argument, { polling: POLLING_MS, timeout });
    return handle.jsonValue();
  }

  read(name) {
    return this.page.evaluate((key) => window.__frolic[key], name);
  }

  position() {
    return this.page.evaluate(() => window.__frolic.position());
  }

  /** Where this player sees another entity. */
  seen(entityId) {
    return this.page.evaluate(
      (id) => window.__frolic.entities().find((entity) => entity.id === id)?.position ?? null,
      entityId,
    );
  }

  hudTexts() {
    return this.page.evaluate(() => window.__frolic.hudTexts());
  }

  /** Holds a key while `work` runs. */
  async holding(key, work) {
    await this.page.keyboard.down(key);
    try {
      return await work();
    } finally {
      await this.page.keyboard.up(key);
    }
  }

  /** Walks until the own character is `metres` away from where it stood. */
  async walk(metres, key = 'KeyW') {
    await this.holding(key, () => this.untilMoved(metres));
  }

  /** Waits until this player is so far from where they are now. */
  async untilMoved(metres) {
    const start = await this.position();
    await this.until(
      ([[x, , z], far]) => {
        const now = window.__frolic.position();
        return now !== null && Math.hypot(now[0] - x, now[2] - z) >= far;
      },
      [start, metres],
    );
  }

  /** Walks towards the point (x, z), turning all the while, until `work` is done. */
  async walkingTowards([x, z], work) {
    const steering = await this.page.evaluate(
      ([targetX, targetZ, everyMs]) =>
        setInterval(() => {
          const now = window.__frolic?.position();
          // Yaw 0 looks along -z, and turns left when it grows.
          if (now) window.__frolic.look(Math.atan2(now[0] - targetX, now[2] - targetZ), 0);
        }, everyMs),
      [x, z, POLLING_MS],
    );
    try {
      return await this.holding('KeyW', work);
    } finally {
      await this.page.evaluate((id) => clearInterval(id), steering);
    }
  }

  /** Leaves by the menu, so that the others see it at once. */
  async leave() {
    await this.page.keyboard.press('Escape');
    await this.page.getByRole('link', { name: 'Leave' }).click();
    await this.page.locator('[data-play]').first().waitFor();
  }

  close() {
    return this.page.context().close();
  }
}

/**
 * Changes what the platform answers to joins of these pages, once it is a place: a world that has yet to start answers
 * with what it waits for first, and with the place to whoever asks after it.
 */
export function changeJoin(context, change) {
  return context.route(/\/join(\/[^/]+)?(\?.*)?$/, async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    await route.fulfill({ response, json: answer.transports ? await change(answer) : answer });
  });
}
