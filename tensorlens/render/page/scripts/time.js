// Moves through time: a slider, buttons and keys for moments, lines, runs of a line, and writes of the selected storage.

class TimeBar {
  constructor(model, cursor) {
    this.model = model;
    this.cursor = cursor;
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: model.end,
      step: 1,
      "aria-label": "moment",
      oninput: () => cursor.go(Number(this.slider.value)),
    });
    this.where = el("p", { class: "where", "aria-live": "polite" });
    this.steps = [
      this.step("moment", "moment", "←", "→", (way) => cursor.moment + way),
      this.step("line", "line", "⇧←", "⇧→", (way) => this.nextLine(way)),
      this.step("same line", "time at this line", "{", "}", (way) => this.nextRun(way)),
      this.step("write", "write of the selected memory", "[", "]", (way) => this.nextWrite(way)),
    ];
    const finding = model.findings.length
      ? button("finding", "go to the finding (f)", () => cursor.set(model.start.moment, model.start.tensor))
      : null;
    this.element = el(
      "nav",
      { class: "time", "aria-label": "time" },
      this.where,
      this.slider,
      el("div", { class: "steps" }, ...this.steps.map((step) => step.element), finding),
    );
    cursor.listen(() => this.update());
    document.addEventListener("keydown", (event) => this.press(event));
  }

  step(word, title, before, after, target) {
    const go = (way) => {
      const moment = target(way);
      if (moment >= 0 && moment <= this.model.end) this.cursor.go(moment);
    };
    const previous = button("‹", `previous ${title} (${before})`, () => go(-1));
    const next = button("›", `next ${title} (${after})`, () => go(1));
    const element = el("span", { class: "step", role: "group", "aria-label": title }, previous, el("span", {}, word), next);
    return { target, go, previous, next, element };
  }

  // Returns the beginning of the next run, or the end of the run before.
  nextLine(way) {
    const { model, cursor } = this;
    let moment = cursor.moment;
    const run = model.runAt(moment);
    while (moment >= 0 && moment <= model.end && model.runAt(moment) === run) moment += way;
    return moment;
  }

  nextRun(way) {
    const { model, cursor } = this;
    const run = model.runAt(cursor.moment);
    const key = run < 0 ? null : model.lineKey(model.runs.place[run]);
    const runs = key === null ? [] : model.runsOfLine.get(key);
    const next = runs[runs.indexOf(run) + way];
    return next === undefined ? NONE : model.runs.last[next];
  }

  nextWrite(way) {
    const moments = this.model.writeMoments(this.cursor.storage);
    const now = this.cursor.moment;
    const found = way > 0 ? moments.find((moment) => moment > now) : moments.filter((moment) => moment < now).pop();
    return found === undefined ? NONE : found;
  }

  update() {
    const { model, cursor } = this;
    this.slider.value = cursor.moment;
    const run = model.runAt(cursor.moment);
    const fact = run < 0 ? undefined : model.runs.texts[run][0];
    const line = model.lineText(model.placeAt(cursor.moment));
    const turn = run < 0 ? "" : model.text(model.runs.turn[run]);
    const sentence = fact === undefined ? "" : [model.text(fact[0]), model.text(fact[1])].filter(Boolean).join(" ");
    this.slider.setAttribute("aria-valuetext", [line, sentence].filter(Boolean).join(": "));
    this.where.replaceChildren(
      el("b", {}, cursor.moment === model.end ? "end" : line || model.kind(cursor.moment)),
      turn ? el("span", { class: "turn" }, turn) : "",
      el("span", {}, sentence),
      el("span", { class: "quiet" }, `${cursor.moment + 1} of ${model.count}`),
    );
    for (const step of this.steps) {
      const reaches = (way) => {
        const moment = step.target(way);
        return moment >= 0 && moment <= model.end;
      };
      step.previous.disabled = !reaches(-1);
      step.next.disabled = !reaches(1);
    }
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.element.isConnected) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest("input, textarea, select") && event.key.startsWith("Arrow")) return;
    const [moment, line, run, write] = this.steps;
    const arrows = event.shiftKey ? line : moment;
    const actions = {
      ArrowLeft: () => arrows.go(-1),
      ArrowRight: () => arrows.go(1),
      "{": () => run.go(-1),
      "}": () => run.go(1),
      "[": () => write.go(-1),
      "]": () => write.go(1),
      Escape: () => this.cursor.set(this.cursor.moment, NONE),
      f: () => this.cursor.set(this.model.start.moment, this.model.start.tensor),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  }
}
