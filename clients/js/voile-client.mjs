// Perturb your own row before it leaves: the client of docs/reference/wire-format.md for browsers and Node.
//
// Every random bit comes from crypto.getRandomValues. Words of 64 bits are BigInts; numbers are
// the same IEEE doubles as in every other client. No error repeats a value of a row: errors are
// written to logs and sent to strangers, and the value is somebody's answer.

const FORMAT = "voile-perturbation";
const ROWS_FORMAT = "voile-rows";
const VERSION = 1;
const EXACT = 2 ** 53;
const LARGEST = 2 ** 50;
const MOST_LISTED = 1_000_000;
const MOST_COLUMNS = 1000;
const MOST_BYTES = 2 ** 25;
const SLACK = 1e-9;
const ROUNDING = 2 ** -48;
const AS_THE_FORMAT_SAYS = "write it as docs/reference/wire-format.md says";
const DAY = 86_400_000;
const WORDS = 1n << 64n;

/** The spec, the row or the call is wrong; `hint` says what would work. */
export class UsageError extends Error {
  constructor(message, hint) {
    super(message);
    this.name = "UsageError";
    this.hint = hint;
  }
}

/** The spec does not keep its promise, or tells more than the caller allows. */
export class PromiseError extends Error {
  constructor(message, hint) {
    super(message);
    this.name = "PromiseError";
    this.hint = hint;
  }
}

// ---------------------------------------------------------------------- reading a spec

/** Specs that `parseSpec` has read and checked: no other object is taken for one. */
const specs = new WeakSet();

/** Read a spec from the exact text or bytes that the survey publishes. */
export function parseSpec(source) {
  const raw = bytesOf(source);
  if (raw.length > MOST_BYTES) {
    throw new UsageError(`the spec has ${raw.length} bytes`, `at most ${MOST_BYTES} are read`);
  }
  const document = anObject(
    parseJson(raw), "the spec", ["format", "version", "columns"], ["name", "joint", "promise"],
  );
  if (document.format !== FORMAT) {
    throw new UsageError(`the spec is not of the format '${FORMAT}'`, "read the survey's spec");
  }
  const version = aWhole(document.version, "the spec's version", 1, 2 ** 31);
  if (version > VERSION) throw new UsageError(`the spec is of version ${version}`, "use a newer client");
  const joint = readJoint(document.joint ?? null);
  const columns = aList(document.columns, "the spec's columns", MOST_COLUMNS).map(
    (entry, place) => readColumn(entry, `column ${place}`, joint !== null),
  );
  checkNames(columns);
  const name = aText(document.name ?? "", "the spec's name", 1000);
  const promise = readPromise(document.promise ?? null);
  const spec = Object.freeze({ name, columns: Object.freeze(columns), joint, promise, raw });
  checkPromise(spec);
  specs.add(spec);
  return spec;
}

function bytesOf(source) {
  if (typeof source === "string") return new TextEncoder().encode(source);
  if (source instanceof Uint8Array) return new Uint8Array(source);
  if (source instanceof ArrayBuffer) return new Uint8Array(source.slice(0));
  throw new UsageError(
    "a spec is read from its text or its bytes", "give a string, a Uint8Array or an ArrayBuffer",
  );
}

function checkSpec(spec) {
  if (!specs.has(spec)) throw new UsageError("this is not a spec", "read one with parseSpec(text)");
}

function parseJson(raw) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw));
  } catch {
    throw new UsageError("the spec is not JSON in UTF-8", AS_THE_FORMAT_SAYS);
  }
}

function readJoint(entry) {
  if (entry === null) return null;
  anObject(entry, "the spec's joint", ["retention"]);
  return aChance(entry.retention, "the joint retention");
}

function readPromise(entry) {
  if (entry === null) return null;
  anObject(entry, "the promise", [], ["epsilon", "columns"]);
  const named = entry.columns === undefined ? {} : entry.columns;
  if (!isObject(named)) {
    throw new UsageError("the promise's columns are not an object", AS_THE_FORMAT_SAYS);
  }
  const columns = Object.entries(named).map(([name, value]) => [
    name, anEpsilon(value, `the promise of column '${name}'`),
  ]);
  const whole = entry.epsilon ?? null;
  return { epsilon: whole === null ? null : anEpsilon(whole, "the promise"), columns };
}

