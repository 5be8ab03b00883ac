// Checks the report page in a browser. Called by scripts/check-page with the traces.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";

import { ask, check, close, faults, launch, open, same, shoot, state } from "./browser.mjs";
import { measure } from "./measure.mjs";

const { WORK, PROGRAM, LARGE } = process.env;
const run = (...args) =>
  execFileSync(PROGRAM, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });
const etwprof = (...args) => run(...args, "--offline");
const json = (...args) => JSON.parse(etwprof(...args, "--json"));

function convert(trace) {
  const file = path.join(WORK, `${path.basename(trace, ".etl")}.html`);
  etwprof("convert", trace, "-o", file);
  return file;
}

/** The totals and the tops are those of the command line. */
async function numbers(browser, trace) {
  const file = convert(trace);
  const page = await open(browser, file);
  for (const sort of ["exclusive", "inclusive"]) {
    const top = json("top", trace, "-n", "10", "--sort", sort);
    const { samples } = await ask(page, "totals");
    same(samples, top.kept, `${trace}: kept samples`);
    const rows = top.rows.map(({ name, exclusive, inclusive, exclusive_ns, inclusive_ns }) =>
      ({ name, exclusive, inclusive, exclusive_ns, inclusive_ns }));
    same(await ask(page, "top", sort === "exclusive" ? "ownSamples" : "samples", 10), rows, `${trace}: top ten ${sort}`);
  }
  await shoot(page, path.basename(trace, ".etl"), { fullPage: true });
  const size = fs.statSync(file).size;
  console.log(`${path.basename(trace)}: ${size} bytes, opened in ${page.opened} ms`);
  await close(page);
  return file;
}

/** What is drawn above the CPU use is what `timeline` says of the same time. */
async function lanes(browser, file, trace, kinds) {
  const page = await open(browser, file);
  const { start, length } = await page.evaluate(() => window.__etwprof.clock());
  const [from, to] = [start, start + length].map((at) => `${(at / 1e7).toFixed(7)}s`);
  // It needs no symbols, and has no such option.
  const { rows } = JSON.parse(run("timeline", trace, "--from", from, "--to", to, "-n", "0", "--json"));
  const all = await ask(page, "lanes");
  same([...new Set(all.map(({ kind }) => kind))].sort(), kinds, `${trace}: kinds of lanes`);
  for (const { kind, ofThread, id, ns } of all) {
    // An id may be used again.
    const totals = rows.filter((row) => row.kind === kind && (ofThread ? row.tid === id : row.tid === null && row.pid === id))
      .map((row) => row.total_ns);
    check(totals.some((total) => Math.abs(total - ns) <= 1000), `${trace}: ${kind} of ${id}: ${ns} ns, and ${totals}`);
  }
  same(await page.locator(".lanes li").count(), kinds.length, "kinds of lanes that are explained");
  await page.locator(".twist[aria-expanded=false]").first().click();
  await shoot(page, `lanes-${path.basename(trace, ".etl")}`);
  await close(page);
}

