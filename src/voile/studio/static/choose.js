// Sliders whose places are in the page: what each of them means was written by Python.
"use strict";

function moved(slider) {
  const points = JSON.parse(slider.dataset.points);
  const point = points[Number(slider.value)];
  if (!point) return;
  slider.setAttribute("aria-valuetext", point.label);
  for (const place of document.querySelectorAll(`[data-slider="${slider.id}"]`)) {
    const key = place.dataset.cell;
    const text = key === "label" ? point.label : point.cells[key] ?? (key === "verdict" ? "" : "unknown");
    if (place.textContent !== text) place.textContent = text;
  }
  for (const place of document.querySelectorAll(`[data-bad="${slider.id}"]`)) {
    place.classList.toggle("bad", point.bad);
  }
  const chart = slider.dataset.chart && document.getElementById(slider.dataset.chart);
  if (chart) drawn.get(chart)?.view?.signal("at", point.x).runAsync();
}

document.addEventListener("input", (event) => {
  if (event.target.dataset?.points) moved(event.target);
});
