// Draws the page of several ranks: what all did alike, where they differ, and below it the rank that is chosen.

const CALLS = "calls of each rank at each line";

function drawRanks(page, data) {
  const view = new RanksView(data);
  page.append(view.element);
  document.documentElement.classList.add("drawn");
  view.choose(view.fromAddress());
}

class RanksView {
  constructor(data) {
    this.data = data;
    this.shown = new Map(); // page -> its element, model and cursor
    this.place = NONE; // of the page that is shown
    this.grid = new RanksGrid(data, (place, line) => this.choose(place, line));
    this.tabs = data.pages.map((page, place) =>
      el("button", { type: "button", role: "tab", "aria-controls": "rank", onclick: () => this.choose(place) }, `rank ${page.rank}`),
    );
    this.one = el("div", { id: "rank", role: "tabpanel" });
    this.element = el(
      "div",
      { class: "ranks" },
      el("div", { class: "overview" }, el("div", {}, this.drawHead(), this.drawFindings(), this.drawDifferences()), this.grid.element),
      el("div", { class: "tabs", role: "tablist", "aria-label": "ranks (r: the next one)" }, ...this.tabs),
      this.one,
    );
    document.addEventListener("keydown", (event) => this.press(event));
    window.addEventListener("hashchange", () => {
      if (this.fromAddress() !== this.place) this.choose(this.fromAddress());
    });
  }

  // Returns the page of the rank that the address names, else of the rank that failed first, else of the first.
  fromAddress() {
    const rank = new URLSearchParams(window.location.hash.slice(1)).get("rank");
    const place = this.data.pages.findIndex((page) => String(page.rank) === rank);
    return place >= 0 ? place : Math.max(this.place, this.data.start);
  }

  drawHead() {
    const { head, endings } = this.data;
    const [script, ...parts] = head.run;
    const rows = endings.map(([ranks, calls, last, ended, style]) =>
      el("tr", { class: style }, ...[ranks, calls, last, ended].map((text) => el("td", {}, text))),
    );
    const headings = ["ranks", "calls", "last line", "ended"].map((text) => el("th", { scope: "col" }, text));
    return el(
      "header",
      { class: "headline" },
      el("p", { class: "run" }, el("b", {}, script), ...parts.map((part) => el("span", {}, part))),
      el("h1", { class: `sentence ${head.tone}` }, ...prose(head.sentence)),
      ...head.remarks.map((text) => el("p", { class: "quiet" }, ...prose(text))),
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "how the ranks ended" },
        el("table", { class: "endings" }, el("thead", {}, el("tr", {}, ...headings)), el("tbody", {}, ...rows)),
      ),
    );
  }

  drawFindings() {
    const { findings } = this.data;
    if (!findings.length) return null;
    const rows = findings.map(([code, severity, title, ranks, place]) =>
      el(
        "li",
        {},
        el("span", { class: `severity ${severity}` }, code),
        ...prose(title),
        " ",
        place < 0 ? el("span", { class: "quiet" }, ranks) : button(ranks, `show rank ${this.data.pages[place].rank}`, () => this.choose(place, null), { class: "link" }),
      ),
    );
    return el("ul", { class: "of-ranks", "aria-label": "findings of all ranks" }, ...rows);
  }

  drawDifferences() {
    const { differences } = this.data;
    if (!differences.length) return null;
    const rows = differences.map(({ text, page, lines }) => {
      const links = page < 0 ? [] : lines.map(([name, ...line]) => button(name, `go to ${name}`, () => this.choose(page, line), { class: "link" }));
      return el("li", {}, ...prose(text), ...links.flatMap((link) => [" ", link]));
    });
    return el("section", {}, el("h2", {}, "Ranks compared"), el("ul", { class: "of-ranks" }, ...rows));
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !["r", "R"].includes(event.key)) return;
    if (event.target instanceof Element && event.target.closest("input:not([type=range], [type=checkbox]), textarea, select")) return;
    event.preventDefault();
    const count = this.tabs.length;
    this.choose((this.place + (event.key === "r" ? 1 : count - 1)) % count);
  }

  // Shows a rank: at a line ([file, number]); at its own start (null); or where the rank before it was, if it ran that.
  choose(place, line) {
    const before = this.shown.get(this.place);
    this.place = place;
    if (!this.shown.has(place)) this.shown.set(place, { element: el("div") });
    const now = this.shown.get(place);
    this.one.replaceChildren(now.element);
    const isNew = now.model === undefined;
    if (isNew) {
      Object.assign(now, drawReport(now.element, this.data.pages[place]));
      now.cursor.listen(() => this.grid.update(place, now));
    }
    const { cursor, model } = now;
    if (line === null) cursor.set(model.start.moment, model.start.tensor);
    else if (line !== undefined) cursor.go(lastMomentOf(model, line, cursor.moment));
    else if (before !== undefined && before !== now) cursor.go(sameTime(before, now));
    else cursor.notify();
    this.tabs.forEach((tab, each) => {
      tab.setAttribute("aria-selected", String(each === place));
      tab.setAttribute("tabindex", each === place ? "0" : "-1");
    });
    if (this.element.querySelector(".tabs").contains(document.activeElement)) this.tabs[place].focus();
  }
}

