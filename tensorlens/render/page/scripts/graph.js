// Draws the graph: a row for each call that autograd recorded, arcs from results to what uses them, and crosses where
// paths end. What comes from the selected tensor is highlighted; what a pass up to the moment has freed is grey.

const NODE_ROW = 24; // height of a row
const GUTTER = 62; // width of the arcs

class GraphPane {
  constructor(model, cursor) {
    this.model = model;
    this.cursor = cursor;
    this.freedAt = new Map(); // node -> the pass that freed it
    for (const [pass, ...nodes] of model.graph.freed) for (const node of nodes) this.freedAt.set(node, pass);
    this.endsOf = grouped(model.graph.ends.to);
    this.turns = graphTurns(model);
    this.toggled = new Map(); // the first moment of a turn or group -> whether it is open
    this.body = el("div", { class: "nodes" });
    this.roving = new Roving(this.body);
    this.path = el("p", { class: "path", "aria-live": "polite" });
    this.element = el("section", { class: "graph", "aria-label": "graph" }, el("h2", {}, "Graph"), this.path, this.body);
    cursor.listen(() => this.update());
  }

  update() {
    const { model, cursor } = this;
    this.element.hidden = model.nodeAt.size + model.cutAt.size === 0;
    if (this.element.hidden) return;
    const current = Math.max(this.turns.findLastIndex((items) => items[0] <= cursor.moment), 0);
    this.reached = reachedIn(model, cursor.tensor, this.turns[current]);
    this.rows = [];
    this.turns.forEach((items, turn) => this.addTurn(items, turn, current));
    this.rowOf = new Map(this.rows.flatMap((row, place) => row.items.map((item) => [item, place])));
    this.path.replaceChildren(...prose(this.pathText(this.turns[current])));
    this.roving.redraw(() => this.body.replaceChildren(this.drawArcs(), ...this.rows.map((row) => row.element)));
  }

  // --- rows ---------------------------------------------------------------------------------------------------------

  addTurn(items, turn, current) {
    const beside = turn - current;
    const far = TURNS_BESIDE + 1;
    if (Math.abs(beside) > far) return;
    if (Math.abs(beside) === far) {
      const left = beside < 0 ? turn + 1 : this.turns.length - turn;
      const where = beside < 0 ? "earlier" : "later";
      this.addFold([], `…${where}`, false, `${left} more, ${where}`, () => this.cursor.go(items[items.length - 1]));
      return;
    }
    const isOpen = this.isOpen(`turn:${turn}`, beside === 0);
    if (this.turns.length > 1) this.addFold(isOpen ? [] : items, `turn:${turn}`, isOpen, this.turnText(items));
    if (isOpen) this.addItems(items, `turn:${turn}`);
  }

  addItems(items, key, depth = 1) {
    for (const group of graphGroups(this.model, items, depth)) {
      if (group.length === 1) {
        if (group[0] === this.reached.first && this.isLeaf()) this.addLeaf();
        this.addItem(group[0]);
        continue;
      }
      const name = `${key}/${group[0]}`;
      const isOpen = this.isOpen(name, group.some((moment) => this.reached.cuts.includes(moment)));
      this.addFold(isOpen ? [] : group, name, isOpen, this.groupText(group));
      if (isOpen) this.addItems(group, name, depth + 1);
    }
  }

  isOpen(key, byItself) {
    return this.toggled.has(key) ? this.toggled.get(key) : byItself;
  }

  isLeaf() {
    const { cursor, model } = this;
    const edges = (model.edgesTo.get(this.reached.first) || []).filter((edge) => model.graph.edges.tensor[edge] === cursor.tensor);
    return edges.some((edge) => model.graph.edges.source[edge] < 0);
  }

  turnText(items) {
    const { model } = this;
    const pass = items.find((moment) => model.kind(moment) === "backward");
    const at = pass === undefined ? items[0] : pass;
    const run = model.runAt(at);
    const turn = run < 0 ? "" : model.text(model.runs.turn[run]);
    const nodes = items.filter((moment) => model.nodeAt.has(moment));
    const isFreed = nodes.length && nodes.every((moment) => this.isFreed(moment));
    return [[model.lineText(model.placeAt(at)), turn].filter(Boolean).join(", "), counted(nodes.length, "node"), isFreed ? "freed" : ""].filter(Boolean).join(": ");
  }

  groupText(items) {
    const { model } = this;
    const module = modulePath(model, items[0]).join("");
    const from = module || model.lineText(model.placeAt(items[0]));
    const first = this.turns.find((turn) => turn.includes(items[0])).indexOf(items[0]) + 1;
    return `rows ${first} to ${first + items.length - 1}, from ${from} on`;
  }

