// The analyst's side: a question, what it would cost, its answer, the budget, what was asked.

import { answer } from "./answer.js";
import { attributes, columns, examples, promise } from "./about.js";
import { get, post } from "./api.js";
import { Builder } from "./builder.js";
import { byId, el, isNumber, leftOf, message, meter, moment, number, problem, replace, table } from "./dom.js";
import { linked, take } from "./take.js";

const PAUSE = 350;
const LATER = 600;
const MEASURES = ["count", "sum", "avg"];
const state = { builder: null, about: null, remaining: 0, timer: 0, pending: null, asking: false };

export function begin(about, budget) {
  state.about = about;
  replace(byId("promise"), promise(about));
  byId("sql").value = linked().sql;
  build(about);
  replace(byId("examples"), examples(about).map(([label, sql]) =>
    el("button", { type: "button", class: "chip", onclick: () => put(sql) }, label)));
  fillSubsets(about);
  follow(linked());
  showBudget(budget);
  byId("sql").placeholder = examples(about)[0][1];
  byId("answer-card").hidden = true;
  soon();
  showHistory();
}

// The builder asks nothing by itself: a click writes SQL, and what that would cost is shown.
function build(about) {
  state.builder?.close();
  state.builder = new Builder({
    about: { name: about.name, attributes: attributes(about) }, box: byId("sql"), measures: MEASURES, changed: soon,
  });
  replace(byId("builder"), state.builder.controls);
  replace(byId("schema"), columns(about, insert, (one) => state.builder.column(one, false, "Choose")));
}

export function connect() {
  const changed = () => { byId("seed-field").hidden = byId("subset").value !== "half"; soon(); };
  for (const id of ["sql", "seed"]) byId(id).addEventListener("input", soon);
  byId("subset").addEventListener("change", changed);
  byId("question").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  byId("sql").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(); }
  });
}

function fillSubsets(about) {
  const declared = (about.subsets || []).map((s) =>
    el("option", { value: `named:${s.name}`, title: s.sql }, `${s.name} (${number(s.rows)} rows)`));
  replace(byId("subset"), el("option", { value: "all" }, "all"),
    el("option", { value: "half" }, "a random half"), declared);
  byId("seed-field").hidden = true;
}

// Rows and confidence of a link; what this server does not offer stays as it is.
function follow({ rows, confidence }) {
  const half = rows.startsWith("half:");
  choose(byId("subset"), half ? "half" : rows);
  if (half) byId("seed").value = rows.slice("half:".length);
  byId("seed-field").hidden = byId("subset").value !== "half";
  choose(byId("confidence"), confidence);
}

function choose(list, value) {
  if ([...list.options].some((option) => option.value === value)) list.value = value;
}

function question() {
  const chosen = byId("subset").value;
  let subset = "all";
  if (chosen === "half") subset = { half: byId("seed").value };
  else if (chosen.startsWith("named:")) subset = chosen.slice("named:".length);
  return { sql: byId("sql").value.trim(), subset, confidence: Number(byId("confidence").value) };
}

function put(sql, subset) {
  byId("sql").value = sql;
  state.builder.readBack();
  if (subset !== undefined) {
    const half = subset !== null && typeof subset === "object";
    if (half) byId("seed").value = subset.half;
    byId("subset").value = half ? "half" : subset === "all" ? "all" : `named:${subset}`;
    byId("seed-field").hidden = !half;
  }
  byId("sql").focus();
  soon();
}