function readColumn(entry, place, joint) {
  anObject(entry, place, ["name", "kind", "domain", "null", "retention", "replace"]);
  const name = aText(entry.name, `${place}: the name`, 1000);
  if (name === "") throw new UsageError(`${place}: the name is empty`, "give the column a name");
  const where = `column '${name}'`;
  if (typeof entry.kind !== "string" || !Object.hasOwn(FORMS, entry.kind)) {
    throw new UsageError(`${where}: unknown kind`, `one of ${Object.keys(FORMS).join(", ")}`);
  }
  const kind = entry.kind;
  const domain = readDomain(entry.domain, kind, where);
  const hasNull = aFlag(entry.null, `${where}: 'null'`);
  const retention = aChance(entry.retention, `${where}: the retention`);
  const size = domain.count + (hasNull ? 1 : 0);
  const parts = readReplace(entry.replace, size, where);
  if (joint && (retention !== 1 || parts !== null)) {
    throw new UsageError(
      `${where} has its own way of perturbing beside 'joint'`,
      "with 'joint', every column has retention 1 and replace 'uniform'",
    );
  }
  const total = parts === null ? size : parts.reduce((sum, part) => sum + part, 0);
  return Object.freeze({ name, kind, domain, hasNull, retention, parts, size, total });
}

function readReplace(entry, size, where) {
  if (entry === "uniform") return null;
  const parts = aList(entry, `${where}: 'replace'`, MOST_LISTED).map((part, place) =>
    aWhole(part, `${where}: 'replace', entry ${place}`, 1, EXACT));
  if (parts.length !== size) {
    throw new UsageError(
      `${where}: 'replace' has ${parts.length} entries for ${size} values`,
      "one for each value of the domain, and one for NULL where it is allowed",
    );
  }
  const total = parts.reduce((sum, part) => sum + BigInt(part), 0n);
  if (total > BigInt(EXACT)) {
    throw new UsageError(
      `${where}: 'replace' adds up to more than 2^53`, "divide all by the same number",
    );
  }
  return parts;
}

function checkNames(columns) {
  const seen = new Set();
  for (const { name } of columns) {
    const folded = name.toUpperCase().toLowerCase();
    if (seen.has(folded)) {
      throw new UsageError(
        `column '${name}' is there twice, but for case`, "give the columns different names",
      );
    }
    seen.add(folded);
  }
}

// ---------------------------------------------------------------------- domains

/** The forms of a domain that each kind of column may have, by their keys in order. */
const FORMS = {
  categorical: { values: readTexts },
  boolean: { values: readListed },
  integer: { values: readListed, "count,low,per,step": readGrid },
  numeric: { values: readListed, "count,low,per,step": readGrid, edges: readEdges },
  date: { values: readListed, "count,first": readDays },
};

function readDomain(entry, kind, where) {
  const keys = isObject(entry) ? Object.keys(entry).sort().join(",") : "";
  if (!Object.hasOwn(FORMS[kind], keys)) {
    const known = Object.keys(FORMS[kind]).map((form) => `{${form}}`);
    throw new UsageError(
      `${where}: the domain is not one of kind ${kind}`, `give ${known.join(" or ")}`,
    );
  }
  return FORMS[kind][keys](entry, kind, `${where}: the domain`);
}

function readTexts(entry, kind, where) {
  return listed(aList(entry.values, where, MOST_LISTED).map((value, place) =>
    aText(value, `${where}, value ${place}`, 10_000)), where);
}

function readListed(entry, kind, where) {
  const read = {
    boolean: aFlag,
    integer: (value, place) => aWhole(value, place, -EXACT, EXACT),
    numeric: aNumber,
    date: (value, place) => (aDay(value, place), value),
  }[kind];
  return listed(aList(entry.values, where, MOST_LISTED).map((value, place) =>
    read(value, `${where}, value ${place}`)), where);
}

function listed(values, where) {
  // A Map takes 0 and −0 for the same number, as == does.
  const codes = new Map(values.map((value, code) => [value, code]));
  if (codes.size < values.length) {
    throw new UsageError(`${where} lists a value twice`, "list it once");
  }
  return {
    count: values.length,
    encode: (value) => codes.get(value) ?? -1,
    decode: (code) => values[code],
  };
}

