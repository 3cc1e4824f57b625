// The slider for the threshold of shown matches, with a chart of the count at each value.

import { byId, count, countOf, element, shape, table } from "./elements.js";

const chart = { height: 90, side: 16, top: 16, foot: 20 };

let byDistance;
/** The values of the slider, from the loosest to the strictest: distances in bits, or similarities in hundredths. */
let values = [];
let changed;

export function scoreText(match) {
  if (match.distance !== undefined) return countOf(match.distance, "bit");
  const similarity = match.similarity >= 1 ? "1" : match.similarity.toFixed(3);
  return match.standard_error > 0 ? `${similarity} ± ${match.standard_error.toFixed(3)}` : similarity;
}

/** Returns the value of a match on the slider. */
const valueOf = (match) => (byDistance ? match.distance : Math.floor(match.similarity * 100 + 1e-9));
const nameOf = (value) => (byDistance ? countOf(value, "bit") : (value / 100).toFixed(2));
const chosen = () => values[Number(byId("threshold").value)];
const isNear = (value, threshold) => (byDistance ? value <= threshold : value >= threshold);

/** Whether a match is at least as near as the slider says. */
export const isWithin = (match) => Number(byId("threshold").value) === 0 || isNear(valueOf(match), chosen());

/** Prepares the slider. `onChange` is called when it moves. */
export function startThreshold(stats, onChange) {
  byDistance = stats.distance !== null;
  changed = onChange;
  // A similarity above the smallest one but in the same hundredth belongs to the first value.
  const loosest = byDistance ? stats.distance : Math.floor(stats.similarity * 100 + 1e-9);
  const strictest = byDistance ? 0 : 100;
  values = Array.from({ length: Math.abs(strictest - loosest) + 1 }, (_, at) => loosest + (byDistance ? -at : at));
  const slider = byId("threshold");
  Object.assign(slider, { min: 0, max: values.length - 1, step: 1, value: 0 });
  slider.labels[0].textContent = byDistance ? "At most" : "Similarity at least";
  slider.addEventListener("input", () => changed());
}

/** Draws the chart, and says how many matches are within the threshold. */
export function drawThreshold(matches) {
  const counts = new Map(values.map((value) => [value, 0]));
  for (const match of matches) counts.set(valueOf(match), (counts.get(valueOf(match)) ?? 0) + 1);
  const threshold = chosen();
  byId("threshold").setAttribute("aria-valuetext", nameOf(threshold));
  document.querySelector("output[for=threshold]").textContent = nameOf(threshold);
  const within = matches.filter(isWithin).length;
  byId("threshold-text").textContent = `${count(within)} of ${matches.length === 1 ? "1 match" : `${count(matches.length)} matches`}`;
  byId("threshold-chart").replaceChildren(drawCounts(counts, threshold));
  const cumulated = values.map((value) => matches.filter((match) => isNear(valueOf(match), value)).length);
  const rows = values.map((value, at) => [nameOf(value), count(counts.get(value)), count(cumulated[at])]);
  const heads = [byDistance ? "distance" : "similarity", "matches", byDistance ? "up to it" : "from it on"];
  byId("threshold-counts").replaceChildren(byId("threshold-counts").firstElementChild, table("", heads, rows));
}

function drawCounts(counts, threshold) {
  // A unit is a pixel, so that texts are as large on a phone.
  const chartWidth = byId("threshold-chart").clientWidth || 900;
  const step = (chartWidth - 2 * chart.side) / values.length;
  // Labels have 40 pixels each.
  const every = [1, 2, 5, 10, 20, 50].find((ticks) => ticks * step >= 40) ?? 50;
  const base = chart.top + chart.height;
  const most = Math.max(1, ...counts.values());
  const name = byDistance ? "Matches by distance" : "Matches by similarity";
  const svg = shape("svg", { viewBox: `0 0 ${chartWidth} ${base + chart.foot}`, role: "img", "aria-label": name });
  values.forEach((value, at) => {
    const number = counts.get(value);
    const height = (chart.height * number) / most;
    const x = chart.side + at * step;
    const width = Math.min(Math.max(step - 1, 0.5), 60);
    const rect = shape("rect", { x: x + (step - width) / 2, width, y: base - height, height, class: isNear(value, threshold) ? "bar-above" : "bar-below" });
    rect.append(shape("title", {}, `${nameOf(value)}: ${count(number)}`));
    svg.append(rect);
    if (number > 0 && step > 14) svg.append(shape("text", { x: x + step / 2, y: base - height - 3, "text-anchor": "middle" }, count(number)));
    if ((byDistance ? at : value) % every === 0) svg.append(shape("text", { x: x + step / 2, y: base + 15, "text-anchor": "middle" }, byDistance ? String(value) : (value / 100).toFixed(2)));
    if (value === threshold) svg.append(shape("line", { x1: x, x2: x, y1: chart.top - 10, y2: base, class: "threshold" }));
  });
  svg.append(shape("line", { x1: chart.side, x2: chartWidth - chart.side, y1: base, y2: base, class: "axis" }));
  const caption = byDistance ? "Matches by distance in bits, the farthest on the left." : "Matches by similarity.";
  return element("div", "", svg, element("figcaption", "", `${caption} Matches on the right of the line are listed.`));
}
