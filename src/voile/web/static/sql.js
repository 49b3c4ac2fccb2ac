// Questions that can be clicked together, written as SQL, and SQL read back into them.
//
// A question is { measure, of, as, by, where }: count, sum, avg or median of a column, by up to two
// columns, where filters hold. A filter is { column, values } (null among them is what is missing)
// or { column, low, high }, whose ends are { value, strict } or null. What is sent is always the
// text: reading it back only moves the buttons.

export const MOST_GROUPS = 2;
const LISTED = 40; // bars of a column
const WORDS = /^[A-Za-z_][A-Za-z0-9_]*$/;
const RESERVED = new Set(("all alter analyse analyze and any array as asc asymmetric between both by case cast check collate column "
  + "constraint create cross cube day default deferrable desc describe distinct do drop else end except exists false "
  + "fetch for force foreign from full glob grant group having if ilike in initially inner insert install intersect "
  + "into is join lambda lateral leading left like limit lock map month natural not notnull null offset on only or "
  + "order outer pivot pivot_longer pivot_wider placing positional primary qualify references returning revoke right "
  + "rollback rollup select show some summarize symmetric table tablesample then to trailing true union unique "
  + "unpivot using values variadic when where window with year").split(" "));

export const name = (text) => (WORDS.test(text) && !RESERVED.has(text.toLowerCase())
  ? text : `"${text.replaceAll('"', '""')}"`);

export const literal = (value) => (typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value));

export const blank = () => ({ measure: "count", of: null, as: null, by: [], where: [] });

export const isNumeric = (attribute) => attribute.kind === "integer" || attribute.kind === "numeric";

// ---------------------------------------------------------------- writing

function condition(filter) {
  const column = name(filter.column);
  if (filter.values) return anyOf(column, filter.values);
  const { low, high } = filter;
  if (low && high && !low.strict && !high.strict) {
    return `${column} between ${literal(low.value)} and ${literal(high.value)}`;
  }
  return [low && `${column} ${low.strict ? ">" : ">="} ${literal(low.value)}`,
    high && `${column} ${high.strict ? "<" : "<="} ${literal(high.value)}`].filter(Boolean).join(" and ");
}

function anyOf(column, values) {
  const known = values.filter((value) => value !== null);
  const parts = [];
  if (known.length === 1) parts.push(`${column} = ${literal(known[0])}`);
  if (known.length > 1) parts.push(`${column} in (${known.map(literal).join(", ")})`);
  if (known.length < values.length) parts.push(`${column} is null`);
  return parts.length > 1 ? `(${parts.join(" or ")})` : parts[0];
}

export function write(question, table) {
  const figure = question.measure === "count" ? "count(*)" : `${question.measure}(${name(question.of)})`;
  const by = question.by.map(name).join(", ");
  const parts = [`select ${by ? `${by}, ` : ""}${figure}${question.as ? ` as ${name(question.as)}` : ""}`,
    `from ${name(table)}`,
    question.where.length ? `where ${question.where.map(condition).join(" and ")}` : "",
    by ? `group by ${by}` : ""].filter(Boolean);
  const line = parts.join(" ");
  return line.length <= 76 ? line : parts.join("\n");
}

// ---------------------------------------------------------------- reading

class Beyond extends Error {}

const TOKEN = /\s*(?:("(?:[^"]|"")+")|('(?:[^']|'')*')|([\p{L}_][\p{L}\p{N}_]*)|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(<=|>=|[=<>(),*;]))/uy;

function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  const end = text.trimEnd().length;
  while (TOKEN.lastIndex < end) {
    const match = TOKEN.exec(text);
    if (!match) throw new Beyond("it has a sign that the builder does not know");
    const [, quoted, string, word, digits, sign] = match;
    if (quoted) found.push({ kind: "name", text: quoted.slice(1, -1).replaceAll('""', '"'), exact: true });
    else if (string) found.push({ kind: "value", value: string.slice(1, -1).replaceAll("''", "'") });
    else if (word) found.push({ kind: "name", text: word, word: word.toLowerCase() });
    else if (digits) found.push({ kind: "value", value: Number(digits) });
    else found.push({ kind: "sign", word: sign });
  }
  return found;
}

class Reader {
  constructor(text, about) {
    this.tokens = tokens(text);
    this.at = 0;
    this.about = about;
  }

  is(...words) {
    return words.every((word, i) => this.tokens[this.at + i]?.word === word);
  }

  take(...words) {
    if (!this.is(...words)) return false;
    this.at += words.length;
    return true;
  }

  need(...words) {
    if (!this.take(...words)) throw new Beyond(`the builder expects ${words.join(" ")} there`);
  }

