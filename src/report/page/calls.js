"use strict";
// Trees of calls as rows that open and close.

/** A tree whose rows are branches. */
class CallRows {
  constructor(host, label, upward = false) {
    this.open = new Set();
    this.tree = null;
    this.rows = new Rows(host, {
      label,
      columns: [
        { title: "Total", hint: "Time in the function and what is below it" },
        { title: "", hint: "Share of the chosen samples" },
        ...(upward ? [] : [{ title: "Self", hint: "Time in the function itself, here" }]),
        { title: "Function", wide: true },
      ],
      cells: (branch) => {
        const own = branch.ownValue && !this.tree.upward ? valueText(branch.ownValue) : "";
        return [valueText(branch.value), shareCell(branch.value), ...(upward ? [] : [own]), nameCell(branch.name)];
      },
      name: (branch) => branch.name,
      act: (branch) => branch.name !== ALL && change({ name: branch.name }, true),
      isMarked: (branch) => branch.name !== ALL && branch.name === state.name,
      tree: {
        level: (branch) => branch.depth,
        open: (branch) => this.open.has(branch),
        leaf: (branch) => this.tree.children(branch).length === 0,
        toggle: (branch) => this.toggle(branch),
        hottest: (branch) => this.hottest(branch),
      },
    });
  }

  /** Shows another tree; what was open stays so, as far as it is there. */
  show(tree) {
    const paths = [...this.open].map((branch) => branch.path());
    this.tree = tree;
    this.open = new Set([tree.root]);
    for (const path of paths) {
      const branch = tree.find(path);
      if (branch.depth === path.length) {
        this.open.add(branch);
      }
    }
    if (!paths.length) {
      this.openHottest(tree.root);
    }
    this.list();
  }

  toggle(branch) {
    if (!this.open.delete(branch)) {
      this.open.add(branch);
    }
    this.list();
  }

  /** Opens the way down along the greatest branches. */
  openHottest(branch) {
    for (let i = 0; i < 200; i++) {
      const children = this.tree.children(branch);
      this.open.add(branch);
      if (!children.length || children[0].value < 0.5 * branch.value) {
        break;
      }
      branch = children[0];
    }
  }

  hottest(branch) {
    this.openHottest(branch);
    this.list();
  }

  list() {
    const rows = [];
    const next = [this.tree.root];
    while (next.length) {
      const branch = next.pop();
      rows.push(branch);
      if (this.open.has(branch)) {
        const children = this.tree.children(branch);
        for (let i = children.length - 1; i >= 0; i--) {
          next.push(children[i]);
        }
      }
    }
    this.rows.show(rows);
  }
}

/** The call tree, in the order of the flame graph. */
const callTree = {
  setUp() {
    byId("calls").append(make("p", { class: "status" },
      "Right opens, Left closes, * opens the hottest way down, Enter selects, C shows callers and callees."));
    this.rows = new CallRows(byId("calls"), "Call tree");
  },

  render() {
    if (this.rows.tree !== flame.tree) {
      this.rows.show(flame.tree);
    } else {
      this.rows.list();
    }
  },
};
