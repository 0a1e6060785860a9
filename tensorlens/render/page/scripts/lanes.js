// Draws the storage lanes: one lane a storage, its tensors as bars from birth to death, writes as ticks with their
// version, and what autograd saved as pins, whose threads turn red where a write changed the saved version.

const LANES = 8; // drawn at first
const BAR = 17; // height of a bar
const PINS = 6; // drawn in one lane
const THREAD = 18; // height of a pin with its thread

class LanesPane {
  constructor(model, cursor) {
    this.model = model;
    this.cursor = cursor;
    this.most = LANES;
    this.rank = laneRanks(model);
    this.list = el("div", { class: "lanes" });
    this.roving = new Roving(this.list);
    this.note = el("p", { class: "quiet" });
    this.element = el("section", { class: "memory", "aria-label": "memory" }, el("h2", {}, "Memory"), this.list, this.note);
    cursor.listen(() => this.update());
    if (window.ResizeObserver) new ResizeObserver(() => this.update()).observe(this.list);
  }

  // Returns the storages to draw: the selected one, those of the finding, then those where most happens.
  storages(from, to) {
    const { bars } = this.model.memory;
    if (this.from !== from || this.to !== to) {
      const found = new Set();
      bars.storage.forEach((storage, bar) => {
        if (bars.first[bar] <= to && from <= bars.last[bar]) found.add(storage);
      });
      this.found = [...found].sort((one, other) => this.rank.get(other) - this.rank.get(one) || one - other);
      Object.assign(this, { from, to });
    }
    const selected = this.cursor.storage;
    return this.found.includes(selected) ? [selected, ...this.found.filter((storage) => storage !== selected)] : this.found;
  }

  update() {
    this.element.hidden = this.model.barsOf.size === 0;
    const width = Math.max(this.list.clientWidth - laneLabelWidth(this.list), 120);
    const [from, to] = this.cursor.window(width);
    const found = this.storages(from, to);
    const shown = found.slice(0, this.most).sort((one, other) => this.model.barsOf.get(one)[0] - this.model.barsOf.get(other)[0]);
    const scale = momentScale(from, to, width);
    this.roving.redraw(() => this.list.replaceChildren(...shown.map((storage) => this.drawLane(storage, scale, width))));
    const left = found.length - shown.length;
    const more = left > 0 ? button(`show ${counted(left, "more storage")}`, "show more storages", () => this.showMore(), { class: "link" }) : null;
    this.note.replaceChildren(...[more].filter(Boolean));
  }

  showMore() {
    this.most *= 4;
    this.update();
  }

  drawLane(storage, scale, width) {
    const { model, cursor } = this;
    const { bars } = model.memory;
    const rows = model.barsOf.get(storage).filter((bar) => bars.first[bar] <= scale.to && scale.from <= bars.last[bar]);
    const tensors = [...new Set(rows.map((bar) => bars.tensor[bar]))].sort((one, other) => model.isNamed(other) - model.isNamed(one));
    const saved = this.pinsOf(storage);
    const pins = saved.slice(0, PINS);
    const levels = [...new Set(rows.map((bar) => bars.row[bar]))].sort((one, other) => one - other);
    const top = pins.length * THREAD + 10;
    const height = top + levels.length * BAR + 4;
    const picture = svg("svg", { width, height, role: "group", "aria-label": this.describe(storage, tensors) });
    for (const bar of rows) picture.append(this.drawBar(bar, scale, top + levels.indexOf(bars.row[bar]) * BAR));
    for (const write of model.writesOf.get(storage) || []) picture.append(this.drawTick(write, scale, top, height));
    pins.forEach((pin, place) => picture.append(this.drawPin(pin, scale, place * THREAD + 15, top)));
    const now = scale.x(cursor.moment);
    picture.append(svg("line", { class: "now", x1: now, x2: now, y1: 0, y2: height }));
    const isSelected = storage === cursor.storage;
    const named = tensors.filter((tensor) => model.isNamed(tensor));
    const members = named.length ? named : tensors;
    const name = members.slice(0, 2).map((tensor) => model.nameAt(tensor, cursor.moment)).join(", ");
    const label = el(
      "button",
      { type: "button", class: "lane-name", "data-key": `lane:${storage}`, "aria-pressed": String(isSelected), title: name, onclick: () => cursor.select(tensors[0]) },
      el("span", { class: "storage" }, model.mark(storage)),
      el("span", {}, (members.length > 1 ? name : shortened(name, laneLabelWidth(this.list) / 8 - 2)) + (members.length > 2 ? ` and ${members.length - 2} more` : "")),
      saved.length > PINS ? el("span", { class: "quiet" }, `${saved.length - PINS} more saved`) : null,
    );
    return el("div", { class: isSelected ? "lane selected" : "lane" }, label, picture);
  }

  // Returns the pins of a storage, those whose version was overwritten first.
  pinsOf(storage) {
    const { changed } = this.model.memory.saves;
    const pins = this.model.savesOf.get(storage) || [];
    return [...pins].sort((one, other) => Number(changed[other] >= 0) - Number(changed[one] >= 0) || one - other);
  }

  describe(storage, tensors) {
    const writes = (this.model.writesOf.get(storage) || []).length;
    const names = tensors.slice(0, 5).map((tensor) => this.model.nameAt(tensor, this.cursor.moment)).join(", ");
    return `storage ${this.model.mark(storage)}: ${counted(tensors.length, "tensor")} (${names}), ${counted(writes, "write")}`;
  }

