// Asks a server of noisy answers (`voile serve run`), from Node or a page of the server's own origin.
//
//   const server = connect("https://counts.example.org", token);
//   const reply = await server.ask("select count(*) from adult where sex = 'Female'");
//
// What a server says is taken for hostile: its size and its form are checked, and words of errors
// are cut and cannot steer a terminal.

import { PromiseError, UsageError } from "./voile-client.mjs";

export { PromiseError, UsageError };

const MOST_BYTES = 2 ** 26; // of one answer: no list of groups that a server answers about is that long
const MOST_WORDS = 2000;
const LOST = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]); // as Node names a connection that was closed
const LONGEST_WAIT = 60; // seconds that a server may ask to wait
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const NOT_VALID = "the token is wrong, expired or revoked: ask the server's steward for another";
const NO_SERVER = "is it the address of a server begun with voile serve run?";

/** A question that the server does not answer; the hint says what to change. */
export class QueryError extends Error {
  constructor(message, hint) {
    super(message);
    this.name = "QueryError";
    this.hint = hint;
  }
}

/** The server cannot be reached, cannot answer now, or is no server of ours. */
export class ServerError extends Error {
  constructor(message, hint) {
    super(message);
    this.name = "ServerError";
    this.hint = hint;
  }
}

/** A server to ask with a token. */
export function connect(url, token, { timeout = 30, insecure = false, ...more } = {}) {
  const unknown = Object.keys(more);
  if (unknown.length) {
    throw new UsageError(`connect has no option ${JSON.stringify(unknown[0])}`, "there are timeout and insecure");
  }
  if (typeof timeout !== "number" || !(timeout > 0 && timeout <= 86400)) {
    throw new UsageError(`timeout ${String(timeout)} is not a number of seconds`, "such as 30");
  }
  return new Server(checkedAddress(url, insecure === true), checkedToken(token), timeout);
}

/** A server and the token to ask it with: see `connect`. */
export class Server {
  #address;
  #headers;
  #timeout;

  constructor(address, token, timeout) {
    this.#address = address;
    this.#headers = { Authorization: `Bearer ${token}` };
    this.#timeout = timeout;
  }

  /** The address that is asked. */
  get url() {
    return this.#address;
  }

  /** What may be asked, how much, and what each person in the table is promised. */
  about() {
    return this.#sent("GET", "/schema");
  }

  /** How many answers the token's owner had, and may still have. */
  budget() {
    return this.#sent("GET", "/budget");
  }

  /** The owner's own questions, as the server kept them. */
  async history() {
    const { history } = await this.#sent("GET", "/history");
    if (!Array.isArray(history)) throw notOurs("history");
    return history;
  }

  /** What a question would take from the budget; asking this takes nothing. */
  async cost(sql, options = {}) {
    const found = await this.#sent("POST", "/query", { ...questionOf(sql, options), dry_run: true });
    const { cost, remaining, new: fresh, known, groups, stderr, notes } = found;
    if (![cost, remaining, fresh, known, groups].every(Number.isSafeInteger) || !isObject(stderr)) {
      throw notOurs("cost");
    }
    return Object.freeze({
      cost, remaining, new: fresh, known, groups, stderr, affordable: cost <= remaining,
      notes: wordsOf(notes),
    });
  }

  /** The noisy answer. What was answered before, to anybody, costs nothing. */
  async ask(sql, options = {}) {
    const found = await this.#sent("POST", "/query", { ...questionOf(sql, options), dry_run: false });
    return replyOf(found);
  }

  async #sent(method, path, body) {
    let patience = this.#timeout;
    for (;;) {
      const { status, found, wait } = await this.#exchange(method, path, body);
      if (status === 200) return found;
      if (status !== 429 || wait === null || wait > patience) {
        throw refusal(this.#address, status, found, wait);
      }
      patience -= wait;
      await new Promise((done) => setTimeout(done, wait * 1000));
    }
  }

