"use strict";
// Keys that work everywhere, and the list of all of them.

const KEYS = [
  ["1 2 3 4", "flame graph, functions, call tree, callers and callees"],
  ["/", "search; Enter there goes to the next match"],
  ["n  N", "next and previous match in the flame graph"],
  ["i", "callees first, or callers first"],
  ["m", "merge recursion"],
  ["h", "fade all but the selected function"],
  ["0", "reset the zoom"],
  ["a", "all time and all threads"],
  ["t", "dark, light, or as the system"],
  ["Esc", "clear the search, then the selection"],
  ["Alt+Left", "back to the view before"],
  ["?", "this list"],
  ["", "In the flame graph"],
  ["Arrows", "to the greatest callee, the caller, the neighbours"],
  ["Enter", "zoom in"],
  ["Backspace", "zoom out one step"],
  ["c", "callers and callees of the function"],
  ["", "In tables and trees"],
  ["Arrows Page Home End", "move; Right and Left open and close"],
  ["*", "open the hottest way down"],
  ["o", "sort by the next column"],
  ["Enter", "select the function"],
  ["", "On the ends of the chosen time"],
  ["Arrows Page Home End", "move the end; with Shift in larger steps"],
];

const keys = {
  setUp() {
    const rows = KEYS.map(([key, text]) => (key
      ? make("tr", {}, make("th", { scope: "row" }, ...key.split(" ").filter(Boolean).flatMap((one) => [make("kbd", {}, one), " "])), make("td", {}, text))
      : make("tr", {}, make("th", { colspan: "2", class: "part" }, text))));
    const dialog = byId("keys");
    dialog.append(make("h2", { id: "keys-title" }, "Keys"), make("table", {}, ...rows),
      make("button", { type: "button", onclick: () => dialog.close() }, "Close"));
    byId("help").addEventListener("click", () => dialog.showModal());
    document.addEventListener("keydown", (event) => this.key(event));
  },

  key(event) {
    const target = event.target;
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || byId("keys").open) {
      return;
    }
    if (target.tagName === "INPUT" && target.type === "search") {
      return;
    }
    const view = VIEWS[Number(event.key) - 1];
    const actions = {
      "/": () => { byId("search").focus(); byId("search").select(); },
      n: () => app.matches && this.match(1),
      N: () => app.matches && this.match(-1),
      i: () => change({ inverted: !state.inverted, zoom: [] }, true),
      m: () => change({ merge: !state.merge, zoom: [] }, true),
      h: () => { app.highlight = !app.highlight; schedule(); },
      0: () => change({ zoom: [] }, true),
      a: () => change({ time: null, threads: null }),
      t: () => nextTheme(),
      Escape: () => (state.search ? setSearch("") : change({ name: ALL })),
      "?": () => byId("keys").showModal(),
    };
    if (view) {
      event.preventDefault();
      showView({ view });
    } else if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  },

  match(step) {
    if (state.view !== "flame") {
      showView({ view: "flame" });
    }
    flame.nextMatch(step);
  },
};