function insert(name) {
  const box = byId("sql");
  const [from, to] = [box.selectionStart, box.selectionEnd];
  const before = box.value.slice(0, from);
  box.setRangeText(before && !/[\s(]$/.test(before) ? ` ${name}` : name, from, to, "end");
  state.builder.readBack();
  box.focus();
  soon();
}

// ---------------------------------------------------------------- the cost, as one types

function soon() {
  clearTimeout(state.timer);
  if (state.pending) state.pending.abort();
  state.pending = null;
  unpriced(question().sql ? "…" : "");
  if (question().sql) state.timer = setTimeout(price, PAUSE);
}

function unpriced(text) {
  const button = byId("ask");
  button.disabled = true;
  button.textContent = "Ask";
  byId("cost").className = "cost";
  byId("cost").textContent = text;
}

async function price() {
  const asked = question();
  const pending = new AbortController();
  state.pending = pending;
  try {
    const found = await post("query", { ...asked, dry_run: true }, pending.signal);
    if (state.pending === pending) priced(found);
  } catch (error) {
    if (error.name === "AbortError" || state.pending !== pending) return;
    if (error.status === 401) { document.dispatchEvent(new CustomEvent("voile-out", { detail: error })); return; }
    byId("cost").className = "cost no";
    replace(byId("cost"), message(error));
  }
}

function priced(found) {
  const button = byId("ask");
  showRemaining(found.remaining);
  const enough = found.cost <= found.remaining;
  button.disabled = !enough || state.asking;
  button.textContent = found.cost ? `Ask (costs ${number(found.cost)})` : "Ask (free)";
  byId("cost").className = enough ? "cost" : "cost no";
  const error = expected(found.stderr, found.cost ? "will be" : "is");
  if (!enough) byId("cost").textContent = `It costs ${number(found.cost)}, and ${number(found.remaining)} are left.`;
  else if (found.cost) byId("cost").textContent = `${number(found.remaining - found.cost)} will be left.${error}`;
  else byId("cost").textContent = found.known ? `It was answered before.${error}` : "Nothing is charged.";
  byId("cost").append(...(found.notes || []).map((note) => el("span", { class: "hint" }, note)));
}

// Standard errors that are known before asking, each with its column; those of quotients are not, and what is
// exact has none.
function expected(stderr, be) {
  const columns = Object.entries(stderr || {});
  const known = columns.filter(([, x]) => isNumber(x) && x > 0);
  const open = columns.filter(([, x]) => !isNumber(x)).map(([name]) => name);
  const later = open.length ? ` That of ${open.join(", ")} depends on the answer.` : "";
  if (!known.length) return open.length ? ` The standard error of ${open.join(", ")} depends on the answer.` : "";
  if (known.length === 1) return ` The standard error of ${known[0][0]} ${be} ${number(known[0][1], known[0][1])}.${later}`;
  return ` Standard errors: ${known.map(([name, x]) => `${number(x, x)} of ${name}`).join(", ")}.${later}`;
}

// ---------------------------------------------------------------- asking

async function ask() {
  if (byId("ask").disabled || state.asking) return;
  const asked = question();
  state.asking = true;
  byId("ask").disabled = true;
  const card = byId("answer-card");
  card.hidden = false;
  card.setAttribute("aria-busy", "true");
  try {
    const reply = await post("query", asked);
    replace(byId("answer"), el("p", { class: "asked" }, el("code", {}, asked.sql)), answer(reply), take(reply, asked));
    showRemaining(reply.remaining);
    // The log has a repeat a moment after its answer.
    if (!reply.charged) setTimeout(showHistory, LATER);
  } catch (error) {
    if (error.status === 401) { document.dispatchEvent(new CustomEvent("voile-out", { detail: error })); return; }
    replace(byId("answer"), el("p", { class: "asked" }, el("code", {}, asked.sql)), problem(error));
  } finally {
    state.asking = false;
    card.removeAttribute("aria-busy");
  }
  soon();
  refresh();
}

async function refresh() {
  showHistory();
  try {
    showBudget(await get("budget"));
  } catch {
    // The answer itself said what is left; the next question says what is wrong.
  }
}

// ---------------------------------------------------------------- the budget

function showBudget(budget) {
  const lines = [["You", budget], [groupName(budget.group), budget.group], ["Everybody", budget.everyone]]
    .filter(([, b]) => b && isNumber(b.queries) && isNumber(b.used));
  state.remaining = budget.remaining;
  replace(byId("budget"),
    el("p", { class: "big" }, el("span", { class: "value", id: "left" }, number(budget.remaining)),
      el("span", { class: "error" }, budget.remaining === 1 ? " answer left" : " answers left")),
    budget.remaining === 0 ? el("p", { class: "problem" }, "The budget is used up. Questions that were answered before stay free.") : null,
    lines.map(([who, b]) => el("div", { class: "budget-line" },
      el("div", { class: "budget-words" }, el("span", {}, who), el("span", {}, leftOf(b.used, b.queries))),
      meter(b.used, b.queries, `Budget: ${who}`))));
}

const groupName = (group) => (group && group.name ? `Group ${group.name}` : "Your group");

function showRemaining(remaining) {
  if (remaining === state.remaining || !isNumber(remaining)) return;
  state.remaining = remaining;
  if (byId("left")) byId("left").textContent = number(remaining);
}

// ---------------------------------------------------------------- what was asked

async function showHistory() {
  let found;
  try {
    const { history, repeats } = await get("history");
    found = [...together(history || []), ...(repeats || []).map(repeated)].sort((a, b) => b.at - a.at);
  } catch (error) {
    replace(byId("history"), problem(error));
    return;
  }
  if (!found.length) {
    replace(byId("history"), el("p", { class: "small" }, "Nothing yet. Whatever you ask again later is free."));
    return;
  }
  replace(byId("history"), table(["question", "charged"],
    found.map((one) => [again(one), one.charged ? number(one.charged) : "free"]), { right: [1], label: "Your questions" }));
}

// The ledger has one entry for each total: those of one question stand in one line.
function together(entries) {
  const lines = [];
  for (const entry of entries) {
    const { sql, subset } = entry.question || {};
    const last = lines.at(-1);
    if (last && last.sql === sql && same(last.subset, subset)) last.charged += 1;
    else lines.push({ at: entry.at, sql: sql || "", subset, charged: 1 });
  }
  return lines;
}

function repeated(entry) {
  const { sql, subset } = entry.question || {};
  return { at: entry.at, sql: sql || "", subset, charged: 0 };
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function rowsOf(subset) {
  if (!subset || subset === "all") return "";
  return subset.half !== undefined ? `, in the half ${subset.half}` : `, in ${subset}`;
}

const again = (one) => el("div", {}, el("button",
  { type: "button", class: "link", title: "Put it into the question", onclick: () => put(one.sql, one.subset) },
  one.sql), el("div", { class: "small" }, moment(one.at) + rowsOf(one.subset)));