function readGrid(entry, kind, where) {
  const low = aWhole(entry.low, `${where}'s low`, -LARGEST, LARGEST);
  const step = aWhole(entry.step, `${where}'s step`, 1, 2 * LARGEST);
  const per = aWhole(entry.per, `${where}'s per`, 1, LARGEST);
  const count = aWhole(entry.count, `${where}'s count`, 1, 2 * LARGEST + 1);
  if (BigInt(low) + BigInt(step) * BigInt(count - 1) > BigInt(LARGEST)) {
    throw new UsageError(`${where} ends above 2^50`, "make the grid coarser or shorter");
  }
  if (kind === "integer" && per !== 1) {
    throw new UsageError(`${where}'s per is ${per}`, "kind integer has per 1");
  }
  return grid(low, step, per, count, kind === "integer");
}

function grid(low, step, per, count, whole) {
  const decode = (code) => (low + code * step) / per;
  const [first, last] = [decode(0), decode(count - 1)];
  const encode = (value) => {
    if (!(value >= first && value <= last) || (whole && !Number.isInteger(value))) return -1;
    return Math.floor((value * per - low) / step + 0.5);
  };
  return { count, encode, decode };
}

function readDays(entry, kind, where) {
  const first = aDay(entry.first, `${where}'s first day`);
  const count = aWhole(entry.count, `${where}'s count`, 1, LARGEST);
  if (first + count - 1 > dayNumber("9999-12-31")) {
    throw new UsageError(`${where} ends after 9999`, "lower the count");
  }
  const days = grid(first, 1, 1, count, true);
  return {
    count,
    encode: (value) => days.encode(dayNumber(value)),
    decode: (code) => new Date(days.decode(code) * DAY).toISOString().slice(0, 10),
  };
}

function readEdges(entry, kind, where) {
  const edges = aList(entry.edges, where, MOST_LISTED).map((edge, place) =>
    aNumber(edge, `${where}, edge ${place}`));
  const count = edges.length - 1;
  if (count < 1 || edges.some((edge, place) => place > 0 && !(edges[place - 1] < edge))) {
    throw new UsageError(`${where} is no list of bins`, "give two edges or more, increasing");
  }
  const decode = (code) => (edges[code] + edges[code + 1]) / 2;
  const encode = (value) => {
    if (!(value >= edges[0] && value <= edges[count])) return -1;
    return value === edges[count] ? count - 1 : lastAtMost(edges, value);
  };
  for (let code = 0; code < count; code += 1) {
    if (encode(decode(code)) !== code) {
      throw new UsageError(
        `${where}: the middle of bin ${code} is not inside it`, "make the bins wider",
      );
    }
  }
  return { count, encode, decode };
}

/** The largest place whose number is at most `value`, in an increasing list. */
function lastAtMost(numbers, value) {
  let [low, high] = [0, numbers.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}

/** Days since 1970-01-01 of a text YYYY-MM-DD; NaN for any other. */
function dayNumber(text) {
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(text) || text.startsWith("0000")) return NaN;
  const time = Date.parse(`${text}T00:00:00Z`);
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text) return NaN;
  return time / DAY;
}

const TYPES = {
  categorical: "string", boolean: "boolean", integer: "number", numeric: "number", date: "string",
};

function encode(column, row) {
  const value = row[column.name];
  if (value === null && column.hasNull) return column.size - 1;
  const code = typeof value === TYPES[column.kind] ? column.domain.encode(value) : -1;
  if (code < 0) {
    throw new UsageError(
      `column '${column.name}': the value is not in the domain`,
      "see the spec; the value is not shown, since errors travel",
    );
  }
  return code;
}

function decode(column, code) {
  return code === column.domain.count ? null : column.domain.decode(code);
}

// ---------------------------------------------------------------------- the promise

/** Names of the columns that are sent as they are. */
export function publicColumns(spec) {
  checkSpec(spec);
  if (spec.joint !== null) return spec.joint === 1 ? spec.columns.map(({ name }) => name) : [];
  return spec.columns.filter(({ retention }) => retention === 1).map(({ name }) => name);
}

/**
 * Local ε of a row: of all its columns together but those that are sent as they are.
 *
 * Rounded up; infinite where no column is perturbed.
 */
export function epsilon(spec) {
  checkSpec(spec);
  return rowEpsilon(spec);
}

/** Local ε of each column, as a Map; infinite where it is sent as it is. */
export function columnEpsilons(spec) {
  checkSpec(spec);
  return epsilonsOf(spec);
}