/** What is chosen by the mouse counts as the same choice on the command line does. */
async function choices(browser, file, trace) {
  const page = await open(browser, file);
  await page.click("#search");
  await page.keyboard.type("orderbook");
  const matching = json("top", trace, "--function", "/(?i)orderbook/").kept;
  same((await ask(page, "found")).samples, matching, "samples that the search finds");
  await shoot(page, "search");
  await page.fill("#search", "[");
  check((await ask(page, "found")) !== null, "a search that is no pattern is text");
  await page.fill("#search", "");

  // A drag over a third of the time.
  const area = await page.locator(".track canvas").first().boundingBox();
  await page.mouse.move(area.x + area.width / 3, area.y + 10);
  await page.mouse.down();
  await page.mouse.move(area.x + area.width / 2, area.y + 12, { steps: 5 });
  await page.mouse.move(area.x + (2 * area.width) / 3, area.y + 12, { steps: 5 });
  await page.mouse.up();
  const { time } = await state(page);
  check(time !== null, "a drag chooses a time");
  const { start, cell } = await page.evaluate(() => window.__etwprof.clock());
  const [from, to] = time.map((at) => `${((start + at * cell) / 1e7).toFixed(7)}s`);
  same((await ask(page, "totals")).samples, json("top", trace, "--from", from, "--to", to).kept, "samples of the chosen time");
  await shoot(page, "brush");
  const hash = await page.evaluate(() => location.hash);
  const other = await open(browser, file, { hash });
  same(await ask(other, "totals"), await ask(page, "totals"), "the address shows the same view again");
  await close(other);
  await page.keyboard.press("a");
  check((await state(page)).time === null, "A shows all time again");

  const only = page.locator(".only").first();
  const pid = (await only.textContent()).match(/\((\d+)\)$/)[1];
  await only.click();
  same((await ask(page, "totals")).samples, json("top", trace, "--pid", pid).kept, "samples of one process");
  await page.getByRole("button", { name: "All time, all threads" }).click();

  // Callees first: below `all` stand the functions by their own time.
  await page.getByLabel("Callees first").check();
  const boxes = (await ask(page, "boxes")).filter(({ y, name }) => y === 20 && name).sort((a, b) => a.x - b.x).map(({ name, samples }) => [name, samples]);
  const top = json("top", trace, "-n", "5").rows.map(({ name, exclusive }) => [name, exclusive]);
  same(boxes.slice(0, 5), top, "the greatest callees");
  await shoot(page, "inverted");
  await page.getByLabel("Callees first").uncheck();

  // A click zooms, and the back button takes it back.
  const box = (await ask(page, "boxes")).find(({ y, width }) => y === 60 && width > 100);
  await page.locator(".window").scrollIntoViewIfNeeded();
  const window = await page.locator(".window").boundingBox();
  await page.mouse.click(window.x + box.x + 20, window.y + 1 + box.y + 8);
  same((await state(page)).zoom.length, 3, "a click zooms to the depth of its box");
  const zoomed = (await ask(page, "boxes")).find(({ y }) => y === 60);
  same([zoomed.name, zoomed.x], [box.name, 0], "the zoomed box has the whole width");
  await shoot(page, "zoom");
  await page.goBack();
  same((await state(page)).zoom, [], "the back button zooms out");

  const [first] = json("top", trace, "-n", "1", "--sort", "inclusive").rows.slice(-1);
  for (const { name } of [first, json("top", trace, "-n", "3").rows[2]]) {
    const seen = await ask(page, "around", name);
    const rows = (kind) => json(kind, trace, name, "-n", "100").rows.map((row) => [row.name, row.samples]).sort();
    // A remark is a row of its own there, and what has no caller is no row of the page's.
    const asked = (kind) => rows(kind).filter(([other]) => !other.startsWith("["));
    same(seen.callers.sort().filter(([other]) => !other.startsWith("[")), asked("callers"), `callers of ${name}`);
    same(seen.callees.sort(), asked("callees").filter(([other]) => other !== name), `callees of ${name}`);
  }
  await close(page);
}

