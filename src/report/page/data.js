"use strict";
// The data of the page, unpacked. Its layout is described in src/report/page/data.rs.

/** Bytes from base64. */
function fromBase64(text) {
  if (Uint8Array.fromBase64) {
    return Uint8Array.fromBase64(text);
  }
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = binary.charCodeAt(i);
  }
  return bytes;
}

/** Unpacks gzip. */
async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads columns of LEB128 numbers, one after the other. */
class Columns {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }

  /** One number; what needs more than 28 bits is added up as a float, which is exact up to 53. */
  next() {
    const bytes = this.bytes;
    let at = this.at;
    let byte = bytes[at++];
    let number = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = bytes[at++];
      number = shift < 28 ? number | ((byte & 0x7f) << shift) : number + (byte & 0x7f) * 2 ** shift;
    }
    this.at = at;
    return number;
  }

  /** A number that may be negative. */
  nextSigned() {
    const number = this.next();
    return number % 2 ? -(number + 1) / 2 : number / 2;
  }
}

/** The profile: its head as it is, and its columns as typed arrays. */
function decode(bytes) {
  const feed = bytes.indexOf(10);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, feed)));
  const columns = new Columns(bytes, feed + 1);
  const nodes = readNodes(columns, head.nodes, head.names.text.length);
  const parts = readParts(columns, head.parts);
  return { ...head, nodes, parts, records: readRecords(columns, head) };
}

/** The call tree, depth first: a node's callees follow it, up to `end`. */
function readNodes(columns, count, names) {
  const parent = new Int32Array(count);
  const depth = new Uint32Array(count);
  const name = new Uint32Array(count);
  const end = new Uint32Array(count);
  // No caller has the same name: what passes through such a node counts once for its name.
  const outermost = new Uint8Array(count);
  const path = [];
  for (let node = 0; node < count; node++) {
    for (let up = columns.next(); up > 0; up--) {
      end[path.pop()] = node;
    }
    parent[node] = path.length ? path[path.length - 1] : -1;
    depth[node] = path.length;
    path.push(node);
  }
  while (path.length) {
    end[path.pop()] = count;
  }
  const onPath = new Uint32Array(names);
  for (let node = 0; node < count; node++) {
    name[node] = columns.next();
    while (path.length > depth[node]) {
      onPath[name[path.pop()]]--;
    }
    outermost[node] = onPath[name[node]]++ === 0 ? 1 : 0;
    path.push(node);
  }
  return { count, parent, depth, name, end, outermost, ...nodesByName(name, names) };
}

/** The nodes of each name: those of `n` are in `list` from `first[n]` to `first[n + 1]`. */
function nodesByName(name, names) {
  const first = new Uint32Array(names + 1);
  name.forEach((one) => first[one + 1]++);
  for (let one = 0; one < names; one++) {
    first[one + 1] += first[one];
  }
  const next = first.slice();
  const list = new Uint32Array(name.length);
  name.forEach((one, node) => (list[next[one]++] = node));
  return { first, list };
}

/** The lines of nodes: what samples end in. */
function readParts(columns, count) {
  const node = new Uint32Array(count);
  const above = new Uint32Array(count);
  const line = new Uint32Array(count);
  for (let part = 0, at = 0; part < count; part++) {
    node[part] = at += columns.next();
  }
  for (let part = 0; part < count; part++) {
    above[part] = columns.next();
  }
  for (let part = 0; part < count; part++) {
    line[part] = columns.next();
  }
  return { count, node, above, line };
}

/** The samples, thread by thread, each in order of time; those of thread `t` are from `first[t]` to `first[t + 1]`. */
function readRecords(columns, head) {
  const first = new Uint32Array(head.threads.length + 1);
  head.threads.forEach((thread, t) => (first[t + 1] = first[t] + thread.records));
  const count = first[head.threads.length];
  const cell = new Uint32Array(count);
  const part = new Uint32Array(count);
  const samples = new Uint32Array(count);
  const value = new Float64Array(count);
  for (let t = 0; t < head.threads.length; t++) {
    const [from, to] = [first[t], first[t + 1]];
    for (let i = from, at = 0; i < to; i++) {
      cell[i] = at += columns.next();
    }
    for (let i = from, at = 0; i < to; i++) {
      part[i] = at += columns.nextSigned();
    }
    for (let i = from; i < to; i++) {
      samples[i] = columns.next();
    }
    for (let i = from; i < to; i++) {
      value[i] = head.each === null ? columns.nextSigned() : samples[i] * head.each;
    }
  }
  return { count, first, cell, part, samples, value };
}
