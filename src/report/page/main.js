"use strict";
// Puts the page together: unpacks the data, and shows every change of the state.

const app = {
  profile: null,
  counts: null,
  /** For each name 1 if the search finds it; null without a search. */
  matches: null,
  /** Fade all but the selected function. */
  highlight: false,
};

const TABS = { flame: "Flame graph", top: "Functions", calls: "Call tree", callers: "Callers and callees" };
const panels = { flame, top: topTable, calls: callTree, callers };

/** What has to be done before the next frame. */
const due = { recount: false, tree: false, tracks: false, isScheduled: false };

/** Changes the state; `step`: the back button takes it back. */
function change(patch, step = false) {
  const before = { ...state };
  Object.assign(state, patch);
  due.recount = due.recount || before.time !== state.time || before.threads !== state.threads;
  due.tree = due.tree || before.inverted !== state.inverted || before.merge !== state.merge;
  due.tracks = due.tracks || before.threads !== state.threads;
  if (before.search !== state.search) {
    findMatches();
  }
  writeHash(step);
  schedule();
}

/** Shows a view, brings it in sight, and gives it the keys. */
function showView(patch) {
  change(patch, true);
  renderNow();
  byId("tabs").scrollIntoView({ block: "start" });
  const at = byId(state.view).querySelector('[tabindex="0"]') || byId("main");
  at.focus({ preventScroll: true });
}

/** Selects a function and zooms to it. */
function select(name, zoom) {
  change({ name, zoom }, true);
}

function schedule() {
  if (!due.isScheduled) {
    due.isScheduled = true;
    requestAnimationFrame(renderNow);
  }
}

function renderNow() {
  due.isScheduled = false;
  if (due.recount) {
    recount();
  }
  if (due.recount || due.tree) {
    flame.recount();
  }
  if (due.tracks) {
    timeline.render();
  } else if (due.recount) {
    timeline.drawBand();
    timeline.reset.disabled = !state.time && !state.threads;
  }
  Object.assign(due, { recount: false, tree: false, tracks: false });
  renderHead();
  for (const view of VIEWS) {
    byId(view).hidden = view !== state.view;
    const tab = byId(`tab-${view}`);
    tab.setAttribute("aria-selected", String(view === state.view));
    tab.tabIndex = view === state.view ? 0 : -1;
  }
  panels[state.view].render();
}

/** Counts the chosen samples. */
function recount() {
  const { threads, clock } = app.profile;
  const wanted = new Uint8Array(threads.length);
  threads.forEach((_, t) => (wanted[t] = !state.threads || state.threads.has(t) ? 1 : 0));
  const [from, to] = state.time || [0, clock.cells];
  app.counts.count(from, to, wanted);
}

function renderHead() {
  const { total, samples } = app.profile;
  const { totalValue, totalSamples } = app.counts;
  const isAll = !state.time && !state.threads;
  byId("totals").textContent = isAll
    ? `${valueText(total)} of ${app.profile.metric.name}, ${countText(samples)} samples`
    : `${valueText(totalValue)} of ${valueText(total)} (${shareText(totalValue, total)}), ${countText(totalSamples)} samples`;
  if (document.activeElement !== byId("search")) {
    byId("search").value = state.search;
  }
  renderFound();
  const chips = [];
  const chip = (text, off, label) => chips.push(make("span", { class: "chip" }, text,
    make("button", { type: "button", "aria-label": label, onclick: off }, "×")));
  if (state.time) {
    chip(`Time ${momentText(state.time[0])} to ${momentText(state.time[1])}`, () => change({ time: null }), "All time");
  }
  if (state.threads) {
    const one = state.threads.size === 1 ? app.profile.threads[[...state.threads][0]] : null;
    const text = one ? `${app.profile.processes[one.process]}, ${one.name}` : `${countText(state.threads.size)} of ${countText(app.profile.threads.length)} threads`;
    chip(shortText(text, 120), () => change({ threads: null }), "All threads");
  }
  if (state.name !== ALL) {
    chip(shortText(nameText(state.name), 120), () => change({ name: ALL }), "Select no function");
  }
  byId("chips").replaceChildren(...chips);
  byId("chips").hidden = chips.length === 0;
}

/** Finds the names that the search means: a regular expression, or as it is where it is none. */
function findMatches() {
  if (!state.search) {
    app.matches = null;
    return;
  }
  let test;
  try {
    const pattern = new RegExp(state.search, "i");
    test = (text) => pattern.test(text);
  } catch {
    const wanted = state.search.toLowerCase();
    test = (text) => text.toLowerCase().includes(wanted);
  }
  app.matches = Uint8Array.from(app.profile.names.text, (text) => (test(text.slice(0, 4000)) ? 1 : 0));
}

function renderFound() {
  const found = byId("found");
  if (!app.matches) {
    found.textContent = "";
    return;
  }
  const { value, samples } = app.counts.totalOf(app.matches);
  const functions = app.matches.reduce((sum, match) => sum + match, 0);
  found.textContent = `${countText(functions)} functions, ${amountText(value, samples)}`;
}

function setSearch(text) {
  byId("search").value = text;
  change({ search: text });
}

