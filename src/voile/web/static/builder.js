// A question clicked together: what to show, for whom, by what; beside it the SQL, both in step.
//
// The page gives the text area of the SQL. `fetchBars(sql)` answers the bars of a column; without
// it (where every answer is charged) values are listed and nothing is asked. `changed()` is called
// after a click has written SQL.

import { el, isNumber, number, replace, svg } from "./dom.js";
import { MOST_GROUPS, bars, blank, domain, isNumeric, read, words, write } from "./sql.js";

const MEASURES = { count: "How many", sum: "Sum of", avg: "Average of", median: "Median of" };
const MOST_VALUES = 40;
const OPEN = 12; // columns that are open from the start, where bars cost nothing

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class Builder {
  constructor({ about, box, measures = Object.keys(MEASURES), fetchBars = null, changed = () => {} }) {
    Object.assign(this, { about, box, fetchBars, changed });
    this.measures = about.attributes.some(isNumeric) ? measures : ["count"];
    this.question = blank();
    this.panels = [];
    this.queue = Promise.resolve();
    this.prefix = `build-${Math.random().toString(36).slice(2, 7)}`;
    this.controls = this.makeControls();
    this.ended = new AbortController();
    box.addEventListener("input", () => this.readBack(), { signal: this.ended.signal });
    this.readBack();
  }

  // Let go of the page's text area.
  close() { this.ended.abort(); }

  // ---------------------------------------------------------------- in step

  // The text has changed: the buttons follow, where they can.
  readBack() {
    const text = this.box.value;
    const { question, why } = text.trim() ? read(text, this.about) : { question: blank() };
    this.controls.classList.toggle("off", !question);
    replace(this.beyond, question ? null : document.createTextNode(
      `This SQL is beyond the builder: ${why}. It is asked as it stands; a click here begins anew.`));
    this.question = question || blank();
    this.show();
  }

  // A click has changed the question: the text follows.
  take(change) {
    this.question = { ...this.question, ...change };
    this.box.value = write(this.question, this.about.name);
    this.controls.classList.remove("off");
    replace(this.beyond);
    this.show();
    this.changed();
  }

  begin() { this.take(blank()); }

  filterOf(column) { return this.question.where.find((one) => one.column === column); }

  setFilter(column, filter) {
    const others = this.question.where.filter((one) => one.column !== column);
    this.take({ where: filter ? [...others, filter] : others });
  }

  // A value is added to those that are chosen or taken away; a part of a range is chosen alone.
  toggle(filter) {
    const known = this.filterOf(filter.column);
    if (known?.values && filter.values) {
      const [value] = filter.values;
      const values = known.values.includes(value)
        ? known.values.filter((one) => one !== value) : [...known.values, value];
      this.setFilter(filter.column, values.length ? { column: filter.column, values } : null);
    } else this.setFilter(filter.column, this.isChosen(filter) ? null : filter);
  }

  isChosen(filter) {
    const known = this.filterOf(filter.column);
    if (!known) return false;
    if (filter.values) return Boolean(known.values?.includes(filter.values[0]));
    return same([known.low, known.high], [filter.low, filter.high]);
  }

  toggleGroup(column) {
    const { by } = this.question;
    const next = by.includes(column) ? by.filter((one) => one !== column) : [...by.slice(1 - MOST_GROUPS), column];
    this.take({ by: next });
  }

  // ---------------------------------------------------------------- what to show

  makeControls() {
    const choose = (id, label, options, onchange) => {
      const select = el("select", { id: `${this.prefix}-${id}`, onchange }, options);
      this[id] = select;
      return el("div", { class: "build-field" }, el("label", { for: select.id }, label), select);
    };
    const names = this.about.attributes.map((one) => one.name);
    const option = (value, text = value) => el("option", { value }, text);
    const groups = () => [option("", "–"), ...names.map((one) => option(one))];
    this.measured = choose("of", "Column", this.about.attributes.filter(isNumeric).map((one) => option(one.name)),
      () => this.take({ of: this.of.value }));
    this.chips = el("ul", { class: "chips", "aria-label": "Only where" });
    this.beyond = el("p", { class: "small beyond", role: "status" });
    const regroup = () => this.take({ by: [...new Set([this.first.value, this.second.value].filter(Boolean))] });
    return el("div", { class: "builder", role: "group", "aria-label": "Builder" },
      el("div", { class: "build-fields" },
        choose("measure", "Show", this.measures.map((one) => option(one, MEASURES[one])), () => this.measureChanged()),
        this.measured,
        choose("first", "for each", groups(), regroup), choose("second", "and each", groups(), regroup)),
      this.chips, this.beyond);
  }

  measureChanged() {
    const measure = this.measure.value;
    const of = measure === "count" ? null : this.question.of || this.of.options[0].value;
    this.take({ measure, of, as: null });
  }

  show() {
    const { measure, of, by, where } = this.question;
    this.measure.value = measure;
    this.measured.hidden = measure === "count";
    if (of) this.of.value = of;
    this.first.value = by[0] || "";
    this.second.value = by[1] || "";
    this.second.disabled = !by.length;
    replace(this.chips, where.map((filter) => el("li", {}, el("button", {
      type: "button", class: "chip on", "aria-label": `Remove ${words(filter)}`,
      onclick: () => this.setFilter(filter.column, null),
    }, words(filter), el("span", { "aria-hidden": "true" }, " ×")))));
    for (const panel of this.panels) panel.show();
  }

  // ---------------------------------------------------------------- columns

  // All columns with a box that finds one.
  list() {
    const few = this.fetchBars && this.about.attributes.length <= OPEN;
    const items = this.about.attributes.map((one, i) => ({
      name: one.name.toLowerCase(),
      node: el("li", {}, this.column(one, Boolean(this.fetchBars) && (few || i < 3))),
    }));
    const none = el("p", { class: "small", hidden: true }, "No column is called so.");
    const find = el("input", { id: `${this.prefix}-find`, type: "search", autocomplete: "off", spellcheck: "false", oninput: () => {
      const wanted = find.value.trim().toLowerCase();
      for (const item of items) item.node.hidden = !item.name.includes(wanted);
      none.hidden = items.some((item) => !item.node.hidden);
    } });
    return [el("label", { for: find.id }, `Find one of ${number(items.length)} columns`), find,
      el("ul", { class: "column-list" }, items.map((item) => item.node)), none];
  }

  // One column: a heading to open, and what can be clicked in it.
  column(attribute, open = false, title = "") {
    const heading = title ? [title, el("span", { class: "hidden-words" }, ` of ${attribute.name}`)]
      : [el("span", { class: "column-name" }, attribute.name), el("span", { class: "kind" }, domain(attribute))];
    const made = el("details", { class: "column", open, ontoggle: () => made.open && this.fill(made, attribute) },
      el("summary", {}, heading));
    if (open) this.whenSeen(made, () => this.fill(made, attribute));
    return made;
  }

  whenSeen(node, work) {
    const observer = new IntersectionObserver((seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      observer.disconnect();
      work();
    });
    observer.observe(node);
  }

  // The inside of a column, made when it is first seen.
  fill(node, attribute) {
    if (node.dataset.filled) return;
    node.dataset.filled = "yes";
    node.append(this.panel(attribute));
  }

  panel(attribute) {
    const { name } = attribute;
    const group = el("button", { type: "button", class: "small-button", onclick: () => this.toggleGroup(name) }, "Group by");
    const buttons = isNumeric(attribute) ? this.measures.filter((one) => one !== "count").map((measure) =>
      el("button", { type: "button", class: "small-button", "data-measure": measure, onclick: () => this.measureOf(measure, name) },
        MEASURES[measure].replace(" of", ""))) : [];
    const place = el("div", { class: "bars-of" });
    const found = el("div", { class: "panel" }, el("div", { class: "panel-buttons" }, group, buttons), place, this.ends(attribute));
    this.panels.push({ show: () => {
      group.setAttribute("aria-pressed", String(this.question.by.includes(name)));
      for (const one of buttons) {
        one.setAttribute("aria-pressed", String(this.question.of === name && this.question.measure === one.dataset.measure));
      }
      for (const one of place.querySelectorAll("[data-filter]")) {
        one.setAttribute("aria-pressed", String(this.isChosen(JSON.parse(one.dataset.filter))));
      }
    } });
    if (this.fetchBars) this.ask(attribute, place);
    else this.listValues(attribute, place);
    this.panels.at(-1).show();
    return found;
  }

  measureOf(measure, of) {
    const on = this.question.measure === measure && this.question.of === of;
    this.take(on ? { measure: "count", of: null, as: null } : { measure, of, as: null });
  }

  // ---------------------------------------------------------------- bars and values

  button(filter, label, ...drawn) {
    return el("button", { type: "button", class: drawn.length ? "bar-button" : "chip", "data-filter": JSON.stringify(filter),
      "aria-pressed": String(this.isChosen(filter)), onclick: () => this.toggle(filter) },
      el("span", { class: "bar-label" }, label), drawn);
  }

  // One after the other: opening many columns does not keep a question waiting for long.
  ask(attribute, place) {
    const asked = bars(attribute, this.about.name);
    replace(place, el("p", { class: "small" }, "Counting…"));
    this.queue = this.queue.then(async () => {
      try {
        const answer = await this.fetchBars(asked.sql);
        this.drawBars(attribute, place, asked, answer);
      } catch (error) {
        replace(place, el("p", { class: "small" }, `No bars: ${String(error.message).split("\n")[0]}`));
        this.listValues(attribute, place, false);
      }
    });
  }

  drawBars(attribute, place, asked, answer) {
    const rows = answer.rows.map((row) => {
      const figure = Object.values(row).find((value) => value !== null && typeof value === "object");
      return { ...asked.bar(Object.values(row)[0]), ...figure };
    });
    const most = Math.max(1e-9, ...rows.flatMap((row) => [row.estimate, row.high]).filter(isNumber));
    replace(place, rows.map((row) => this.button(row.filter, row.label, drawing(row, most),
      el("span", { class: "bar-number" }, number(row.estimate, row.stderr), el("span", { class: "bar-error" }, errorOf(row))))),
      asked.rest > 0 ? el("p", { class: "small" }, `${number(asked.rest)} more values are rarer.`) : null,
      asked.rest > 0 ? this.finder(attribute) : null);
  }

  listValues(attribute, place, clear = true) {
    const values = [...(attribute.values || []), ...(attribute.null ? [null] : [])];
    const shown = values.slice(0, MOST_VALUES).map((value) =>
      this.button({ column: attribute.name, values: [value] }, value === null ? "missing" : String(value)));
    if (clear) replace(place);
    if (shown.length) place.append(el("div", { class: "chips" }, shown));
    if (values.length > MOST_VALUES) place.append(this.finder(attribute));
  }

  // A box for values that are too many to be listed.
  finder(attribute) {
    const id = `${this.prefix}-value-${this.panels.length}`;
    const hits = el("div", { class: "chips" });
    const find = el("input", { id, type: "search", autocomplete: "off", spellcheck: "false", oninput: () => {
      const wanted = find.value.trim().toLowerCase();
      const found = wanted ? attribute.values.filter((one) => String(one).toLowerCase().includes(wanted)) : [];
      replace(hits, found.slice(0, MOST_VALUES).map((value) => this.button({ column: attribute.name, values: [value] }, String(value))));
    } });
    return el("div", { class: "finder" }, el("label", { for: id }, `Find a value of ${attribute.name}`), find, hits);
  }

  // From … to …, for columns in order.
  ends(attribute) {
    const ordered = isNumeric(attribute) || attribute.kind === "date";
    if (!ordered) return null;
    const field = (end, label) => el("input", { type: attribute.kind === "date" ? "date" : "number", step: "any",
      "aria-label": `${attribute.name} ${label}`, name: end });
    const [low, high] = [field("low", "from"), field("high", "to")];
    const typed = (box) => (box.value === "" ? null : { value: attribute.kind === "date" ? box.value : Number(box.value), strict: false });
    const apply = () => {
      const ends = { column: attribute.name, low: typed(low), high: typed(high) };
      this.setFilter(attribute.name, ends.low || ends.high ? ends : null);
    };
    for (const box of [low, high]) {
      box.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); apply(); } });
    }
    return el("div", { class: "ends" }, el("span", { class: "small" }, "from"), low, el("span", { class: "small" }, "to"), high,
      el("button", { type: "button", class: "small-button", "aria-label": `Filter ${attribute.name} from … to …`, onclick: apply }, "Filter"));
  }
}

function errorOf(row) {
  if (!isNumber(row.stderr)) return "";
  return row.stderr === 0 ? " exact" : ` ± ${number(row.stderr, row.stderr)}`;
}

// A bar with its interval; the words beside it say the same.
function drawing(row, most) {
  const at = (x) => Math.max(0, Math.min(100, (100 * x) / most));
  const [low, high] = [row.low, row.high].map((x) => (isNumber(x) ? at(x) : null));
  return svg("svg", { class: "bar-drawing", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "bar-fill", x: 0, y: 1, height: 10, width: isNumber(row.estimate) ? at(row.estimate) : 0 }),
    low === null || high === null || row.stderr === 0 ? null
      : svg("line", { class: "bar-whisker", x1: low, x2: high, y1: 6, y2: 6, "vector-effect": "non-scaling-stroke" }));
}
