// SPDX-License-Identifier: Apache-2.0
// The page out of its data: a title, facts, and sections of blocks. The program that writes the data decides what stands where; here is only how it looks.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  const blocks = {
    note: (b) => element("p", { class: b.bad ? "note bad" : "note" }, b.text),
    facts: (b) => element("dl", { class: "facts" }, ...b.rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    table: table,
    bars: bars,
    curves: chart,
    lanes: chart,
    beside: (b) => element("div", { class: "beside" }, ...b.parts.map((part) => element("div", {}, ...part.map(block)))),
    pre: (b) => element("pre", { tabindex: 0 }, b.text),
    folded: (b) => element("details", {}, element("summary", {}, b.name), ...b.blocks.map(block)),
  };

  function block(b) { return blocks[b.type](b); }

  function chart(spec) {
    const place = element("div", {});
    new Chart(place, spec);
    return element("figure", {}, place, spec.note ? element("p", { class: "note" }, spec.note) : null);
  }

  /// A cell is a text, or { text, title, to: a page beside this one, bad: true, differs: true }.
  function table(b) {
    const cell = (value, i, tag) => {
      const what = value !== null && typeof value === "object" ? value : { text: value };
      const classes = [b.columns[i].number ? "number" : "", what.bad ? "bad" : "", b.columns[i].code ? "code" : "", what.differs ? "differs" : "",
        String(what.text ?? "").length > 24 ? "long" : ""].join(" ").trim();
      return element(tag, { class: classes || undefined, scope: tag === "th" ? "row" : undefined, title: what.title },
        what.to ? element("a", { ["href"]: what.to }, what.text) : what.text ?? "");
    };
    return element("div", { class: "wide", tabindex: 0 }, element("table", {},
      element("thead", {}, element("tr", {}, ...b.columns.map((c) => element("th", { scope: "col", class: c.number ? "number" : undefined }, c.name)))),
      element("tbody", {}, ...b.rows.map((row) => element("tr", {}, ...row.map((value, i) => cell(value, i, i === 0 ? "th" : "td")))))));
  }

  /// Rows of bars on one scale: { name, bars: [{ size, text, part }] }; parts are named in the legend.
  function bars(b) {
    const most = Math.max(1, ...b.rows.flatMap((r) => r.bars.map((x) => x.size ?? 0)));
    const bar = (x) => element("div", { class: "bar" },
      x.size ? element("span", { class: `fill part-${x.part}`, style: `--share:${x.size / most}` }) : null, element("span", { class: "amount" }, x.text));
    return element("div", { class: "bars" },
      element("div", { class: "legend" }, ...b.parts.map((name, i) => element("span", {}, element("span", { class: `swatch part-${i}` }), name))),
      ...b.rows.map((r) => element("div", { class: "row" }, element("div", { class: "name" }, r.name), element("div", { class: "of" }, ...r.bars.map(bar)))));
  }

  // ---- light and dark ----------------------------------------------------------------------------------

  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = { get: () => { try { return localStorage.getItem("rheo-theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("rheo-theme", theme); } catch { /* a page from a file may keep nothing */ } } };
  const button = element("button", { type: "button", class: "theme" });
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `switch to ${theme === "dark" ? "light" : "dark"} colours`);
  };
  const wanted = () => kept.get() ?? (system.matches ? "dark" : "light");
  button.addEventListener("click", () => {
    kept.set(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply(wanted());
  });
  system.addEventListener("change", () => apply(wanted()));
  apply(wanted());

  document.title = `rheo: ${data.title}`;
  const sections = data.sections.map((s, i) => element("section", { id: `section-${i}` }, s.name ? element("h2", {}, s.name) : null, ...s.blocks.map(block)));
  const contents = data.sections.flatMap((s, i) => (s.name ? [element("a", { ["href"]: `#section-${i}` }, s.name)] : []));
  document.getElementById("page").replaceChildren(
    element("header", {}, element("div", { class: "line" }, element("h1", {}, data.title), button), element("nav", {}, ...contents)), ...sections,
    element("footer", {}, data.footer ?? ""));
  Chart.drawAll();
})();
