"use strict";
// Trees to look at: callers first, callees first, or from one function on. A branch is made when somebody looks at it,
// so that even of half a million nodes only those are made that a screen can show.

/** The name of what stands above all roots. */
const ALL = -1;

class Branch {
  constructor(name, parent, bases) {
    this.name = name;
    this.parent = parent;
    this.depth = parent ? parent.depth + 1 : 0;
    // The nodes of the call tree that it stands for, and of a tree of callers how much of each.
    this.bases = bases;
    this.basesSamples = null;
    this.basesValue = null;
    this.samples = 0;
    this.value = 0;
    this.ownSamples = 0;
    this.ownValue = 0;
    this.children = null;
  }

  /** The names from the root down to it. */
  path() {
    const path = [];
    for (let branch = this; branch.parent; branch = branch.parent) {
      path.push(branch.name);
    }
    return path.reverse();
  }
}

class Branches {
  /** `upward`: the callers are below. `merge`: a function that calls itself is there once. */
  constructor(profile, counts, { upward = false, merge = false, name = ALL }) {
    this.profile = profile;
    this.counts = counts;
    this.upward = upward;
    this.merge = merge;
    this.root = this.makeRoot(name);
  }

  makeRoot(name) {
    const { nodes } = this.profile;
    const { counts } = this;
    const root = new Branch(name, null, []);
    if (name === ALL) {
      root.samples = counts.totalSamples;
      root.value = counts.totalValue;
      if (this.upward) {
        root.children = this.leaves(root);
      } else {
        const tops = [];
        for (let node = 0; node < nodes.count; node = nodes.end[node]) {
          tops.push(node);
        }
        root.children = this.below(root, tops);
      }
      return root;
    }
    root.bases = this.nodesOf(name, (node) => nodes.outermost[node] && counts.samples[node] !== 0);
    root.samples = counts.byName.samples[name];
    root.value = counts.byName.value[name];
    root.ownSamples = counts.byName.ownSamples[name];
    root.ownValue = counts.byName.ownValue[name];
    if (this.upward) {
      root.basesSamples = root.bases.map((node) => counts.samples[node]);
      root.basesValue = root.bases.map((node) => counts.value[node]);
    } else if (this.merge) {
      this.absorb(root);
    }
    return root;
  }

  nodesOf(name, isWanted) {
    const { first, list } = this.profile.nodes;
    return Array.from(list.subarray(first[name], first[name + 1])).filter(isWanted);
  }

  /** The functions that samples end in; their nodes are looked up when somebody asks for their callers. */
  leaves(root) {
    const of = this.counts.byName;
    const branches = new Map();
    for (let name = 0; name < of.ownSamples.length; name++) {
      if (of.ownSamples[name] !== 0) {
        const branch = new Branch(name, root, null);
        branch.samples = branch.ownSamples = of.ownSamples[name];
        branch.value = branch.ownValue = of.ownValue[name];
        branches.set(name, branch);
      }
    }
    return greatestFirst(branches);
  }

  /** The branches below one, the greatest first. */
  children(branch) {
    if (!branch.children) {
      branch.children = this.upward ? this.callers(branch) : this.callees(branch);
    }
    return branch.children;
  }

  callees(branch) {
    const { end } = this.profile.nodes;
    const below = [];
    for (const base of branch.bases) {
      for (let node = base + 1; node < end[base]; node = end[node]) {
        below.push(node);
      }
    }
    return this.below(branch, below);
  }

  /** Makes branches of nodes, one for each name. */
  below(parent, candidates) {
    const { counts, profile } = this;
    const names = profile.nodes.name;
    const branches = new Map();
    for (const node of candidates) {
      if (counts.samples[node] === 0 || (this.merge && names[node] === parent.name)) {
        continue;
      }
      let branch = branches.get(names[node]);
      if (!branch) {
        branch = new Branch(names[node], parent, []);
        branches.set(names[node], branch);
      }
      branch.bases.push(node);
      branch.samples += counts.samples[node];
      branch.value += counts.value[node];
      branch.ownSamples += counts.ownSamples[node];
      branch.ownValue += counts.ownValue[node];
    }
    if (this.merge) {
      branches.forEach((branch) => this.absorb(branch));
    }
    return greatestFirst(branches);
  }

  /** Takes the callees of the same name into a branch, and theirs. */
  absorb(branch) {
    const { name, end } = this.profile.nodes;
    // The list grows while it is walked.
    for (let i = 0; i < branch.bases.length; i++) {
      const base = branch.bases[i];
      for (let node = base + 1; node < end[base]; node = end[node]) {
        if (name[node] === branch.name && this.counts.samples[node] !== 0) {
          branch.bases.push(node);
          branch.ownSamples += this.counts.ownSamples[node];
          branch.ownValue += this.counts.ownValue[node];
        }
      }
    }
  }

  callers(branch) {
    const { parent, name, count } = this.profile.nodes;
    if (!branch.bases) {
      const { ownSamples, ownValue } = this.counts;
      branch.bases = this.nodesOf(branch.name, (node) => ownSamples[node] !== 0);
      branch.basesSamples = branch.bases.map((node) => ownSamples[node]);
      branch.basesValue = branch.bases.map((node) => ownValue[node]);
    }
    this.sumSamples = this.sumSamples || new Float64Array(count);
    this.sumValue = this.sumValue || new Float64Array(count);
    const above = [];
    branch.bases.forEach((base, i) => {
      let caller = parent[base];
      while (this.merge && caller >= 0 && name[caller] === branch.name) {
        caller = parent[caller];
      }
      if (caller < 0) {
        return;
      }
      if (this.sumSamples[caller] === 0) {
        above.push(caller);
      }
      this.sumSamples[caller] += branch.basesSamples[i];
      this.sumValue[caller] += branch.basesValue[i];
    });
    const branches = this.group(branch, above, this.sumSamples, this.sumValue);
    for (const caller of above) {
      this.sumSamples[caller] = 0;
      this.sumValue[caller] = 0;
    }
    return branches;
  }

  /** Makes branches of nodes with amounts of their own, one for each name. */
  group(parent, bases, samples, value) {
    const names = this.profile.nodes.name;
    const branches = new Map();
    for (const node of bases) {
      let branch = branches.get(names[node]);
      if (!branch) {
        branch = new Branch(names[node], parent, []);
        branch.basesSamples = [];
        branch.basesValue = [];
        branches.set(names[node], branch);
      }
      branch.bases.push(node);
      branch.basesSamples.push(samples[node]);
      branch.basesValue.push(value[node]);
      branch.samples += samples[node];
      branch.value += value[node];
    }
    return greatestFirst(branches);
  }

  /** The branch at the end of a path of names, or as far down as there is one. */
  find(path) {
    let branch = this.root;
    for (const name of path) {
      const next = this.children(branch).find((child) => child.name === name);
      if (!next) {
        break;
      }
      branch = next;
    }
    return branch;
  }
}

function greatestFirst(branches) {
  return [...branches.values()].sort((a, b) => b.value - a.value || b.samples - a.samples || a.name - b.name);
}
