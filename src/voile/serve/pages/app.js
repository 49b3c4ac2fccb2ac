// Who enters, what they may do, and the two halves of the page.

import * as admin from "./admin.js";
import { get, session } from "./api.js";
import * as asking from "./ask.js";
import { byId, problem, replace } from "./dom.js";

const tabs = [["tab-ask", "panel-ask"], ["tab-manage", "panel-manage"]];

const NOT_VALID = {
  message: "This token is not valid.",
  hint: "It may have expired or been revoked. Ask whoever runs the server for another.",
};

function choose(chosen) {
  for (const [tab, panel] of tabs) {
    const on = tab === chosen;
    byId(tab).setAttribute("aria-selected", String(on));
    byId(tab).tabIndex = on ? 0 : -1;
    byId(panel).hidden = !on;
  }
}

function leave(error) {
  session.forget();
  byId("inside").hidden = true;
  byId("who").hidden = true;
  byId("enter").hidden = false;
  byId("table-name").textContent = "";
  byId("token").value = "";
  replace(byId("enter-problem"), error ? problem(error.status === 401 ? NOT_VALID : error) : null);
  for (const id of ["answer", "history", "budget", "panel-manage"]) replace(byId(id));
  byId("token").focus();
}

// A part of the interface that this token may not use is no error here.
async function allowed(path) {
  try {
    return await get(path);
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

async function enter() {
  let about;
  let budget;
  let people;
  try {
    about = await get("schema");
    budget = await allowed("budget");
    people = budget && !(budget.scopes || []).includes("admin") ? null : await allowed("admin/people");
  } catch (error) {
    leave(error);
    return;
  }
  byId("enter").hidden = true;
  byId("inside").hidden = false;
  byId("who").hidden = false;
  byId("table-name").textContent = about.name;
  byId("who-name").textContent = (budget && budget.analyst) || "admin";
  byId("tabs").hidden = !(people && budget);
  if (budget) asking.begin(about, budget);
  if (people) admin.begin(people);
  choose(budget ? "tab-ask" : "tab-manage");
}

function start() {
  asking.connect();
  byId("enter-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const token = byId("token").value.trim();
    byId("token").value = "";
    if (!/^[\x21-\x7e]+$/.test(token)) {
      leave({ message: "That is no token.", hint: "Copy it again, without spaces or line ends." });
      return;
    }
    session.token = token;
    enter();
  });
  byId("leave").addEventListener("click", () => leave(null));
  document.addEventListener("voile-out", (event) => leave(event.detail));
  for (const [i, [tab]] of tabs.entries()) {
    byId(tab).addEventListener("click", () => choose(tab));
    byId(tab).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const [other] = tabs[1 - i];
      choose(other);
      byId(other).focus();
    });
  }
  if (session.token) enter();
  else leave(null);
}

start();
