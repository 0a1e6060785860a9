// Draws the tables: sortable by each column, and filtered by the selection.

const ROWS = 100; // shown at first

function drawTables(model, cursor) {
  if (!model.tables.length) return null;
  const panes = model.tables.map((table) => new TablePane(model, cursor, table));
  return el("section", { class: "tables", "aria-label": "tables" }, ...panes.map((pane) => pane.element));
}

class TablePane {
  constructor(model, cursor, table) {
    Object.assign(this, { model, cursor, table, column: -1, descending: false, most: ROWS, isFiltered: false });
    this.body = el("tbody");
    this.headings = table.headings.map((text, place) => this.drawHeading(text, place));
    this.filter = el("input", { type: "checkbox", onchange: () => this.setFilter() });
    const hasTensors = table.rows.some((row) => row.tensors.length);
    const filter = hasTensors ? el("label", { class: "filter" }, this.filter, "only the selection") : null;
    this.note = el("p", { class: "quiet" });
    const grid = el("table", {}, el("thead", {}, el("tr", {}, ...this.headings)), this.body);
    this.element = el(
      "details",
      { class: "table", open: table.rows.length <= ROWS },
      el("summary", {}, el("h2", {}, table.title), el("span", { class: "quiet" }, counted(table.rows.length, "row"))),
      ...table.notes.map((text) => el("p", { class: "quiet" }, ...prose(text))),
      filter,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title }, grid),
      this.note,
    );
    if (hasTensors) cursor.listen(() => this.update());
    this.update();
  }

  drawHeading(text, place) {
    const sort = el("button", { type: "button", onclick: () => this.sortBy(place) }, text || "​");
    return el("th", { scope: "col", "aria-sort": "none" }, sort);
  }

  sortBy(column) {
    this.descending = column === this.column && !this.descending;
    this.column = column;
    this.headings.forEach((heading, place) =>
      heading.setAttribute("aria-sort", place !== column ? "none" : this.descending ? "descending" : "ascending"),
    );
    this.update();
  }

  setFilter() {
    this.isFiltered = this.filter.checked;
    this.update();
  }

  // Returns the rows to show: with a filter, those of the selected tensor and of what shares its storage.
  rows() {
    const { cursor, model, column } = this;
    const storage = cursor.storage;
    const isSelected = (tensor) => tensor === cursor.tensor || (storage >= 0 && model.storageAt(tensor, cursor.moment) === storage);
    let rows = this.table.rows;
    if (this.isFiltered && cursor.tensor >= 0) rows = rows.filter((row) => row.tensors.some(isSelected));
    if (column < 0) return rows;
    const sign = this.descending ? -1 : 1;
    return [...rows].sort((one, other) => sign * compareCells(one.cells[column], other.cells[column]));
  }

  update() {
    const rows = this.rows();
    this.body.replaceChildren(...rows.slice(0, this.most).map((row) => this.drawRow(row)));
    const left = rows.length - this.most;
    const more = left > 0 ? button(`show ${counted(left, "more row")}`, "show more rows", () => this.showMore(), { class: "link" }) : "";
    this.note.replaceChildren(more);
  }

  showMore() {
    this.most *= 10;
    this.update();
  }

  drawRow(row) {
    const isSelected = row.tensors.includes(this.cursor.tensor);
    const cells = row.cells.map((text, place) => {
      const content = place === 0 && row.tensors.length === 1 ? nameChip(this.cursor, row.tensors[0], text) : prose(text);
      return el("td", {}, ...[content].flat());
    });
    return el("tr", { class: isSelected ? "selected" : "" }, ...cells);
  }
}

// Compares numbers as numbers, and what is no number as text after them.
function compareCells(one, other) {
  const [first, second] = [parseFloat(one.replace(/[#,]/g, "")), parseFloat(other.replace(/[#,]/g, ""))];
  if (!Number.isNaN(first) && !Number.isNaN(second)) return first - second || one.localeCompare(other);
  if (Number.isNaN(first) !== Number.isNaN(second)) return Number.isNaN(first) ? 1 : -1;
  return one.localeCompare(other);
}
