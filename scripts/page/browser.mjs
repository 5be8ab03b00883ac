// Pages in a browser that writes down whatever goes wrong in them.

import { createRequire } from "node:module";
import path from "node:path";

const work = process.env.WORK;
const { chromium } = createRequire(path.join(work, "package.json"))("playwright-core");

export const faults = [];

/** Notes a fault, and goes on. */
export function check(is, text) {
  if (!is) {
    faults.push(text);
    console.log(`FAILED: ${text}`);
  }
}

export function same(is, expected, text) {
  const [seen, wanted] = [JSON.stringify(is), JSON.stringify(expected)];
  check(seen === wanted, `${text}: is ${seen}, expected ${wanted}`);
}

export async function launch() {
  const args = ["--no-sandbox", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: process.env.CHROMIUM, args });
}

/** Opens a file as a person does, from the disk. Any error, request or breach of the policy is a fault. */
export async function open(browser, file, { hash = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const name = path.basename(file);
  page.on("console", (message) => check(false, `${name}: console: ${message.type()} ${message.text()}`));
  page.on("pageerror", (error) => check(false, `${name}: ${error.stack}`));
  page.on("dialog", (dialog) => { check(false, `${name}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    const isOwn = request.url().startsWith("file://") && request.isNavigationRequest();
    check(isOwn || request.url() === "data:,", `${name}: asks for ${request.url().slice(0, 200)}`);
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
  });
  const begin = performance.now();
  await page.goto(`file://${path.resolve(file)}${hash}`);
  await page.waitForFunction(() => window.__etwprof, null, { timeout: 30_000 });
  page.opened = Math.round(performance.now() - begin);
  return page;
}

/** Closes a page whose policy must have held. */
export async function close(page) {
  same(await page.evaluate(() => window.violations), [], "breaches of the policy");
  await page.context().close();
}

export async function shoot(page, name, options = {}) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.screenshot({ path: path.join(work, `${name}.png`), ...options });
}

/** What the page says of itself. */
export const ask = (page, what, ...args) =>
  page.evaluate(([name, given]) => { window.__etwprof.render(); return window.__etwprof[name](...given); }, [what, args]);
export const state = (page) => page.evaluate(() => {
  const { time, threads, ...rest } = window.__etwprof.state;
  return { ...rest, time, threads: threads && [...threads] };
});
