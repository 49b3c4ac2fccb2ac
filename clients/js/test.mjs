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
      assert.throws(run, ERRORS[vector.error]);
      return;
    }
    const spec = parseSpec(textOf(vector));
    const made = run();
    assert.deepEqual(spec.columns.map(({ name }) => made[name]), vector.values);
    assert.equal(source.left(), 0);
    assert.ok(Math.abs(epsilon(spec) - vector.epsilon) <= 1e-9 * Math.max(1, vector.epsilon));
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

test("a submission holds perturbed values in the order of the columns, and ids of their own", async () => {
  const once = perturb(ROW, SPEC);
  const sent = JSON.parse(await submission([once, ROW, ROW], SPEC));
  assert.equal(sent.format, "voile-rows");
  assert.equal(sent.spec, await digest(SPEC));
  assert.deepEqual(sent.rows[0].values, [once.age, once.region]);
  assert.equal(new Set(sent.rows.map(({ id }) => id)).size, 3);
  for (const { id } of sent.rows) assert.match(id, /^[0-9a-f]{32}$/);
});

test("a perturbed row is neither perturbed again nor changed, nor sent to another survey", async () => {
  const once = perturb(ROW, SPEC);
  assert.throws(() => perturb(once, SPEC), UsageError);
  assert.throws(() => { once.age = 3; }, TypeError);
  await assert.rejects(submission([once], parseSpec(new TextDecoder().decode(SPEC.raw))), UsageError);
});

test("the caller's limit is kept, and what is sent as it is must be named", () => {
  assert.deepEqual(publicColumns(SPEC), ["region"]);
  assert.equal(columnEpsilons(SPEC).get("region"), Infinity);
  assert.throws(() => perturb(ROW, SPEC, { atMost: 9 }), PromiseError);
  assert.throws(() => perturb(ROW, SPEC, { atMost: 1, public: ["region"] }), PromiseError);
  assert.throws(() => perturb(ROW, SPEC, { atMost: NaN }), UsageError);
  perturb(ROW, SPEC, { atMost: 9, public: ["region"] });
});

test("no error repeats the value", () => {
  for (const age of [987654, "987654", [987654], 9.87654, NaN, undefined, new Date(987654)]) {
    assert.throws(() => perturb({ ...ROW, age }, SPEC), (error) => {
      assert.ok(error instanceof UsageError);
      assert.ok(!/98765|9\.87/.test(error.message + error.hint));
      return true;
    });
  }
});

test("random bytes come from the system: kept values have their share", () => {
  // 4,000 draws of a coin with chance ½ + ½·1/11: outside ±5 standard deviations with chance 6·10⁻⁷.
  const kept = Array.from({ length: 4000 }, () => perturb(ROW, SPEC).age).filter((age) => age === 3);
  const chance = 0.5 + 0.5 / 11;
  assert.ok(Math.abs(kept.length - 4000 * chance) < 5 * Math.sqrt(4000 * chance * (1 - chance)));
});

test("belief after seeing a row", () => {
  assert.ok(Math.abs(priorPosterior(0.5, Math.log(3)) - 0.75) < 1e-15);
  assert.equal(priorPosterior(0, Infinity), 0);
  assert.equal(priorPosterior(0.1, Infinity), 1);
  assert.throws(() => priorPosterior(1.1, 1), UsageError);
});
