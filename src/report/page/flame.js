"use strict";
// The flame graph: one canvas as large as its window, on which only what is in sight is drawn.

const ROW = 20;
/** Boxes narrower than this, in pixels, are drawn together. */
const THIN = 0.5;

const flame = {
  /** The branches that are drawn, made anew when samples are chosen anew. */
  tree: null,
  /** The branch that has the whole width. */
  root: null,
  /** What is drawn: a branch, or several that are too thin (`thin`), and where. */
  boxes: [],
  /** The branch that the keyboard is at. */
  cursor: null,
  hovered: null,
  colours: [],

  setUp() {
    const options = make("div", { class: "options" });
    const toggle = (id, key, text, title) => {
      const box = make("input", { type: "checkbox", id, onchange: () => change({ [key]: box.checked, zoom: [] }, true) });
      options.append(make("label", { title }, box, ` ${text}`));
      this[id] = box;
    };
    toggle("flame-inverted", "inverted", "Callees first", "Functions by their own time, with their callers below (i)");
    toggle("flame-merge", "merge", "Merge recursion", "Show a function that calls itself once (m)");
    this.fade = make("input", { type: "checkbox", onchange: () => { app.highlight = this.fade.checked; schedule(); } });
    options.append(make("label", { title: "Fade all but the selected function (h)" }, this.fade, " Only the selected"));
    this.reset = make("button", { type: "button", onclick: () => change({ zoom: [] }, true) }, "Reset zoom");
    this.legend = make("ul", { class: "legend", "aria-label": "Kinds of code by colour" });
    options.append(this.reset, this.legend);
    this.path = make("nav", { class: "path", "aria-label": "Zoom" });
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.mark = make("div", { class: "mark", hidden: true });
    this.spacer = make("div", { class: "spacer" });
    this.window = make("div", {
      class: "window",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "flame graph",
      "aria-label": "Flame graph. Arrow keys move, Enter zooms in, Backspace zooms out, C shows callers and callees.",
    }, make("div", { class: "stage" }, this.canvas, this.mark), this.spacer);
    this.status = make("p", { class: "status" });
    byId("flame").append(options, this.path, this.window, this.status);
    this.window.addEventListener("scroll", () => this.draw());
    this.window.addEventListener("mousemove", (event) => this.hover(event));
    this.window.addEventListener("mouseleave", () => this.leave());
    this.window.addEventListener("click", (event) => this.click(event));
    this.window.addEventListener("dblclick", () => state.zoom.length && change({ zoom: [] }, true));
    this.window.addEventListener("keydown", (event) => this.key(event));
    this.window.addEventListener("focus", () => this.moveTo(this.cursor || this.root, false));
    this.window.addEventListener("blur", () => this.showMark(null));
    new ResizeObserver(() => this.draw()).observe(this.window);
  },

  /** A colour for each name: that of its kind, a little lighter or darker, so that neighbours can be told apart. */
  makeColours(isDark) {
    const { names, categories } = app.profile;
    const [least, range] = isDark ? [0.82, 0.18] : [0.93, 0.14];
    this.colours = names.text.map((text, name) => {
      let hash = 0;
      for (let i = 0; i < Math.min(text.length, 200); i++) {
        hash = (hash * 31 + text.charCodeAt(i)) | 0;
      }
      const shade = least + (((hash >>> 8) % 100) * range) / 100;
      const colour = categories[names.category[name]].colours[isDark ? 1 : 0];
      const part = (at) => Math.min(255, Math.round(parseInt(colour.slice(at, at + 2), 16) * shade));
      return `rgb(${part(1)},${part(3)},${part(5)})`;
    });
  },

  /** Makes the tree anew: other samples, or another way to look at them. */
  recount() {
    this.tree = new Branches(app.profile, app.counts, { upward: state.inverted, merge: state.merge });
    this.cursor = null;
    this.hovered = null;
  },

  render() {
    this["flame-inverted"].checked = state.inverted;
    this["flame-merge"].checked = state.merge;
    this.fade.checked = app.highlight;
    this.root = this.tree.find(state.zoom);
    this.reset.disabled = state.zoom.length === 0;
    if (this.cursor && this.tree.find(this.cursor.path()) !== this.cursor) {
      this.cursor = null;
    }
    this.renderPath();
    this.renderLegend();
    this.draw();
  },

  renderPath() {
    const crumbs = [];
    for (let branch = this.root; branch; branch = branch.parent) {
      crumbs.push(branch);
    }
    // The middle of a long way goes without saying.
    const shown = crumbs.length > 6 ? [...crumbs.slice(0, 4), null, crumbs[crumbs.length - 1]] : crumbs;
    this.path.hidden = crumbs.length < 2;
    this.path.replaceChildren(...shown.reverse().map((branch) => {
      if (!branch) {
        return make("span", {}, "…");
      }
      const zoom = () => change({ zoom: branch.path() }, true);
      return make("button", { type: "button", title: nameText(branch.name).slice(0, 2000), onclick: zoom },
        shortText(nameText(branch.name), 48));
    }));
  },

  renderLegend() {
    const value = app.counts.byCategory();
    const kinds = value.map((_, kind) => kind).filter((kind) => value[kind] > 0).sort((a, b) => value[b] - value[a]);
    this.legend.replaceChildren(...kinds.map((kind) => make("li", {}, swatch(kind),
      `${app.profile.categories[kind].name} ${shareText(value[kind], app.counts.totalValue)}`)));
  },

  draw() {
    if (!this.root || byId("flame").hidden) {
      return;
    }
    const width = this.window.clientWidth;
    const height = this.window.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    const { canvas } = this;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const paint = canvas.getContext("2d", { alpha: false });
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    paint.fillStyle = colour("--panel");
    paint.fillRect(0, 0, width, height);
    paint.textBaseline = "middle";
    paint.font = `12px ${style.getPropertyValue("font-family")}`;
    this.paint = paint;
    this.theme = { thin: colour("--thin"), dim: colour("--dim-box"), match: colour("--match"), line: colour("--text"),
      heading: colour("--heading-box"), text: colour("--text"), boxText: colour("--box-text") };
    this.boxes = [];
    this.deepest = 0;
    const top = this.window.scrollTop;
    for (let branch = this.root.parent; branch; branch = branch.parent) {
      this.box(branch, 0, width, top, true);
    }
    this.drawBelow(width, top, top + height);
    this.spacer.style.height = `${(this.deepest + 2) * ROW}px`;
    this.showMark(document.activeElement === this.window ? this.cursor : null);
  },

  /** Draws the branch in the whole width, and what is below it. */
  drawBelow(width, top, bottom) {
    const scale = width / (Math.abs(this.root.value) || 1);
    const next = [[this.root, 0]];
    while (next.length) {
      const [branch, x] = next.pop();
      const y = branch.depth * ROW;
      if (y + ROW > top) {
        this.box(branch, x, branch.value * scale, top, false);
      }
      this.deepest = Math.max(this.deepest, branch.depth);
      // What is below the window is only looked into so far that the window can be scrolled.
      if (y > bottom) {
        continue;
      }
      let at = x;
      const children = this.tree.children(branch);
      for (let i = 0; i < children.length; i++) {
        const child = children[i];
        if (child.value * scale < THIN) {
          this.thin(children, i, at, scale, top);
          break;
        }
        next.push([child, at]);
        at += child.value * scale;
      }
    }
  },

  /** One box with its name. */
  box(branch, x, width, top, isAbove) {
    const { paint, theme } = this;
    const y = branch.depth * ROW - top;
    this.boxes.push({ branch, x, y: y + top, width });
    const isAll = branch.name === ALL;
    const matches = app.matches;
    const isMatch = matches && !isAll && matches[branch.name];
    const isSame = !isAll && branch.name === state.name;
    const isDim = (matches && !isMatch) || (!matches && state.name !== ALL && !isSame && app.highlight);
    paint.fillStyle = isAll ? theme.heading : isMatch ? theme.match : isDim ? theme.dim : this.colours[branch.name];
    paint.globalAlpha = isAbove && !isMatch ? 0.55 : 1;
    const inner = width > 3 ? width - 1 : Math.max(width, 0.75);
    paint.fillRect(x, y, inner, ROW - 1);
    paint.globalAlpha = 1;
    if (isSame && width > 2) {
      paint.strokeStyle = theme.line;
      paint.lineWidth = 2;
      paint.strokeRect(x + 1, y + 1, inner - 2, ROW - 3);
    }
    if (width > 30) {
      paint.fillStyle = isMatch ? "#111" : isAll || isDim ? theme.text : theme.boxText;
      this.label(branch.name, x + 4, y + ROW / 2, width - 9);
    }
  },

  /** As much of a name as there is room for: rather the method than its module. */
  label(name, x, y, room) {
    const { paint } = this;
    const full = nameText(name);
    const fits = (text) => text.length < 400 && paint.measureText(text).width <= room;
    let text = full;
    for (let columns = Math.min(full.length, Math.floor(room / 4)); !fits(text); columns = Math.min(columns, text.length) - 1) {
      text = columns < 3 ? "" : narrowName(full.slice(0, 2000), columns);
    }
    if (text) {
      paint.fillText(text, x, y);
    }
  },

  /** What is too thin to be drawn by itself, as one. */
  thin(children, from, x, scale, top) {
    let value = 0;
    for (let i = from; i < children.length; i++) {
      value += children[i].value;
    }
    const y = children[from].depth * ROW;
    const width = value * scale;
    if (width < 0.2 || y + ROW < top) {
      return;
    }
    this.paint.fillStyle = this.theme.thin;
    this.paint.fillRect(x, y - top, width, ROW - 1);
    this.boxes.push({ branch: null, thin: children.length - from, value, x, y, width });
  },

  boxAt(event) {
    const area = this.window.getBoundingClientRect();
    const x = event.clientX - area.left - this.window.clientLeft;
    const y = event.clientY - area.top - this.window.clientTop + this.window.scrollTop;
    return this.boxes.find((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + ROW);
  },

  hover(event) {
    const box = this.boxAt(event);
    const tip = byId("tip");
    tip.hidden = !box;
    this.window.style.cursor = box && box.branch ? "pointer" : "default";
    if (!box) {
      return;
    }
    if (this.hovered !== box) {
      this.hovered = box;
      tip.replaceChildren(...this.describe(box));
    }
    const right = event.clientX + 16 + tip.offsetWidth > window.innerWidth;
    tip.style.left = `${Math.max(4, right ? event.clientX - tip.offsetWidth - 12 : event.clientX + 14)}px`;
    const below = event.clientY + 18 + tip.offsetHeight > window.innerHeight;
    tip.style.top = `${Math.max(4, below ? event.clientY - tip.offsetHeight - 12 : event.clientY + 16)}px`;
  },

  leave() {
    byId("tip").hidden = true;
    this.hovered = null;
  },

  describe(box) {
    if (!box.branch) {
      return [make("b", {}, `${countText(box.thin)} functions, each too thin to draw`), make("br"),
        amountText(box.value, null)];
    }
    const { branch } = box;
    const lines = [make("b", {}, shortText(nameText(branch.name), 600)), make("br"),
      `${amountText(branch.value, branch.samples)}`];
    if (branch.name !== ALL) {
      const { names, categories } = app.profile;
      if (!state.inverted) {
        lines.push(make("br"), `itself ${amountText(branch.ownValue, branch.ownSamples)}`);
      }
      lines.push(make("br"), swatch(names.category[branch.name]), categories[names.category[branch.name]].name);
      if (names.unnamed[branch.name]) {
        lines.push(`, no name: ${names.unnamed[branch.name]}`);
      }
    }
    return lines;
  },

  click(event) {
    const box = this.boxAt(event);
    if (box && box.branch) {
      this.cursor = box.branch;
      select(box.branch.name, box.branch.path());
    }
  },

  showMark(branch) {
    const box = branch && this.boxes.find((candidate) => candidate.branch === branch);
    this.mark.hidden = !box;
    if (box) {
      this.mark.style.left = `${box.x}px`;
      this.mark.style.top = `${box.y - this.window.scrollTop}px`;
      this.mark.style.width = `${Math.max(2, box.width - 1)}px`;
    }
  },

  /** Moves the keyboard's place, and says what is there. */
  moveTo(branch, isLoud = true) {
    if (!branch) {
      return;
    }
    this.cursor = branch;
    const y = branch.depth * ROW;
    const { scrollTop, clientHeight } = this.window;
    if (y < scrollTop || y + 2 * ROW > scrollTop + clientHeight) {
      this.window.scrollTop = Math.max(0, y - clientHeight / 2);
    }
    this.draw();
    this.status.replaceChildren(make("b", {}, shortText(nameText(branch.name), 300)),
      ` ${amountText(branch.value, branch.samples)}`);
    if (isLoud) {
      announce(`${shortText(nameText(branch.name), 300)}, ${amountText(branch.value, branch.samples)}, depth ${branch.depth}`);
    }
  },

  /** The branches that are drawn, in their order from the left, of one depth. */
  rowOf(depth) {
    return this.boxes.filter((box) => box.branch && box.branch.depth === depth).sort((a, b) => a.x - b.x);
  },

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const at = this.cursor || this.root;
    const beside = (step) => {
      const row = this.rowOf(at.depth);
      const place = row.findIndex((box) => box.branch === at);
      return (row[place + step] || {}).branch;
    };
    const moves = {
      ArrowDown: () => this.moveTo(this.tree.children(at)[0]),
      ArrowUp: () => this.moveTo(at.parent),
      ArrowLeft: () => this.moveTo(beside(-1)),
      ArrowRight: () => this.moveTo(beside(1)),
      Home: () => this.moveTo(this.root),
      Enter: () => select(at.name, at.path()),
      Backspace: () => state.zoom.length && change({ zoom: state.zoom.slice(0, -1) }, true),
      c: () => at.name !== ALL && change({ name: at.name, view: "callers" }, true),
    };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      move();
    }
  },

  /** The next box in sight whose name matches the search, or the one before. */
  nextMatch(step) {
    const boxes = this.boxes.filter((box) => box.branch && box.branch.name !== ALL && app.matches[box.branch.name]);
    boxes.sort((a, b) => a.y - b.y || a.x - b.x);
    if (boxes.length) {
      const place = boxes.findIndex((box) => box.branch === this.cursor);
      const next = place < 0 && step < 0 ? boxes.length - 1 : (place + step + boxes.length) % boxes.length;
      this.window.focus();
      this.moveTo(boxes[next].branch);
    }
  },
};

/** A time with its share, and the number of samples. */
function amountText(value, samples) {
  const share = `${valueText(value)} (${shareText(value, app.counts.totalValue)})`;
  return samples === null ? share : `${share}, ${countText(samples)} samples`;
}