  addFold(items, key, isOpen, text, act = () => this.toggle(key, !isOpen)) {
    const states = ["row folded", items.some((moment) => this.reached.moments.has(moment)) ? "reached" : ""];
    const expanded = key.startsWith("…") ? null : String(isOpen);
    const name = el("button", { type: "button", class: "fold", "data-key": key, "aria-expanded": expanded, onclick: act }, text);
    this.rows.push({ items, kind: "fold", element: el("div", { class: states.join(" ") }, name) });
  }

  toggle(key, isOpen) {
    this.toggled.set(key, isOpen);
    this.cursor.notify();
  }

  addLeaf() {
    const { model, cursor } = this;
    const name = model.nameAt(cursor.tensor, this.reached.first);
    this.rows.push({ items: ["leaf"], kind: "leaf", element: el("div", { class: "row leaf reached" }, el("b", {}, name), el("span", { class: "quiet" }, "requires grad, a leaf")) });
  }

  isFreed(moment) {
    const pass = this.freedAt.get(moment);
    return pass !== undefined && pass <= this.cursor.moment;
  }

  addItem(moment) {
    const { model, cursor } = this;
    const [kind, text, result] = this.textOf(moment);
    const isFreed = kind === "node" && this.isFreed(moment);
    const line = model.lineText(model.placeAt(moment));
    const states = ["row", kind, this.reached.moments.has(moment) ? "reached" : "", isFreed ? "freed" : "", moment > cursor.moment ? "later" : "", moment === cursor.moment ? "at" : ""];
    const label = [kind === "cut" ? "a path ends" : "", plainText(text), result ? `makes ${result}` : "", isFreed ? "freed" : "", line].filter(Boolean).join(", ");
    const name = el("button", { type: "button", "data-key": `node:${moment}`, "aria-label": label, title: label, onclick: () => cursor.go(moment) }, el("b", {}, result), el("span", {}, ...prose(text)));
    const node = model.nodeAt.get(moment);
    const module = node === undefined ? "" : model.text(model.graph.nodes.module[node]);
    const extra = [module, isFreed ? "freed" : ""].filter(Boolean).map((each) => el("span", { class: "quiet", title: each }, each));
    const ends = (this.endsOf.get(moment) || []).slice(0, 2).map((end) => {
      const plain = model.nameAt(model.graph.ends.tensor[end], moment);
      return el("span", { class: "quiet end", title: `${plain} does not require grad: the path ends here` }, `× ${plain}`);
    });
    this.rows.push({ items: [moment], kind, isFreed, element: el("div", { class: states.filter(Boolean).join(" ") }, name, ...extra, ...ends, el("span", { class: "quiet where-line" }, line)) });
  }

  // Returns the kind of an item, what it is, and the name of its result.
  textOf(moment) {
    const { model } = this;
    const node = model.nodeAt.get(moment);
    if (node !== undefined) {
      const tensor = model.graph.nodes.tensor[node];
      return ["node", model.text(model.graph.nodes.name[node]), model.isNamed(tensor) ? model.nameAt(tensor, moment) : ""];
    }
    const cut = model.cutAt.get(moment);
    if (cut !== undefined) return ["cut", model.text(model.graph.cuts.text[cut]), ""];
    const roots = passRoots(model, moment).map((root) => model.nameAt(root, moment));
    return ["pass", `backward from ${roots.slice(0, 2).join(", ") || "here"}`, ""];
  }

  // Says where the ways from the selected tensor lead in the turn of the moment.
  pathText(items) {
    const { model, cursor, reached } = this;
    if (cursor.tensor < 0) return "Select a tensor to see where its path leads.";
    const name = `\`${plainText(model.nameAt(cursor.tensor, cursor.moment))}\``;
    const state = model.stateAt(cursor.tensor, cursor.moment);
    const line = (moment) => model.lineText(model.placeAt(moment));
    const parts = [];
    if (reached.passes.length) parts.push(`leads to the backward pass at ${[...new Set(reached.passes.map(line))].join(" and ")}`);
    if (reached.cuts.length) {
      const reasons = reached.cuts.slice(0, 3).map((moment) => `${line(moment)} (${model.text(model.graph.cuts.text[model.cutAt.get(moment)])})`);
      parts.push(`${parts.length ? "another one " : ""}stops at ${[...new Set(reasons)].join(" and ")}`);
    }
    if (parts.length) return `The path from ${name} ${parts.join("; ")}.`;
    if (state !== null && !state.requiresGrad) return `${name} does not require grad: no path begins there.`;
    return reached.moments.size ? `No backward pass of this part of the run begins where the path from ${name} leads.` : `${name} is not in this part of the graph.`;
  }

  // --- arcs ---------------------------------------------------------------------------------------------------------

