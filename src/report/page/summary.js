"use strict";
// What was recorded, what stands out, and how far the numbers can be trusted.

const summary = {
  setUp() {
    const { facts, categories, total, clock, processors, samples, threads, processes } = app.profile;
    const cards = make("div", { class: "cards" });
    const card = (value, name) => cards.append(make("div", { class: "card" }, make("b", {}, value), make("span", {}, name)));
    card(valueText(total), app.profile.metric.name);
    card(countText(samples), "samples");
    if (app.profile.metric.unit === "time") {
      card(`${(total / clock.length).toFixed(2)} of ${processors}`, "processors busy on average");
    }
    card(timeText(clock.length), "time");
    card(`${countText(processes.length)} / ${countText(threads.length)}`, "processes / threads");
    const value = app.counts.byCategory();
    const kinds = categories.map((_, kind) => kind).filter((kind) => value[kind] > 0).sort((a, b) => value[b] - value[a]);
    const strip = make("div", { class: "strip", role: "img", "aria-label":
      `By kind of code: ${kinds.map((kind) => `${categories[kind].name} ${shareText(value[kind], total)}`).join(", ")}` });
    for (const kind of kinds) {
      const piece = make("span", { title: `${categories[kind].name}: ${shareText(value[kind], total)}` });
      piece.style.flexGrow = value[kind];
      piece.style.background = `var(--kind-${kind})`;
      strip.append(piece);
    }
    const findings = make("ul", { class: "findings" });
    for (const finding of facts.findings) {
      const text = finding.name === undefined
        ? shortText(finding.text, 400)
        : make("button", { type: "button", class: "link", onclick: () => showView({ name: finding.name, view: "callers" }) },
          shortText(finding.text, 400));
      findings.append(make("li", { class: finding.kind }, text));
    }
    const notes = facts.notes.map(({ text, share, evidence, advice }) => make("details", { class: "note" },
      make("summary", {}, make("b", {}, shareText(share, 1)), ` ${shortText(text, 400)}`),
      make("dl", { class: "facts" }, ...evidence.flatMap(([about, words]) =>
        [make("dt", {}, about), make("dd", {}, shortText(words, 1000))]),
      make("dt", {}, "advice"), make("dd", {}, advice))));
    const list = make("dl", { class: "facts" });
    facts.summary.forEach(([name, text]) => list.append(make("dt", {}, name), make("dd", {}, shortText(text, 400))));
    byId("summary").append(cards, strip, make("div", { class: "columns" },
      make("div", {}, make("h2", {}, "Findings"),
        ...notes, facts.findings.length + notes.length ? findings : make("p", {}, "Nothing stands out.")),
      make("div", {}, make("h2", {}, "Recording"), list)), this.quality());
  },

  /** The account of all samples, what was lost, and what has no name and why. */
  quality() {
    const { facts } = app.profile;
    const rows = (pairs, all) => make("table", {}, ...pairs.map(([name, number]) => make("tr", {}, make("th", { scope: "row" }, name),
      make("td", {}, countText(number)), make("td", {}, all ? shareText(number, all) : ""))));
    const kept = facts.balance[0][1];
    const block = (title, ...content) => make("div", {}, make("h3", {}, title), ...content);
    const blocks = [
      block(`${countText(facts.samples)} samples`, rows(facts.balance, facts.samples)),
      block("Stacks of the kept samples", rows(facts.stacks, kept)),
      block("Lost", facts.losses.length ? rows(facts.losses) : make("p", {}, "Nothing.")),
      block("Frames without a name", facts.unnamed.length ? rows(facts.unnamed, facts.frames) : make("p", {}, "None.")),
    ];
    if (facts.damage.length) {
      blocks.push(block("Damaged", make("ul", {}, ...facts.damage.map((text) => make("li", {}, text)))));
    }
    const details = make("details", { class: "quality" }, make("summary", {}, `Data quality: ${shortText(facts.quality, 400)}`), make("div", { class: "blocks" }, ...blocks));
    if (facts.modules.length) {
      const head = ["Module", "Samples", "Named", "Why"].map((text) => make("th", { scope: "col" }, text));
      const body = facts.modules.map(({ name, samples, named, addresses, why }) => make("tr", {},
        make("th", { scope: "row" }, shortText(name, 200)), make("td", {}, countText(samples)),
        make("td", {}, `${countText(named)} of ${countText(addresses)}`), make("td", { class: "why" }, shortText(why, 600))));
      const more = facts.more_modules ? make("p", {}, `and ${countText(facts.more_modules)} more`) : null;
      details.append(block("Modules without symbols", make("div", { class: "sideways", tabindex: "0", role: "region",
        "aria-label": "Modules without symbols" }, make("table", { class: "modules" }, make("thead", {}, make("tr", {}, ...head)),
        make("tbody", {}, ...body)))), ...(more ? [more] : []));
    }
    return details;
  },
};
