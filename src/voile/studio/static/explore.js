// Explore a release: the builder beside the SQL, bars of columns, and the address of each answer.
"use strict";

(() => {
  let current = null; // the page whose builder was made

  async function got(url) {
    const reply = await fetch(url, { headers: { Accept: "application/json" } });
    const found = await reply.json().catch(() => ({ error: "the studio did not answer" }));
    if (!reply.ok) throw new Error(found.error || "the studio did not answer");
    return found;
  }

  async function begin(page) {
    if (current === page) return;
    current = page;
    const { url } = page.dataset;
    const [{ Builder }, about] = await Promise.all([import("/static/shared/builder.js"), got(`${url}/schema.json`)]);
    const form = document.getElementById("question");
    const builder = new Builder({
      about, box: document.getElementById("sql"),
      fetchBars: (sql) => got(`${url}/bars.json?sql=${encodeURIComponent(sql)}`),
      changed: () => form.requestSubmit(),
    });
    document.getElementById("builder").replaceChildren(builder.controls);
    document.getElementById("columns").replaceChildren(...builder.list());
    document.getElementById("anew").addEventListener("click", () => builder.begin());
    document.getElementById("confidence").addEventListener("change", () => form.requestSubmit());
    document.getElementById("sql").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
    });
    document.getElementById("answer").addEventListener("click", (event) => {
      const again = event.target.closest("[data-sql]");
      if (!again || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      builder.box.value = again.dataset.sql;
      document.getElementById("confidence").value = new URL(again.href).searchParams.get("confidence") || "0.95";
      builder.readBack();
      form.requestSubmit();
    });
    page.dataset.ready = "yes";
  }

  // The address of the page is that of the answer: a reload or a copy of it asks the same.
  function addressed() {
    const answer = document.querySelector("#answer [data-link]");
    if (answer && document.getElementById("explore")) history.replaceState(null, "", answer.dataset.link);
    for (const node of document.querySelectorAll("[data-origin]")) {
      node.textContent = node.textContent.replace("http://STUDIO", location.origin);
    }
  }

  function prepare() {
    const page = document.getElementById("explore");
    if (!page) return;
    begin(page);
    addressed();
  }

  document.addEventListener("DOMContentLoaded", prepare);
  document.addEventListener("htmx:after:swap", prepare);
})();