  drawArcs() {
    const { model } = this;
    const picture = svg("svg", { class: "arcs", width: GUTTER, height: this.rows.length * NODE_ROW, "aria-hidden": "true" });
    const drawn = new Map();
    const add = (from, to, isReached) => {
      const [one, other] = [this.rowOf.get(from), this.rowOf.get(to)];
      if (one === undefined || other === undefined || one === other) return;
      const key = `${one}-${other}`;
      drawn.set(key, [one, other, isReached || (drawn.has(key) && drawn.get(key)[2])]);
    };
    const has = (moment) => this.reached.moments.has(moment);
    const isSelected = (edge) => model.graph.edges.tensor[edge] === this.cursor.tensor;
    const { edges, cuts } = model.graph;
    for (const moment of this.rowOf.keys()) {
      for (const edge of model.edgesTo.get(moment) || []) {
        if (edges.source[edge] >= 0) add(edges.source[edge], moment, has(edges.source[edge]) && has(moment));
        else if (isSelected(edge) && has(moment)) add("leaf", moment, true);
      }
      const cut = model.cutAt.get(moment);
      const ends = cut !== undefined ? [cuts.tensor[cut]] : model.kind(moment) === "backward" ? passRoots(model, moment) : [];
      for (const tensor of ends) {
        const made = this.madeBy(tensor, moment);
        add(made, moment, has(made) && has(moment));
      }
    }
    const sorted = [...drawn.values()].sort((one, other) => Number(one[2]) - Number(other[2]));
    for (const arc of sorted) picture.append(this.drawArc(...arc));
    this.rows.forEach((row, place) => row.kind !== "fold" && picture.append(this.drawMark(row, place)));
    return picture;
  }

  // Returns the last shown node up to a moment whose result is a tensor.
  madeBy(tensor, before) {
    const { nodes } = this.model.graph;
    let found = NONE;
    for (const moment of this.rowOf.keys()) {
      const node = this.model.nodeAt.get(moment);
      if (node !== undefined && moment <= before && nodes.tensor[node] === tensor) found = Math.max(found, moment);
    }
    return found;
  }

  drawArc(from, to, isReached) {
    const x = GUTTER - 10;
    const [one, other] = [(from + 0.5) * NODE_ROW, (to + 0.5) * NODE_ROW];
    const bend = from + 1 === to ? 0 : Math.min(8 + 5 * (to - from), GUTTER + 4);
    return svg("path", { class: isReached ? "edge reached" : "edge", d: `M${x} ${one}C${x - bend} ${one} ${x - bend} ${other} ${x} ${other}` });
  }

  drawMark(row, place) {
    const [x, y] = [GUTTER - 10, (place + 0.5) * NODE_ROW];
    const names = row.element.getAttribute("class").replace("row ", "");
    if (row.kind === "cut") return svg("path", { class: names, d: `M${x - 5} ${y - 5}L${x + 5} ${y + 5}M${x + 5} ${y - 5}L${x - 5} ${y + 5}` });
    if (row.kind === "node") return svg("circle", { class: names, "data-node": row.items[0], cx: x, cy: y, r: 5 });
    return svg("rect", { class: names, x: x - 4.5, y: y - 4.5, width: 9, height: 9 });
  }
}

// Draws the saved edges: from the node of the graph that saved a tensor to its pin in the storage lanes.
class SavedEdges {
  constructor(model, cursor, pictures) {
    Object.assign(this, { model, cursor, pictures });
    this.picture = svg("svg", { class: "saved-edges", "aria-hidden": "true" });
    pictures.append(this.picture);
    cursor.listen(() => this.update());
    if (window.ResizeObserver) new ResizeObserver(() => this.update()).observe(pictures.firstChild);
  }

  update() {
    const { pictures, picture } = this;
    const { saves } = this.model.memory;
    const box = pictures.getBoundingClientRect();
    const centre = (element) => {
      const at = element.getBoundingClientRect();
      return [at.left + at.width / 2 - box.left, at.top + at.height / 2 - box.top + pictures.scrollTop];
    };
    picture.setAttribute("height", 0);
    const edges = [];
    for (const pin of pictures.querySelectorAll("[data-pin]")) {
      const row = Number(pin.dataset.pin);
      const node = pictures.querySelector(`[data-node="${saves.saved[row]}"]`);
      if (node === null) continue;
      const [[x1, y1], [x2, y2]] = [centre(node), centre(pin)];
      const [side, top] = [x1 - 40, centre(node.closest(".arcs").parentElement)[1] - node.closest(".arcs").height.baseVal.value / 2];
      const isSelected = saves.storage[row] === this.cursor.storage;
      edges.push(svg("path", { class: isSelected ? "selected" : "", d: `M${x1} ${y1}Q${side} ${y1} ${side} ${Math.max(y1 - 30, top)}V${top}C${side} ${top - 80} ${x2} ${top} ${x2} ${y2}` }));
    }
    picture.replaceChildren(...edges);
    picture.setAttribute("height", pictures.scrollHeight);
  }
}