function rowEpsilon({ columns, joint }) {
  const telling = columns.filter(({ size }) => size > 1);
  if (telling.length === 0) return 0;
  if (joint !== null) return jointEpsilon(joint, telling.map(({ size }) => size));
  const perturbedOnes = telling.filter(({ retention }) => retention < 1);
  if (perturbedOnes.length === 0) return Infinity;
  const sum = perturbedOnes.reduce((total, column) => total + ownEpsilon(column), 0);
  return sum === 0 ? 0 : above(sum, columns.length);
}

function epsilonsOf(spec) {
  return new Map(spec.columns.map((column) => [column.name, columnEpsilon(column, spec)]));
}

function columnEpsilon(column, spec) {
  if (column.size === 1) return 0;
  return spec.joint === null ? ownEpsilon(column) : rowEpsilon(spec);
}

function ownEpsilon({ retention, parts, total }) {
  if (retention === 0) return 0;
  if (retention === 1) return Infinity;
  const least = parts === null ? 1 : parts.reduce((a, b) => Math.min(a, b));
  return above(Math.log1p(((retention / (1 - retention)) * total) / least), 1);
}

/** ln(1 + a) with ln a in hand, since a = p·D/(1 − p) may be larger than any double. */
function jointEpsilon(joint, sizes) {
  if (joint === 0) return 0;
  if (joint === 1) return Infinity;
  const logs = [joint / (1 - joint), ...sizes].map(Math.log);
  const sum = logs.reduce((total, log) => total + log, 0);
  const size = logs.reduce((total, one) => total + Math.abs(one), 0);
  const log = sum + Number.EPSILON * logs.length * size; // terms of either sign may nearly cancel
  return above(log > 0 ? log + Math.log1p(Math.exp(-log)) : Math.log1p(Math.exp(log)), 1);
}

/** A number that is not below what so many roundings were meant to give. */
function above(number, roundings) {
  return number * (1 + ROUNDING * roundings) + Number.MIN_VALUE;
}

/** The largest belief after a row with local ε was seen, of one that was `prior` before. */
export function priorPosterior(prior, epsilonOfRow) {
  if (typeof prior !== "number" || !(prior >= 0 && prior <= 1)) {
    throw new UsageError("the prior belief is not a number from 0 to 1", "such as 0.1");
  }
  if (typeof epsilonOfRow !== "number" || !(epsilonOfRow >= 0)) {
    throw new UsageError("ε is not a number from 0 up", "such as epsilon(spec)");
  }
  return prior === 0 ? 0 : 1 / (1 + ((1 - prior) / prior) * Math.exp(-epsilonOfRow));
}

function checkPromise(spec) {
  if (spec.promise === null) return;
  const whole = spec.promise.epsilon;
  if (whole !== null && exceeds(rowEpsilon(spec), whole)) {
    throw new PromiseError(
      `the spec promises ε ≤ ${whole} and its parameters give ${rowEpsilon(spec)}`,
      "do not answer this survey; its owner must lower a retention",
    );
  }
  const found = epsilonsOf(spec);
  for (const [name, promised] of spec.promise.columns) {
    if (!found.has(name)) {
      throw new UsageError(
        `the promise names an unknown column '${name}'`, nearest(name, [...found.keys()]),
      );
    }
    if (exceeds(found.get(name), promised)) {
      throw new PromiseError(
        `the spec promises ε ≤ ${promised} for column '${name}' and its parameters give ${found.get(name)}`,
        "do not answer this survey; its owner must lower the retention",
      );
    }
  }
}

function exceeds(found, promised) {
  return found > promised * (1 + SLACK);
}

// ---------------------------------------------------------------------- what the caller allows

/** The options of `perturb` and `submission`; a misspelt one is refused, and not passed over. */
function readOptions(spec, options) {
  checkSpec(spec);
  if (!isObject(options)) throw new UsageError("the options are not an object", "such as { atMost: 2 }");
  const known = ["atMost", "public", "_source"];
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      throw new UsageError(`unknown option '${key}'`, nearest(key, known.slice(0, 2)));
    }
  }
  const { atMost = null, public: allowed = [], _source = secureBytes } = options;
  if (typeof _source !== "function") throw new UsageError("_source is not a function", "leave it out");
  checkLimit(spec, atMost, allowed);
  return _source;
}

function checkLimit(spec, atMost, allowed) {
  const limit = atMost ?? Infinity;
  if (typeof limit !== "number" || !(limit >= 0)) {
    throw new UsageError("atMost is not a number from 0 up", "give the largest ε that you allow");
  }
  checkPublic(spec, allowed);
  const found = rowEpsilon(spec);
  if (exceeds(found, limit)) {
    throw new PromiseError(
      `a row tells ε = ${found}, more than the ${limit} you allow`,
      "do not answer this survey, or raise atMost",
    );
  }
}

