// Indexes the data, and answers what it says about a moment. `tensorlens/render/page/data.py` describes the data.
// A row of a table is its position in the columns; -1 stands for "none".

const NONE = -1;

class Model {
  constructor(data) {
    Object.assign(this, data);
    this.count = data.moments.event.length;
    this.end = this.count - 1;
    this.row = new Map(data.tensors.id.map((id, row) => [id, row]));
    this.storageRow = new Map(data.memory.storages.id.map((id, row) => [id, row]));
    this.statesOf = grouped(data.changes.states.tensor);
    this.versionsOf = grouped(data.changes.versions.counter);
    this.gradientsOf = grouped(data.changes.gradients.tensor);
    this.usesAt = grouped(data.uses.moment);
    this.usesOf = grouped(data.uses.tensor);
    this.barsOf = grouped(data.memory.bars.storage);
    this.barsOfTensor = grouped(data.memory.bars.tensor);
    this.writesOf = grouped(data.memory.writes.storage);
    this.savesOf = grouped(data.memory.saves.storage);
    this.nodeAt = new Map(data.graph.nodes.moment.map((moment, row) => [moment, row]));
    this.edgesTo = grouped(data.graph.edges.to);
    this.edgesFrom = grouped(data.graph.edges.source);
    this.cutAt = new Map(data.graph.cuts.moment.map((moment, row) => [moment, row]));
    this.runsOfLine = new Map();
    data.runs.place.forEach((place, run) => {
      const key = this.lineKey(place);
      if (key === null) return;
      if (!this.runsOfLine.has(key)) this.runsOfLine.set(key, []);
      this.runsOfLine.get(key).push(run);
    });
  }

  text(number) {
    return number < 0 ? "" : this.strings[number];
  }

  // --- places -------------------------------------------------------------------------------------------------------

  // Returns "file:line" of a place, which is the key of a line everywhere.
  lineKey(place) {
    return place < 0 ? null : `${this.places.file[place]}:${this.places.line[place]}`;
  }

  // Returns "line 5", with the file if it is not the script.
  lineText(place) {
    if (place < 0) return "";
    const file = this.places.file[place];
    const line = this.places.line[place];
    return file === 0 ? `line ${line}` : `${this.sources[file].name}:${line}`;
  }

  placeAt(moment) {
    return this.moments.place[moment];
  }

  // --- moments ------------------------------------------------------------------------------------------------------

  kind(moment) {
    return this.kinds[this.moments.kind[moment]];
  }

  runAt(moment) {
    return this.moments.run[moment];
  }

  // Returns the last run of a line that begins at a moment or before; none: -1.
  lastRun(key, moment) {
    const runs = this.runsOfLine.get(key) || [];
    const place = lastAtMost(runs, moment, (run) => this.runs.first[run]);
    return place < 0 ? NONE : runs[place];
  }

  // --- tensors ------------------------------------------------------------------------------------------------------

  tensorText(tensor, column) {
    const row = this.row.get(tensor);
    return row === undefined ? "" : this.text(this.tensors[column][row]);
  }

  isNamed(tensor) {
    return this.tensors.named[this.row.get(tensor)] === 1;
  }

  // Returns the name that the last line up to a moment had for a tensor.
  nameAt(tensor, moment) {
    const uses = this.usesOf.get(tensor) || [];
    const place = lastAtMost(uses, moment, (use) => this.uses.moment[use]);
    return place < 0 ? this.tensorText(tensor, "name") : this.text(this.uses.name[uses[place]]);
  }

  // Returns what is known of a tensor after a moment; null before its first state.
  stateAt(tensor, moment) {
    const { states, versions, gradients } = this.changes;
    const row = this.row.get(tensor);
    const known = rowAt(this.statesOf.get(tensor), moment, states.moment);
    if (row === undefined || known < 0) return null;
    const version = rowAt(this.versionsOf.get(this.tensors.counter[row]), moment, versions.moment);
    const gradient = rowAt(this.gradientsOf.get(tensor), moment, gradients.moment);
    return {
      requiresGrad: states.requires_grad[known] === 1,
      leaf: states.leaf[known] === 1,
      gradFn: this.text(states.grad_fn[known]),
      storage: states.storage[known],
      version: version < 0 ? NONE : versions.version[version],
      grad: gradient < 0 ? "" : this.text(gradients.text[gradient]),
    };
  }

  // Returns the norm of a parameter's gradients, first and last, where `--training` measured it.
  normOf(tensor) {
    return this.norms[tensor] || "";
  }

  mark(storage) {
    const row = this.storageRow.get(storage);
    return row === undefined ? "" : this.text(this.memory.storages.mark[row]);
  }

  // Returns the other tensors whose bars in a storage include a moment.
  sharers(tensor, storage, moment) {
    const { bars } = this.memory;
    const found = (this.barsOf.get(storage) || []).filter(
      (bar) => bars.tensor[bar] !== tensor && bars.first[bar] <= moment && moment <= bars.last[bar],
    );
    return [...new Set(found.map((bar) => bars.tensor[bar]))];
  }

  // Returns whether a write up to a moment changed what autograd had saved of a storage.
  isBroken(storage, moment) {
    const { changed } = this.memory.saves;
    return (this.savesOf.get(storage) || []).some((pin) => changed[pin] >= 0 && changed[pin] <= moment);
  }

  // Returns the moments at which a storage was written, in order.
  writeMoments(storage) {
    return (this.writesOf.get(storage) || []).map((write) => this.memory.writes.moment[write]);
  }

  storageAt(tensor, moment) {
    const state = this.stateAt(tensor, moment);
    if (state !== null) return state.storage;
    const bars = this.barsOfTensor.get(tensor) || [];
    return bars.length ? this.memory.bars.storage[bars[0]] : NONE;
  }
}

// Maps each value of a column to the rows that have it, in order.
function grouped(column) {
  const rows = new Map();
  column.forEach((value, row) => {
    const found = rows.get(value);
    if (found === undefined) rows.set(value, [row]);
    else found.push(row);
  });
  return rows;
}

// Returns the position of the last item whose key is at most a value; -1: there is none.
function lastAtMost(items, value, key) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(items[middle]) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Returns the last of some rows whose moment is at most a value; -1: there is none.
function rowAt(rows, moment, moments) {
  if (rows === undefined) return NONE;
  const place = lastAtMost(rows, moment, (row) => moments[row]);
  return place < 0 ? NONE : rows[place];
}