const THEMES = ["", "dark", "light"];

function nextTheme() {
  const root = document.documentElement;
  const theme = THEMES[(THEMES.indexOf(root.dataset.theme || "") + 1) % THEMES.length];
  setTheme(theme);
  try {
    localStorage.setItem("etwprof-theme", theme);
  } catch {
    // Not everywhere may a file keep something.
  }
  announce(`Theme: ${theme || "as the system"}`);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = THEMES.includes(theme) ? theme : "";
  byId("theme").textContent = { dark: "Dark", light: "Light" }[theme] || "Auto";
  const isDark = theme ? theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  app.profile.categories.forEach(({ colours }, kind) =>
    document.documentElement.style.setProperty(`--kind-${kind}`, colours[isDark ? 1 : 0]));
  flame.makeColours(isDark);
  flame.draw();
  if (timeline.rows) {
    timeline.draw();
  }
}

function makeTabs() {
  const tabs = byId("tabs");
  VIEWS.forEach((view, place) => {
    tabs.append(make("button", { type: "button", role: "tab", id: `tab-${view}`, "aria-controls": view,
      title: `${TABS[view]} (${place + 1})`, onclick: () => change({ view }, true) }, TABS[view]));
  });
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && !event.altKey) {
      const view = VIEWS[(VIEWS.indexOf(state.view) + step + VIEWS.length) % VIEWS.length];
      change({ view }, true);
      byId(`tab-${view}`).focus();
      event.preventDefault();
    }
  });
}

function setUp() {
  byId("title").textContent = shortText(app.profile.title, 200);
  document.title = `${shortText(app.profile.title, 100)} - etwprof`;
  app.counts = new Counts(app.profile);
  app.counts.count(0, app.profile.clock.cells, new Uint8Array(app.profile.threads.length).fill(1));
  makeTabs();
  for (const part of [summary, timeline, flame, topTable, callTree, callers, keys]) {
    part.setUp();
  }
  for (const id of ["summary", "timeline", "main"]) {
    byId(id).hidden = false;
  }
  byId("theme").addEventListener("click", nextTheme);
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
  const search = byId("search");
  search.addEventListener("input", () => change({ search: search.value }));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && app.matches) {
      keys.match(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      setSearch("");
      search.blur();
    }
  });
  window.addEventListener("popstate", restore);
  window.addEventListener("hashchange", restore);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme));
  let theme = "";
  try {
    theme = localStorage.getItem("etwprof-theme") || "";
  } catch {
    // As above.
  }
  setTheme(theme);
}

/** Shows what the address says. */
function restore() {
  stateFromHash(location.hash);
  findMatches();
  Object.assign(due, { recount: true, tree: true, tracks: true });
  schedule();
}

async function start() {
  const data = byId("data");
  app.profile = decode(await gunzip(fromBase64(data.textContent)));
  data.remove();
  setUp();
  restore();
  renderNow();
  window.__etwprof = inspect;
}

/** What tests look at. */
const inspect = {
  state,
  clock: () => app.profile.clock,
  totals: () => ({ samples: app.counts.totalSamples, value: app.counts.totalValue }),
  top: (sort, rows) => topTable.list(sort).slice(0, rows).map((name) => {
    const of = app.counts.byName;
    return { name: nameText(name), exclusive: of.ownSamples[name], inclusive: of.samples[name],
      exclusive_ns: of.ownValue[name] * 100, inclusive_ns: of.value[name] * 100 };
  }),
  lanes: () => app.profile.lanes.map(({ kind, process, thread, total }) => {
    const name = thread === null ? app.profile.processes[process] : app.profile.threads[thread].name;
    const [, id] = name.match(thread === null ? /\((\d+)\)$/ : /^thread (\d+)/);
    return { kind, ofThread: thread !== null, id: Number(id), ns: total * 100 };
  }),
  counters: () => app.profile.counters.map(({ process, name, unit, last, points }) =>
    ({ process: process === null ? null : app.profile.processes[process], name, unit, last, points: points.length })),
  found: () => app.matches && app.counts.totalOf(app.matches),
  boxes: () => flame.boxes.map(({ branch, thin, x, y, width }) =>
    ({ name: branch ? nameText(branch.name) : "", thin, samples: branch ? branch.samples : 0, x, y, width })),
  around: (text) => {
    const name = app.profile.names.text.indexOf(text);
    const rows = (upward) => new Branches(app.profile, app.counts, { upward, name });
    const below = (tree) => tree.children(tree.root).map((branch) => [nameText(branch.name), branch.samples]);
    return { callers: below(rows(true)), callees: below(rows(false)) };
  },
  hottest: (steps) => {
    let at = flame.tree.root;
    while (steps-- > 0) {
      at = flame.tree.children(at)[0] || at;
    }
    return at.path();
  },
  render: renderNow,
  change,
};

start().catch((error) => {
  const notice = byId("notice");
  notice.hidden = false;
  notice.textContent = typeof DecompressionStream === "undefined"
    ? "This browser is too old for the report: it needs Chrome or Edge 80, Firefox 113 or Safari 16.4, or a newer one."
    : `The report cannot be shown: ${error.message}`;
  throw error;
});
