// The steward's side: analysts and their tokens, groups, the log.

import { get, post } from "./api.js";
import { audited } from "./audit.js";
import { byId, el, isNumber, key, leftOf, meter, moment, number, problem, replace, table } from "./dom.js";

const PAGE = 50;
const parts = {};

export function begin(people) {
  parts.people = el("div", { id: "people" });
  parts.made = el("div", { id: "made", role: "status" });
  parts.groups = el("div", { id: "groups" });
  parts.log = el("div", { id: "log" });
  parts.audit = el("div", { id: "audit", "aria-live": "polite" });
  parts.problem = el("div", { role: "alert" });
  parts.known = el("datalist", { id: "known-groups" });
  replace(byId("panel-manage"), parts.problem,
    card("Analysts", parts.people),
    el("div", { class: "pair" }, card("New token", tokenForm(), parts.made), card("Groups", parts.groups, groupForm())),
    card("What the answers disclosed", parts.audit, el("div", { class: "send" },
      el("button", { type: "button", onclick: (event) => showAudit(event.currentTarget) }, "Compute it"))),
    card("Log", parts.log));
  showPeople(people.people);
  guarded(showGroups);
  guarded(() => showLog(null));
}

const card = (title, ...inside) => el("section", { class: "card", "aria-label": title }, el("h2", {}, title), inside);

// Do something that the server may refuse, and say so if it does.
async function guarded(work) {
  replace(parts.problem);
  try {
    await work();
  } catch (error) {
    if (error.status === 401) document.dispatchEvent(new CustomEvent("voile-out", { detail: error }));
    else replace(parts.problem, problem(error));
    if (error.status !== 401) parts.problem.scrollIntoView({ block: "nearest" });
  }
}

async function refresh() {
  showPeople((await get("admin/people")).people);
  await showGroups();
  await showLog(null);
}

// ---------------------------------------------------------------- analysts and tokens

function showPeople(people) {
  if (!people.length) {
    replace(parts.people, el("p", { class: "small" }, "Nobody has a token yet."));
    return;
  }
  replace(parts.people, table(["analyst", "group", "answers", "tokens"],
    people.map((one) => [
      el("div", {}, one.name, one.role === "admin" ? el("span", { class: "kind" }, "admin") : null),
      key(one.group ?? "–"), spent(one), el("ul", { class: "tokens" }, (one.tokens || []).map(token))]),
    { label: "Analysts", stack: true }));
}

function spent(one) {
  if (!isNumber(one.queries)) return el("span", {}, `${number(one.used)} used, no bound of their own`);
  return el("div", { class: "spent" }, el("span", {}, leftOf(one.used, one.queries)),
    meter(one.used, one.queries, `Budget of ${one.name}`));
}

function token(one) {
  const state = one.valid ? (isNumber(one.expires) ? `until ${moment(one.expires)}` : "valid")
    : (one.revoked ? "revoked" : "expired");
  return el("li", { class: one.valid ? null : "gone" }, el("code", {}, one.id), " ", el("span", { class: "small" }, state), " ",
    one.valid ? el("button", { type: "button", class: "quiet danger", "aria-label": `Revoke token ${one.id}`,
      onclick: (event) => revoke(event.currentTarget, one.id) }, "Revoke") : null);
}

// The first click asks, the second does it.
function revoke(button, id) {
  if (button.dataset.sure !== "yes") {
    button.dataset.sure = "yes";
    button.textContent = "Revoke for good?";
    button.addEventListener("blur", () => { button.dataset.sure = ""; button.textContent = "Revoke"; }, { once: true });
    return;
  }
  guarded(async () => { await post("admin/revoke", { token: id }); await refresh(); });
}

function field(label, input, help) {
  return el("div", { class: "field" }, el("label", { for: input.id }, label), input,
    help ? el("span", { class: "small" }, help) : null);
}

