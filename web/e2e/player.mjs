// A player in a browser page: joins a world, walks, looks, and
// reads the page's state (through `window.__frolic`, web/src/player/debug.ts).
import { openPage } from './browser.mjs';

/** Timeout for immediate effects: software rendering is slow. */
const PATIENCE_MS = 90_000;
/** Polling interval of conditions in the page. */
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

  /** Waits for the world; a failure includes the logs of page and server. */
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

  /** Waits until `holds(argument)` is truthy in the page, and returns its value. */
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

  /**
   * Waits until the character has stopped and the server has processed every key released so far: it
   * repeats the last input it received, so a connection that is cut earlier leaves the character walking.
   */
  async settled() {
    const released = await this.page.evaluate(() => window.__frolic.stats().inputSeq);
    await this.until((seq) => {
      const { inputSeq, pendingInputs } = window.__frolic.stats();
      const own = window.__frolic.entities().find((entity) => entity.own);
      return inputSeq - pendingInputs > seq && own && Math.hypot(...own.velocity) < 0.01;
    }, released);
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

  /** Waits until this player has moved by `metres`. */
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

  /** Leaves through the menu, so that others see it immediately. */
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
 * Rewrites the platform's successful join responses for these pages: a starting world first answers
 * with its progress, and with the seat when polled.
 */
export function changeJoin(context, change) {
  return context.route(/\/join(\/[^/]+)?(\?.*)?$/, async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    await route.fulfill({ response, json: answer.transports ? await change(answer) : answer });
  });
}
