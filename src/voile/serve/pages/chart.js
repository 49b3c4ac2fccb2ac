// Estimates as drawings: a dot with an error bar, and bars with error bars.

import { isNumber, number, svg } from "./dom.js";

const ROW = 26;
const MOST_BARS = 100;

// Round numbers that span low…high, about `wanted` of them.
export function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || 10 * power;
  const first = Math.ceil(low / step);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, i) => (first + i) * step);
}

function tickLabel(x, all) {
  const step = all.length > 1 ? all[1] - all[0] : Math.abs(x) || 1;
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
  return x.toLocaleString("en-US", { maximumFractionDigits: decimals }).replace("-", "−");
}

function scale(low, high, from, to) {
  const span = high - low || 1;
  return (x) => from + ((x - low) / span) * (to - from);
}

function axis(place, marks, y) {
  return marks.flatMap((x) => [
    svg("line", { class: "tick", x1: place(x), x2: place(x), y1: y, y2: y + 5 }),
    svg("text", { class: "tick-text", x: place(x), y: y + 18, "text-anchor": "middle" }, tickLabel(x, marks)),
  ]);
}

function whisker(place, low, high, y) {
  const [a, b] = [place(low), place(high)];
  return [
    svg("line", { class: "whisker", x1: a, x2: b, y1: y, y2: y }),
    svg("line", { class: "whisker", x1: a, x2: a, y1: y - 5, y2: y + 5 }),
    svg("line", { class: "whisker", x1: b, x2: b, y1: y - 5, y2: y + 5 }),
  ];
}

const ends = (e) => [isNumber(e.low) ? e.low : e.estimate, isNumber(e.high) ? e.high : e.estimate];

export const isExact = (e) => e.stderr === 0;

// Intervals are cut to what is possible, estimates are not.
export const isOutside = (e) => isNumber(e.estimate) && (e.estimate < ends(e)[0] || e.estimate > ends(e)[1]);

// One estimate: a dot and its interval; what is exact has none.
export function dot(estimate, width, label) {
  const [low, high] = ends(estimate);
  const [least, most] = [Math.min(low, estimate.estimate), Math.max(high, estimate.estimate)];
  const pad = (most - least || Math.abs(estimate.estimate) || 1) * 0.35;
  const place = scale(least - pad, most + pad, 8, width - 8);
  const marks = ticks(least - pad, most + pad, Math.max(2, Math.min(6, Math.floor(width / 110))))
    .filter((x) => place(x) > 30 && place(x) < width - 30);
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} 62`, width, height: 62, role: "img", "aria-label": label },
    svg("line", { class: "base", x1: 0, x2: width, y1: 38, y2: 38 }),
    axis(place, marks, 38),
    isExact(estimate) ? null : whisker(place, low, high, 18),
    svg("circle", { class: "dot", cx: place(estimate.estimate), cy: 18, r: 6 }));
}

// One bar for each group, from 0 to its estimate: { label, estimate, low, high }.
export function bars(groups, width, label) {
  const drawn = groups.slice(0, MOST_BARS);
  const known = drawn.filter((g) => isNumber(g.estimate));
  const left = Math.min(190, Math.max(90, width * 0.3));
  const right = 84;
  const reached = known.flatMap((g) => [g.estimate, ...ends(g)]);
  const least = Math.min(0, ...reached);
  const most = Math.max(0, ...reached) || (least ? 0 : 1);
  const place = scale(least, most, left, width - right);
  const marks = ticks(least, most, Math.max(2, Math.floor((width - left - right) / 90)));
  const bottom = drawn.length * ROW + 4;
  const height = bottom + 24;
  const fits = Math.max(6, Math.floor(left / 7.4));
  const rows = drawn.flatMap((g, i) => {
    const y = i * ROW + ROW / 2 + 2;
    const name = g.label.length > fits ? `${g.label.slice(0, fits - 1)}…` : g.label;
    return [svg("g", {},
      svg("title", {}, `${g.label}: ${inWords(g)}`),
      svg("rect", { class: "hover", x: 0, y: y - ROW / 2, width, height: ROW }),
      svg("text", { class: "bar-name", x: left - 10, y: y + 4, "text-anchor": "end" }, name),
      isNumber(g.estimate) ? bar(place, g, y) : null,
      svg("text", { class: "bar-value", x: width, y: y + 4, "text-anchor": "end" }, number(g.estimate, g.stderr)))];
  });
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    marks.map((x) => svg("line", { class: "grid", x1: place(x), x2: place(x), y1: 0, y2: bottom })),
    rows,
    svg("line", { class: "base", x1: place(0), x2: place(0), y1: 0, y2: bottom }),
    axis(place, marks, bottom));
}

function bar(place, group, y) {
  const [a, b] = [place(0), place(group.estimate)].sort((p, q) => p - q);
  return [svg("rect", { class: "bar", x: a, y: y - 8, width: Math.max(0.5, b - a), height: 16, rx: 2 }),
    isExact(group) ? null : whisker(place, ...ends(group), y)].flat();
}

function inWords(group) {
  const [value, low, high] = [group.estimate, ...ends(group)].map((x) => number(x, group.stderr));
  if (!isNumber(group.estimate)) return "unknown";
  return isExact(group) ? `${value}, exact` : `${value}, between ${low} and ${high}`;
}

export const hidden = (groups) => Math.max(0, groups.length - MOST_BARS);

// Draw again whenever the width changes.
export function responsive(node, draw) {
  let width = 0;
  const observer = new ResizeObserver(() => {
    const now = Math.floor(node.clientWidth);
    if (now > 0 && now !== width) {
      width = now;
      node.replaceChildren(draw(width));
    }
  });
  observer.observe(node);
  return node;
}
