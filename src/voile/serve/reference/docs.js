// Draws /openapi.json. All text is inserted as text, never as HTML.
"use strict";

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function row(...cells) {
  const made = element("tr");
  cells.forEach((cell, place) => made.append(element(place ? "td" : "th", "", cell)));
  return made;
}

function table(rows) {
  const frame = element("div", "", element("table", "", ...rows));
  frame.className = "scroll";
  return frame;
}

function code(text) {
  return element("code", text);
}

// The kind of a value in a few words; models are links to where they are described.
function kind(schema) {
  const made = element("span");
  const choices = schema.anyOf || schema.oneOf;
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    const link = element("a", name);
    link.href = `#${name}`;
    made.append(link);
  } else if (choices) {
    choices.forEach((choice, place) => made.append(place ? " or " : "", kind(choice)));
  } else if (schema.const !== undefined || schema.enum) {
    const values = schema.enum || [schema.const];
    made.append(values.map((value) => JSON.stringify(value)).join(" or "));
  } else if (schema.type === "array") {
    made.append("list of ", kind(schema.items || {}));
  } else {
    made.append(schema.type || "any JSON");
  }
  return made;
}

function operation(method, path, what) {
  const section = element("section", "", element("h3", "", code(`${method.toUpperCase()} ${path}`)));
  section.append(element("p", what.summary + (what.security ? "" : " No token is needed.")));
  const rows = [];
  for (const given of what.parameters || []) {
    const range = `${given.schema.minimum} … ${given.schema.maximum}`;
    rows.push(row(code(`?${given.name}=`), element("span", `whole number, ${range}`)));
  }
  if (what.requestBody) {
    rows.push(row("body", kind(what.requestBody.content["application/json"].schema)));
  }
  for (const [status, found] of Object.entries(what.responses)) {
    const schema = found.content ? found.content["application/json"].schema : {};
    rows.push(row(status, element("span", "", kind(schema), ` ${found.description}`)));
  }
  section.append(table(rows));
  return section;
}

function model(name, schema) {
  const section = element("section", "", element("h3", name));
  section.id = name;
  if (schema.description) section.append(element("p", schema.description));
  const needed = new Set(schema.required || []);
  const rows = Object.entries(schema.properties || {}).map(([key, value]) => {
    const words = element("span", "", kind(value));
    if (value.default !== undefined) words.append(`, ${JSON.stringify(value.default)} if not given`);
    else if (!needed.has(key)) words.append(", may be left out");
    if (value.description) words.append(`. ${value.description}`);
    return row(code(key), words);
  });
  section.append(table(rows));
  return section;
}

async function draw() {
  const found = await (await fetch("/openapi.json")).json();
  document.getElementById("title").textContent = found.info.title;
  document.getElementById("about").textContent = found.info.description;
  const operations = document.getElementById("operations");
  for (const [path, methods] of Object.entries(found.paths)) {
    for (const [method, what] of Object.entries(methods)) operations.append(operation(method, path, what));
  }
  const schemas = document.getElementById("schemas");
  for (const [name, schema] of Object.entries(found.components.schemas)) schemas.append(model(name, schema));
}

draw();
