// Elements of the page, and numbers as text.

export const byId = (id) => document.getElementById(id);

/** Makes an element with a class and children. A string becomes text, never markup. */
export function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Makes an element of SVG with attributes. */
export function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function button(text, action) {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

export function link(hash, ...children) {
  const made = element("a", "", ...children);
  made.href = hash;
  return made;
}

/** Makes a `details` element, filled by `fill` when it is first opened. */
export function opening(className, summary, fill) {
  const details = element("details", className, summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(fill());
  });
  return details;
}

/** Fills a description list with pairs of a label and a value. */
export function describe(list, pairs) {
  const row = ([label, value]) => element("div", "", element("dt", "", label), element("dd", "", value));
  list.replaceChildren(...pairs.map(row));
}

/** Makes a table. `rows` are lists of cells: texts or elements. */
export function table(caption, heads, rows) {
  const cells = (name, row) => element("tr", "", ...row.map((cell) => element(name, "", cell)));
  const head = cells("th", heads);
  head.querySelectorAll("th").forEach((cell) => cell.setAttribute("scope", "col"));
  const body = rows.map((row) => cells("td", row));
  const made = element("table", "", element("caption", "faint", caption), element("thead", "", head), element("tbody", "", ...body));
  return made;
}

/** Makes a bar of a share from 0 to 1, to compare the rows of a table. */
export function bar(share) {
  const fill = shape("rect", { y: 2, width: 100 * Math.min(Math.max(share, 0), 1), height: 10, class: "bar-above" });
  const svg = shape("svg", { viewBox: "0 0 100 14", class: "bar", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(shape("rect", { y: 2, width: 100, height: 10, class: "bar-ground" }), fill);
  return svg;
}

export const count = (number) => number.toLocaleString("en");

export const countOf = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Formats a number of bytes with the units of the command line. */
export function bytesText(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let number = bytes;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return unit === 0 ? countOf(bytes, "byte") : `${number.toFixed(number < 10 ? 2 : 1)} ${units[unit]}`;
}

/** Formats a time in seconds. */
export function timeText(seconds) {
  if (seconds === null) return "unknown";
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const unit = units.find(([, length]) => seconds >= length);
  return unit === undefined ? countOf(Math.round(seconds), "second") : countOf(Math.floor(seconds / unit[1]), unit[0]);
}

/** Formats a time in seconds since an event. */
export const agoText = (seconds) => (seconds === null ? "unknown" : seconds < 1 ? "just now" : `${timeText(seconds)} ago`);