/** What a key draws stands in the next frame, which a busy machine draws late. */
async function comes(is, what) {
  const end = Date.now() + 5000;
  while (!(await is())) {
    if (Date.now() > end) return check(false, what);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** Everything without a mouse. */
async function keyboard(browser, file) {
  const page = await open(browser, file);
  const press = async (...all) => { for (const key of all) await page.keyboard.press(key); };
  const focused = () => page.evaluate(() => {
    const at = document.activeElement;
    return { id: at.id, kind: at.className, role: at.getAttribute("role"), ring: at.matches(":focus-visible"),
      label: at.getAttribute("aria-label") || (at.labels && at.labels[0] && at.labels[0].textContent) || at.textContent.slice(0, 80) };
  });
  const seen = [];
  for (let i = 0; i < 120; i++) {
    await press("Tab");
    const at = await focused();
    seen.push(at);
    check(at.ring && at.label.trim(), `a stop of the Tab key has a ring and a label: ${JSON.stringify(at)}`);
    if (at.kind === "window") break;
  }
  check(seen.some(({ id }) => id === "search") && seen.some(({ kind }) => kind === "handle") && seen.some(({ id }) => id === "tab-flame"),
    "Tab stops at search, time and tabs");
  same(seen[seen.length - 1].kind, "window", "Tab comes to the flame graph");
  await press("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft");
  await page.waitForFunction(() => document.getElementById("live").textContent.includes("depth 2"));
  await press("Enter");
  same((await state(page)).zoom.length, 2, "Enter zooms in");
  await press("Backspace");
  same((await state(page)).zoom.length, 1, "Backspace zooms out");
  await press("0");
  same((await state(page)).zoom.length, 0, "0 resets the zoom");
  await press("i", "m", "2");
  same(await state(page).then(({ inverted, merge, view }) => [inverted, merge, view]), [true, true, "top"], "I, M and 2");
  await press("i", "m");
  await page.locator("#top [role=grid]").focus();
  await press("ArrowDown", "ArrowDown", "Enter");
  const { view, name } = await state(page);
  check(view === "callers" && name >= 0, "Enter in the table shows the callers");
  await comes(async () => (await page.locator("#callers-above [role=row][aria-level='2']").count()) > 0, "there are callers");
  await press("3");
  await page.locator("#calls [role=treegrid]").focus();
  await press("Home", "ArrowLeft");
  const rows = () => page.locator("#calls [data-row]").count();
  await comes(async () => (await rows()) === 1, "Left closes the call tree");
  await press("ArrowRight", "ArrowDown", "*");
  await comes(async () => (await rows()) > 1, "Right and * open the call tree");
  await press("?");
  await comes(async () => (await page.locator("#keys[open]").count()) === 1, "? lists the keys");
  await shoot(page, "keys");
  await press("Escape", "1", "/");
  await page.keyboard.type("read");
  await press("Enter");
  await page.waitForFunction(() => /read/i.test(document.getElementById("live").textContent));
  await press("Escape");
  same((await state(page)).search, "", "Escape clears the search");
  await page.locator(".handle").first().focus();
  await press("Shift+ArrowRight", "ArrowRight");
  check((await state(page)).time !== null, "the arrows move the begin of the time");
  await press("a", "t");
  same(await page.evaluate(() => document.documentElement.dataset.theme), "dark", "T chooses the dark theme");
  await close(page);
}

/** Dark and light, narrow windows, large text: nothing sticks out, and what is read stands out from what is behind it. */
async function looks(browser, file) {
  const views = ["flame", "top", "calls", "callers"];
  const sizes = [
    ["dark", { colorScheme: "dark" }],
    ["narrow", { viewport: { width: 400, height: 800 } }],
    ["zoomed", { viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 }],
    ["forced", { forcedColors: "active" }],
  ];
  for (const [look, options] of sizes) {
    for (const view of views) {
      const page = await open(browser, file, { hash: `#view=${view}&name=3`, ...options });
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
      check(wide <= room, `${look} ${view}: nothing is wider than the window, but ${wide} > ${room}`);
      const weak = await page.evaluate(contrasts);
      same(look === "forced" ? [] : weak, [], `${look} ${view}: texts with a contrast below 4.5`);
      await shoot(page, `${look}-${view}`, { fullPage: true });
      await close(page);
    }
  }
}

/** Texts in the page whose contrast is below what WCAG asks for. Runs in the page. */
function contrasts() {
  const parse = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => {
    const part = (c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const element of document.querySelectorAll("body *")) {
    const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!isText || !element.offsetParent || element.disabled) continue;
    const [one, other] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < 4.5) weak.push(`${element.tagName} ${element.className} ${contrast.toFixed(2)}`);
  }
  return [...new Set(weak)];
}

/** Names that want to be markup, code or control stay text, wherever they are shown. */
async function hostile(browser, file) {
  const evil = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "a!\u0000\u0007\u001b[31m\u202eb", "\"onload=\"alert(3)",
    "{{constructor}}", `long!${"x".repeat(65536)}`, "__proto__", "javascript:alert(4)", "&lt;b&gt;"];
  const text = fs.readFileSync(file, "utf8");
  const [before, data, behind] = text.split(/(?<=id="data">)([^<]*)/);
  const bytes = zlib.gunzipSync(Buffer.from(data, "base64"));
  const feed = bytes.indexOf(10);
  const head = JSON.parse(bytes.subarray(0, feed));
  const swap = (list) => list.map((_, i) => evil[i % evil.length]);
  head.names.text = swap(head.names.text);
  head.processes = swap(head.processes);
  head.lines.files = swap(head.lines.files);
  head.threads.forEach((thread, i) => (thread.name = evil[i % evil.length]));
  head.title = evil[1];
  head.facts.findings.forEach((finding, i) => (finding.text = evil[i % evil.length]));
  head.facts.summary.forEach((row, i) => (row[1] = evil[i % evil.length]));
  const packed = zlib.gzipSync(Buffer.concat([Buffer.from(JSON.stringify(head)), bytes.subarray(feed)])).toString("base64");
  const crafted = path.join(WORK, "hostile.html");
  fs.writeFileSync(crafted, before + packed + behind);
  for (const view of ["flame", "top", "calls", "callers"]) {
    const page = await open(browser, crafted, { hash: `#view=${view}&name=${view === "callers" ? 5 : 0}` });
    for (const key of ["i", "?", "Escape"]) await page.keyboard.press(key);
    same(await page.evaluate(() => document.querySelectorAll("img, iframe, object, [onerror], [onload]").length), 0, `${view}: no element came from a name`);
    same(await page.evaluate(() => document.querySelectorAll("script").length), 1, `${view}: no script came from a name`);
    same(await page.evaluate(() => document.getElementById("title").textContent), evil[1], `${view}: the title is text`);
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    check(wide <= room, `${view}: long names do not make the page wider`);
    await shoot(page, `hostile-${view}`, { fullPage: true });
    await close(page);
  }
}

const browser = await launch();
try {
  const files = [];
  for (const trace of process.argv.slice(2)) {
    files.push(await numbers(browser, trace));
  }
  const [demo] = process.argv.slice(2);
  const lanesOf = { "slow-ppt.etl": ["blocked", "ready"], "net.4.5.2.x64.etl": ["gc"] };
  for (const [i, trace] of process.argv.slice(2).entries()) {
    await lanes(browser, files[i], trace, lanesOf[path.basename(trace)] || []);
  }
  await choices(browser, files[0], demo);
  await keyboard(browser, files[0]);
  await looks(browser, files[0]);
  await hostile(browser, files[0]);
  if (LARGE) {
    await measure(browser, LARGE);
  }
} finally {
  await browser.close();
}
console.log(faults.length ? `${faults.length} faults` : "the report page is as it should be");
process.exitCode = faults.length ? 1 : 0;
