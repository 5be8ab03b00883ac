"use strict";
// One function: who calls it, what it calls, and its source lines.

const callers = {
  setUp() {
    this.title = make("h2", { class: "function" });
    this.amount = make("p", { class: "status" });
    const half = (id, text) => make("div", { class: "half", id }, make("h3", {}, text));
    const [above, below] = [half("callers-above", "Callers"), half("callers-below", "Callees")];
    this.halves = make("div", { class: "halves" }, above, below);
    this.lines = make("div", { class: "lines" });
    byId("callers").append(this.title, this.amount, this.halves, this.lines);
    this.above = new CallRows(above, "Callers", true);
    this.below = new CallRows(below, "Callees");
  },

  render() {
    const { names, categories } = app.profile;
    const isNone = state.name === ALL;
    this.halves.hidden = isNone;
    this.lines.hidden = isNone;
    if (isNone) {
      this.title.textContent = "No function is selected";
      this.amount.textContent = "Select one in the flame graph, the table or the call tree.";
      return;
    }
    const of = app.counts.byName;
    const kind = names.category[state.name];
    this.title.replaceChildren(nameCell(state.name));
    const why = names.unnamed[state.name];
    this.amount.textContent = `Self ${amountText(of.ownValue[state.name], of.ownSamples[state.name])}; ` +
      `total ${amountText(of.value[state.name], of.samples[state.name])}; ${categories[kind].name}${why ? `, no name: ${why}` : ""}`;
    if (this.shown !== state.name) {
      this.above.open.clear();
      this.below.open.clear();
      this.shown = state.name;
    }
    const { merge } = state;
    this.above.show(new Branches(app.profile, app.counts, { upward: true, merge, name: state.name }));
    this.below.show(new Branches(app.profile, app.counts, { merge, name: state.name }));
    this.renderLines();
  },

  renderLines() {
    const rows = app.counts.linesOf(state.name);
    const known = rows.filter((row) => row.line);
    if (!known.length) {
      this.lines.replaceChildren(make("h3", {}, "Source lines"), make("p", { class: "status" }, "No source lines are known for this function."));
      return;
    }
    const head = ["Self", "", "Total", "", "Line"].map((text) => make("th", { scope: "col" }, text));
    const body = rows.slice(0, 200).map((row) => make("tr", {}, make("td", {}, valueText(row.ownValue)), make("td", {}, shareCell(row.ownValue)),
      make("td", {}, valueText(row.value)), make("td", {}, shareCell(row.value)),
      make("th", { scope: "row", title: row.file }, row.line ? `${shortText(row.file, 300)}:${row.line}` : "line unknown")));
    this.lines.replaceChildren(make("h3", {}, "Source lines"), make("div", { class: "sideways", tabindex: "0", role: "region",
      "aria-label": "Source lines" }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body))));
  },
};
