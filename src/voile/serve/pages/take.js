// An answer to take along: files, a link, and the same question in Python, in a shell and for curl.
// Asking again is free, so that all of these come to the same numbers.

import { fetched } from "./api.js";
import { el, problem, replace } from "./dom.js";

const ENDS = { estimate: "", stderr: "_stderr", low: "_low", high: "_high" };
const isEstimate = (value) => value !== null && typeof value === "object" && "estimate" in value;

// As `voile ask --csv` writes it; a text that a spreadsheet would compute has an apostrophe in front.
export function csv(reply) {
  const rows = reply.rows || [];
  const names = rows.length ? Object.keys(rows[0]) : [];
  const figures = new Set(names.filter((name) => rows.some((row) => isEstimate(row[name]))));
  const head = names.flatMap((name) => (figures.has(name) ? Object.values(ENDS).map((end) => name + end) : [name]));
  const lines = rows.map((row) => names.flatMap((name) => (figures.has(name)
    ? Object.keys(ENDS).map((part) => (row[name] ? row[name][part] : null)) : [row[name]])));
  return [head, ...lines].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

function cell(value) {
  if (value === null || value === undefined) return "";
  let text = String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// Which rows, as commands and Python write it.
function rowsOf(subset) {
  if (subset === "all") return null;
  return typeof subset === "object" ? `half:${subset.half}` : subset;
}

export function texts(asked, origin = location.origin) {
  const subset = rowsOf(asked.subset);
  const sure = asked.confidence === 0.95 ? null : asked.confidence;
  const python = [JSON.stringify(asked.sql), subset === null ? null : `subset=${JSON.stringify(subset)}`,
    sure === null ? null : `confidence=${sure}`].filter(Boolean).join(", ");
  const flags = [subset === null ? "" : ` --subset ${shell(subset)}`, sure === null ? "" : ` --confidence ${sure}`].join("");
  return {
    SQL: asked.sql,
    Python: `import voile\n\nserver = voile.connect("${origin}")\nprint(server.ask(${python}))`,
    Shell: `voile ask ${origin} ${shell(asked.sql)}${flags} --json`,
    curl: `curl ${origin}/query -H "Authorization: Bearer $VOILE_TOKEN" -H "Content-Type: application/json" -d ${shell(JSON.stringify(asked))}`,
  };
}

// The question is in the part of an address that browsers send to nobody, with its rows and its confidence.
export function link(asked, place = location) {
  const parts = { sql: asked.sql };
  if (asked.subset !== "all") parts.rows = typeof asked.subset === "object" ? `half:${asked.subset.half}` : `named:${asked.subset}`;
  if (asked.confidence !== 0.95) parts.confidence = asked.confidence;
  const words = Object.entries(parts).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `${place.origin}${place.pathname}#${words.join("&")}`;
}

export function linked() {
  const found = new URLSearchParams(location.hash.slice(1));
  return { sql: found.get("sql") || "", rows: found.get("rows") || "all", confidence: found.get("confidence") || "" };
}

function save(name, blob) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function file(label, name, content, kind) {
  return el("button", { type: "button", class: "small-button", onclick: () => save(name, new Blob([content], { type: kind })) }, label);
}

// Parquet is made by the server, which gives the same numbers again.
function parquet(asked, failed) {
  return el("button", { type: "button", class: "small-button", onclick: async () => {
    replace(failed);
    try {
      save("answer.parquet", await fetched(asked, "application/vnd.apache.parquet"));
    } catch (error) {
      replace(failed, problem(error));
    }
  } }, "Parquet");
}

function copied(button, text) {
  navigator.clipboard.writeText(text).then(() => {
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  });
}

export function take(reply, asked) {
  const copy = (label, text) => el("button", { type: "button", class: "small-button",
    onclick: (event) => copied(event.currentTarget, text) }, label);
  const failed = el("div", { role: "alert" });
  return el("div", { class: "take" }, el("div", { class: "panel-buttons" },
    file("CSV", "answer.csv", csv(reply), "text/csv"),
    file("JSON", "answer.json", JSON.stringify(reply, null, 2), "application/json"),
    parquet(asked, failed),
    copy("Copy a link", link(asked))), failed,
  Object.entries(texts(asked)).map(([title, text]) => el("details", {}, el("summary", {}, title),
    el("pre", { tabindex: "0" }, text), copy("Copy", text))),
  el("p", { class: "small" }, "VOILE_TOKEN holds your token. To ask again is free."));
}
