// What is sent to a server of noisy answers and taken from it; voile's own tests ask a real one.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { PromiseError, QueryError, ServerError, UsageError, connect } from "./voile-server.mjs";

const REPLY = {
  answer: 12.5, stderr: 2, low: 8, high: 17, charged: 1, remaining: 4, confidence: 0.95, columns: ["count"],
  rows: [{ count: { estimate: 12.5, stderr: 2, low: 8, high: 17 } }], covers: "x", notes: ["a\u001b[2Jb"],
  subset: "all", subset_rows: null, numbers: [7],
};
let server, address, next;
const seen = [];

before(async () => {
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    seen.push({ method: request.method, path: request.url, headers: request.headers, body: body && JSON.parse(body) });
    const { status = 200, headers = {}, content = REPLY, raw, lose } = next.shift() ?? {};
    if (lose) return request.socket.destroy();
    response.writeHead(status, headers);
    response.end(raw ?? JSON.stringify(content));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  address = `http://127.0.0.1:${server.address().port}`;
});
after(() => server.close());

function asking(...replies) {
  next = replies;
  seen.length = 0;
  return connect(address, "secret", { timeout: 5 });
}

test("a question, its token and its answer", async () => {
  const reply = await asking({}).ask("select count(*) from t", { subset: "half:spring", confidence: 0.9 });
  assert.deepEqual(seen[0].body, {
    sql: "select count(*) from t", subset: { half: "spring" }, confidence: 0.9, dry_run: false,
  });
  assert.equal(seen[0].headers.authorization, "Bearer secret");
  assert.equal(`${seen[0].method} ${seen[0].path}`, "POST /query");
  assert.equal(reply.answer, 12.5);
  assert.equal(reply.rows[0].count.high, 17);
  assert.deepEqual(reply.notes, ["a [2Jb"]);
  assert.equal(reply.subsetRows, null);
  assert.ok(Object.isFrozen(reply));
});

test("a cost, and the other addresses", async () => {
  const cost = { cost: 3, remaining: 2, new: 3, known: 0, groups: 1, stderr: { count: 2 }, notes: [] };
  const from = asking({ content: cost }, { content: { a: 1 } }, { content: { b: 2 } }, { content: { history: [] } });
  assert.equal((await from.cost("select count(*) from t")).affordable, false);
  assert.equal(seen[0].body.dry_run, true);
  assert.deepEqual(await from.about(), { a: 1 });
  assert.deepEqual(await from.budget(), { b: 2 });
  assert.deepEqual(await from.history(), []);
  assert.deepEqual(seen.map(({ path }) => path), ["/query", "/schema", "/budget", "/history"]);
});

const REFUSED = [
  [401, {}, UsageError], [403, {}, QueryError], [422, {}, UsageError], [404, {}, UsageError],
  [429, {}, PromiseError], [429, { "Retry-After": "59" }, ServerError], [503, {}, ServerError],
];
for (const [status, headers, kind] of REFUSED) {
  test(`${status} ${JSON.stringify(headers)} is a ${kind.name}`, async () => {
    const from = asking({ status, headers, content: { error: "no\u0007", hint: "because" } });
    await assert.rejects(from.ask("select 1"), (error) => {
      assert.ok(error instanceof kind && !error.message.includes("\u0007") && error.hint.length > 3);
      return !error.message.includes("secret");
    });
  });
}

test("too many requests are waited for as long as the server says", async () => {
  const reply = await asking({ status: 429, headers: { "Retry-After": "0" }, content: {} }, {}).ask("select 1");
  assert.equal(reply.remaining, 4);
  assert.equal(seen.length, 2);
});

test("a lost connection is tried once more, and then said", async () => {
  assert.equal((await asking({ lose: true }, {}).ask("select 1")).charged, 1);
  await assert.rejects(asking({ lose: true }, { lose: true }).ask("select 1"), ServerError);
  assert.equal(seen.length, 2);
});

const STRANGE = [
  { raw: "<html>" }, { raw: "[]" }, { raw: "null" }, { raw: "" }, { content: {} }, { content: { ...REPLY, rows: 3 } },
  { content: { ...REPLY, charged: "1" } }, { content: { ...REPLY, answer: "12" } }, { content: { ...REPLY, rows: [1] } },
  { status: 302, headers: { Location: "https://elsewhere.example" } },
];
for (const reply of STRANGE) {
  test(`no server of ours: ${JSON.stringify(reply).slice(0, 60)}`, async () => {
    await assert.rejects(asking(reply).ask("select 1"), ServerError);
    assert.equal(seen.length, 1);
  });
}

test("nobody listens", async () => {
  await assert.rejects(connect("http://127.0.0.1:1", "x").about(), ServerError);
});

const WRONG = [
  [() => connect("counts.example.org", "x"), "address"], [() => connect("ftp://a/", "x"), "address"],
  [() => connect(7, "x"), "address"], [() => connect("http://counts.example.org", "x"), "not encrypted"],
  [() => connect("https://u:p@a.example", "x"), "more than"], [() => connect("https://a.example/?token=x", "x"), "more than"],
  [() => connect("https://a.example", ""), "no token"], [() => connect("https://a.example", "a b"), "characters"],
  [() => connect("https://a.example", "a\n"), "characters"], [() => connect("https://a.example", "x", { timeout: 0 }), "timeout"],
  [() => connect("https://a.example", "x", { secure: true }), "secure"],
];
for (const [call, words] of WRONG) {
  test(`a wrong call: ${call}`, () => {
    assert.throws(call, (error) => error instanceof UsageError && error.message.includes(words) && error.hint.length > 3);
  });
}

for (const [sql, options] of [
  ["", {}], [" ", {}], [3, {}], ["select 1", { subset: "" }], ["select 1", { subset: "half:" }],
  ["select 1", { subset: { half: 3 } }], ["select 1", { confidence: 1 }], ["select 1", { confidance: 0.9 }],
]) {
  test(`a wrong question: ${JSON.stringify([sql, options])}`, async () => {
    await assert.rejects(asking({}).ask(sql, options), UsageError);
    assert.equal(seen.length, 0);
  });
}

test("plain http over a network is meant", () => {
  assert.equal(connect("http://counts.example.org/a/", "x", { insecure: true }).url, "http://counts.example.org/a");
  assert.equal(connect("http://localhost:8420", "x").url, "http://localhost:8420");
  assert.equal(connect("http://[::1]:8420", "x").url, "http://[::1]:8420");
});
