// The vectors that every client must agree with, and what JavaScript alone can get wrong.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  PromiseError, UsageError, columnEpsilons, digest, epsilon, fixedBytes, parseSpec, perturb,
  priorPosterior, publicColumns, submission,
} from "./voile-client.mjs";

const vectors = JSON.parse(readFileSync(new URL("../vectors.json", import.meta.url), "utf-8"));
const ERRORS = { spec: UsageError, row: UsageError, promise: PromiseError };

function bytesOf(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function textOf(vector) {
  return vector.text ?? JSON.stringify(vector.spec);
}

for (const vector of vectors) {
  test(vector.name, async () => {
    const source = fixedBytes(bytesOf(vector.random ?? ""));
    const run = () => {
      const spec = parseSpec(textOf(vector));
      return perturb(vector.row, spec, {
        atMost: vector.at_most ?? null, public: vector.public ?? [], _source: source,
      });
    };
    if (vector.error) {
      if (vector.error !== "spec" && vector.error !== "promise") parseSpec(textOf(vector));
      assert.throws(run, (error) => error instanceof ERRORS[vector.error] && error.hint.length > 3);
      return;
    }
    const spec = parseSpec(textOf(vector));
    const made = run();
    assert.deepEqual(spec.columns.map(({ name }) => made[name]), vector.values);
    assert.equal(source.left(), 0);
    const told = vector.epsilon ?? Infinity;
    assert.ok(epsilon(spec) === told || Math.abs(epsilon(spec) - told) <= 1e-9 * told);
    if (vector.digest) assert.equal(await digest(spec), vector.digest);
  });
}

const SPEC = parseSpec(JSON.stringify({
  format: "voile-perturbation", version: 1, name: "two questions",
  columns: [
    { name: "age", kind: "integer", domain: { low: 0, step: 1, per: 1, count: 10 }, null: true, retention: 0.5, replace: "uniform" },
    { name: "region", kind: "categorical", domain: { values: ["North", "South"] }, null: false, retention: 1, replace: "uniform" },
  ],
}));
const ROW = { age: 3, region: "South" };
const NAMED = { public: ["region"] };

test("a submission holds perturbed values in the order of the columns, and ids of their own", async () => {
  const once = perturb(ROW, SPEC, NAMED);
  const sent = JSON.parse(await submission([once, ROW, ROW], SPEC, NAMED));
  assert.equal(sent.format, "voile-rows");
  assert.equal(sent.spec, await digest(SPEC));
  assert.deepEqual(sent.rows[0].values, [once.age, once.region]);
  assert.equal(new Set(sent.rows.map(({ id }) => id)).size, 3);
  for (const { id } of sent.rows) assert.match(id, /^[0-9a-f]{32}$/);
});

test("a perturbed row is neither perturbed again nor changed, nor sent to another survey", async () => {
  const once = perturb(ROW, SPEC, NAMED);
  assert.throws(() => perturb(once, SPEC, NAMED), UsageError);
  assert.throws(() => { once.age = 3; }, TypeError);
  const same = parseSpec(new TextDecoder().decode(SPEC.raw));
  await assert.rejects(submission([once], same, NAMED), UsageError);
});

test("the caller's limit is kept, and what is sent as it is must be named", async () => {
  assert.deepEqual(publicColumns(SPEC), ["region"]);
  assert.equal(columnEpsilons(SPEC).get("region"), Infinity);
  assert.throws(() => perturb(ROW, SPEC), PromiseError);
  await assert.rejects(submission([ROW], SPEC), PromiseError);
  assert.throws(() => perturb(ROW, SPEC, { atMost: 9 }), PromiseError);
  assert.throws(() => perturb(ROW, SPEC, { atMost: 1, public: ["region"] }), PromiseError);
  assert.throws(() => perturb(ROW, SPEC, { atMost: NaN }), UsageError);
  perturb(ROW, SPEC, { atMost: 9, public: ["region"] });
});

test("no error repeats the value", () => {
  for (const age of [987654, "987654", [987654], 9.87654, NaN, undefined, new Date(987654)]) {
    assert.throws(() => perturb({ ...ROW, age }, SPEC, NAMED), (error) => {
      assert.ok(error instanceof UsageError);
      assert.ok(!/98765|9\.87/.test(error.message + error.hint));
      return true;
    });
  }
});

test("random bytes come from the system: kept values have their share", () => {
  // 4,000 draws of a coin with chance ½ + ½·1/11: outside ±5 standard deviations with chance 6·10⁻⁷.
  const kept = Array.from({ length: 4000 }, () => perturb(ROW, SPEC, NAMED).age).filter((age) => age === 3);
  const chance = 0.5 + 0.5 / 11;
  assert.ok(Math.abs(kept.length - 4000 * chance) < 5 * Math.sqrt(4000 * chance * (1 - chance)));
});

test("what is wrong with a call is refused with a hint, and never passed over", async () => {
  const wrong = [
    () => perturb(ROW, SPEC, { ...NAMED, at_most: 3 }), () => perturb(ROW, SPEC, { Public: ["region"] }),
    () => perturb(ROW, SPEC, { ...NAMED, seed: 1 }), () => perturb(ROW, SPEC, { ...NAMED, atMost: "9" }),
    () => perturb(ROW, SPEC, { ...NAMED, atMost: -1 }), () => perturb(ROW, SPEC, { public: "region" }),
    () => perturb(ROW, SPEC, { public: ["Region"] }), () => perturb(ROW, SPEC, { public: null }),
    () => perturb(ROW, SPEC, { ...NAMED, _source: "0" }), () => perturb(ROW, SPEC, null),
    () => perturb(ROW, SPEC, 3), () => perturb(ROW, SPEC, ["region"]),
    () => perturb(ROW, "spec.json", NAMED), () => perturb(ROW, { ...SPEC }, NAMED), () => perturb(ROW),
    () => perturb([3, "South"], SPEC, NAMED), () => perturb("age", SPEC, NAMED),
    () => perturb({ age: 3 }, SPEC, NAMED), () => perturb({ Age: 3, region: "South" }, SPEC, NAMED),
    () => parseSpec({ columns: [] }), () => parseSpec(null), () => parseSpec(7), () => epsilon({}),
    () => columnEpsilons(null), () => publicColumns("spec"), () => priorPosterior("0.5", 1),
    () => priorPosterior(0.5, "1"), () => fixedBytes("00"),
  ];
  for (const call of wrong) {
    assert.throws(call, (error) => error instanceof UsageError && error.hint.length > 3, String(call));
  }
  for (const rows of [ROW, [], "rows", null, [3], [[3, "South"]]]) {
    await assert.rejects(submission(rows, SPEC, NAMED), UsageError);
  }
  await assert.rejects(submission([ROW], SPEC, { ...NAMED, at_most: 3 }), UsageError);
  await assert.rejects(submission([ROW], {}, NAMED), UsageError);
  await assert.rejects(digest({}), UsageError);
  assert.throws(() => perturb(ROW, SPEC, { ...NAMED, at_most: 3 }), { hint: "did you mean 'atMost'?" });
  assert.throws(
    () => perturb({ Age: 3, region: "South" }, SPEC, NAMED),
    { message: "the row has an unknown column 'Age'", hint: "did you mean 'age'?" },
  );
});

test("a spec is read from text, bytes or a buffer, and keeps its own bytes", async () => {
  const bytes = new Uint8Array(SPEC.raw);
  for (const source of [new TextDecoder().decode(bytes), bytes, bytes.buffer]) {
    assert.equal(await digest(parseSpec(source)), await digest(SPEC));
  }
});

test("belief after seeing a row", () => {
  assert.ok(Math.abs(priorPosterior(0.5, Math.log(3)) - 0.75) < 1e-15);
  assert.equal(priorPosterior(0, Infinity), 0);
  assert.equal(priorPosterior(0.1, Infinity), 1);
  assert.throws(() => priorPosterior(1.1, 1), UsageError);
});
