// Draws the source: the line of the moment, the labels of the findings, and beside each line its tensors' states.

const INLAYS = 4; // tensors beside one line

class SourcePane {
  constructor(model, cursor) {
    this.model = model;
    this.cursor = cursor;
    this.lines = new Map(); // "file:line" -> the row and its parts
    this.labels = this.labelsByLine();
    this.element = el("section", { class: "source", "aria-label": "source" });
    this.files = model.sources.map((file, number) => this.drawFile(file, number));
    this.element.append(...this.files.filter((file) => file !== null));
    this.shown = new Set(); // lines with something beside them
    cursor.listen(() => this.update());
  }

  labelsByLine() {
    const found = new Map();
    this.model.findings.forEach((finding) =>
      finding.labels.forEach((label, place) => {
        const key = this.model.lineKey(label.place);
        if (!found.has(key)) found.set(key, []);
        found.get(key).push({ label, place });
      }),
    );
    return found;
  }

  drawFile(file, number) {
    const isUsed = this.model.places.file.includes(number) || this.model.places.file.length === 0;
    if (!file.blocks.length || !isUsed) return null;
    const rows = [];
    file.blocks.forEach((block, place) => {
      if (place) rows.push(el("li", { class: "gap" }, "…"));
      block.lines.forEach((text, offset) => rows.push(this.drawLine(number, block.line + offset, text, block.kinds[offset])));
    });
    const list = el("ol", { class: "code", tabindex: "0", "aria-label": `source of ${file.name}` }, ...rows);
    const title = el("h3", {}, file.name);
    if (number === 0 || this.model.sources.length === 1) return el("div", { class: "file" }, title, list);
    const isNeeded = file.blocks.some((block) => block.lines.some((_, offset) => this.labels.has(`${number}:${block.line + offset}`)));
    return el("details", { class: "file", open: isNeeded }, el("summary", {}, title), list);
  }

  drawLine(file, line, text, kinds) {
    const key = `${file}:${line}`;
    const labels = this.labels.get(key) || [];
    const code = el("code", {}, ...words(text, kinds, labels.map((each) => this.mark(each, line, text))));
    const runs = this.model.runsOfLine.get(key);
    const number = runs
      ? el("button", { type: "button", class: "number", "aria-label": `line ${line}: go to a run of this line`, onclick: () => this.goTo(key) }, line)
      : el("span", { class: "number" }, line);
    const inlays = el("span", { class: "inlays" });
    const notes = labels
      .filter((each) => each.label.text)
      .map((each) => el("p", { class: `note ${roleClass(each.label, each.place)}` }, ...prose(each.label.text)));
    const row = el("li", { class: runs ? "line ran" : "line" }, number, el("div", {}, code, inlays, ...notes));
    this.lines.set(key, { row, inlays, detail: null });
    return row;
  }

  mark({ label, place }, line, text) {
    const { column, end_line, end_column } = this.model.places;
    const end = end_line[label.place] === line ? end_column[label.place] : text.length;
    return { begin: column[label.place], end, kind: roleClass(label, place) };
  }

  // Goes to the last run of a line up to the moment, else to its first run.
  goTo(key) {
    const run = this.model.lastRun(key, this.cursor.moment);
    const runs = this.model.runsOfLine.get(key);
    this.cursor.go(this.model.runs.last[run < 0 ? runs[0] : run]);
  }

  update() {
    const { model, cursor } = this;
    const current = model.lineKey(model.placeAt(cursor.moment));
    for (const key of this.shown) {
      const line = this.lines.get(key);
      line.inlays.replaceChildren();
      line.row.classList.remove("current");
      line.row.removeAttribute("aria-current");
      if (line.detail) line.detail.remove();
      line.detail = null;
    }
    this.shown = new Set();
    for (const key of model.runsOfLine.keys()) {
      const run = model.lastRun(key, cursor.moment);
      if (run >= 0 && this.lines.has(key)) this.drawInlays(key, run, key === current);
    }
    if (current !== null && this.lines.has(current)) this.showCurrent(current);
  }

  drawInlays(key, run, isCurrent) {
    const chips = tensorsOfRun(this.model, run, this.cursor.moment).filter((each) => each.written);
    const line = this.lines.get(key);
    if (!isCurrent) line.inlays.replaceChildren(...chips.slice(0, INLAYS).map((chip) => drawChip(this.model, this.cursor, chip)));
    this.shown.add(key);
  }

  showCurrent(key) {
    const line = this.lines.get(key);
    line.row.classList.add("current");
    line.row.setAttribute("aria-current", "step");
    line.detail = drawDetail(this.model, this.cursor);
    line.row.lastChild.append(line.detail);
    this.shown.add(key);
    const file = line.row.closest("details");
    if (file) file.open = true;
    reveal(line.row);
  }
}

// Scrolls a row into the upper part of its own list if it is not in view; the page stays where the reader is.
function reveal(row) {
  const list = row.parentElement;
  const above = row.offsetTop; // in the list, which is positioned
  const isAbove = above < list.scrollTop;
  const isBelow = above + row.offsetHeight > list.scrollTop + list.clientHeight;
  if (isAbove || isBelow) list.scrollTop = above - list.clientHeight / 5;
}

// Returns the parts of a line: its words by kind, underlined where labels mark them.
function words(text, kinds, marks) {
  const spans = [];
  let at = 0;
  for (const [, kind, size] of (kinds || `_${text.length}`).matchAll(/([a-z_])(\d+)/g)) {
    spans.push([at, at + Number(size), kind]);
    at += Number(size);
  }
  if (at < text.length) spans.push([at, text.length, "_"]);
  const borders = [...new Set([...marks.flatMap((mark) => [mark.begin, mark.end])])];
  const parts = [];
  for (const [begin, end, kind] of spans) {
    const cuts = [begin, ...borders.filter((border) => begin < border && border < end).sort((a, b) => a - b), end];
    for (let place = 0; place + 1 < cuts.length; place += 1) {
      const mark = marks.find((each) => each.begin <= cuts[place] && cuts[place + 1] <= each.end);
      const names = [kind === "_" ? "" : `word-${kind}`, mark ? `mark ${mark.kind}` : ""].filter(Boolean).join(" ");
      const part = text.slice(cuts[place], cuts[place + 1]);
      parts.push(names ? el("span", { class: names }, part) : part);
    }
  }
  return parts;
}
