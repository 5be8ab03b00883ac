"use strict";
// Numbers and names as text, and elements that hold them. Names come from files and may be anything: they only ever become
// text nodes.

/** A count with commas. */
function countText(number) {
  return Math.round(number).toLocaleString("en-US");
}

/** A time in 100 ns with the unit that fits. */
function timeText(value) {
  const size = Math.abs(value);
  if (size >= 1e7 || size === 0) {
    return `${(value / 1e7).toFixed(2)} s`;
  }
  return size >= 1e4 ? `${(value / 1e4).toFixed(1)} ms` : `${Math.round(value / 10)} µs`;
}

/** A value of the profile's metric. */
function valueText(value) {
  const { unit } = app.profile.metric;
  if (unit === "time") {
    return timeText(value);
  }
  return unit === "bytes" ? `${countText(value)} B` : countText(value);
}

/** A share in percent. */
function shareText(part, whole) {
  return `${((100 * part) / (whole || 1)).toFixed(1)}%`;
}

/** A moment of the recording, from its cell: `12.345 s`. */
function momentText(cell) {
  const { start, cell: length, length: all } = app.profile.clock;
  return `${((start + Math.min(cell * length, all)) / 1e7).toFixed(3)} s`;
}

/** The text of a name. */
function nameText(name) {
  return name === ALL ? "all" : app.profile.names.text[name];
}

/** The module that a name begins with, with its `!`; empty without one, and where there is no name behind it. */
function moduleText(text) {
  const mark = text.indexOf("!");
  const isModule = mark > 0 && mark < 80 && !/[<( ]/.test(text.slice(0, mark));
  return isModule && !/^(\?|0x)/.test(text.slice(mark + 1, mark + 3)) ? text.slice(0, mark + 1) : "";
}

/** The end of a text that may be endless, as far as a label has room. */
function shortText(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** An element with attributes and children: elements, or texts. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) {
      element.addEventListener(key.slice(2), value);
    } else if (value !== false && value !== null) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

/** The patch of colour of a kind of code. */
function swatch(category) {
  const patch = make("span", { class: "swatch", "aria-hidden": "true" });
  patch.style.background = `var(--kind-${category})`;
  return patch;
}

let announceTimer = 0;

/** Lets a screen reader say something, once no more comes. */
function announce(text) {
  clearTimeout(announceTimer);
  announceTimer = setTimeout(() => (byId("live").textContent = text), 150);
}