/** Every column that is sent as it is has been named; one with a single value need not be. */
function checkPublic(spec, allowed) {
  if (!Array.isArray(allowed)) {
    throw new UsageError("public is not an array of columns' names", "such as public: ['region']");
  }
  const names = spec.columns.map(({ name }) => name);
  for (const name of allowed) {
    if (!names.includes(name)) {
      throw new UsageError(
        "public names what is no column of the spec", nearest(String(name), names),
      );
    }
  }
  const sent = new Set(publicColumns(spec));
  const told = spec.columns.filter(({ name, size }) => size > 1 && sent.has(name));
  const missing = told.find(({ name }) => !allowed.includes(name));
  if (missing !== undefined) {
    throw new PromiseError(
      `column '${missing.name}' is sent as it is (retention 1)`,
      `say public: [${told.map(({ name }) => `'${name}'`).join(", ")}] if you want that`,
    );
  }
}

/** The known name that differs in case and marks only, or all of them. */
function nearest(wrong, known) {
  const bare = (name) => name.toUpperCase().toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const found = known.find((name) => bare(name) === bare(wrong));
  if (found !== undefined) return `did you mean '${found}'?`;
  const shown = known.slice(0, 12).map((name) => `'${name}'`).join(", ");
  return `there is ${shown}${known.length > 12 ? ", …" : ""}`;
}

// ---------------------------------------------------------------------- draws

function secureBytes(count) {
  return globalThis.crypto.getRandomValues(new Uint8Array(count));
}

/** A source that gives the bytes of a test vector in order. It protects nobody. */
export function fixedBytes(bytes) {
  if (!(bytes instanceof Uint8Array)) {
    throw new UsageError("the bytes are not a Uint8Array", "fixed bytes are for test vectors");
  }
  let used = 0;
  const take = (count) => {
    if (used + count > bytes.length) {
      throw new UsageError("the draws need more bytes", "fixed bytes are for test vectors");
    }
    used += count;
    return bytes.slice(used - count, used);
  };
  take.left = () => bytes.length - used;
  return take;
}

