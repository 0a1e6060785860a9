// Draws the states of tensors at the moment: chips beside lines, and what happened below the line of the moment.

// Returns the tensors that a run of a line used up to a moment, by name, results first.
function tensorsOfRun(model, run, moment) {
  const { uses, runs } = model;
  const found = new Map();
  for (let at = runs.first[run]; at <= Math.min(runs.last[run], moment); at += 1) {
    if (model.runAt(at) !== run) continue;
    for (const use of model.usesAt.get(at) || []) {
      const tensor = uses.tensor[use];
      const before = found.get(tensor);
      found.set(tensor, {
        tensor,
        name: model.text(uses.name[use]),
        version: uses.version[use],
        written: uses.written[use] === 1,
        made: uses.made[use] === 1 || (before !== undefined && before.made),
      });
    }
  }
  return [...found.values()].sort((one, other) => Number(other.made) - Number(one.made));
}

function drawChip(model, cursor, { tensor, name, version }) {
  const state = model.stateAt(tensor, cursor.moment);
  if (state === null) return null;
  const parts = [el("b", {}, name)];
  const hasMoved = version >= 0 && state.version > version;
  const isBroken = hasMoved && model.isBroken(state.storage, cursor.moment);
  if (state.version > 0) parts.push(el("i", { class: isBroken ? "changed" : "" }, hasMoved ? `v${version} → v${state.version}` : `v${state.version}`));
  if (model.mark(state.storage)) parts.push(el("i", { class: "storage" }, model.mark(state.storage)));
  if (state.grad) parts.push(el("i", {}, `.grad ${state.grad}`));
  const norm = model.normOf(tensor);
  if (norm) parts.push(el("i", {}, `gradient norm ${norm}`));
  const selected = tensor === cursor.tensor;
  return el(
    "button",
    {
      type: "button",
      class: `chip${selected ? " selected" : ""}${state.requiresGrad ? " requires-grad" : ""}`,
      "aria-pressed": String(selected),
      title: stateText(model, cursor, tensor, state),
      onclick: () => cursor.select(tensor),
    },
    ...parts,
  );
}

function stateText(model, cursor, tensor, state) {
  const name = model.nameAt(tensor, cursor.moment);
  const parts = [`${name}: ${model.tensorText(tensor, "dtype")} ${model.tensorText(tensor, "shape")}`];
  parts.push(state.requiresGrad ? `requires grad${state.leaf ? ", a leaf" : ""}` : "does not require grad");
  if (state.gradFn) parts.push(state.gradFn);
  if (state.version >= 0) parts.push(`version ${state.version}`);
  return parts.join("; ");
}

// Draws what happened at the moment: the sentences of the run, and a table of its tensors.
function drawDetail(model, cursor) {
  const run = model.runAt(cursor.moment);
  const turn = run < 0 ? "" : model.text(model.runs.turn[run]);
  const facts = run < 0 ? [] : model.runs.texts[run].map((fact) => drawFact(model, fact));
  const count = turn ? el("p", { class: "quiet" }, turn) : null;
  const tensors = run < 0 ? [] : tensorsOfRun(model, run, cursor.moment);
  return el("div", { class: "detail" }, ...facts, count, drawSelected(model, cursor), drawStates(model, cursor, tensors));
}

const MOST_SHARERS = 12;

// Draws what the selected tensor is at the moment, with all that shares its memory.
function drawSelected(model, cursor) {
  const { tensor, moment } = cursor;
  const state = tensor < 0 ? null : model.stateAt(tensor, moment);
  if (state === null) return null;
  const others = model.sharers(tensor, state.storage, moment).map((other) => model.nameAt(other, moment));
  const names = [...new Set(others)];
  const left = names.length - MOST_SHARERS;
  const shares = names.slice(0, MOST_SHARERS).flatMap((name, place) => [place ? ", " : "", el("code", {}, name)]);
  const norm = model.normOf(tensor);
  return el(
    "p",
    { class: "selection" },
    el("code", {}, model.nameAt(tensor, moment)),
    el("span", { class: "storage" }, ` ${model.mark(state.storage)} `),
    state.version < 0 ? "" : `v${state.version} `,
    ...(names.length ? ["shares memory with ", ...shares, left > 0 ? ` and ${left} more` : ""] : ["shares memory with no other tensor here"]),
    norm ? `; gradient norm ${norm}` : "",
  );
}

const TONES = ["", "warning", "error"];

function drawFact(model, [name, text, storage, tone, ...more]) {
  const mark = model.text(storage);
  return el(
    "p",
    { class: `fact ${TONES[tone]}` },
    name ? el("code", {}, model.text(name)) : null,
    mark ? el("span", { class: "storage" }, mark) : null,
    el("span", {}, ...prose(model.text(text))),
    ...more.map((each) => el("span", { class: "more" }, ...prose(model.text(each)))),
  );
}

const MOST_STATES = 8;

function drawStates(model, cursor, tensors) {
  if (!tensors.length) return null;
  const found = tensors.slice(0, MOST_STATES).map((each) => ({ ...each, state: model.stateAt(each.tensor, cursor.moment) }));
  const rows = found.filter(({ state }) => state !== null);
  const shares = ({ tensor, state }) => {
    const others = model.sharers(tensor, state.storage, cursor.moment);
    const names = others.slice(0, 3).map((other) => model.nameAt(other, cursor.moment)).join(", ");
    return names + (others.length > 3 ? ` and ${others.length - 3} more` : "");
  };
  const columns = [
    ["version", ({ state }) => (state.version < 0 ? "" : `v${state.version}`)],
    ["storage", ({ state }) => model.mark(state.storage)],
    ["shares with", shares],
    ["requires grad", ({ state }) => (state.requiresGrad ? "yes" : "no")],
    ["grad_fn", ({ state }) => state.gradFn || (state.leaf ? "leaf" : "")],
    [".grad", ({ state }) => state.grad],
    ["gradient norm", ({ tensor }) => model.normOf(tensor)],
  ];
  const cells = columns.map(([, text]) => rows.map(text));
  const shown = columns.map((_, place) => place).filter((place) => cells[place].some(Boolean)); // no empty columns
  const drawRow = ({ tensor, name }, row) =>
    el(
      "tr",
      { class: tensor === cursor.tensor ? "selected" : "" },
      el("th", { scope: "row" }, nameChip(cursor, tensor, name)),
      ...shown.map((place) => el("td", { class: columns[place][0] === "storage" ? "storage" : "" }, cells[place][row])),
    );
  const head = el("tr", {}, ...["name", ...shown.map((place) => columns[place][0])].map((text) => el("th", { scope: "col" }, text)));
  const more = tensors.length > MOST_STATES ? el("p", { class: "quiet" }, `and ${counted(tensors.length - MOST_STATES, "more tensor")}`) : null;
  return el("div", { class: "states" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows.map(drawRow))), more);
}

function nameChip(cursor, tensor, name) {
  const select = { type: "button", class: "chip", "aria-pressed": String(tensor === cursor.tensor), title: name, onclick: () => cursor.select(tensor) };
  return el("button", select, el("b", {}, name));
}