function tokenForm() {
  const name = el("input", { id: "new-analyst", required: true, maxlength: 100, autocomplete: "off", spellcheck: "false" });
  const queries = el("input", { id: "new-queries", type: "number", min: 0, step: 1, inputmode: "numeric" });
  const group = el("input", { id: "new-group", list: "known-groups", maxlength: 100, autocomplete: "off" });
  const role = el("select", { id: "new-role" }, el("option", { value: "analyst" }, "analyst"), el("option", { value: "admin" }, "admin"));
  const expires = el("select", { id: "new-expires" }, el("option", { value: "30d" }, "in 30 days"),
    el("option", { value: "1d" }, "in a day"), el("option", { value: "365d" }, "in a year"), el("option", { value: "" }, "never"));
  const form = el("form", { class: "fields", onsubmit: (event) => {
    event.preventDefault();
    const options = { analyst: name.value.trim(), role: role.value };
    if (queries.value !== "") options.queries = Number(queries.value);
    if (group.value.trim()) options.group = group.value.trim();
    if (expires.value) options.expires = expires.value;
    guarded(async () => { showMade(await post("admin/tokens", options)); form.reset(); await refresh(); });
  } },
  field("Analyst", name), field("Answers", queries, "Empty: as it is, or no bound of their own."),
  field("Group", group), field("Role", role), field("Expires", expires), parts.known,
  el("div", { class: "send" }, el("button", { type: "submit", class: "primary" }, "Make a token")));
  return form;
}

function showMade(made) {
  const copy = el("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(made.token);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select it and copy";
    }
  } }, "Copy");
  replace(parts.made, el("div", { class: "made" },
    el("p", {}, `The token of ${made.analyst}. It is shown this once, and kept nowhere:`),
    el("div", { class: "together" }, el("code", { id: "made-token" }, made.token), copy,
      el("button", { type: "button", class: "quiet", onclick: () => replace(parts.made) }, "Hide"))));
}

// ---------------------------------------------------------------- groups

async function showGroups() {
  const { groups } = await get("admin/groups");
  replace(parts.known, groups.map((g) => el("option", { value: g.name })));
  replace(parts.groups, groups.length
    ? table(["group", "answers"], groups.map((g) => [g.name, spent(g)]), { label: "Groups" })
    : el("p", { class: "small" }, "There is no group. A group shares one budget."));
}

function groupForm() {
  const name = el("input", { id: "group-name", required: true, maxlength: 100, autocomplete: "off", spellcheck: "false" });
  const queries = el("input", { id: "group-queries", type: "number", min: 0, step: 1, required: true, inputmode: "numeric" });
  const form = el("form", { class: "fields", onsubmit: (event) => {
    event.preventDefault();
    guarded(async () => {
      await post("admin/groups", { name: name.value.trim(), queries: Number(queries.value) });
      form.reset();
      await refresh();
    });
  } },
  field("Group", name), field("Answers", queries),
  el("div", { class: "send" }, el("button", { type: "submit" }, "Set its budget")));
  return form;
}

// ---------------------------------------------------------------- the audit

async function showAudit(button) {
  button.disabled = true;
  await guarded(async () => replace(parts.audit, audited(await get("admin/audit"))));
  button.disabled = false;
}

// ---------------------------------------------------------------- the log

async function showLog(before) {
  const { log } = await get(`admin/log?most=${PAGE}${before === null ? "" : `&before=${before}`}`);
  const lines = table(["when", "who", "what", "more"],
    log.map((one) => [moment(one.at), one.who, one.what, detail(one.detail)]), { label: "Log", stack: true });
  const older = log.length === PAGE
    ? el("button", { type: "button", onclick: () => guarded(() => showLog(log.at(-1).number)) }, "Older") : null;
  const newest = el("button", { type: "button", class: "quiet", onclick: () => guarded(() => showLog(null)) },
    before === null ? "Look again" : "Newest");
  replace(parts.log, log.length ? lines : el("p", { class: "small" }, "There is nothing."),
    el("div", { class: "send" }, older, newest));
}

const detail = (found) => Object.entries(found || {}).filter(([, value]) => value !== null).map(([name, value]) =>
  `${name} ${value !== null && typeof value === "object" ? JSON.stringify(value) : key(value)}`).join(", ");
