// The server's public side in plain words: what is promised, what may be asked, examples.

import { el, isNumber, key, number } from "./dom.js";

export function sure(x) {
  if (!isNumber(x)) return key(x);
  if (x !== 0 && Math.abs(x) < 1e-3) {
    const [digits, power] = x.toExponential(2).split("e");
    const short = String(Number(digits));
    const raised = [...String(Number(power))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
    return short === "1" ? `10${raised}` : `${short}·10${raised}`;
  }
  return String(Number(x.toPrecision(4)));
}

export function promise(about) {
  const factor = sure(Math.exp(about.delta));
  const several = about.per_person > 1
    ? `A person has up to ${number(about.per_person)} rows, and all of them are protected together. ` : "";
  const other = Object.entries(about.promise || {}).filter(([, value]) => ["number", "string"].includes(typeof value));
  return [
    el("p", {}, `The table is about ${number(about.people)} people. There will be at most ${number(about.queries)} answers about `
      + "it, ever, from all analysts together, and each has noise."),
    el("p", {}, `${several}Even someone who knows every other person’s rows, and sees all answers, changes the odds of `
      + `anything about one person by a factor of more than ${factor} (δ = ${sure(about.delta)}) with probability at most `
      + `η = ${sure(about.eta)}.`),
    el("p", {}, `A count is off by about ± ${number(Math.sqrt(about.variance) * about.per_person, 10)} `
      + `(${about.noise} noise); counts in groups by √2 times that.`),
    other.length ? el("details", {}, el("summary", {}, "In other units"),
      el("dl", { class: "facts" }, other.flatMap(([name, value]) => [
        el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, typeof value === "number" ? sure(value) : value)]))) : null,
  ];
}

function domain(attribute) {
  if (attribute.values) {
    const shown = attribute.values.slice(0, 12).map(key).join(", ");
    return attribute.values.length > 12 ? `${shown}, … (${number(attribute.values.length)} values)` : shown;
  }
  if (attribute.range) return `${key(attribute.range[0])} to ${key(attribute.range[1])}`;
  if (attribute.bins) return `${key(attribute.bins[0])} to ${key(attribute.bins.at(-1))}, in ${attribute.bins.length - 1} bins`;
  if (attribute.interval) return `${key(attribute.interval[0])} to ${key(attribute.interval[1])}, in steps of ${key(attribute.step)}`;
  return "";
}

export const attributes = (about) => (about.schema && about.schema.attributes) || [];

export function columns(about, insert) {
  return el("dl", { class: "columns-list" }, attributes(about).flatMap((a) => [
    el("dt", {}, el("button", { type: "button", class: "name", title: `Put ${a.name} into the question`,
      onclick: () => insert(name(a.name)) }, a.name), el("span", { class: "kind" }, a.kind)),
    el("dd", {}, domain(a) + (a.null ? " or NULL" : ""))]));
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;
const RESERVED = new Set(("all and any as asc between by case cast cross day desc distinct else end except exists false "
  + "from full group having in inner intersect is join left like limit month natural not null offset on or order outer "
  + "right select table then true union using values when where with year").split(" "));

export const name = (text) => (PLAIN.test(text) && !RESERVED.has(text.toLowerCase())
  ? text : `"${text.replaceAll('"', '""')}"`);

const literal = (value) => (typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : key(value));

// Questions that this table can answer, from easy to less so.
export function examples(about) {
  const from = `from ${name(about.name)}`;
  const known = attributes(about);
  const listed = known.find((a) => a.kind === "categorical" && a.values && a.values.length >= 2 && a.values.length <= 12);
  const ranged = known.find((a) => a.range && a.range.every(isNumber));
  const found = [["everybody", `select count(*) ${from}`]];
  if (listed) {
    const column = name(listed.name);
    found.push([`one ${listed.name}`, `select count(*) ${from} where ${column} = ${literal(listed.values[0])}`]);
    found.push([`by ${listed.name}`, `select ${column}, count(*) as people ${from} group by ${column}`]);
  }
  if (ranged) {
    const [low, high] = ranged.range;
    const column = name(ranged.name);
    const middle = Math.round((low + high) / 2);
    found.push([`${ranged.name} above ${middle}`, `select count(*) ${from} where ${column} > ${middle}`]);
    found.push([`mean ${ranged.name}`, `select avg(${column}) ${from}`]);
  }
  return found;
}
