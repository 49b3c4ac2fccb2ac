// What the pages need besides htmx: charts, files that are dropped, links that are cleaned.
"use strict";

// The token of the link is in a cookie now: it need not stay in the address, nor in the history.
if (location.search.includes("token=")) {
  const address = new URL(location.href);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

// ---------------------------------------------------------------- charts

const LIBRARIES = ["vega-6.4.0", "vega-lite-6.4.3", "vega-embed-7.3.0"];
let loading = null;

function charts() {
  // Loaded one after the other, on the first page that draws something.
  loading ??= LIBRARIES.reduce((before, name) => before.then(() => new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = `/static/vendored/${name}.min.js`;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  })), Promise.resolve());
  return loading;
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const [ink, soft, line, accent] = ["--ink", "--soft", "--line", "--accent"].map(color);
  return {
    background: null,
    font: "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, DejaVu Sans, sans-serif",
    axis: { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line,
            labelFontSize: 11.5, titleFontSize: 12, titleFontWeight: 500 },
    legend: { labelColor: ink, titleColor: soft },
    title: { color: ink, fontWeight: 600 },
    view: { stroke: null },
    range: { category: ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"].map(color),
             heatmap: [color("--card"), accent], ramp: [color("--card"), accent] },
    mark: { color: accent }, bar: { color: color("--bar") }, rule: { color: ink },
    text: { color: ink }, point: { color: accent }, line: { color: accent },
  };
}

const drawn = new WeakMap();

async function draw(place) {
  const text = place.dataset.spec;
  if (!text || drawn.get(place)?.text === text) return;
  drawn.get(place)?.view?.finalize();
  drawn.set(place, { text });
  await charts();
  if (drawn.get(place)?.text !== text) return;
  const shown = await vegaEmbed(place, JSON.parse(text), {
    actions: false, ast: true, renderer: "canvas", defaultStyle: false, config: theme(),
    tooltip: { disableDefaultStyle: true, id: "chart-tip" },
  });
  drawn.set(place, { text, view: shown.view });
  if (place.dataset.post) shown.view.addEventListener("click", (_, item) => clicked(place, item));
}

function clicked(place, item) {
  // A point of a chart is a button: its field is sent.
  const value = item?.datum?.[place.dataset.field];
  if (value === undefined) return;
  htmx.ajax("POST", place.dataset.post, { values: { [place.dataset.field]: value }, target: "#main", swap: "innerMorph" });
}

function drawAll(again = false) {
  for (const place of document.querySelectorAll("[data-spec]")) {
    if (again) drawn.delete(place);
    draw(place);
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(true));

// ---------------------------------------------------------------- files

function upload(file) {
  const bar = document.getElementById("uploading");
  bar.hidden = false;
  const request = new XMLHttpRequest(); // fetch does not tell how much was sent
  request.open("PUT", `/upload?name=${encodeURIComponent(file.name)}`);
  request.setRequestHeader("HX-Request", "true");
  request.upload.onprogress = (sent) => { bar.max = sent.total; bar.value = sent.loaded; };
  request.onload = () => {
    bar.hidden = true;
    const to = request.getResponseHeader("HX-Redirect");
    if (to) location.assign(to);
    else document.getElementById("problem").innerHTML = request.responseText;
  };
  request.onerror = () => { bar.hidden = true; silent(); };
  request.send(file);
}

// A file that misses the field would be opened instead of the page.
for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());

function acceptFiles() {
  const place = document.getElementById("drop");
  const field = document.getElementById("file");
  if (!place || place.dataset.ready) return;
  place.dataset.ready = "yes";
  for (const name of ["dragover", "dragenter"]) {
    place.addEventListener(name, (event) => { event.preventDefault(); place.classList.add("over"); });
  }
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
  });
  field.addEventListener("change", () => { if (field.files[0]) upload(field.files[0]); });
}

// ---------------------------------------------------------------- pages

// A request that nobody answered: the studio has ended.
function silent() {
  const said = document.createElement("div");
  said.className = "problem silent";
  said.append("The studio does not answer. Has it ended? Start it again, and open the link that it prints: your choices are saved.");
  document.getElementById("problem")?.replaceChildren(said);
}
document.addEventListener("htmx:error", (event) => {
  if (event.detail?.error instanceof TypeError) silent(); // what fetch throws where nothing came back
});
document.addEventListener("htmx:after:request", () => document.querySelector("#problem .silent")?.remove());

function prepare() {
  drawAll();
  acceptFiles();
}

document.addEventListener("DOMContentLoaded", () => {
  prepare();
  // On a phone the steps are one line, which begins with the first.
  const steps = document.querySelector(".steps"), here = steps?.querySelector("[aria-current]");
  if (here) steps.scrollLeft = here.offsetLeft - steps.offsetLeft - 16;
});
let opened = [];
document.addEventListener("htmx:before:swap", () => {
  opened = [...document.querySelectorAll("details[open][id]")].map((each) => each.id);
});
document.addEventListener("htmx:after:swap", () => {
  prepare();
  // What was unfolded stays so.
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  // Where the button that was pressed is gone, the keyboard goes on in the content, not at the top.
  if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy)?.textContent ?? button.dataset.copy;
  navigator.clipboard.writeText(text).then(() => {
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  });
});
document.addEventListener("input", (event) => {
  // A slider says its value beside itself while it is dragged.
  const shown = event.target.dataset?.shows && document.getElementById(event.target.dataset.shows);
  if (shown) shown.textContent = (event.target.dataset.values ? JSON.parse(event.target.dataset.values)[event.target.value] : event.target.value);
});