function word(source) {
  return source(8).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/** Uniform in [0, bound): words above the largest multiple of the bound are drawn again. */
function below(bound, source) {
  const wide = BigInt(bound);
  const limit = (WORDS / wide) * wide;
  let drawn = word(source);
  while (drawn >= limit) drawn = word(source);
  return Number(drawn % wide);
}

function coin(retention, source) {
  return word(source) < BigInt(Math.floor(retention * 2 ** 64));
}

function replacement({ parts, total }, source) {
  const ticket = below(total, source);
  if (parts === null) return ticket;
  let code = 0;
  for (let end = parts[0]; end <= ticket; end += parts[code]) code += 1;
  return code;
}

// ---------------------------------------------------------------------- perturbing and sending

/** Rows that have been perturbed, and the spec it was done by: only these are sent. */
const perturbed = new WeakMap();

/**
 * Perturb one row, an object with every column's value (null for NULL).
 *
 * Options: `atMost` is the largest local ε of a row that you accept. Columns that are sent as they
 * are must be named in `public`. `_source` is for test vectors only.
 */
export function perturb(row, spec, options = {}) {
  const source = readOptions(spec, options);
  if (perturbed.has(row)) throw new UsageError("the row has been perturbed before", "send it as it is");
  checkColumns(row, spec);
  const codes = spec.columns.map((column) => encode(column, row));
  const made = spec.joint === null
    ? perturbColumns(codes, spec, source) : perturbTuple(codes, spec, source);
  const values = Object.fromEntries(
    spec.columns.map((column, place) => [column.name, decode(column, made[place])]),
  );
  perturbed.set(values, spec);
  return Object.freeze(values);
}

function checkColumns(row, spec) {
  const names = spec.columns.map(({ name }) => name);
  if (!isObject(row)) {
    throw new UsageError("the row is not an object", `such as { ${JSON.stringify(names[0])}: … }`);
  }
  for (const name of Object.keys(row)) {
    if (!names.includes(name)) {
      throw new UsageError(`the row has an unknown column '${name}'`, nearest(name, names));
    }
  }
  for (const { name, hasNull } of spec.columns) {
    if (!Object.hasOwn(row, name)) {
      const hint = hasNull ? "give null for NULL" : "every column of the spec needs a value";
      throw new UsageError(`the row has no column '${name}'`, hint);
    }
  }
}

// The replacement is drawn also for what is kept, so that neither time nor the number of bytes
// tells which it was.
function perturbColumns(codes, spec, source) {
  return spec.columns.map((column, place) => {
    if (column.retention === 1) return codes[place];
    const kept = coin(column.retention, source);
    const other = replacement(column, source);
    return kept ? codes[place] : other;
  });
}

function perturbTuple(codes, spec, source) {
  if (spec.joint === 1) return codes;
  const kept = coin(spec.joint, source);
  const others = spec.columns.map((column) => replacement(column, source));
  return kept ? codes : others;
}

/** SHA-256 of the spec's bytes, in hexadecimal. */
export async function digest(spec) {
  checkSpec(spec);
  return hexadecimal(new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", spec.raw)));
}

/**
 * The text to send for these rows. Rows that `perturb` has not made are perturbed here.
 *
 * Keep it, and send the same text again if need be: the ids make the server count a row once,
 * while perturbing anew would tell more about it each time.
 */
export async function submission(rows, spec, options = {}) {
  readOptions(spec, options);
  if (!Array.isArray(rows)) throw new UsageError("the rows are not an array", "write [row]");
  if (rows.length === 0) throw new UsageError("there are no rows to send", "give one at least");
  const ready = rows.map((row) => {
    if (!perturbed.has(row)) return perturb(row, spec, options);
    if (perturbed.get(row) !== spec) {
      throw new UsageError("a row was perturbed for another spec", "send it to that survey");
    }
    return row;
  });
  return JSON.stringify({
    format: ROWS_FORMAT,
    version: VERSION,
    spec: await digest(spec),
    rows: ready.map((row) => ({
      id: hexadecimal(secureBytes(16)),
      values: spec.columns.map(({ name }) => row[name]),
    })),
  });
}

function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// ---------------------------------------------------------------------- checks of JSON

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function anObject(value, where, required, optional = []) {
  if (!isObject(value)) throw new UsageError(`${where} is not an object`, AS_THE_FORMAT_SAYS);
  for (const key of required) {
    if (!Object.hasOwn(value, key)) {
      throw new UsageError(`${where} has no '${key}'`, `required: ${required.join(", ")}`);
    }
  }
  for (const key of Object.keys(value)) {
    if (!required.includes(key) && !optional.includes(key)) {
      const known = [...required, ...optional].join(", ");
      throw new UsageError(`${where}: unknown key '${key}'`, `known: ${known}`);
    }
  }
  return value;
}

function aList(value, where, atMost) {
  if (!Array.isArray(value) || value.length === 0 || value.length > atMost) {
    throw new UsageError(`${where} is not a list`, `give 1 to ${atMost} entries in brackets`);
  }
  return value;
}

function aText(value, where, atMost) {
  if (typeof value !== "string" || [...value].length > atMost) {
    throw new UsageError(`${where} is not a text`, `give at most ${atMost} characters in quotes`);
  }
  if (/\p{Surrogate}/u.test(value)) {
    throw new UsageError(`${where} holds half of a surrogate pair`, "write whole characters");
  }
  return value;
}

function aFlag(value, where) {
  if (typeof value !== "boolean") {
    throw new UsageError(`${where} is not true or false`, "write it without quotes");
  }
  return value;
}

function aNumber(value, where) {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new UsageError(`${where} is not a finite number`, "write it without quotes");
  }
  return value;
}

function aWhole(value, where, low, high) {
  if (!Number.isInteger(value) || value < low || value > high) {
    throw new UsageError(`${where} is not such a whole number`, `give one from ${low} to ${high}`);
  }
  return value;
}

function aChance(value, where) {
  if (!(aNumber(value, where) >= 0 && value <= 1)) {
    throw new UsageError(`${where} is not a chance`, "give a number from 0 to 1");
  }
  return value;
}

function anEpsilon(value, where) {
  if (aNumber(value, where) < 0) {
    throw new UsageError(`${where} is negative`, "give a number from 0 up");
  }
  return value;
}

function aDay(value, where) {
  const number = typeof value === "string" ? dayNumber(value) : NaN;
  if (Number.isNaN(number)) {
    throw new UsageError(`${where} is not a date`, "write it as YYYY-MM-DD");
  }
  return number;
}
