// Draws a comparison: what each operand does, side by side; the rows in which they differ stand out.

function drawComparison(data) {
  const operands = data.operands.map((text) => el("th", { scope: "col" }, el("code", {}, text)));
  const rows = ({ label, cells }) =>
    el("tr", {}, el("th", { scope: "row" }, label), ...cells.map((lines) => el("td", {}, ...lines.map((line) => el("div", {}, line)))));
  const sections = data.sections.map((section) =>
    el(
      "tbody",
      {},
      el("tr", {}, el("th", { scope: "rowgroup", class: "group", colspan: data.operands.length + 1 }, section.title)),
      ...section.rows.map(rows),
    ),
  );
  const head = el("thead", {}, el("tr", {}, el("td"), ...operands));
  return el(
    "div",
    { class: "comparison" },
    el("header", { class: "headline" }, el("p", { class: "run" }, ...data.head.map((part) => el("span", {}, part))), el("h1", {}, data.title)),
    ...data.summary.map((text) => el("p", { class: "summary" }, ...prose(text))),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "comparison" }, el("table", {}, head, ...sections)),
    ...data.notes.map((text) => el("p", { class: "quiet" }, ...prose(text))),
  );
}
