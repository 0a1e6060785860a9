// Makes elements. Data goes into text nodes and attributes only; a `style` attribute is forbidden by the page's policy.

const SVG = "http://www.w3.org/2000/svg";

function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== ""));
  return element;
}

// Returns prose with what is between backticks as code.
function prose(text) {
  return text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? el("code", {}, part) : part));
}

// Returns a text of at most `most` characters: of a longer one the beginning and the end, in which long names differ.
function shortened(text, most) {
  if (text.length <= most) return text;
  const end = Math.floor(Math.max(most - 1, 0) / 2);
  return `${text.slice(0, Math.max(Math.ceil(most) - 1 - end, 0))}…${end ? text.slice(-end) : ""}`;
}

function plainText(text) {
  return text.split(/`/).join("");
}

function button(text, label, action, more = {}) {
  return el("button", { type: "button", "aria-label": label, title: label, onclick: action, ...more }, text);
}

// Returns a link to a moment and a line.
function momentLink(cursor, moment, text, label, tensor = null) {
  const go = (event) => {
    event.preventDefault();
    cursor.set(moment, tensor === null ? cursor.tensor : tensor);
  };
  return el("a", { href: cursor.address(moment), class: "moment", "aria-label": label, onclick: go }, text);
}

const ROLES = { saved: "saved", needed: "needed", failed: "needed", modified: "changed", freed: "changed" };

// Returns the colour of a label: that of its role, or for the first label of a finding that of a change.
function roleClass(label, place) {
  const known = ROLES[label.role.split("_")[0]];
  return known || (place === 0 ? "changed" : "other");
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
