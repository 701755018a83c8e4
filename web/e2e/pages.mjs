// Checks pages at both sizes and in both themes, including accessible names.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { openPage } from './browser.mjs';

export const WIDE = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

/** Takes screenshots in both themes and sizes if SCREENSHOTS is set; checks for overflow and accessible names. */
export async function look(page, name) {
  // The page's chunk may still be loading: the URL changes first.
  await page.locator('main:not([aria-busy=true])').waitFor();
  const before = page.viewportSize();
  for (const [size, viewport] of Object.entries({ wide: WIDE, phone: PHONE })) {
    await page.setViewportSize(viewport);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `${name} is ${overflow} px too wide at ${viewport.width} px`);
    if (!process.env.SCREENSHOTS) continue;
    await mkdir(process.env.SCREENSHOTS, { recursive: true });
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({
        path: path.join(process.env.SCREENSHOTS, `${name}-${size}-${colorScheme}.png`),
        fullPage: true,
      });
    }
    await page.emulateMedia({ colorScheme: null });
  }
  await page.setViewportSize(before);
  assert.deepEqual(await unnamed(page), [], `${name}: things to press without a name`);
  assert.deepEqual(await pale(page), [], `${name}: words that are hard to read`);
}

/** Controls without an accessible name, and pages without exactly one main heading. */
function unnamed(page) {
  return page.evaluate(() => {
    const wrong = [];
    const shown = (element) => element.checkVisibility({ visibilityProperty: true });
    const words = (element) => {
      const label = element.getAttribute('aria-label') ?? element.getAttribute('title') ?? '';
      const labelled = (element.getAttribute('aria-labelledby') ?? '')
        .split(' ')
        .map((id) => document.getElementById(id)?.textContent ?? '')
        .join('');
      const outer = element.labels ? [...element.labels].map((each) => each.textContent).join('') : '';
      return (label + labelled + outer + (element.textContent ?? '')).trim();
    };
    for (const element of document.querySelectorAll(
      'a[href], button, input, select, textarea, [role=tab], [role=menuitem]',
    )) {
      if (shown(element) && !element.closest('[aria-hidden=true]') && words(element) === '')
        wrong.push(element.outerHTML.slice(0, 120));
    }
    for (const image of document.querySelectorAll('img:not([alt])')) wrong.push(image.outerHTML.slice(0, 120));
    const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
    const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
    if (twice.length > 0) wrong.push(`ids twice: ${twice}`);
    const headings = [...document.querySelectorAll('h1')].filter(shown).length;
    if (headings !== 1) wrong.push(`${headings} main headings`);
    if (document.querySelectorAll('main').length !== 1) wrong.push('not one <main>');
    if (!document.documentElement.lang) wrong.push('no language');
    return wrong;
  });
}

/** Text whose contrast with the flat colour behind it is below AA (4.5 to 1, or 3 to 1 when it is large). */
async function pale(page) {
  const found = [];
  for (const colorScheme of ['light', 'dark']) {
    // Reduced motion, so that colours are not measured during a transition.
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    found.push(...(await page.evaluate(measureContrast, colorScheme)));
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  return [...new Set(found)];
}

function measureContrast(scheme) {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  // Any CSS colour, composited over its background.
  const over = (below, colour) => {
    canvas.fillStyle = `rgb(${below.join(' ')})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((value) =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const wrong = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(
      (node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim() !== '',
    );
    if (!own || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (element.closest('.sr-only, :disabled, option, [aria-hidden=true], svg, .hero, .thumb, noscript, .skip'))
      continue;
    const chain = [];
    for (let up = element; up; up = up.parentElement) chain.unshift(getComputedStyle(up));
    // Images and gradients have no single colour.
    if (chain.some((style) => style.backgroundImage !== 'none' && !style.backgroundImage.includes('.svg'))) continue;
    let behind = [255, 255, 255];
    for (const style of chain) behind = over(behind, style.backgroundColor);
    const style = getComputedStyle(element);
    const ink = over(behind, style.color);
    const [high, low] = [light(ink), light(behind)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = Number.parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5))
      wrong.push(`${scheme} ${ratio.toFixed(2)}: ${element.textContent.trim().slice(0, 40)} (${element.className})`);
  }
  return wrong;
}

/** A page with a session. */
export function pageOf(browser, login, viewport = WIDE) {
  const saved = {
    token: login.session_token,
    clientId: login.client_id,
    username: login.username,
    kind: login.kind,
    role: login.role,
  };
  return openPage(browser, {
    viewport,
    prepare: (context) =>
      context.addInitScript((session) => localStorage.setItem('frolic.session', session), JSON.stringify(saved)),
  });
}
