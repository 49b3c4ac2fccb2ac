/** Perturb a row before it leaves the device, by the published spec of a survey. */

/** What is wrong with a spec, a row or a call. */
export class UsageError extends Error {
  constructor(message: string, hint: string);
  hint: string;
}

/** What would break a promise. */
export class PromiseError extends Error {
  constructor(message: string, hint: string);
  hint: string;
}

declare const checked: unique symbol;

/** A spec that `parseSpec` has read and checked; no other object is taken for one. */
export interface Spec {
  readonly [checked]: true;
}

/** A value of a column: null for NULL, dates as texts. */
export type Value = string | number | bigint | boolean | null;

/** Every column's value. */
export type Row = Readonly<Record<string, Value>>;

export interface Options {
  /** The largest local ε of a row that you accept. */
  atMost?: number;
  /** The columns that may be sent as they are. */
  public?: readonly string[];
}

/** Read a spec from the exact text or bytes that the survey publishes. */
export function parseSpec(source: string | Uint8Array | ArrayBuffer): Spec;

/** The columns that are sent as they are. */
export function publicColumns(spec: Spec): string[];

/** Local ε of a row, rounded up; infinite where nothing is perturbed. */
export function epsilon(spec: Spec): number;

/** Local ε of each column; infinite where it is sent as it is. */
export function columnEpsilons(spec: Spec): Map<string, number>;

/** The largest belief after the row was seen, of one that was `prior` before. */
export function priorPosterior(prior: number, epsilonOfRow: number): number;

/** A source that gives the bytes of a test vector in order. It protects nobody. */
export function fixedBytes(bytes: Uint8Array): unknown;

/** Perturb one row; the result is frozen. */
export function perturb(row: Row, spec: Spec, options?: Options): Row;

/** SHA-256 of the spec's bytes, in hexadecimal. */
export function digest(spec: Spec): Promise<string>;

/** The text to send for these rows. Rows that `perturb` has not made are perturbed first. */
export function submission(
  rows: readonly Row[], spec: Spec, options?: Options,
): Promise<string>;
