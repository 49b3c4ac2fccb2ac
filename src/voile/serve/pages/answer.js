// An answer: numbers with their error bars, drawn, in words, and as a table.

import { bars, dot, hidden, responsive } from "./chart.js";
import { el, key, number, table } from "./dom.js";

const isEstimate = (value) => value !== null && typeof value === "object" && "estimate" in value;

const percent = (confidence) => `${Number((100 * confidence).toPrecision(6))} %`;

export function answer(reply) {
  const rows = reply.rows || [];
  const names = rows.length ? Object.keys(rows[0]) : [];
  const figures = names.filter((name) => isEstimate(rows[0][name]));
  const keys = names.filter((name) => !figures.includes(name));
  const single = rows.length === 1 && keys.length === 0;
  return [
    rows.length === 0 ? el("p", {}, "There is no group to show.") : null,
    ...figures.map((name) => (single
      ? one(name, rows[0][name], reply, figures.length > 1)
      : grouped(name, rows, keys, reply, figures.length > 1))),
    single || rows.length === 0 ? null : el("details", {}, el("summary", {}, "As a table"), tabled(rows, names)),
    reply.covers ? el("p", { class: "small" }, `The ${rows.length > 1 ? "intervals cover" : "interval covers"} ${reply.covers}.`) : null,
    ...(reply.notes || []).map((note) => el("p", { class: "small" }, note)),
    el("p", { class: "charged" }, charged(reply)),
  ].filter(Boolean);
}

function charged(reply) {
  const took = reply.charged ? `Charged ${number(reply.charged)}.` : "Free: it was answered before.";
  const rows = typeof reply.subset_rows === "number" && reply.subset !== "all"
    ? ` Counted in ${number(reply.subset_rows)} rows.` : "";
  return `${took} ${number(reply.remaining)} left.${rows}`;
}

function one(name, estimate, reply, named) {
  const [value, low, high] = [estimate.estimate, estimate.low, estimate.high].map((x) => number(x, estimate.stderr));
  const told = `${percent(reply.confidence)} interval from ${low} to ${high}`;
  return el("figure", { class: "one" },
    named ? el("figcaption", {}, name) : null,
    el("p", { class: "big" }, el("span", { class: "value" }, value),
      el("span", { class: "error" }, ` ± ${number(estimate.stderr, estimate.stderr)}`)),
    responsive(el("div", { class: "drawing" }), (width) => dot(estimate, width, `${name}: ${value}, ${told}`)),
    el("p", { class: "small" }, `Standard error ${number(estimate.stderr, estimate.stderr)}; ${told}.`));
}

function grouped(name, rows, keys, reply, named) {
  const groups = rows.map((row) => ({ ...row[name], label: keys.map((k) => key(row[k])).join(" · ") || name }));
  const cut = hidden(groups);
  return el("figure", { class: "groups" },
    el("figcaption", {}, `${named ? `${name}, ` : ""}${percent(reply.confidence)} intervals`),
    responsive(el("div", { class: "drawing" }), (width) => bars(groups, width, `${name} in ${groups.length} groups; the table below has the numbers`)),
    cut ? el("p", { class: "small" }, `${number(cut)} more groups are in the table.`) : null);
}

function tabled(rows, names) {
  const figures = new Set(names.filter((name) => isEstimate(rows[0][name])));
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
    const value = row[name];
    return figures.has(name)
      ? [value.estimate, value.stderr, value.low, value.high].map((x) => number(x, value.stderr)) : [key(value)];
  }));
  return table(headings, cells, { right, label: "The answer as a table" });
}
