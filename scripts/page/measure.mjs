// Measures a large page: its size, the time until it can be used, and the time of each thing that a person does on it.

import fs from "node:fs";

import { check, close, open } from "./browser.mjs";

export async function measure(browser, file) {
  const page = await open(browser, file);
  const size = fs.statSync(file).size;
  console.log(`${size} bytes, opened in ${page.opened} ms`);
  check(size < 15_000_000, "a large page has less than 15 MB");
  const times = await page.evaluate(() => {
    const { change, render, hottest } = window.__etwprof;
    const rows = [];
    const time = (name, act) => {
      const all = [];
      for (let i = 0; i < 9; i++) {
        const begin = performance.now();
        act(i);
        render();
        all.push(performance.now() - begin);
      }
      all.sort((a, b) => a - b);
      rows.push([name, all[4], all[8]]);
    };
    const brush = (i) => change({ time: [1000 * i + 1, 30_000 + 3000 * i] });
    time("choose a time", brush);
    change({ time: null });
    time("choose threads", (i) => change({ threads: new Set([i, i + 1]) }));
    change({ threads: null });
    time("search", (i) => change({ search: `Method${i}` }));
    change({ search: "" });
    time("zoom", (i) => change({ zoom: hottest(i + 1) }));
    change({ zoom: [] });
    time("callees first, or callers first", (i) => change({ inverted: i % 2 === 0 }));
    time("choose a time, callees first", (i) => { change({ inverted: true }); brush(i); });
    change({ inverted: false, time: null });
    time("merge recursion, or not", (i) => change({ merge: i % 2 === 0 }));
    change({ merge: false, view: "top" });
    time("sort the functions", (i) => change({ sort: i % 2 ? "value" : "ownValue" }));
    time("choose a time, functions", brush);
    change({ time: null });
    time("callers and callees of a function", (i) => change({ view: "callers", name: i }));
    time("choose a time, callers and callees", brush);
    return rows;
  });
  console.log("median ms   slowest ms");
  for (const [name, median, slowest] of times) {
    console.log(`${median.toFixed(0).padStart(9)} ${slowest.toFixed(0).padStart(12)}   ${name}`);
  }
  await close(page);
}