  /** One request; once more if the connection was lost, since answers are kept and free. */
  async #exchange(method, path, body) {
    try {
      return await this.#once(method, path, body);
    } catch (error) {
      if (!LOST.has(error.cause?.cause?.code)) throw error;
      return this.#once(method, path, body);
    }
  }

  async #once(method, path, body) {
    let response, text;
    try {
      response = await fetch(this.#address + path, {
        method,
        headers: body === undefined ? this.#headers : { ...this.#headers, "Content-Type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
        redirect: "error", // the token is for this server alone
        credentials: "omit",
        referrerPolicy: "no-referrer",
        cache: "no-store",
        signal: AbortSignal.timeout(this.#timeout * 1000),
      });
      text = await limitedText(response);
    } catch (error) {
      if (error instanceof ServerError) throw error;
      throw unreachable(this.#address, error);
    }
    return { status: response.status, found: readObject(this.#address, response.status, text), wait: waitOf(response) };
  }
}

// ---------------------------------------------------------------------- what is sent

function checkedAddress(url, insecure) {
  let parts;
  try {
    parts = new URL(url);
  } catch {
    parts = null;
  }
  if (typeof url !== "string" || parts === null || !["http:", "https:"].includes(parts.protocol)) {
    throw new UsageError(
      `${JSON.stringify(url)} is not the address of a server`,
      "such as http://127.0.0.1:8420 or https://counts.example.org",
    );
  }
  if (parts.username || parts.password || parts.search || parts.hash) {
    throw new UsageError(
      `the address of ${parts.host} holds more than a host, a port and a path`,
      "give the token to connect, not in the address",
    );
  }
  if (parts.protocol === "http:" && !LOOPBACK.test(parts.hostname) && !insecure) {
    throw new UsageError(
      `${parts.href} is not encrypted: anyone on the way can read the token and the answers`,
      "use https, or pass insecure: true if you trust the way",
    );
  }
  return parts.href.replace(/\/+$/, "");
}

function checkedToken(token) {
  if (typeof token !== "string" || !token) {
    throw new UsageError("no token was given", "the server's steward makes one with voile serve token");
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(
      "the token holds characters that tokens do not have",
      "copy it again, without quotes, spaces or line ends",
    );
  }
  return token;
}

function questionOf(sql, { subset = "all", confidence = 0.95, ...more }) {
  const unknown = Object.keys(more);
  if (unknown.length) {
    throw new UsageError(
      `a question has no option ${JSON.stringify(unknown[0])}`, "there are subset and confidence",
    );
  }
  if (typeof sql !== "string" || !sql.trim()) {
    throw new UsageError("no question was given", "such as select count(*) from adult");
  }
  if (typeof confidence !== "number" || !(confidence > 0 && confidence < 1)) {
    throw new UsageError(`confidence ${String(confidence)} is not between 0 and 1`, "such as 0.95");
  }
  return { sql, subset: subsetOf(subset), confidence };
}

function subsetOf(subset) {
  if (isObject(subset) && Object.keys(subset).join() === "half" && isWord(subset.half)) {
    return { half: subset.half };
  }
  if (isWord(subset) && !subset.startsWith("half:")) return subset;
  if (isWord(subset) && subset.length > 5) return { half: subset.slice(5) };
  throw new UsageError(
    `subset ${JSON.stringify(subset)} is not known`, "all, half:SEED, or the name of a declared subset",
  );
}

// ---------------------------------------------------------------------- what comes back

async function limitedText(response) {
  const decoder = new TextDecoder();
  let text = "", size = 0;
  if (response.body === null) return text;
  for await (const chunk of response.body) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new ServerError("the server's answer is too long", NO_SERVER);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function readObject(address, status, text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    found = null;
  }
  if (!isObject(found)) {
    throw new ServerError(`${address} answered ${status} with something that is not a JSON object`, NO_SERVER);
  }
  return found;
}

function replyOf(found) {
  const { rows, confidence, charged, remaining, columns, covers, notes, subset = "all", numbers = [] } = found;
  const whole = Array.isArray(rows) && rows.every(isObject) && typeof confidence === "number"
    && Number.isSafeInteger(charged) && Number.isSafeInteger(remaining) && Array.isArray(numbers);
  if (!whole) throw notOurs("reply");
  return Object.freeze({
    answer: numberOf(found.answer), stderr: numberOf(found.stderr), low: numberOf(found.low),
    high: numberOf(found.high), charged, remaining, rows, confidence, numbers, subset,
    columns: Array.isArray(columns) ? columns : Object.keys(columns ?? rows[0] ?? {}),
    subsetRows: numberOf(found.subset_rows), covers: plain(covers ?? ""), notes: wordsOf(notes),
  });
}

function refusal(address, status, found, wait) {
  const words = plain(found.error ?? `${address} answered ${status}`);
  const hint = plain(found.hint ?? "");
  if (status === 401) return new UsageError(words, NOT_VALID);
  if (status === 403) return new QueryError(words, hint);
  if (status === 429) return wait === null ? new PromiseError(words, hint) : new ServerError(words, hint);
  if (status >= 400 && status < 500) {
    return new UsageError(`${address} answered ${status}: ${words}`, hint || NO_SERVER);
  }
  return new ServerError(
    `${address} answered ${status}: ${words}`, hint || "ask again later: nothing that was answered is lost",
  );
}

function unreachable(address, error) {
  const late = error?.name === "TimeoutError";
  const reason = late ? "no answer in time" : plain(error?.cause?.message || error?.message || "no reply");
  const made = new ServerError(
    `${address} cannot be reached: ${reason}`,
    late ? "ask again: what was answered meanwhile is kept, and free" : "is the server running, and is the address right?",
  );
  made.cause = error;
  return made;
}

function waitOf(response) {
  const header = response.headers.get("Retry-After");
  if (header === null) return null;
  return /^\d{1,9}$/.test(header) ? Math.max(0.1, Math.min(LONGEST_WAIT, Number(header))) : 1;
}

function notOurs(what) {
  return new ServerError(`the server answered something that is no ${what}`, "is it of another version?");
}

function wordsOf(notes) {
  return Array.isArray(notes) ? notes.map(plain) : [];
}

function plain(words) {
  return String(words).slice(0, MOST_WORDS).replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ");
}

function numberOf(value) {
  if (value === null || value === undefined) return null;
  if (typeof value !== "number") throw notOurs("reply");
  return value;
}

function isWord(value) {
  return typeof value === "string" && value !== "";
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
