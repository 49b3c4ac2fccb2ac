// The server's HTTP interface. The token is kept for this tab only, and goes nowhere else.

const KEPT = "voile-token";

export class Refusal extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

export const session = {
  get token() { return sessionStorage.getItem(KEPT) || ""; },
  set token(value) { sessionStorage.setItem(KEPT, value); },
  forget() { sessionStorage.removeItem(KEPT); },
};

async function request(path, options, read = (response) => response.json()) {
  let response;
  try {
    response = await fetch(path, {
      ...options, cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
      headers: { ...options.headers, Authorization: `Bearer ${session.token}` },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The server cannot be reached.", "Is it running? What was answered is kept, and free.");
  }
  let found = null;
  try {
    found = await (response.ok ? read(response) : response.json());
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (response.ok && found !== null) return found;
  const wait = response.headers.get("Retry-After");
  throw new Refusal(response.status, (found && found.error) || `The server answered ${response.status}.`,
    (found && found.hint) || (wait ? `Try again in ${wait} s.` : ""));
}

export const get = (path, signal) => request(path, { method: "GET", signal });

// The same answer once more, which is free, as a file of another kind.
export const fetched = (asked, kind) => request("/query", {
  method: "POST", body: JSON.stringify(asked), headers: { "Content-Type": "application/json", Accept: kind },
}, (response) => response.blob());

export const post = (path, body, signal) => request(path, {
  method: "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
});
