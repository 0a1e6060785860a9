// Moves the focus through the items of a pane with the arrow keys: one of them is reached with Tab, and Enter acts.

class Roving {
  constructor(list) {
    this.list = list;
    this.key = null; // of the item that Tab reaches
    list.addEventListener("keydown", (event) => this.press(event));
    list.addEventListener("focusin", (event) => this.note(event.target.closest("[data-key]")));
  }

  get items() {
    return [...this.list.querySelectorAll("[data-key]")];
  }

  note(item) {
    if (!item) return;
    this.key = item.dataset.key;
    for (const other of this.items) other.setAttribute("tabindex", other === item ? "0" : "-1");
  }

  // Draws the pane again; what had the focus has it afterwards.
  redraw(draw) {
    const hadFocus = this.list.contains(document.activeElement);
    draw();
    const items = this.items;
    const item = items.find((each) => each.dataset.key === this.key) || items[0];
    for (const each of items) each.setAttribute("tabindex", each === item ? "0" : "-1");
    if (hadFocus && item) item.focus({ preventScroll: true });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const items = this.items;
    const at = items.indexOf(event.target.closest("[data-key]"));
    const targets = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
    if (at >= 0 && Object.hasOwn(targets, event.key)) {
      event.preventDefault();
      const item = items[targets[event.key]];
      if (item) item.focus();
    } else if (at >= 0 && (event.key === "Enter" || event.key === " ") && !(event.target instanceof HTMLElement)) {
      event.preventDefault();
      event.target.closest("[data-key]").dispatchEvent(new MouseEvent("click"));
    }
  }
}

// Makes a part of a drawing an item: it has a name, and a key or a click acts.
function svgItem(key, names, label, act) {
  return svg("g", { class: names, role: "button", tabindex: "-1", "data-key": key, "aria-label": label, onclick: act }, svg("title", {}, label));
}
