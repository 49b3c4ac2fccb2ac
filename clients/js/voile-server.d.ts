/** Ask a server of noisy answers (`voile serve run`) with a token. */
import { PromiseError, UsageError } from "./voile-client.mjs";

export { PromiseError, UsageError };

/** A question that the server does not answer; the hint says what to change. */
export class QueryError extends Error {
  constructor(message: string, hint: string);
  hint: string;
}

/** The server cannot be reached, cannot answer now, or is no server of Voile's. */
export class ServerError extends Error {
  constructor(message: string, hint: string);
  hint: string;
}

/** all, the name of a declared subset, half:SEED or { half: SEED }. */
export type Subset = string | { readonly half: string };

export interface QuestionOptions {
  /** Which rows are counted; all if not given. */
  subset?: Subset;
  /** Of the intervals, between 0 and 1; 0.95 if not given. */
  confidence?: number;
}

/** A number with its error. null: it has none, or it is infinite. */
export interface Estimate {
  readonly estimate: number | null;
  readonly stderr: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

/** A group's key, or an estimate. */
export type Cell = string | number | boolean | null | Estimate;

export interface Reply {
  /** The only estimate, its standard error and its interval; null if there are several. */
  readonly answer: number | null;
  readonly stderr: number | null;
  readonly low: number | null;
  readonly high: number | null;
  /** What this question took from the budget: nothing, if all of it had been answered before. */
  readonly charged: number;
  readonly remaining: number;
  /** One for each group. */
  readonly rows: ReadonlyArray<Readonly<Record<string, Cell>>>;
  readonly columns: readonly string[];
  readonly confidence: number;
  readonly covers: string;
  readonly notes: readonly string[];
  readonly subset: Subset;
  readonly subsetRows: number | null;
  /** Which answers of the ledger these figures are made of. */
  readonly numbers: readonly number[];
}

export interface Cost {
  /** How many answers the server would have to give that it has not given yet. */
  readonly cost: number;
  readonly remaining: number;
  readonly new: number;
  /** How many of its totals were answered before, and are free. */
  readonly known: number;
  readonly groups: number;
  /** Of each column, where it does not depend on the answer. */
  readonly stderr: Readonly<Record<string, number | null>>;
  readonly affordable: boolean;
  readonly notes: readonly string[];
}

export interface ConnectOptions {
  /** Seconds to wait for an answer, with the waits that the server asks for; 30 if not given. */
  timeout?: number;
  /** Ask by plain http also where the way leads over a network. */
  insecure?: boolean;
}

/** A server and the token to ask it with: see `connect`. */
export class Server {
  private constructor();
  /** The address that is asked. */
  readonly url: string;
  /** What may be asked, how much, and what each person in the table is promised. */
  about(): Promise<Record<string, unknown>>;
  /** How many answers the token's owner had, and may still have. */
  budget(): Promise<Record<string, unknown>>;
  /** The owner's own questions, as the server kept them. */
  history(): Promise<Array<Record<string, unknown>>>;
  /** What a question would take from the budget; asking this takes nothing. */
  cost(sql: string, options?: QuestionOptions): Promise<Cost>;
  /** The noisy answer. What was answered before, to anybody, costs nothing. */
  ask(sql: string, options?: QuestionOptions): Promise<Reply>;
}

/** A server to ask with a token. */
export function connect(url: string, token: string, options?: ConnectOptions): Server;
