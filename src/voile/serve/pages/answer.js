// An answer: numbers with their error bars, drawn, in words, and as a table.

import { bars, dot, hidden, isExact, isOutside, responsive } from "./chart.js";
import { el, isNumber, key, number, table } from "./dom.js";

const isEstimate = (value) => value !== null && typeof value === "object" && "estimate" in value;
const UNKNOWN = { estimate: null, stderr: null, low: null, high: null };

// Columns that hold estimates; in some rows an estimate may be unknown.
const figuresOf = (rows, names) => names.filter((name) => rows.some((row) => isEstimate(row[name])));
const estimateOf = (row, name) => row[name] ?? UNKNOWN;

const percent = (confidence) => `${Number((100 * confidence).toPrecision(6))} %`;

export function answer(reply) {
  const rows = reply.rows || [];
  const names = rows.length ? Object.keys(rows[0]) : [];
  const figures = figuresOf(rows, names);
  const shown = rows.flatMap((row) => figures.map((name) => estimateOf(row, name)));
  const keys = names.filter((name) => !figures.includes(name));
  const single = rows.length === 1 && keys.length === 0;
  return [
    rows.length === 0 ? el("p", {}, "There is no group to show.") : null,
    ...figures.map((name) => (single
      ? one(name, estimateOf(rows[0], name), reply, figures.length > 1)
      : grouped(name, rows, keys, reply, figures.length > 1))),
    shown.some(isOutside) ? el("p", { class: "small", id: "cut" },
      "Intervals are cut to what is possible, and estimates are not: noise can take one beyond, even below 0.") : null,
    single || rows.length === 0 ? null : el("details", {}, el("summary", {}, "As a table"), tabled(rows, names)),
    reply.covers && !shown.every(isExact) ? el("p", { class: "small" }, `The ${rows.length > 1 ? "intervals cover" : "interval covers"} ${reply.covers}.`) : null,
    ...(reply.notes || []).map((note) => el("p", { class: "small" }, note)),
    el("p", { class: "charged" }, charged(reply, shown.length > 0 && shown.every(isExact))),
  ].filter(Boolean);
}

function charged(reply, exact) {
  const free = exact ? "Free." : "Free: it was answered before.";
  const took = reply.charged ? `Charged ${number(reply.charged)}.` : free;
  const rows = typeof reply.subset_rows === "number" && reply.subset !== "all"
    ? ` Counted in ${number(reply.subset_rows)} rows.` : "";
  return `${took} ${number(reply.remaining)} left.${rows}`;
}

function one(name, estimate, reply, named) {
  const [value, low, high] = [estimate.estimate, estimate.low, estimate.high].map((x) => number(x, estimate.stderr));
  const caption = named ? el("figcaption", {}, name) : null;
  if (!isNumber(estimate.estimate)) {
    return el("figure", { class: "one" }, caption, el("p", { class: "big" }, el("span", { class: "value" }, value)));
  }
  const error = number(estimate.stderr, estimate.stderr);
  const interval = isExact(estimate) ? "exact" : `${percent(reply.confidence)} interval from ${low} to ${high}`;
  return el("figure", { class: "one" }, caption,
    el("p", { class: "big" }, el("span", { class: "value" }, value),
      el("span", { class: "error" }, isExact(estimate) ? " exact" : ` ± ${error}`)),
    responsive(el("div", { class: "drawing" }), (width) => dot(estimate, width, `${name}: ${value}, ${interval}`)),
    el("p", { class: "small" }, isExact(estimate) ? "It has no noise." : `Standard error ${error}; ${interval}.`));
}

function grouped(name, rows, keys, reply, named) {
  const groups = rows.map((row) => ({ ...estimateOf(row, name), label: keys.map((k) => key(row[k])).join(" · ") || name }));
  const cut = hidden(groups);
  return el("figure", { class: "groups" },
    el("figcaption", {}, `${named ? `${name}, ` : ""}${percent(reply.confidence)} intervals`),
    responsive(el("div", { class: "drawing" }), (width) => bars(groups, width, `${name} in ${groups.length} groups; the table below has the numbers`)),
    cut ? el("p", { class: "small" }, `${number(cut)} more groups are in the table.`) : null);
}

function tabled(rows, names) {
  const figures = new Set(figuresOf(rows, names));
  const headings = names.flatMap((name) => (figures.has(name) ? [name, "± stderr", "low", "high"] : [name]));
  const right = headings.map((_, i) => i).filter((i) => {
    let at = 0;
    for (const name of names) {
      const width = figures.has(name) ? 4 : 1;
      if (i < at + width) return figures.has(name);
      at += width;
    }
    return false;
  });
  const cells = rows.map((row) => names.flatMap((name) => {
    if (!figures.has(name)) return [key(row[name])];
    const value = estimateOf(row, name);
    return [value.estimate, value.stderr, value.low, value.high].map((x) => number(x, value.stderr));
  }));
  return table(headings, cells, { right, label: "The answer as a table" });
}
