"use strict";
// Tables and trees of many rows, of which only those in sight are elements; and the table of functions.

const LINE = 24;

/**
 * Rows with a head, as a grid for screen readers.
 *
 * `columns`: `{ key, title, wide }`; `cells(row)`: for each column a text or element; `act(row)`: Enter or a click;
 * `sort(key)`: a click on a head, where rows can be sorted; `tree`: `{ level(row), open(row), leaf(row), toggle(row) }`.
 */
class Rows {
  constructor(host, options) {
    this.options = options;
    this.rows = [];
    this.at = 0;
    this.id = `${host.id || "rows"}-${Rows.made++}`;
    const role = options.tree ? "treegrid" : "grid";
    this.head = make("div", { class: "head row", role: "row" });
    this.inner = make("div", { class: "inner", role: "rowgroup" });
    this.body = make("div", { class: "body", role: "presentation" }, this.inner);
    this.grid = make("div", { class: "rows", role, tabindex: "0", "aria-label": options.label },
      make("div", { role: "rowgroup" }, this.head), this.body);
    host.append(this.grid);
    this.body.addEventListener("scroll", () => this.draw());
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.inner.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.body);
    this.drawHead();
  }

  /** Shows other rows. */
  show(rows) {
    this.rows = rows;
    this.at = Math.max(0, Math.min(this.at, rows.length - 1));
    this.grid.setAttribute("aria-rowcount", rows.length + 1);
    this.inner.style.height = `${rows.length * LINE}px`;
    this.drawHead();
    this.draw();
  }

  drawHead() {
    const { columns, sort, sorted } = this.options;
    this.head.replaceChildren(...columns.map(({ key, title, wide, hint }) => {
      const by = sorted && sorted() === key;
      const content = sort && key
        ? make("button", { type: "button", tabindex: "-1", title: hint || "", onclick: () => sort(key) }, by ? `${title} ▾` : title)
        : title;
      return make("span", { class: wide ? "wide" : "number", role: "columnheader", title: hint || null,
        "aria-sort": by ? (key === "name" ? "ascending" : "descending") : null }, content);
    }));
  }

  draw() {
    if (!this.body.clientHeight) {
      return;
    }
    const from = Math.max(0, Math.floor(this.body.scrollTop / LINE) - 5);
    const to = Math.min(this.rows.length, Math.ceil((this.body.scrollTop + this.body.clientHeight) / LINE) + 5);
    const drawn = [];
    for (let i = from; i < to; i++) {
      drawn.push(this.drawRow(i));
    }
    this.inner.replaceChildren(...drawn);
    const isThere = this.at >= from && this.at < to;
    this.grid.setAttribute("aria-activedescendant", isThere ? `${this.id}-${this.at}` : "");
  }

  drawRow(i) {
    const { columns, cells, tree, isMarked } = this.options;
    const row = this.rows[i];
    const contents = cells(row);
    const element = make("div", {
      class: `row${i === this.at ? " at" : ""}${isMarked && isMarked(row) ? " same" : ""}`,
      role: "row",
      id: `${this.id}-${i}`,
      "aria-rowindex": i + 2,
      "aria-selected": i === this.at ? "true" : "false",
      "aria-level": tree ? tree.level(row) + 1 : null,
      "aria-expanded": tree && !tree.leaf(row) ? String(tree.open(row)) : null,
      "data-row": i,
    }, ...columns.map(({ wide }, column) => {
      const cell = make("span", { class: wide ? "wide" : "number", role: "gridcell" });
      if (tree && wide) {
        // Trees may be deeper than any screen is wide.
        const indent = make("span", { class: "indent" });
        indent.style.width = `${Math.min(tree.level(row), 60) * 12}px`;
        cell.append(indent, make("span", { class: "twist", "aria-hidden": "true" },
          tree.leaf(row) ? "" : tree.open(row) ? "▾" : "▸"));
      }
      cell.append(contents[column]);
      return cell;
    }));
    element.style.top = `${i * LINE}px`;
    return element;
  }

  /** Makes a row the present one, in sight. */
  moveTo(i) {
    this.at = Math.max(0, Math.min(this.rows.length - 1, i));
    const y = this.at * LINE;
    const { scrollTop, clientHeight } = this.body;
    if (y < scrollTop) {
      this.body.scrollTop = y;
    } else if (y + LINE > scrollTop + clientHeight) {
      this.body.scrollTop = y + LINE - clientHeight;
    }
    this.draw();
  }

  click(event) {
    const element = event.target.closest("[data-row]");
    if (!element) {
      return;
    }
    this.grid.focus({ preventScroll: true });
    this.moveTo(Number(element.dataset.row));
    const row = this.rows[this.at];
    const { tree } = this.options;
    if (tree && event.target.closest(".twist, .indent") && !tree.leaf(row)) {
      tree.toggle(row);
    } else {
      this.options.act(row);
    }
  }

  key(event) {
    const row = this.rows[this.at];
    const { tree, act, sort, columns, sorted } = this.options;
    if (!row || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const page = Math.max(1, Math.floor(this.body.clientHeight / LINE) - 1);
    const moves = {
      ArrowDown: () => this.moveTo(this.at + 1),
      ArrowUp: () => this.moveTo(this.at - 1),
      PageDown: () => this.moveTo(this.at + page),
      PageUp: () => this.moveTo(this.at - page),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.rows.length - 1),
      Enter: () => act(row),
      c: () => change({ name: this.options.name(row), view: "callers" }, true),
    };
    if (tree) {
      moves.ArrowRight = () => (tree.leaf(row) ? 0 : tree.open(row) ? this.moveTo(this.at + 1) : tree.toggle(row));
      moves.ArrowLeft = () => {
        if (tree.open(row) && !tree.leaf(row)) {
          tree.toggle(row);
        } else {
          this.moveTo(this.rows.findLastIndex((other, i) => i < this.at && tree.level(other) < tree.level(row)));
        }
      };
      moves["*"] = () => tree.hottest(row);
    }
    if (sort) {
      const keys = columns.map((column) => column.key).filter(Boolean);
      moves.o = () => sort(keys[(keys.indexOf(sorted()) + 1) % keys.length]);
    }
    if (moves[event.key]) {
      event.preventDefault();
      moves[event.key]();
    }
  }
}
Rows.made = 0;

