// Table, codebook and hierarchies: ticks, and files that are read into a field.
"use strict";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-ticks]");
  if (!button) return;
  const boxes = document.querySelectorAll(`input[type="checkbox"][form="${CSS.escape(button.dataset.ticks)}"]`);
  const all = [...boxes].every((box) => box.checked);
  for (const box of boxes) box.checked = !all;
});

document.addEventListener("change", async (event) => {
  // A file goes into the text field that it names, where it can be looked at before it is sent.
  const field = event.target.dataset?.fills && document.getElementById(event.target.dataset.fills);
  if (field && event.target.files[0]) field.value = await event.target.files[0].text();
});

document.addEventListener("change", (event) => {
  // Only the fields of the chosen way are shown.
  const chooser = event.target.closest("[data-shows-one]");
  if (!chooser) return;
  for (const part of chooser.closest("form").querySelectorAll("[data-way]")) {
    part.hidden = !part.dataset.way.split(" ").includes(event.target.value);
  }
});

// What was unfolded stays so when a page is loaded anew, as it is when work has ended.
const unfolded = `unfolded ${location.pathname}`;
document.addEventListener("toggle", (event) => {
  if (!event.target.id || !event.target.matches("details")) return;
  const open = [...document.querySelectorAll("details[open][id]")].map((each) => each.id);
  sessionStorage.setItem(unfolded, JSON.stringify(open));
}, true);
document.addEventListener("DOMContentLoaded", () => {
  for (const id of JSON.parse(sessionStorage.getItem(unfolded) ?? "[]")) {
    const found = document.getElementById(id);
    if (found?.matches("details")) found.open = true;
  }
});