  drawBar(bar, scale, y) {
    const { bars } = this.model.memory;
    const tensor = bars.tensor[bar];
    const left = scale.x(Math.max(bars.first[bar], scale.from)) - 3;
    const right = scale.x(Math.min(bars.last[bar], scale.to)) + 3;
    const name = this.model.nameAt(tensor, this.cursor.moment);
    const isSelected = tensor === this.cursor.tensor;
    const group = svgItem(`bar:${bar}`, isSelected ? "bar selected" : "bar", `${name}: select`, () => this.cursor.select(tensor));
    group.append(svg("rect", { x: left, y, width: Math.max(right - left, 4), height: BAR - 4, rx: 3 }));
    const room = Math.floor((right - left - 10) / 6.6);
    if (room >= 1) group.append(svg("text", { x: left + 5, y: y + BAR - 8 }, shortened(name, room)));
    return group;
  }

  drawTick(write, scale, top, height) {
    const { writes } = this.model.memory;
    const at = writes.moment[write];
    if (at < scale.from || at > scale.to) return "";
    const x = scale.x(at);
    const { changed } = this.model.memory.saves;
    const isBreaking = (this.model.savesOf.get(writes.storage[write]) || []).some((pin) => changed[pin] === at);
    const version = writes.after[write] < 0 ? "no version" : `v${writes.after[write]}`;
    const label = `write, ${version}, ${this.model.lineText(this.model.placeAt(at))}${isBreaking ? ", changed what was saved" : ""}: go to this moment`;
    const group = svgItem(`tick:${write}`, isBreaking ? "tick breaking" : "tick", label, () => this.cursor.go(at));
    group.append(svg("line", { x1: x, x2: x, y1: top - 4, y2: height - 2 }));
    if (scale.step >= 14 || writes.after[write] < 0) group.append(svg("text", { x: x + 3, y: height - 4 }, version));
    return group;
  }

  drawPin(pin, scale, y, top) {
    const { saves } = this.model.memory;
    const { model } = this;
    const clamp = (moment) => scale.x(Math.min(Math.max(moment, scale.from), scale.to));
    const saved = saves.saved[pin] < 0 ? scale.from : saves.saved[pin];
    const needed = saves.needed[pin] < 0 ? saved : saves.needed[pin];
    const changed = saves.changed[pin] < 0 ? needed : saves.changed[pin];
    const isBroken = saves.changed[pin] >= 0;
    const text = savedText(model, pin);
    const label = `${text}${isBroken ? `, changed by ${model.lineText(model.placeAt(saves.changed[pin]))}` : ""}: go to the moment of the save`;
    const group = svgItem(`pin:${pin}`, isBroken ? "pin broken" : "pin", label, () => saves.saved[pin] >= 0 && this.cursor.go(saved));
    group.append(svg("line", { class: "stem", x1: clamp(saved), x2: clamp(saved), y1: y, y2: top }));
    group.append(svg("line", { class: "thread saved", x1: clamp(saved), x2: clamp(changed), y1: y, y2: y }));
    if (isBroken) group.append(svg("line", { class: "thread changed", x1: clamp(changed), x2: clamp(needed), y1: y, y2: y }));
    group.append(svg("circle", { class: "saved", "data-pin": pin, cx: clamp(saved), cy: y, r: 4 }));
    if (isBroken) group.append(svg("circle", { class: "changed", cx: clamp(changed), cy: y, r: 4 }));
    if (saves.needed[pin] >= 0) group.append(svg("circle", { class: "needed", cx: clamp(needed), cy: y, r: 4 }));
    const isRight = clamp(saved) + 8 + 6.6 * text.length > scale.x(scale.to) && clamp(saved) > 6.6 * text.length;
    group.append(svg("text", { x: clamp(saved) + (isRight ? -8 : 8), y: y - 3, class: isRight ? "before" : "" }, text));
    return group;
  }
}

// Says what a pin is: "MulBackward0 saved v1"; of a custom Function, no node is known.
function savedText(model, pin) {
  const { node, version } = model.memory.saves;
  const parts = [model.text(node[pin]), "saved", version[pin] < 0 ? "" : `v${version[pin]}`];
  return parts.filter(Boolean).join(" ");
}

// Ranks storages by what happens in them: findings first, then pins, sharing and writes, then names.
function laneRanks(model) {
  const { bars } = model.memory;
  const found = new Set(model.findings.flatMap((finding) => finding.tensors).map((tensor) => model.storageAt(tensor, model.end)));
  const ranks = new Map();
  for (const [storage, rows] of model.barsOf) {
    const tensors = new Set(rows.map((bar) => bars.tensor[bar])).size;
    const writes = (model.writesOf.get(storage) || []).length;
    const pins = (model.savesOf.get(storage) || []).length;
    ranks.set(storage, (found.has(storage) ? 1000 : 0) + 50 * pins + 10 * Math.min(tensors - 1, 9) + 5 * Math.min(writes, 9) + (model.mark(storage) ? 30 : 0));
  }
  return ranks;
}

function laneLabelWidth(list) {
  return list.clientWidth < 500 ? 90 : 150;
}

function momentScale(from, to, width) {
  const step = (width - 24) / Math.max(to - from, 1);
  return { from, to, step, x: (moment) => 12 + (moment - from) * step };
}
