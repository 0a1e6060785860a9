// Walks through every moment and checks what always holds. `page.html#selftest` runs it; the result is in the document.

const MOST_PROBLEMS = 20;

function selftest(model, cursor, panes) {
  const problems = [];
  const check = (holds, text) => {
    if (!holds && problems.length < MOST_PROBLEMS) problems.push(text);
  };
  checkPlaces(model, check);
  checkMemory(model, check);
  checkGraph(model, check);
  checkLabels(model, panes, check);
  const moments = walked(model);
  for (const moment of moments) {
    cursor.go(moment);
    check(cursor.moment === moment, `moment ${moment}: the cursor is at ${cursor.moment}`);
    const key = model.lineKey(model.placeAt(moment));
    const current = document.querySelectorAll(".line.current");
    const expected = key !== null && panes.source.lines.has(key) ? 1 : 0;
    check(current.length === expected, `moment ${moment}: ${current.length} current lines`);
    checkRows(panes.graph, moment, check);
    for (const use of model.usesAt.get(moment) || []) {
      const version = model.uses.version[use];
      const state = model.stateAt(model.uses.tensor[use], moment);
      check(state === null || version < 0 || state.version >= version, `moment ${moment}: a version is older than its use`);
    }
  }
  const result = el("pre", { id: "selftest", "data-ok": String(problems.length === 0) });
  const errors = window.pageErrors || [];
  result.append([`${moments.length} moments walked, ${problems.length + errors.length} problems`, ...problems, ...errors].join("\n"));
  document.body.prepend(result);
}

// Returns the moments to walk: all, or of a long run some of each part and the last.
function walked(model) {
  const step = Math.max(Math.ceil(model.count / 400), 1);
  const all = Array.from({ length: model.count }, (_, moment) => moment);
  return all.filter((moment) => moment % step === 0 || moment === model.end);
}

function checkPlaces(model, check) {
  model.places.line.forEach((line, place) => {
    const file = model.sources[model.places.file[place]];
    const isShown = file.blocks.some((block) => block.line <= line && line < block.line + block.lines.length);
    check(isShown || !file.blocks.length, `place ${place}: line ${line} of ${file.name} is not shown`);
  });
  const hidden = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/;
  model.strings.forEach((text, number) => check(!hidden.test(text), `string ${number} has a hidden character`));
}

function checkMemory(model, check) {
  const { bars, saves, writes } = model.memory;
  const ends = new Map();
  bars.first.forEach((first, bar) => {
    const row = `${bars.storage[bar]}/${bars.row[bar]}`;
    check(first <= bars.last[bar], `bar ${bar} ends before it begins`);
    check(!ends.has(row) || ends.get(row) < first, `bar ${bar} overlaps another one of its row`);
    ends.set(row, bars.last[bar]);
  });
  saves.saved.forEach((saved, pin) => {
    const [changed, needed] = [saves.changed[pin], saves.needed[pin]];
    if (saved >= 0 && changed >= 0) check(saved <= changed, `pin ${pin} was changed before it was saved`);
    if (changed >= 0 && needed >= 0) check(changed <= needed, `pin ${pin} was changed after it was needed`);
    if (changed >= 0) check(writes.moment.includes(changed), `pin ${pin} was changed by no write`);
    if (saves.found[pin] >= 0 && model.text(saves.problem[pin]) === "version") {
      check(saves.found[pin] > saves.version[pin], `pin ${pin} was not changed`);
    }
  });
  writes.after.forEach((after, write) => {
    check(after < 0 || after > writes.before[write], `write ${write} moves no version`);
  });
}

function checkGraph(model, check) {
  const { edges, nodes, freed } = model.graph;
  check(new Set(nodes.moment).size === nodes.moment.length, "two nodes are at one moment");
  edges.to.forEach((to, edge) => {
    check(model.nodeAt.has(to), `edge ${edge} leads to no node`);
    check(edges.source[edge] < to, `edge ${edge} leads back in time`);
    check(edges.source[edge] < 0 || model.nodeAt.has(edges.source[edge]), `edge ${edge} begins at no node`);
  });
  for (const [pass, ...freedNodes] of freed) {
    check(freedNodes.every((node) => node < pass), `the pass at moment ${pass} frees a later node`);
  }
}

// Each item of the moment's turn is in one row, and a highlighted way has a reason where it ends.
function checkRows(graph, moment, check) {
  if (graph.element.hidden) return;
  const items = graph.rows.flatMap((row) => row.items).filter((item) => item !== "leaf");
  check(new Set(items).size === items.length, `moment ${moment}: two rows of the graph show one call`);
  const { cuts, passes } = graph.reached;
  const isSaid = cuts.length + passes.length === 0 || graph.path.textContent.startsWith("The path from");
  check(isSaid, `moment ${moment}: the graph does not say where the way of the selected tensor ends`);
}

function checkLabels(model, panes, check) {
  model.findings.forEach((finding) =>
    finding.labels.forEach((label) => {
      check(panes.source.lines.has(model.lineKey(label.place)), `the line of a label of ${finding.code} is not shown`);
      check(label.moment <= model.end, `the moment of a label of ${finding.code} does not exist`);
    }),
  );
}
