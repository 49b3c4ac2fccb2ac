// Making the page's elements. What comes from the server or the user is always a text node:
// nothing here, or in any other file, makes markup of text.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined).map(
    (child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return node;
}

export const el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
}

// What is wrong, where it is in the text that was sent, and what to do about it.
export function message(error) {
  const [words, ...where] = String(error.message).split("\n");
  const indent = Math.min(...where.map((line) => line.search(/\S|$/)));
  return [el("span", { class: "words" }, words),
    where.length ? el("pre", {}, where.map((line) => line.slice(indent)).join("\n")) : null,
    error.hint ? el("span", { class: "hint" }, error.hint) : null];
}

export const problem = (error) => el("div", { class: "problem" }, message(error));

export const isNumber = (x) => typeof x === "number" && Number.isFinite(x);

// Numbers for reading: thousands apart, decimals only where they matter beside the error.
export function number(x, error) {
  if (!isNumber(x)) return "unknown";
  let decimals = 0;
  if (!Number.isInteger(x)) {
    if (isNumber(error) && error > 0 && error < 1) {
      decimals = Math.min(9, 1 - Math.floor(Math.log10(error)));
    } else if (Math.abs(x) < 100) {
      decimals = Math.abs(x) >= 0.1 || x === 0 ? 2 : Math.min(9, 2 - Math.floor(Math.log10(Math.abs(x))));
    }
  }
  const shown = x.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return shown.replace("-", "−");
}

export const key = (value) => (value === null || value === undefined ? "NULL" : String(value));

export function moment(seconds) {
  if (!isNumber(seconds)) return key(seconds);
  // In the reader's own zone, which is named.
  return new Date(seconds * 1000).toLocaleString(undefined, {
    year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
  });
}

// With `stack`, each row is a card on a narrow screen, and its cells say what they are.
export function table(headings, rows, options = {}) {
  const right = new Set(options.right || []);
  const at = (i) => (right.has(i) ? "right" : null);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.label || "Table" },
    el("table", { class: options.stack ? "stack" : null },
      options.caption ? el("caption", {}, options.caption) : null,
      el("thead", {}, el("tr", {}, headings.map((text, i) => el("th", { scope: "col", class: at(i) }, text)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) =>
        el("td", { class: at(i), "data-label": headings[i] }, cell)))))));
}

// How much of a budget is left, in words and as a bar.
export const leftOf = (used, queries) => `${number(Math.max(0, queries - used))} of ${number(queries)} left`;

export function meter(used, queries, label) {
  const left = Math.max(0, queries - used);
  return el("div", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": 0,
    "aria-valuemax": queries, "aria-valuenow": left, "aria-valuetext": leftOf(used, queries) },
    svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "meter-all", x: 0, y: 0, width: 100, height: 6 }),
      svg("rect", { class: "meter-left", x: 0, y: 0, width: queries > 0 ? (100 * left) / queries : 0, height: 6 })));
}
