"use strict";
// What is looked at, kept in the address so that a view can be linked and the back button works.

const VIEWS = ["flame", "top", "calls", "callers"];

const state = {
  view: "flame",
  // Cells from and to (without the last); null for all.
  time: null,
  // Numbers of threads; null for all.
  threads: null,
  search: "",
  // Names from the root on.
  zoom: [],
  // The selected function; ALL for none.
  name: ALL,
  inverted: false,
  merge: false,
  sort: "ownValue",
};

/** The state as the part of the address behind the `#`. */
function stateToHash() {
  const parts = [];
  const add = (key, value) => parts.push(`${key}=${encodeURIComponent(value)}`);
  if (state.view !== "flame") add("view", state.view);
  if (state.time) add("time", state.time.join("-"));
  if (state.threads) add("threads", ranges(state.threads));
  if (state.search) add("search", state.search);
  if (state.zoom.length) add("zoom", state.zoom.join("."));
  if (state.name !== ALL) add("name", state.name);
  if (state.inverted !== app.profile.inverted) add("inverted", state.inverted ? 1 : 0);
  if (state.merge) add("merge", 1);
  if (state.sort !== "ownValue") add("sort", state.sort);
  return parts.join("&");
}

/** The state of an address; what it does not say, or says of another profile, is as at first. */
function stateFromHash(hash) {
  const { clock, names, threads, inverted } = app.profile;
  const parts = new Map();
  for (const part of hash.replace(/^#/, "").split("&")) {
    const mark = part.indexOf("=");
    if (mark > 0) {
      try {
        parts.set(part.slice(0, mark), decodeURIComponent(part.slice(mark + 1)));
      } catch {
        // Not what this page writes.
      }
    }
  }
  const isName = (name) => Number.isInteger(name) && name >= 0 && name < names.text.length;
  state.view = VIEWS.includes(parts.get("view")) ? parts.get("view") : "flame";
  const [from, to] = (parts.get("time") || "").split("-").map(Number);
  state.time = from >= 0 && to > from && to <= clock.cells ? [from, to] : null;
  const wanted = parts.has("threads") ? fromRanges(parts.get("threads"), threads.length) : null;
  state.threads = wanted && wanted.size < threads.length ? wanted : null;
  state.search = parts.get("search") || "";
  const zoom = (parts.get("zoom") || "").split(".").filter((part) => part !== "").map(Number);
  state.zoom = zoom.every(isName) ? zoom : [];
  const name = parts.has("name") ? Number(parts.get("name")) : ALL;
  state.name = isName(name) ? name : ALL;
  state.inverted = parts.has("inverted") ? parts.get("inverted") === "1" : inverted;
  state.merge = parts.get("merge") === "1";
  state.sort = ["name", "value", "samples", "ownSamples"].includes(parts.get("sort")) ? parts.get("sort") : "ownValue";
}

/** Writes the state into the address; as a step that the back button takes back, if `step`. */
function writeHash(step) {
  const hash = `#${stateToHash()}`;
  if (hash === (location.hash || "#")) {
    return;
  }
  try {
    history[step ? "pushState" : "replaceState"](null, "", hash);
  } catch {
    // Browsers limit how often; the next change writes it.
  }
}

/** `0-3,7` for 0, 1, 2, 3 and 7. */
function ranges(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const texts = [];
  for (let i = 0; i < sorted.length; ) {
    let last = i;
    while (sorted[last + 1] === sorted[last] + 1) {
      last++;
    }
    texts.push(last > i ? `${sorted[i]}-${sorted[last]}` : `${sorted[i]}`);
    i = last + 1;
  }
  return texts.join(",");
}

function fromRanges(text, below) {
  const numbers = new Set();
  for (const range of text.split(",").filter((range) => /^\d+(-\d+)?$/.test(range))) {
    const [from, to = from] = range.split("-").map(Number);
    for (let number = from; number <= Math.min(to, below - 1); number++) {
      numbers.add(number);
    }
  }
  return numbers;
}