// Returns the key of a line in another model, by the name of its file; null: it is not there.
function keyOfLine(model, [file, line]) {
  const number = model.sources.findIndex((each) => each.name === file);
  return number < 0 ? null : `${number}:${line}`;
}

function lastMomentOf(model, line, otherwise) {
  const run = model.lastRun(keyOfLine(model, line), model.end);
  return run < 0 ? otherwise : model.runs.last[run];
}

// Returns the moment at which one rank ran the line at which another one is, for the same time; else its own moment.
function sameTime(from, to) {
  const run = from.model.runAt(from.cursor.moment);
  const place = run < 0 ? NONE : from.model.runs.place[run];
  if (place < 0) return to.cursor.moment;
  const { places, sources, runsOfLine } = from.model;
  const turn = runsOfLine.get(from.model.lineKey(place)).indexOf(run);
  const runs = to.model.runsOfLine.get(keyOfLine(to.model, [sources[places.file[place]].name, places.line[place]])) || [];
  return runs[turn] === undefined ? to.cursor.moment : to.model.runs.last[runs[turn]];
}

// Draws the lines with a column for the ranks that did alike: how many calls they made there, and where they ended.
class RanksGrid {
  constructor(data, choose) {
    this.data = data;
    this.choose = choose;
    this.differing = data.lines.filter((line) => line.differs);
    this.body = el("tbody");
    this.all = el("input", { type: "checkbox", onchange: () => this.draw() });
    this.heads = data.groups.map((group) => el("th", { scope: "col", title: group.title }, group.text));
    const head = el("tr", {}, el("th", { scope: "col" }, "line"), el("th", { scope: "col" }), ...this.heads);
    const isMixed = data.groups.length > 1 && this.differing.length > 0;
    const few = this.differing.length;
    const about = isMixed ? `${counted(few, "line")} of ${data.lines.length} differ${few === 1 ? "s" : ""}` : "all ranks made as many calls at each line";
    this.isMixed = isMixed;
    this.element = el(
      "details",
      { class: "table grid", open: isMixed },
      el("summary", {}, el("h2", {}, "Calls by rank"), el("span", { class: "quiet" }, about)),
      isMixed ? el("label", { class: "filter" }, this.all, "all lines") : null,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": CALLS }, el("table", {}, el("thead", {}, head), this.body)),
    );
    this.draw();
  }

  draw() {
    const lines = this.isMixed && !this.all.checked ? this.differing : this.data.lines;
    this.rows = new Map(lines.map((line) => [`${line.file}:${line.line}`, this.drawRow(line)]));
    this.body.replaceChildren(...this.rows.values());
    if (this.now) this.update(...this.now);
  }

  drawRow(line) {
    const cells = this.data.groups.map((group, place) => {
      const calls = line.calls[place];
      const isLast = group.last !== null && group.last[1] === line.file && group.last[2] === line.line;
      const end = isLast ? el("span", { class: group.failed ? "error" : "quiet", title: group.ended }, group.failed ? " failed" : " end") : null;
      const label = `${counted(calls, "call")} on ${group.title}`;
      const go = () => this.choose(group.page, [line.file, line.line]);
      const text = calls ? calls.toLocaleString("en") : "–";
      const isGo = calls > 0 && group.page >= 0;
      return el("td", {}, isGo ? button(text, `${label}: go to ${line.place}`, go) : text, end);
    });
    const code = el("td", {}, el("code", {}, line.text));
    return el("tr", { class: line.differs ? "differs" : "" }, el("th", { scope: "row" }, line.place), code, ...cells);
  }

  // Marks the line of the moment, and the column of the rank that is shown.
  update(page, { model, cursor }) {
    this.now = [page, { model, cursor }];
    const place = model.placeAt(cursor.moment);
    const key = place < 0 ? "" : `${model.sources[model.places.file[place]].name}:${model.places.line[place]}`;
    for (const [each, row] of this.rows) row.classList.toggle("current", each === key);
    this.heads.forEach((head, each) => head.classList.toggle("chosen", this.data.groups[each].page === page));
  }
}
