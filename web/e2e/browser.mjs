// A real Chromium for a test file, and pages that play: what a test needs to
// say "she walks forward until he sees it". Software rendering is slow, so
// everything waits for a state of the game, never for a number of frames.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright-core';

const ARGS = [
  '--no-sandbox',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Two players are two pages: background pages must not be throttled.
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
];

const SMALL = { width: 640, height: 360 };
const PATIENCE_MS = 90_000;

export function launchBrowser() {
  // Unset: Playwright's own browser, which `cargo xtask test` installed.
  const executablePath = process.env.CHROMIUM || undefined;
  return chromium.launch({ executablePath, args: ARGS });
}

/**
 * Opens a page in a context of its own (its own guest, its own storage).
 * Console errors of the page are collected in `page.complaints`.
 */
export async function openPage(browser, { viewport = SMALL, touch = false, prepare } = {}) {
  const context = await browser.newContext({ viewport, hasTouch: touch, isMobile: touch });
  context.setDefaultTimeout(PATIENCE_MS);
  await prepare?.(context);
  const page = await context.newPage();
  page.complaints = [];
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') page.complaints.push(message.text());
  });
  return page;
}

/**
 * A small page: software rendering is most of the cost of a test. With SCREENSHOTS
 * set it has the size of the pictures.
 */
export const forWorlds = (viewport) => (process.env.SCREENSHOTS ? viewport : SMALL);

/** Takes a screenshot if SCREENSHOTS names a folder. */
export async function picture(page, name) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
}
