"use strict";
// CPU use over time, of all processes, of each and of each thread. A range of time chosen here, and rows that are left out,
// choose the samples of every view.

const BINS = 300;
/** What is drawn above the CPU use of processes and of threads, and how it is called. */
const LANES = [
  { kind: "gc", name: "paused for collections" },
  { kind: "ready", name: "ready, without a processor" },
  { kind: "blocked", name: "blocked" },
];
/** How high each is. */
const LANE = 4;
/** Rows that are shown at first, and with every push of the button. */
const SOME = 100;

const timeline = {
  open: new Set(),
  shown: SOME,
  drag: null,

  setUp() {
    const { threads, processes } = app.profile;
    this.count();
    const heading = make("h2", {}, "CPU use over time");
    this.note = make("p", { class: "status" });
    this.reset = make("button", { type: "button", onclick: () => change({ time: null, threads: null }) }, "All time, all threads");
    this.list = make("div", { class: "tracks" });
    this.handles = ["from", "to"].map((which) => make("div", { class: "handle", tabindex: "0", role: "slider",
      "aria-label": which === "from" ? "Begin of the chosen time" : "End of the chosen time", "aria-orientation": "horizontal",
      onkeydown: (event) => this.key(event, which) }));
    this.band = make("div", { class: "band", "aria-hidden": "true" });
    this.overlay = make("div", { class: "overlay" }, this.band, ...this.handles);
    this.axis = make("div", { class: "axis", "aria-hidden": "true" });
    this.more = make("button", { type: "button", onclick: () => { this.shown += SOME; this.render(); } });
    const tracks = make("div", { class: "scroller" }, this.list, this.overlay);
    byId("timeline").append(make("div", { class: "options" }, heading, this.reset, this.note, this.legend()), tracks, this.axis, this.more);
    this.list.addEventListener("pointerdown", (event) => this.press(event));
    this.list.addEventListener("pointermove", (event) => this.move(event));
    this.list.addEventListener("pointerup", (event) => this.release(event));
    this.list.addEventListener("dblclick", (event) => event.target.tagName === "CANVAS" && change({ time: null }));
    new ResizeObserver(() => this.draw()).observe(this.list);
    if (processes.length === 1 && threads.length > 1) {
      this.open.add(0);
    }
  },

  /** What the lanes mean that there are. */
  legend() {
    const { lanes } = app.profile;
    const there = LANES.filter(({ kind }) => lanes.some((lane) => lane.kind === kind));
    const item = ({ kind, name }) => {
      const swatch = make("span", { class: "swatch" });
      swatch.style.background = `var(--${kind})`;
      return make("li", {}, swatch, name);
    };
    return make("ul", { class: "lanes", "aria-label": "Above the CPU use" }, ...there.map(item));
  },

  /** The kinds of lanes that rows like this one have on this page, from the top. */
  kindsOf(row) {
    const { lanes } = app.profile;
    const ofThread = (lane) => lane.thread !== null;
    return LANES.map(({ kind }) => kind).filter((kind) => lanes.some((lane) => lane.kind === kind && ofThread(lane) === Boolean(row.isThread)));
  },

  /** The lanes of a row: of a process its pauses, of a thread its waits. */
  lanesOf(row) {
    const isOf = (lane) => (row.isThread ? lane.thread === row.threads[0] : lane.thread === null && lane.process === row.process);
    return app.profile.lanes.filter(isOf);
  },

  /** Adds up what the scales and the order of rows need, once. */
  count() {
    const { threads, processes, clock } = app.profile;
    this.used = Math.min(BINS, clock.cells);
    this.ofProcess = processes.map(() => []);
    threads.forEach((thread, t) => this.ofProcess[thread.process].push(t));
    this.mostOfProcess = this.ofProcess.reduce((most, of) => Math.max(most, greatest(this.binsOf(of).bins)), 0);
    this.known = new Map();
  },

  /** The samples of some threads over time. */
  binsOf(threads) {
    const { records, clock } = app.profile;
    const bins = new Float64Array(this.used);
    let total = 0;
    for (const t of threads) {
      for (let i = records.first[t]; i < records.first[t + 1]; i++) {
        bins[Math.floor((records.cell[i] * this.used) / clock.cells)] += records.value[i];
        total += records.value[i];
      }
    }
    return { bins, total };
  },

  /** The same for a row, which is drawn often. */
  counted(row) {
    if (!this.known.has(row.key)) {
      this.known.set(row.key, this.binsOf(row.threads || app.profile.threads.map((_, t) => t)));
    }
    const { bins, total } = this.known.get(row.key);
    return { ...row, bins, total, lanes: this.lanesOf(row), most: row.threads ? this.mostOfProcess : greatest(bins) };
  },

  /** The rows: all, processes, and the threads of those that are open. */
  tracks() {
    const { threads, processes } = app.profile;
    const rows = [{ key: "all", name: "All processes", threads: null }, ...this.countersOf(null)];
    processes.forEach((name, process) => {
      rows.push({ key: `process ${process}`, name, process, threads: this.ofProcess[process] });
      if (this.open.has(process)) {
        rows.push(...this.countersOf(process));
        for (const t of this.ofProcess[process]) {
          rows.push({ key: `thread ${t}`, name: threads[t].name, isThread: true, threads: [t] });
        }
      }
    });
    return rows;
  },

  /** The rows of the counters of a process, or of the machine. */
  countersOf(process) {
    return app.profile.counters.flatMap((counter, i) => (counter.process === process ? [{ key: `counter ${i}`, counter }] : []));
  },

  render() {
    const focused = document.activeElement && document.activeElement.dataset.key;
    const rows = this.tracks();
    this.rows = rows.slice(0, this.shown).map((row) => (row.counter ? row : this.counted(row)));
    this.more.hidden = rows.length <= this.shown;
    this.more.textContent = `Show more of ${countText(rows.length - this.shown)} other rows`;
    this.list.replaceChildren(...this.rows.map((row) => this.track(row)));
    this.reset.disabled = !state.time && !state.threads;
    this.draw();
    const again = focused && [...this.list.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused);
    if (again) {
      again.focus({ preventScroll: true });
    }
  },

  /** The label and the line of a counter. */
  counterTrack(row) {
    const { name, unit, least, most, last, process } = row.counter;
    const number = (value) => `${value.toLocaleString("en-US", { maximumSignificantDigits: 4 })}${unit ? ` ${unit}` : ""}`;
    const range = `${number(least)} to ${number(most)}`;
    const label = make("div", { class: `who counter${process === null ? "" : " thread"}`, title: `${name}: ${range}` },
      make("span", { class: "only" }, shortText(name, 300)), make("span", { class: "amount" }, number(last)));
    row.canvas = make("canvas", { role: "img", "aria-label": `${shortText(name, 200)}: ${range}, at last ${number(last)}` });
    row.canvas.title = range;
    return make("div", { class: "track" }, label, row.canvas);
  },

  track(row) {
    if (row.counter) {
      return this.counterTrack(row);
    }
    const label = make("div", { class: `who${row.isThread ? " thread" : ""}` });
    if (row.threads) {
      const chosen = row.threads.filter((t) => !state.threads || state.threads.has(t)).length;
      const box = make("input", { type: "checkbox", "aria-label": `Count ${shortText(row.name, 200)}`,
        "data-key": `box ${row.key}`, onchange: () => this.choose(row.threads, box.checked) });
      box.checked = chosen > 0;
      box.indeterminate = chosen > 0 && chosen < row.threads.length;
      label.append(box);
    }
    const only = row.threads
      ? make("button", { type: "button", class: "only", title: "Only this", "data-key": `only ${row.key}`,
        onclick: () => change({ threads: new Set(row.threads) }) }, shortText(row.name, 300))
      : make("b", {}, row.name);
    if (row.process !== undefined && (row.threads.length > 1 || this.countersOf(row.process).length)) {
      const isOpen = this.open.has(row.process);
      label.append(make("button", { type: "button", class: "twist", "aria-expanded": String(isOpen), "data-key": `open ${row.key}`,
        "aria-label": `Threads and counters of ${shortText(row.name, 200)}`, onclick: () => this.toggle(row.process) }, isOpen ? "▾" : "▸"));
    } else if (row.process !== undefined) {
      label.append(make("span", { class: "twist" }));
    }
    only.title = `${row.name.slice(0, 1000)}${row.threads ? ": click for only this" : ""}`;
    label.append(only, make("span", { class: "amount" }, `${valueText(row.total)}  ${shareText(row.total, app.profile.total)}`));
    const canvas = make("canvas", { role: "img", "aria-label":
      `${shortText(row.name, 200)}: ${valueText(row.total)} over time, at most ${this.coresText(row)}${this.lanesText(row)}` });
    canvas.title = this.lanesText(row).replace(/^, /, "");
    row.canvas = canvas;
    return make("div", { class: "track" }, label, canvas);
  },

  /** `, 29.0 ms paused for collections`. */
  lanesText(row) {
    return LANES.flatMap(({ kind, name }) => row.lanes.filter((lane) => lane.kind === kind)
      .map((lane) => `, ${timeText(lane.total)} ${name}`)).join("");
  },

  coresText(row) {
    const bin = app.profile.clock.length / this.used;
    return `${(greatest(row.bins) / bin).toFixed(1)} processors`;
  },

  toggle(process) {
    if (!this.open.delete(process)) {
      this.open.add(process);
    }
    this.render();
  },

  choose(threads, wanted) {
    const all = app.profile.threads.map((_, t) => t);
    const chosen = new Set(state.threads || all);
    threads.forEach((t) => (wanted ? chosen.add(t) : chosen.delete(t)));
    change({ threads: chosen.size === all.length ? null : chosen });
  },

  draw() {
    if (!this.rows || !this.rows[0].canvas.clientWidth) {
      return;
    }
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const [busy, idle] = ["--busy", "--off"].map(colour);
    const ratio = window.devicePixelRatio || 1;
    for (const row of this.rows) {
      const { canvas } = row;
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      const paint = canvas.getContext("2d");
      paint.scale(ratio, ratio);
      if (row.counter) {
        this.drawCounter(paint, row.counter, width, height, colour("--counter"));
        continue;
      }
      const isOn = !row.threads || !state.threads || row.threads.some((t) => state.threads.has(t));
      paint.fillStyle = isOn ? busy : idle;
      const step = width / row.bins.length;
      const room = height - 2 - LANE * this.kindsOf(row).length;
      for (let bin = 0; bin < row.bins.length; bin++) {
        const part = row.bins[bin] / (row.most || 1);
        if (part > 0) {
          const tall = Math.max(1, part * room);
          paint.fillRect(bin * step, height - tall, Math.max(step - (step > 3 ? 0.5 : 0), 0.6), tall);
        }
      }
      this.drawLanes(paint, row, width, colour);
    }
    this.drawBand();
    this.drawAxis();
  },

  /** A value holds until the next one comes; the height is from zero, or from the least below it, to the greatest. */
  drawCounter(paint, { points, least, most }, width, height, colour) {
    const { length } = app.profile.clock;
    const low = Math.min(0, least);
    const x = (at) => (at / (length || 1)) * width;
    const y = (value) => height - 2 - ((value - low) / (Math.max(most, 0) - low || 1)) * (height - 4);
    paint.beginPath();
    points.forEach(([at, value], i) => {
      paint.lineTo(x(at), y(i ? points[i - 1][1] : value));
      paint.lineTo(x(at), y(value));
    });
    paint.lineTo(width, y(points[points.length - 1][1]));
    paint.strokeStyle = colour;
    paint.lineWidth = 1.5;
    paint.stroke();
  },

  /** What fills a part of the time is drawn solid, and what takes little of it pale. */
  drawLanes(paint, row, width, colour) {
    this.kindsOf(row).forEach((kind, line) => {
      for (const { parts } of row.lanes.filter((lane) => lane.kind === kind)) {
        const step = width / parts.length;
        paint.fillStyle = colour(`--${kind}`);
        parts.forEach((part, i) => {
          if (part > 0) {
            paint.globalAlpha = 0.3 + (0.7 * Math.min(part, 1000)) / 1000;
            paint.fillRect(i * step, line * LANE, Math.max(step, 1), LANE - 1);
          }
        });
      }
    });
    paint.globalAlpha = 1;
  },

  /** Where the canvases are within the list. */
  area() {
    const list = this.list.getBoundingClientRect();
    const canvas = this.rows[0].canvas.getBoundingClientRect();
    return { left: canvas.left - list.left, width: canvas.width, clientLeft: canvas.left };
  },

  drawBand() {
    const { cells } = app.profile.clock;
    const [from, to] = state.time || [0, cells];
    const { left, width } = this.area();
    const x = (cell) => left + (cell / cells) * width;
    this.overlay.style.height = `${this.list.offsetHeight}px`;
    this.band.style.left = `${x(from)}px`;
    this.band.style.width = `${Math.max(1, x(to) - x(from))}px`;
    this.band.hidden = !state.time;
    [from, to].forEach((cell, i) => {
      const handle = this.handles[i];
      handle.style.left = `${x(cell)}px`;
      handle.setAttribute("aria-valuemin", 0);
      handle.setAttribute("aria-valuemax", cells);
      handle.setAttribute("aria-valuenow", cell);
      handle.setAttribute("aria-valuetext", momentText(cell));
    });
    this.note.textContent = state.time
      ? `${momentText(from)} to ${momentText(to)}: ${timeText((to - from) * app.profile.clock.cell)} chosen`
      : "Drag over it to choose a time; double-click takes it back.";
  },

  drawAxis() {
    const { left, width } = this.area();
    const { cells } = app.profile.clock;
    const count = Math.max(2, Math.min(10, Math.floor(width / 90)));
    this.axis.replaceChildren(...Array.from({ length: count + 1 }, (_, i) => {
      const tick = make("span", {}, momentText((cells * i) / count));
      tick.style.left = `${left + (width * i) / count}px`;
      return tick;
    }));
  },

  cellAt(event) {
    const { clientLeft, width } = this.area();
    const { cells } = app.profile.clock;
    return Math.max(0, Math.min(cells, Math.round(((event.clientX - clientLeft) / width) * cells)));
  },

  press(event) {
    if (event.target.tagName === "CANVAS" && event.button === 0) {
      this.drag = this.cellAt(event);
      // Keys are no longer for the search.
      document.activeElement.blur();
      this.list.setPointerCapture(event.pointerId);
      event.preventDefault();
    }
  },

  move(event) {
    if (this.drag === null) {
      return;
    }
    const cell = this.cellAt(event);
    if (cell !== this.drag) {
      change({ time: [Math.min(cell, this.drag), Math.max(cell, this.drag)] });
    }
  },

  release(event) {
    if (this.drag !== null) {
      this.move(event);
      this.drag = null;
    }
  },

  key(event, which) {
    const { cells } = app.profile.clock;
    const step = Math.max(1, Math.round(cells / (event.shiftKey ? 20 : 200)));
    const moves = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, PageDown: -10 * step,
      PageUp: 10 * step, Home: -cells, End: cells };
    const move = moves[event.key];
    if (move === undefined || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    event.preventDefault();
    let [from, to] = state.time || [0, cells];
    if (which === "from") {
      from = Math.max(0, Math.min(to - 1, from + move));
    } else {
      to = Math.min(cells, Math.max(from + 1, to + move));
    }
    change({ time: from === 0 && to === cells ? null : [from, to] });
  },
};

function greatest(numbers) {
  return numbers.reduce((most, number) => Math.max(most, number), 0);
}