  identifier() {
    const token = this.tokens[this.at];
    if (token?.kind !== "name" || RESERVED.has(token.word)) throw new Beyond("the builder expects a name there");
    this.at += 1;
    return token;
  }

  column() {
    const token = this.identifier();
    const names = this.about.attributes.map((one) => one.name);
    const wanted = token.text.toLowerCase();
    const near = names.filter((one) => one.toLowerCase() === wanted);
    const found = names.includes(token.text) ? token.text : near.length === 1 ? near[0] : null;
    if (found === null) throw new Beyond(`there is no column ${token.text}`);
    return found;
  }

  value() {
    if (this.take("true")) return true;
    if (this.take("false")) return false;
    if (this.is("date") && this.tokens[this.at + 1]?.kind === "value") this.at += 1;
    const token = this.tokens[this.at];
    if (token?.kind !== "value") throw new Beyond("the builder compares columns with values only");
    this.at += 1;
    return token.value;
  }

  question() {
    const found = blank();
    this.need("select");
    const keys = [];
    while (!this.figure(found)) {
      keys.push(this.column());
      this.need(",");
    }
    if (this.take("as")) found.as = this.identifier().text;
    this.need("from");
    const table = this.identifier().text;
    if (table.toLowerCase() !== this.about.name.toLowerCase()) throw new Beyond("it asks another table");
    if (this.take("where")) found.where = this.conditions();
    if (this.take("group", "by")) found.by = this.groups(keys);
    else if (keys.length) throw new Beyond("it shows columns without grouping by them");
    this.take(";");
    if (this.at < this.tokens.length) throw new Beyond("it has more than columns, one number, WHERE and GROUP BY");
    return found;
  }

  figure(found) {
    if (this.take("count", "(", "*", ")")) return true;
    for (const measure of ["sum", "avg", "median"]) {
      if (this.take(measure, "(")) {
        found.measure = measure;
        found.of = this.column();
        this.need(")");
        return true;
      }
    }
    return false;
  }

  groups(keys) {
    const found = [];
    do {
      const token = this.tokens[this.at];
      if (token?.kind === "value") {
        this.at += 1;
        found.push(keys[token.value - 1]);
      } else found.push(this.column());
    } while (this.take(","));
    if (found.length !== keys.length || keys.some((key) => !found.includes(key))) {
      throw new Beyond("it groups by other columns than it shows");
    }
    if (keys.length > MOST_GROUPS) throw new Beyond(`the builder groups by ${MOST_GROUPS} columns at most`);
    return keys;
  }

  conditions() {
    const found = [];
    do {
      const next = this.filter();
      const known = found.find((one) => one.column === next.column);
      if (!known) found.push(next);
      else if (known.values || next.values || (known.low && next.low) || (known.high && next.high)) {
        throw new Beyond(`it has two conditions on ${next.column}`);
      } else Object.assign(known, { low: known.low || next.low, high: known.high || next.high });
    } while (this.take("and"));
    return found;
  }

  filter() {
    if (!this.take("(")) return this.simple();
    const parts = [this.simple()];
    while (this.take("or")) parts.push(this.simple());
    this.need(")");
    const [{ column }] = parts;
    if (parts.length === 1) return parts[0];
    if (parts.some((one) => one.column !== column || !one.values)) throw new Beyond("it joins conditions by OR");
    return { column, values: [...new Set(parts.flatMap((one) => one.values))] };
  }

  simple() {
    const column = this.column();
    if (this.take("is", "null")) return { column, values: [null] };
    if (this.take("=")) return { column, values: [this.value()] };
    if (this.take("in", "(")) {
      const values = [];
      do values.push(this.value()); while (this.take(","));
      this.need(")");
      return { column, values };
    }
    if (this.take("between")) {
      const low = { value: this.value(), strict: false };
      this.need("and");
      return { column, low, high: { value: this.value(), strict: false } };
    }
    for (const [sign, end, strict] of [["<", "high", true], ["<=", "high", false], [">", "low", true], [">=", "low", false]]) {
      if (this.take(sign)) return { column, low: null, high: null, [end]: { value: this.value(), strict } };
    }
    throw new Beyond(`the builder does not know this condition on ${column}`);
  }
}

// The question of a text, or why the builder cannot show it.
export function read(text, about) {
  try {
    return { question: new Reader(text, about).question() };
  } catch (error) {
    if (error instanceof Beyond) return { why: error.message };
    throw error;
  }
}

// ---------------------------------------------------------------- the bars of a column

const tidy = (x) => Number(x.toPrecision(12));