/** A name with its kind of code; the text that the search found is marked. */
function nameCell(name) {
  const { names, categories } = app.profile;
  const text = shortText(nameText(name), 2000);
  // Where there is little room, a row shows the method.
  const shown = window.innerWidth < 900 ? narrowName(text, Math.max(16, Math.floor(window.innerWidth / 7) - 34)) : text;
  const module = moduleText(shown);
  const cell = make("span", { class: "name", title: text });
  if (name !== ALL) {
    const kind = names.category[name];
    cell.append(swatch(kind), make("span", { class: "hidden" }, `${categories[kind].name}: `));
  }
  const label = make("span", { class: app.matches && name !== ALL && app.matches[name] ? "match" : "" });
  label.append(make("span", { class: "module" }, module), shown.slice(module.length));
  cell.append(label);
  return cell;
}

/** A share as text, with a bar behind it that is full at `most`. */
function shareCell(value, most = app.counts.totalValue) {
  const { totalValue } = app.counts;
  const bar = make("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${Math.min(100, Math.abs((100 * value) / (most || 1)))}%`;
  return make("span", { class: "share" }, bar, make("span", {}, shareText(value, totalValue)));
}

/** The functions by their own time, or by all of it. */
const topTable = {
  setUp() {
    this.note = make("p", { class: "status" });
    byId("top").append(this.note);
    this.rows = new Rows(byId("top"), {
      label: "Functions",
      columns: [
        { key: "ownValue", title: "Self", hint: "Time in the function itself" },
        { title: "", hint: "Share of the chosen samples" },
        { key: "value", title: "Total", hint: "Time in the function and what it calls" },
        { title: "", hint: "Share of the chosen samples" },
        { key: "ownSamples", title: "Samples", hint: "Samples that end in the function" },
        { key: "name", title: "Function", wide: true },
      ],
      cells: (name) => {
        const of = app.counts.byName;
        return [valueText(of.ownValue[name]), shareCell(of.ownValue[name], this.mostOwn), valueText(of.value[name]),
          shareCell(of.value[name]), countText(of.ownSamples[name]), nameCell(name)];
      },
      name: (name) => name,
      act: (name) => change({ name, view: "callers" }, true),
      isMarked: (name) => name === state.name,
      sort: (key) => change({ sort: key }),
      sorted: () => state.sort,
    });
  },

  /** The names with samples, sorted; with a search only those that it finds. */
  list(sort) {
    const { names } = app.profile;
    const of = app.counts.byName;
    const list = [];
    for (let name = 0; name < names.text.length; name++) {
      if (of.samples[name] !== 0 && (!app.matches || app.matches[name])) {
        list.push(name);
      }
    }
    const byText = (a, b) => (names.text[a] < names.text[b] ? -1 : names.text[a] > names.text[b] ? 1 : 0);
    const column = of[sort];
    // Of equals, the other count decides, and then the name.
    const other = of[{ ownValue: "value", value: "ownValue", ownSamples: "samples", samples: "ownSamples" }[sort]];
    return list.sort(column ? (a, b) => column[b] - column[a] || other[b] - other[a] || byText(a, b) : byText);
  },

  render() {
    const list = this.list(state.sort);
    this.mostOwn = list.reduce((most, name) => Math.max(most, app.counts.byName.ownValue[name]), 0);
    this.rows.show(list);
    this.note.textContent = `${countText(list.length)} functions${app.matches ? " found" : ""}. ` +
      "Enter or a click shows callers and callees; O sorts by the next column.";
  },
};
