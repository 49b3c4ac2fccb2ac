// The server's public side in plain words: what is promised, what may be asked, examples.

import { el, isNumber, key, number } from "./dom.js";
import { literal, name } from "./sql.js";

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

const rounded = (x) => Number(x.toPrecision(2));

const UNITS = {
  epsilon: "ε", delta: "at δ", rho: "ρ of zCDP", epsilon_pure: "ε at δ = 0",
};

export function promise(about) {
  const factor = sure(Math.exp(about.delta));
  const several = about.per_person > 1
    ? `A person has up to ${number(about.per_person)} rows, and all of them are protected together. ` : "";
  const numbers = about.promise || {};
  const other = Object.keys(UNITS).filter((unit) => isNumber(numbers[unit]) && (unit !== "rho" || numbers.rho_holds !== false));
  return [
    el("p", {}, `The table is about ${number(about.people)} people. There will be at most ${number(about.queries)} answers about `
      + "it, ever, from all analysts together, each with noise; what is public anyway is free."),
    isNumber(about.epsilon) ? el("p", {}, "All answers together are (ε, δ)-differentially private with "
      + `ε = ${sure(about.epsilon)} and δ = ${sure(about.epsilon_delta)}, at any time: if one person’s rows were others, `
      + `every event would be as likely as it is, up to a factor of ${sure(Math.exp(about.epsilon))} and a rest of δ.`) : null,
    el("p", {}, `${several}Even for someone who knows every other person’s rows and sees all answers, the odds of anything `
      + `they suspect about one person rise by a factor of more than ${factor} (δ = ${sure(about.delta)}) with probability `
      + `at most η = ${sure(about.eta)}${about.anytime ? ", at any time." : " after all answers, and at most 2η at any time before."}`),
    el("p", {}, `A count is off by about ± ${number(rounded(Math.sqrt(about.variance) * about.per_person))} `
      + `(${about.noise} noise); counts in groups by √2 times that.`),
    other.length ? el("details", {}, el("summary", {}, "In other units"),
      el("p", { class: "small" }, "All answers together, as differential privacy counts:"),
      el("dl", { class: "facts" }, other.flatMap((unit) => [el("dt", {}, UNITS[unit]), el("dd", {}, sure(numbers[unit]))]))) : null,
  ];
}

const SHOWN = 8;

function domain(attribute) {
  if (attribute.values) {
    const values = attribute.values;
    if (values.length <= SHOWN) return values.map(key).join(", ");
    const count = `${number(values.length)} values`;
    if (values.every(isNumber)) return `${key(values[0])} to ${key(values.at(-1))}, ${count}`;
    return `${values.slice(0, SHOWN - 2).map(key).join(", ")}, … (${count})`;
  }
  if (attribute.range) return `${key(attribute.range[0])} to ${key(attribute.range[1])}`;
  if (attribute.bins) return `${key(attribute.bins[0])} to ${key(attribute.bins.at(-1))}, in ${attribute.bins.length - 1} bins`;
  if (attribute.interval) return `${key(attribute.interval[0])} to ${key(attribute.interval[1])}, in steps of ${key(attribute.step)}`;
  return "";
}

export const attributes = (about) => (about.schema && about.schema.attributes) || [];

// Each column with what it may hold; `choices` are its values to click.
export function columns(about, insert, choices) {
  return el("dl", { class: "columns-list" }, attributes(about).flatMap((a) => [
    el("dt", {}, el("button", { type: "button", class: "name", title: `Put ${a.name} into the question`,
      onclick: () => insert(name(a.name)) }, a.name), el("span", { class: "kind" }, a.kind)),
    el("dd", {}, domain(a) + (a.null ? " or NULL" : ""), choices(a))]));
}

// The least and the greatest number of a column that has numbers.
function ends(attribute) {
  const all = attribute.range || attribute.values || attribute.interval || [];
  return all.length >= 2 && all.every(isNumber) ? [all[0], all.at(-1)] : [];
}

// Questions that this table can answer, from easy to less so.
export function examples(about) {
  const from = `from ${name(about.name)}`;
  const known = attributes(about);
  const found = [];
  const listed = known.filter((a) => a.kind === "categorical" && a.values && a.values.length >= 2)
    .sort((a, b) => a.values.length - b.values.length)[0];
  if (listed) {
    const column = name(listed.name);
    found.push([`${listed.name} = ${key(listed.values[0])}`,
      `select count(*) ${from} where ${column} = ${literal(listed.values[0])}`]);
    found.push([`by ${listed.name}`, `select ${column}, count(*) as people ${from} group by ${column}`]);
  }
  const ranged = known.find((a) => ends(a).length === 2);
  if (ranged) {
    const column = name(ranged.name);
    const [low, high] = ends(ranged);
    const middle = Math.round((low + high) / 2);
    found.push([`${ranged.name} > ${middle}`, `select count(*) ${from} where ${column} > ${middle}`]);
    found.push([`mean ${ranged.name}`, `select avg(${column}) ${from}`]);
  }
  found.push(["everybody (free)", `select count(*) ${from}`]);
  return found;
}