function niceStep(span, wanted) {
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  return tidy([1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || 10 * power);
}

const shown = (value) => (value === null ? "missing" : String(value));

// The first and last number of a column of many numbers; null for one whose values are listed.
function span(attribute) {
  if (attribute.bins || attribute.kind === "date" || !isNumeric(attribute)) return null;
  const listed = attribute.values;
  if (listed && listed.length <= LISTED) return null;
  const [low, high] = attribute.range || attribute.interval || [listed[0], listed.at(-1)];
  return attribute.range && high - low < LISTED ? null : [low, high];
}

// The SQL of a column's bars, and what each of its groups is called and filters.
export function bars(attribute, table) {
  const column = name(attribute.name);
  const own = { column: attribute.name };
  const by = (key, more = "") => `select ${key}, count(*) from ${name(table)} group by ${column}${more}`;
  const numbers = span(attribute);
  if (numbers) return stepBars(attribute, table, numbers);
  if (attribute.bins) return { sql: by(column), bar: (key) => binBar(attribute, key) };
  if (attribute.kind === "date" && attribute.range) return dayBars(attribute, table);
  const many = attribute.values && attribute.values.length > LISTED;
  return {
    sql: by(column, many ? ` order by count(*) desc limit ${LISTED}` : ""),
    bar: (key) => ({ label: shown(key), filter: { ...own, values: [key] } }),
    rest: many ? attribute.values.length - LISTED : 0,
  };
}

const aliased = (key, table) =>
  `select ${key} as voile_bar, count(*) from ${name(table)} group by voile_bar`;

function stepBars(attribute, table, [low, high]) {
  const whole = attribute.kind === "integer";
  const step = Math.max(whole ? 1 : 0, niceStep(high - low, 18));
  const own = { column: attribute.name };
  return {
    sql: aliased(`floor(${name(attribute.name)} / ${step}) * ${step}`, table),
    bar: (key) => {
      if (key === null) return { label: "missing", filter: { ...own, values: [null] } };
      const [from, to] = [tidy(key), tidy(key + step)];
      const last = whole ? tidy(to - 1) : to;
      return { label: `${from} – ${last}`,
        filter: { ...own, low: { value: from, strict: false }, high: { value: last, strict: !whole } } };
    },
  };
}

function binBar(attribute, key) {
  const own = { column: attribute.name };
  if (key === null) return { label: "missing", filter: { ...own, values: [null] } };
  const edges = attribute.bins;
  const inner = edges.slice(1, -1).filter((edge) => edge <= key).length;
  const [low, high] = [edges[inner], edges[inner + 1]];
  const last = inner === edges.length - 2;
  // Of whole numbers the next edge is not in the bin, and the label need not name it.
  const to = !last && attribute.kind === "integer" && edges.every(Number.isInteger) ? high - 1 : high;
  // Numbers beyond the ends count in the first and the last bin.
  return { label: low === to ? `${low}` : `${low} – ${to}`,
    filter: { ...own, low: inner ? { value: low, strict: false } : null,
      high: last ? null : { value: high, strict: true } } };
}

function dayBars(attribute, table) {
  const [from, to] = attribute.range.map((day) => Number(day.slice(0, 4)));
  const unit = to - from > 3 ? "year" : "month";
  const own = { column: attribute.name };
  return {
    sql: aliased(`date_trunc('${unit}', ${name(attribute.name)})`, table),
    bar: (key) => {
      if (key === null) return { label: "missing", filter: { ...own, values: [null] } };
      const [year, month] = key.split("-").map(Number);
      const next = unit === "year" ? `${year + 1}-01-01` : `${month === 12 ? year + 1 : year}-${String((month % 12) + 1).padStart(2, "0")}-01`;
      return { label: key.slice(0, unit === "year" ? 4 : 7),
        filter: { ...own, low: { value: key.slice(0, 10), strict: false }, high: { value: next, strict: true } } };
    },
  };
}

// What a column may hold, in a few words.
export function domain(attribute) {
  const { values, range, bins, interval } = attribute;
  const missing = attribute.null ? " or missing" : "";
  const count = (n, what) => `${n.toLocaleString("en-US")} ${what}`;
  if (values) return count(values.length, values.length === 1 ? "value" : "values") + missing;
  if (range) return `${range[0]} to ${range[1]}${missing}`;
  if (bins) return `${bins[0]} to ${bins.at(-1)} in ${count(bins.length - 1, bins.length === 2 ? "bin" : "bins")}${missing}`;
  return interval ? `${interval[0]} to ${interval[1]}${missing}` : "";
}

// A filter in words.
export function words(filter) {
  const { column, values, low, high } = filter;
  if (values) return `${column}: ${values.map(shown).join(" or ")}`;
  if (low && high) return `${column}: ${low.value} ${high.strict ? "to below" : "to"} ${high.value}`;
  return low ? `${column}: ${low.strict ? "above" : "from"} ${low.value}` : `${column}: ${high.strict ? "below" : "up to"} ${high.value}`;
}
