// The histogram of a table's codes.

import { byId, count, element, shape, table } from "./elements.js";

const chart = { height: 130, side: 8, top: 18, foot: 34 };

/** Draws how many fingerprints have their code at each bit. */
export function codeHistogram(details) {
  const bits = details.permutation.length;
  // The codec all-differences has several kinds of codes for a bit. The other codecs have one.
  const hasKinds = details.codec === "all-differences";
  const columns = hasKinds ? symbolColumns(details.symbols, bits) : details.histogram.map((number) => [number]);
  const kinds = hasKinds ? symbolKinds(details.symbols) : ["fingerprints"];
  const totals = columns.map((parts) => parts.reduce((sum, number) => sum + number, 0));
  const all = totals.reduce((sum, number) => sum + number, 0);
  if (all === 0) return element("p", "faint", "The table has no two fingerprints to compare.");
  const property = {
    gap: "the top bit of the difference to the fingerprint before",
    "all-differences": "the coded bit: the first that differs from an earlier fingerprint, or the top bit of a difference",
  }[details.codec] ?? "the first bit that differs from the fingerprint before";
  const sampled = details.sampled_every > 1 ? ` Counted in every ${count(details.sampled_every)}th block.` : "";
  const title = `Fingerprints by ${property}`;
  const rows = columns.flatMap((parts, bit) => (totals[bit] === 0 ? [] : [[String(bit), ...parts.map(count), `${((100 * totals[bit]) / all).toFixed(2)}%`]]));
  const numbers = element("details", "", element("summary", "", "The numbers"), element("div", "wide", table("", ["bit", ...kinds, "share"], rows)));
  const caption = element("figcaption", "", `${title}. Bit 0 is the most significant one, in the order of the table. A frequent bit has a short code.${sampled}`);
  return element("figure", "histogram", draw(columns, totals, kinds, title), caption, kinds.length > 1 ? legend(kinds) : "", numbers);
}

const kindOf = ({ differing }) => (differing === null ? 0 : 1 + differing);

function symbolKinds(symbols) {
  const most = Math.max(...symbols.map(kindOf));
  return ["gap", ...Array.from({ length: most }, (_, at) => (at === 0 ? "that bit alone" : `and ${at} more`))];
}

function symbolColumns(symbols, bits) {
  const kinds = symbolKinds(symbols).length;
  const columns = Array.from({ length: bits }, () => new Array(kinds).fill(0));
  for (const symbol of symbols) columns[bits - 1 - symbol.h][kindOf(symbol)] += symbol.count;
  return columns;
}

function legend(kinds) {
  return element("p", "faint", ...kinds.flatMap((kind, at) => [element("span", `swatch kind-${at}`), kind]));
}

function draw(columns, totals, kinds, title) {
  // A unit is a pixel, so that texts are as large on a phone.
  const width = byId("content").clientWidth || 900;
  const step = (width - 2 * chart.side) / columns.length;
  const every = [1, 2, 4, 8, 16].find((ticks) => ticks * step >= 28) ?? 32;
  const base = chart.top + chart.height;
  const most = Math.max(...totals);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${base + chart.foot}`, role: "img", "aria-label": title });
  svg.append(shape("text", { x: chart.side, y: 12 }, `at most ${count(most)} in a bar`));
  columns.forEach((parts, bit) => {
    let top = base;
    parts.forEach((number, kind) => {
      const height = (chart.height * number) / most;
      top -= height;
      if (height === 0) return;
      const rect = shape("rect", { x: chart.side + bit * step + 0.5, width: Math.max(step - 1, 0.5), y: top, height, class: `kind-${kind}` });
      rect.append(shape("title", {}, `bit ${bit}, ${kinds[kind]}: ${count(number)}`));
      svg.append(rect);
    });
    if (bit % every === 0) svg.append(shape("text", { x: chart.side + (bit + 0.5) * step, y: base + 15, "text-anchor": "middle" }, String(bit)));
  });
  svg.append(shape("line", { x1: chart.side, x2: width - chart.side, y1: base, y2: base, class: "axis" }));
  return svg;
}
