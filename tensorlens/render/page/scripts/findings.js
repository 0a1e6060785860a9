// Draws the findings. Each label is a link to its line and its moment.

function drawFindings(model, cursor) {
  if (!model.findings.length) return null;
  return el(
    "section",
    { class: "findings", "aria-label": "findings" },
    ...model.findings.map((finding, place) => drawFinding(model, cursor, finding, place === 0)),
  );
}

function drawFinding(model, cursor, finding, isMain) {
  const name = finding.code ? `${finding.severity}[${finding.code}]` : finding.severity;
  const labels = finding.labels.map((label, place) => drawLabel(model, cursor, finding, label, place));
  const advice = el(
    "div",
    { class: "advice" },
    drawRemarks(finding.remarks.filter(([word]) => word !== "detail")),
    ...finding.fixes.map((fix, place) => drawFix(model, finding, fix, place)),
    drawRemarks(finding.remarks.filter(([word]) => word === "detail")),
  );
  const title = [el("span", { class: `severity ${finding.severity}` }, name), el("span", {}, ...prose(finding.title))];
  const list = el("ol", { class: "labels" }, ...labels);
  if (isMain) return el("article", { class: "finding main" }, el("div", {}, el("h1", {}, ...title), list), advice);
  return el("details", { class: "finding" }, el("summary", {}, ...title), list, advice);
}

function drawLabel(model, cursor, finding, label, place) {
  const line = model.lineText(label.place);
  const tensor = finding.tensors.length ? finding.tensors[0] : NONE;
  const where =
    label.moment < 0
      ? el("span", { class: "moment" }, line)
      : momentLink(cursor, label.moment, line, `${line}: ${label.text}; go to ${label.exact ? "this moment" : "the last run of this line"}`, tensor);
  return el("li", { class: roleClass(label, place) }, where, el("span", {}, ...prose(label.text)));
}

function drawRemarks(remarks) {
  if (!remarks.length) return null;
  const rows = remarks.map(([word, lines]) => [
    el("dt", {}, word),
    el("dd", {}, ...lines.map((line) => el("div", {}, ...prose(line)))),
  ]);
  return el("dl", { class: "remarks" }, ...rows);
}

function drawFix(model, finding, fix, place) {
  const word = finding.fixes.length > 1 ? `help ${place + 1}` : "help";
  const where = fix.place < 0 ? "" : ` (${model.lineText(fix.place)})`;
  const verdict = fix.verdict ? el("p", { class: fix.verified ? "good" : "quiet" }, `tried: ${fix.verdict}`) : null;
  const lines = fix.lines.map(([file, sign, number, text]) =>
    el("tr", { class: sign === "-" ? "removed" : "added", title: file }, el("td", {}, number), el("td", {}, sign), el("td", {}, text)),
  );
  return el(
    "div",
    { class: "fix" },
    el("p", {}, el("b", { class: "help" }, word), `${where}: `, ...prose(fix.title)),
    verdict,
    lines.length ? el("table", { class: "diff" }, el("tbody", {}, ...lines)) : null,
  );
}
