"use strict";
// What the chosen samples amount to: by part, by node of the call tree, by name.

class Counts {
  constructor(profile) {
    this.profile = profile;
    const { nodes, parts, names } = profile;
    this.partSamples = new Float64Array(parts.count);
    this.partValue = new Float64Array(parts.count);
    // What ends in a node.
    this.ownSamples = new Float64Array(nodes.count);
    this.ownValue = new Float64Array(nodes.count);
    // What is in it or below it.
    this.samples = new Float64Array(nodes.count);
    this.value = new Float64Array(nodes.count);
    this.byName = {
      ownSamples: new Float64Array(names.text.length),
      ownValue: new Float64Array(names.text.length),
      samples: new Float64Array(names.text.length),
      value: new Float64Array(names.text.length),
    };
    this.totalSamples = 0;
    this.totalValue = 0;
  }

  /** Counts the samples of the cells `from` to `to` (without `to`) of the threads that `wanted` has a 1 for. */
  count(from, to, wanted) {
    const { records, threads } = this.profile;
    const { cell, part, samples, value, first } = records;
    this.partSamples.fill(0);
    this.partValue.fill(0);
    this.totalSamples = 0;
    this.totalValue = 0;
    for (let t = 0; t < threads.length; t++) {
      if (!wanted[t]) {
        continue;
      }
      const end = lowerBound(cell, to, first[t], first[t + 1]);
      for (let i = lowerBound(cell, from, first[t], end); i < end; i++) {
        this.partSamples[part[i]] += samples[i];
        this.partValue[part[i]] += value[i];
        this.totalSamples += samples[i];
        this.totalValue += value[i];
      }
    }
    this.addUp();
  }

  addUp() {
    const { nodes, parts } = this.profile;
    const { ownSamples, ownValue, samples, value } = this;
    ownSamples.fill(0);
    ownValue.fill(0);
    for (let part = 0; part < parts.count; part++) {
      ownSamples[parts.node[part]] += this.partSamples[part];
      ownValue[parts.node[part]] += this.partValue[part];
    }
    samples.set(ownSamples);
    value.set(ownValue);
    // Callees come after their callers, so backwards every node is whole when it is added to its caller.
    const parent = nodes.parent;
    for (let node = nodes.count - 1; node >= 0; node--) {
      if (parent[node] >= 0) {
        samples[parent[node]] += samples[node];
        value[parent[node]] += value[node];
      }
    }
    const of = this.byName;
    Object.values(of).forEach((column) => column.fill(0));
    for (let node = 0; node < nodes.count; node++) {
      const name = nodes.name[node];
      of.ownSamples[name] += ownSamples[node];
      of.ownValue[name] += ownValue[node];
      if (nodes.outermost[node]) {
        of.samples[name] += samples[node];
        of.value[name] += value[node];
      }
    }
  }

  /** What is in the functions that `matches` has a 1 for, or below them; each sample once. */
  totalOf(matches) {
    const { count, name, end } = this.profile.nodes;
    let [samples, value] = [0, 0];
    for (let node = 0; node < count; ) {
      if (matches[name[node]]) {
        samples += this.samples[node];
        value += this.value[node];
        node = end[node];
      } else {
        node++;
      }
    }
    return { samples, value };
  }

  /** What ends in each kind of code. */
  byCategory() {
    const { categories, names } = this.profile;
    const value = new Array(categories.length).fill(0);
    names.category.forEach((category, name) => (value[category] += this.byName.ownValue[name]));
    return value;
  }

  /** The lines of a function, those with the most of their own first; `line` 0 is what has none. */
  linesOf(name) {
    const { nodes, parts, lines } = this.profile;
    if (!lines.line.length) {
      return [];
    }
    const value = Float64Array.from(this.partValue);
    const samples = Float64Array.from(this.partSamples);
    const above = this.partsAbove();
    for (let part = parts.count - 1; part >= 0; part--) {
      if (above[part] >= 0) {
        value[above[part]] += value[part];
        samples[above[part]] += samples[part];
      }
    }
    const rows = new Map();
    for (let part = 0; part < parts.count; part++) {
      if (nodes.name[parts.node[part]] !== name || value[part] === 0) {
        continue;
      }
      const line = parts.line[part];
      if (!rows.has(line)) {
        const file = line ? lines.files[lines.file[line - 1]] : "";
        const number = line ? lines.line[line - 1] : 0;
        rows.set(line, { file, line: number, ownSamples: 0, ownValue: 0, samples: 0, value: 0 });
      }
      const row = rows.get(line);
      row.ownSamples += this.partSamples[part];
      row.ownValue += this.partValue[part];
      let outer = above[part];
      while (outer >= 0 && !(parts.line[outer] === line && nodes.name[parts.node[outer]] === name)) {
        outer = above[outer];
      }
      if (outer < 0) {
        row.samples += samples[part];
        row.value += value[part];
      }
    }
    return [...rows.values()].sort((a, b) => b.ownValue - a.ownValue || b.value - a.value || a.line - b.line);
  }

  /** The part above each part, made once. */
  partsAbove() {
    if (!this.above) {
      const { nodes, parts } = this.profile;
      const first = new Int32Array(nodes.count);
      for (let part = parts.count - 1; part >= 0; part--) {
        first[parts.node[part]] = part;
      }
      this.above = new Int32Array(parts.count);
      for (let part = 0; part < parts.count; part++) {
        const caller = nodes.parent[parts.node[part]];
        this.above[part] = caller < 0 ? -1 : first[caller] + parts.above[part];
      }
    }
    return this.above;
  }
}

/** The first place between `from` and `to` whose number in an ascending array is not below `least`. */
function lowerBound(array, least, from, to) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (array[middle] < least) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}
