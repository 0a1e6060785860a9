// Holds the moment and the selection, keeps them in the URL's fragment, and calls those who draw them.

class Cursor {
  constructor(model) {
    this.model = model;
    this.moment = model.start.moment;
    this.tensor = model.start.tensor;
    this.listeners = [];
    this.read();
    window.addEventListener("hashchange", () => this.read() && this.notify());
  }

  get storage() {
    return this.tensor < 0 ? NONE : this.model.storageAt(this.tensor, this.moment);
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  // Returns the first and the last moment to draw in a width: all, or a window that moves when the moment nears its edge.
  window(width) {
    const { count, end } = this.model;
    const most = Math.max(Math.floor(width / 6), 20);
    if (count <= most) return [0, end];
    const edge = Math.floor(most / 8);
    const [from, to] = this.shown || [NONE, NONE];
    const isInside = to - from + 1 === most && (from + edge <= this.moment || from === 0) && from <= this.moment;
    if (!isInside || (this.moment > to - edge && to < end) || this.moment > to) {
      const first = Math.min(Math.max(this.moment - Math.floor(most / 2), 0), count - most);
      this.shown = [first, first + most - 1];
    }
    return this.shown;
  }

  notify() {
    for (const listener of this.listeners) listener(this);
  }

  go(moment) {
    this.set(moment, this.tensor);
  }

  // Selects a tensor; the one that is selected already is deselected.
  select(tensor) {
    this.set(this.moment, tensor === this.tensor ? NONE : tensor);
  }

  set(moment, tensor) {
    this.moment = Math.min(Math.max(moment, 0), this.model.end);
    this.tensor = this.model.row.has(tensor) ? tensor : NONE;
    this.write();
    this.notify();
  }

  // Returns the fragment of a moment; on the page of several ranks it names the rank.
  address(moment) {
    return `#${this.model.rank === undefined ? "" : `rank=${this.model.rank}&`}moment=${moment}`;
  }

  write() {
    const selected = this.tensor < 0 ? "" : `&tensor=${this.tensor}`;
    try {
      window.history.replaceState(null, "", `${this.address(this.moment)}${selected}`);
    } catch {
      // a frame without an address of its own, as in a notebook
    }
  }

  // Reads the fragment. Returns whether it names a moment.
  read() {
    const fragment = new URLSearchParams(window.location.hash.slice(1));
    if (!/^\d+$/.test(fragment.get("moment") || "")) return false;
    if (fragment.has("rank") && fragment.get("rank") !== String(this.model.rank)) return false;
    this.moment = Math.min(Number(fragment.get("moment")), this.model.end);
    const tensor = Number(fragment.get("tensor") || NONE);
    this.tensor = this.model.row.has(tensor) ? tensor : NONE;
    return true;
  }
}
